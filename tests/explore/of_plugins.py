"""What a plugin adds to the exploration: `explored.py` beside its tests.

Such a module registers moves (`move`), and may have

- `CLIENTS`: what makes each of its clients, by the name of the client in `World.clients`
- `channels`: a function that yields what its source tells of a node
- `LAWS`: the laws about what it does
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from typing import TYPE_CHECKING, ClassVar

from reconciler.model.node import Node
from reconciler.model.plan import NodePlan
from reconciler.model.writes import NodeWrite
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.explore.truth import Truth

if TYPE_CHECKING:
    from tests.explore.play import Play


class LawsOfPlugin:
    """The laws of a plugin, its `LAWS`, and what they have to know of a history. These demand nothing."""

    counted: ClassVar[tuple[str, ...]] = ()
    """The names under which it counts its checks: each must come up in ten days."""

    def __init__(
        self, world: World, truth: Truth, checked: Counter[str], missed: Mapping[str, Set[str]]
    ) -> None:
        """Watch this world from its beginning; `checked` counts the checks.

        `missed` are the ids of the events that met a node with pods on it, by its UID.
        """
        self.world, self.truth, self.checked, self.missed = world, truth, checked, missed

    # What happens.

    def under(self, policy: Settings) -> None:
        """Note the settings in force."""

    def clock_changed(self) -> None:
        """Note that no time until now can be compared with a time after it."""

    def left(self, node: Node) -> None:
        """Note that a person opens a node, or takes its record away."""

    def works(self, node: Node) -> bool:
        """Return whether it is at work on a node, apart from the maintenance of the platform."""
        return False

    def end(self, play: Play) -> None:
        """Let what it does end, and people take their hands off it."""

    def put_right(self, play: Play) -> None:
        """Do what its holds ask a person for, once all that ends by itself is over."""

    # What must hold.

    def wrote(self, write: NodeWrite, node: Node, policy: Settings) -> None:
        """Check a write of a pass that has taken effect; `node` is as it is then."""

    def evicts(self, node: Node, policy: Settings) -> None:
        """Check a request about a pod of a node."""

    def planned(self, plans: Iterable[NodePlan], policy: Settings) -> None:
        """Check the plans of a pass."""

    def stepped(self) -> None:
        """Check the state after a step, also if there was no pass meanwhile."""

    def rests(self, policy: Settings) -> None:
        """Check the state after passes that have nothing more to do."""

    def calm(self) -> None:
        """Check that nothing goes on any more."""

    def still_due(self, policy: Settings) -> Callable[[Call], bool]:
        """Return which writes of passes may come from now on, though all is over."""
        return lambda write: False
