"""What is really so in a history: what each source of a node tells or hides. It reads no plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from reconciler.model.event import Kind
from reconciler.model.keys import DEFAULT_PREFIX, OwnKeys
from reconciler.model.node import Node
from reconciler.settings.schema import Settings
from reconciler.simulation.platform import Reporter
from reconciler.simulation.world import World
from tests.laws.histories import MAIN
from tests.support.of_features import from_tests

KEYS = OwnKeys(DEFAULT_PREFIX)
DEADLOCK = "KernelDeadlock"
"""The condition that settings of a history may name."""

CONDITION = f"condition:{DEADLOCK}"
"""Its name as a source."""


@dataclass(frozen=True, slots=True)
class Told:
    """One event as one source tells it.

    `what` distinguishes it from the source's other events. `date` is when it starts at the earliest (UTC),
    None if nobody says. Before, it may be too early to drain a node for it.
    """

    source: str
    what: str
    kind: Kind
    date: datetime | None = None


@dataclass(frozen=True, slots=True)
class Channel:
    """One source of one node.

    `hidden` are events that the platform has, and that another one covers. A `strange` source shows something
    that no platform announces, such as what the agent of an earlier node has left. An `installed` source has
    something on the node that answers, or should.
    """

    source: str
    readable: bool = True
    told: tuple[Told, ...] = ()
    hidden: tuple[Told, ...] = ()
    strange: bool = False
    installed: bool = True

    @property
    def name(self) -> str:
        """Its name in readings."""
        return f"condition:{MAIN}" if self.source == "condition" else self.source


Channels = Callable[[World, Node, Settings], Iterator[Channel]]
"""What yields the channels of a plugin on a node, if the settings enable its source."""


class Truth:
    """What the platform, the clouds, people and detectors really say about each node now."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._channels: list[Channels] = list(from_tests("explored", "channels"))

    def channels(self, node: Node, policy: Settings) -> Iterator[Channel]:
        """Yield the sources of a node that the settings enable, as they are now.

        A cloud that is queried counts as what it answered last.
        """
        for channels in self._channels:
            yield from channels(self._world, node, policy)


def announced(world: World, node: Node, source: str, but: Reporter) -> Iterator[Told]:
    """Yield what Azure announces or has started for a VM, except what only this reporter reports."""
    for event in world.platform.reported(node.name):
        if event.reported_by is not but:
            yield Told(source, event.event_id, event.kind, event.not_before)


def asks(told: Told, node: Node, policy: Settings, world: World) -> bool:
    """Return whether an event is one for which such a node is to be drained, whatever the time is."""
    if told.source == CONDITION:
        meaning, found = policy.policies(node.labels).of_condition(DEADLOCK), node.condition(DEADLOCK)
        since = found.transition if found is not None else None
        return meaning is not None and since is not None and world.now - since >= meaning.for_
    if node.is_karpenter and told.source == "aws" and node.is_disrupted and not node.unschedulable:
        return False
    if told.kind.is_pause and world.cluster.remediator.on_freeze:
        return False
    return policy.policies(node.labels).of_kind(told.kind).drain


def is_due(told: Told, world: World) -> bool:
    """Return whether the date of an event has come, by every clock."""
    return told.date is None or told.date <= min(world.now, world.ours.now())


def is_plan(told: Told, world: World) -> bool:
    """Return whether an event is only planned: it does not keep a node out of service."""
    return told.source == "arm" or (told.source == "aws" and not is_due(told, world))
