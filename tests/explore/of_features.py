"""What must hold in a history of what one feature shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Set

from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.explore.truth import Truth


class LawsOfFeature:
    """The laws of a feature, its `LAWS` in `explored.py` beside its tests. These demand nothing."""

    def __init__(
        self, world: World, truth: Truth, checked: Counter[str], missed: Mapping[str, Set[str]]
    ) -> None:
        """Watch this world from its beginning; `checked` counts the checks.

        `missed` are the ids of the events that met a node with pods on it, by its UID.
        """
        self.world, self.truth, self.checked, self.missed = world, truth, checked, missed

    def rests(self, policy: Settings) -> None:
        """Check the state after passes that have nothing more to do."""

    def calm(self) -> None:
        """Check that nothing goes on any more."""

    def still_due(self, policy: Settings) -> Callable[[Call], bool]:
        """Return which writes of passes may come from now on, though all is over."""
        return lambda write: False
