"""What is really so in a history: what each source of a node tells or hides. It reads no plan."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from reconciler.model.event import Kind
from reconciler.model.keys import DEFAULT_PREFIX, OwnKeys
from reconciler.model.moments import from_text
from reconciler.model.node import Node
from reconciler.settings.schema import Settings
from reconciler.simulation.api import HEARTBEAT
from reconciler.simulation.platform import Reporter
from reconciler.simulation.world import World
from reconciler.sources.arm.source import Planned
from reconciler.sources.aws.source import CODES, InstanceEvent
from reconciler.sources.condition.source import SECTION as CONDITIONS
from tests.explore.outside import Said, SimulatedArm, SimulatedEc2
from tests.laws.histories import MAIN
from tests.support.builders import IMDS

KEYS = OwnKeys(DEFAULT_PREFIX)
DEADLOCK = "KernelDeadlock"
"""The condition that settings of a history may name."""

CONDITION = f"condition:{DEADLOCK}"
"""Its name as a source."""

_KINDS = {kind.value.casefold(): kind for kind in Kind if kind is not Kind.UNKNOWN}


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


class Truth:
    """What the platform, the clouds, people and detectors really say about each node now."""

    def __init__(self, world: World, arm: SimulatedArm, ec2: SimulatedEc2) -> None:
        self._world = world
        self._arm = arm
        self._ec2 = ec2

    def channels(self, node: Node, policy: Settings) -> Iterator[Channel]:
        """Yield the sources of a node that the settings enable, as they are now.

        A cloud that is queried counts as what it answered last.
        """
        sources = dict(policy.sources)
        if sources["imds"].enabled:
            yield self._imds(node)
        if sources["node_conditions"].enabled:
            yield self._condition(node, policy)
        if sources["requests"].enabled:
            yield _request(node)
        if DEADLOCK in policy.condition_types():
            yield _deadlock(node)
        if sources["arm"].enabled:
            said = self._arm.said.get(node.name, Said())
            yield Channel("arm", not said.problem, tuple(_planned(one) for one in said.found))
        if sources["aws"].enabled:
            heard = self._ec2.said.get(node.name, Said())
            yield Channel("aws", not heard.problem, tuple(_scheduled(one) for one in heard.found))

    def _imds(self, node: Node) -> Channel:
        agents = self._world.cluster.agents
        text = node.annotations.get(IMDS)
        if agents.problem or node.name in agents.not_ready:
            return Channel("imds", readable=False)
        if text is None:
            return Channel("imds", readable=agents.installed, installed=agents.installed)
        ids = _published(text)
        if ids is None:
            return Channel("imds", readable=False)
        told = [one for one in self._announced(node, "imds", Reporter.CONDITION) if one.what in ids]
        return Channel("imds", told=tuple(told), strange=len(told) < len(ids))

    def _condition(self, node: Node, policy: Settings) -> Channel:
        found = node.condition(MAIN)
        if found is None or found.status not in ("True", "False") or self._is_silent(node, policy):
            return Channel("condition", readable=False, installed=found is not None)
        if found.status == "False":
            return Channel("condition")
        events = tuple(self._announced(node, "condition", Reporter.AGENT))
        told = tuple(one for one in events if found.message.endswith(f" {one.what}"))
        hidden = tuple(one for one in events if one not in told)
        return Channel("condition", told=told, hidden=hidden, strange=not told)

    def _is_silent(self, node: Node, policy: Settings) -> bool:
        """Whether the detector is silent for so long that no clock takes it for alive."""
        since = self._world.api.silent_since.get(node.name)
        if since is None:
            return False
        age = min(self._world.now, self._world.ours.now()) - since
        return age > CONDITIONS.of(policy).stale_after + HEARTBEAT

    def _announced(self, node: Node, source: str, but: Reporter) -> Iterator[Told]:
        """Yield what Azure announces or has started for a VM, except what only others report."""
        for event in self._world.platform.reported(node.name):
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


def _published(text: str) -> set[str] | None:
    """Return the IDs of the events in an annotation, None if nobody can read it."""
    try:
        return {str(one["EventId"]) for one in json.loads(text)["events"]}
    except (ValueError, TypeError, KeyError):
        return None


def _request(node: Node) -> Channel:
    text = node.annotations.get(KEYS.request)
    if text is None:
        return Channel("request")
    document = json.loads(text)
    kind = _KINDS.get(str(document["kind"]).casefold())
    if kind is None:
        # Nobody knows what was meant, so nobody knows that the former request is withdrawn.
        return Channel("request", readable=False, strange=True)
    date = document.get("notBefore")
    # Another ID is another request.
    what = f"{kind} {date or ''} {document.get('id', '')}"
    told = Told("request", what, kind, from_text(date) if date else None)
    return Channel("request", told=(told,))


def _deadlock(node: Node) -> Channel:
    found = node.condition(DEADLOCK)
    if found is None:
        return Channel(CONDITION, readable=False, installed=False)
    told = (Told(CONDITION, DEADLOCK, Kind.UNKNOWN),) if found.status == "True" else ()
    return Channel(CONDITION, found.status != "Unknown", told)


def _planned(plan: Planned) -> Told:
    return Told("arm", "plan", Kind.REDEPLOY, plan.start)


def _scheduled(event: InstanceEvent) -> Told:
    return Told("aws", event.id, CODES.get(event.code, Kind.UNKNOWN), event.not_before)
