"""A scripted Azure: nodes as AKS names them, whose VM events are announced, start, affect the VM, and end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import ClassVar, Protocol
from uuid import UUID, uuid5

from msgspec import Struct, field

from reconciler import plugins
from reconciler.model.azure import vm_name
from reconciler.model.event import Kind
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.node import OS_LABEL, SPOT_LABEL, ZONE_LABEL, Condition, Node, Taint
from reconciler.simulation.clock import Actor
from reconciler.simulation.cluster import SimulatedCluster

REGION = "westeurope"
_SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
_GROUP = f"mc_rg-shop_shop_{REGION}"
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


class SimulatedPool(Struct, frozen=True):
    """A node pool on a uniform scale set; `cluster` is the number that AKS gives it."""

    name: str
    spot: bool = False
    cluster: str = "31415926"

    @property
    def scale_set(self) -> str:
        """The name of its scale set."""
        return f"aks-{self.name}-{self.cluster}-vmss"

    def node(self, instance: int, *, detector: bool = True) -> Node:
        """Return the node of one instance, in the next zone in turn;

        `detector`: it has node-problem-detector.
        """
        taints = (Taint(SPOT_LABEL, "spot", "NoSchedule"),) if self.spot else ()
        # The computer names of scale sets end in base 36, with six digits.
        number, digits = instance, ""
        for _ in range(6):
            number, digit = divmod(number, 36)
            digits = _BASE36[digit] + digits
        return Node(
            name=f"{self.scale_set}{digits}",
            uid="",
            resource_version="",
            labels={
                "agentpool": self.name,
                "kubernetes.azure.com/agentpool": self.name,
                ZONE_LABEL: f"{REGION}-{instance % 3 + 1}",
                OS_LABEL: "linux",
                **({SPOT_LABEL: "spot"} if self.spot else {}),
            },
            provider_id=(
                f"azure:///subscriptions/{_SUBSCRIPTION}/resourceGroups/{_GROUP}/providers/Microsoft.Compute"
                f"/virtualMachineScaleSets/{self.scale_set}/virtualMachines/{instance}"
            ),
            taints=taints,
            conditions=quiet_conditions() if detector else (),
        )


# Azure's own words (scheduled-events.md, and its mock server); only these words identify a live migration.
_DESCRIPTIONS: Mapping[Kind, str] = {
    Kind.FREEZE: "Host server is undergoing maintenance.",
    Kind.LIVE_MIGRATION: (
        "Virtual machine is being paused because of a memory-preserving Live Migration operation."
    ),
    Kind.REBOOT: "Host server is undergoing maintenance.",
    Kind.REDEPLOY: "Host server is undergoing an emergency repair.",
    Kind.PREEMPT: "",
    Kind.TERMINATE: "",
}
_TYPES: Mapping[Kind, str] = {Kind.LIVE_MIGRATION: "Freeze"}
_NAMESPACE = UUID("6ba7b812-9dad-11d1-80b4-00c04fd430c8")


class Reporter(StrEnum):
    """What reports an event to the cluster."""

    CONDITION = "condition"
    AGENT = "agent"
    BOTH = "both"


class VmEvent(Struct, frozen=True):
    """One VM event; moments are UTC.

    Events with the same `id`, each on its own node, are one event of Azure that names all their VMs. It
    starts at `not_before`, or at `starts` if that is set. A reboot or redeploy stops the VM for `down`. The
    event ends `lasts` after its start. `seconds` is the pause that Azure announces, -1 for unknown.
    `by_user`: a user requested it in the portal.
    """

    node: str
    kind: Kind
    not_before: datetime
    seconds: int = -1
    starts: datetime | None = None
    down: timedelta = timedelta(minutes=4)
    lasts: timedelta = timedelta(minutes=10)
    reported_by: Reporter = Reporter.CONDITION
    id: str = ""
    description: str | None = None
    by_user: bool = False

    @property
    def event_id(self) -> str:
        """The ID, derived from the event if none is given; in upper case."""
        return self.id or str(uuid5(_NAMESPACE, f"{self.node} {self.kind} {self.not_before}")).upper()


class _Running(Struct):
    event: VmEvent
    uid: str
    started: bool = False
    over: bool = field(default=False)


class SimulatedAgents(Protocol):
    """Programs on nodes that report VM events. A plugin has them among its `AGENTS`.

    `reporter` says which events they report, and `quiet` what a new node has of them, without an event.
    """

    reporter: ClassVar[Reporter]
    quiet: ClassVar[tuple[Condition, ...]]

    def publish(self, node: str, vm: str, events: Sequence[Mapping[str, object]]) -> None:
        """Report that these are the events of a node, whose VM has this name, in the form of `document`."""


class SimulatedPlatform:
    """What Azure does to the VMs of a simulated cluster, and what reports it there."""

    def __init__(self, cluster: SimulatedCluster, *, prefix: str = DEFAULT_PREFIX) -> None:
        """Use this cluster. `prefix` is the prefix of the agents' annotations."""
        self._cluster = cluster
        self._events: dict[tuple[str, str], _Running] = {}
        self._agents = [agents(cluster, self, prefix) for agents in _of_plugins()]

    def announce(self, event: VmEvent) -> None:
        """Report an event now, and put everything that follows on the clock's agenda."""
        node = self._cluster.nodes.get(event.node)
        if node is None:
            return
        running = _Running(event, node.uid)
        self._events[_key(event)] = running
        self._publish_all(event)
        when = event.not_before.isoformat()
        self._cluster.note(Actor.PLATFORM, f"{event.kind} scheduled", event.node, event.event_id, when)
        self._cluster.clock.at(event.starts or event.not_before, lambda: self._start(running))

    def strike(self, event: VmEvent) -> None:
        """Start an event without notice, as after a hardware failure."""
        node = self._cluster.nodes.get(event.node)
        if node is not None:
            running = _Running(event, node.uid)
            self._events[_key(event)] = running
            self._start(running)

    def cancel(self, event: VmEvent) -> None:
        """Cancel an event that has not started; nothing happens if it has."""
        running = self._events.get(_key(event))
        if running is not None and not running.started:
            running.over = True
            del self._events[_key(event)]
            self._cluster.note(Actor.PLATFORM, f"{event.kind} cancelled", event.node, event.event_id)
            self._publish_all(event)

    def reported(self, node: str) -> tuple[VmEvent, ...]:
        """Return the events that are reported for a node now."""
        return tuple(event.event for event in self._events.values() if event.event.node == node)

    def waiting(self, node: str) -> tuple[str, ...]:
        """Return the IDs of the events of a node that have not started."""
        return tuple(
            event_id
            for (event_id, _), running in self._events.items()
            if running.event.node == node and not running.started
        )

    def start(self, event_id: str, node: str, *, because: str) -> None:
        """Start an event on all its VMs at once, as an agent of this node asks for; nothing happens again."""
        running = self._events.get((event_id, node))
        if running is None or running.started:
            return
        self._cluster.note(Actor.PLATFORM, f"{running.event.kind} {because}", node, event_id)
        for each in self._of(event_id):
            self._start(each)

    def _start(self, running: _Running) -> None:
        event, clock = running.event, self._cluster.clock
        if running.started:
            return
        if running.over or not self._same_vm(running):
            self._events.pop(_key(event), None)
            return
        running.started = True
        self._publish_all(event)
        self._cluster.note(Actor.PLATFORM, f"{event.kind} started", event.node, event.event_id)
        match event.kind:
            case Kind.REBOOT | Kind.REDEPLOY:
                self._cluster.node_down(event.node, f"{event.kind} of the VM")
                clock.after(event.down, lambda: self._back(running))
            case Kind.PREEMPT | Kind.TERMINATE:
                del self._events[_key(event)]
                self._cluster.delete_node(event.node, Actor.PLATFORM)
                return
        clock.after(event.lasts, lambda: self._end(running))

    def _back(self, running: _Running) -> None:
        if self._same_vm(running):
            self._cluster.node_up(running.event.node)

    def _end(self, running: _Running) -> None:
        event = running.event
        self._events.pop(_key(event), None)
        if self._same_vm(running):
            self._publish_all(event)
            self._cluster.note(Actor.PLATFORM, f"{event.kind} over", event.node, event.event_id)

    def _same_vm(self, running: _Running) -> bool:
        node = self._cluster.nodes.get(running.event.node)
        return node is not None and node.uid == running.uid

    def _of(self, event_id: str) -> tuple[_Running, ...]:
        return tuple(one for (named, _), one in self._events.items() if named == event_id)

    def _vm(self, node: str) -> str:
        found = self._cluster.nodes.get(node)
        return (vm_name(found.provider_id) if found else None) or node

    def _publish_all(self, event: VmEvent) -> None:
        """Publish on every node of an event, because each publication names all of its VMs."""
        for node in dict.fromkeys((event.node, *(one.event.node for one in self._of(event.event_id)))):
            if node in self._cluster.nodes:
                self._publish(node)

    def _document(self, running: _Running) -> dict[str, object]:
        vms = [self._vm(one.event.node) for one in self._of(running.event.event_id)]
        return document(running.event, *vms, started=running.started)

    def _publish(self, node: str) -> None:
        """Write what the agents of a node see, each the events that it reports."""
        vm = self._vm(node)
        here = [event for event in self._events.values() if event.event.node == node]
        for agents in self._agents:
            shown = [one for one in here if one.event.reported_by in (agents.reporter, Reporter.BOTH)]
            agents.publish(node, vm, [self._document(one) for one in shown])


class _MakesAgents(Protocol):
    """What makes agents, for a cluster, its platform and the prefix of our keys; as a rule their class."""

    quiet: ClassVar[tuple[Condition, ...]]

    def __call__(
        self, cluster: SimulatedCluster, platform: SimulatedPlatform, prefix: str
    ) -> SimulatedAgents:
        """Return agents of all nodes of the cluster."""


@cache
def _of_plugins() -> tuple[_MakesAgents, ...]:
    return tuple(
        agents for module in plugins.modules("simulation") for agents in getattr(module, "AGENTS", ())
    )


def _key(event: VmEvent) -> tuple[str, str]:
    return (event.event_id, event.node)


def document(event: VmEvent, *vms: str, started: bool) -> dict[str, object]:
    """Return an event as Azure shows it to its VMs, with their names."""
    return {
        "EventId": event.event_id,
        "EventType": _TYPES.get(event.kind, event.kind.value),
        "ResourceType": "VirtualMachine",
        "Resources": list(vms),
        "EventStatus": "Started" if started else "Scheduled",
        "NotBefore": "" if started else event.not_before.strftime("%a, %d %b %Y %H:%M:%S GMT"),
        "Description": _DESCRIPTIONS.get(event.kind, "") if event.description is None else event.description,
        "EventSource": "User" if event.by_user else "Platform",
        "DurationInSeconds": event.seconds,
    }


def quiet_conditions() -> tuple[Condition, ...]:
    """Return the conditions by which the agents of a node say that no event is scheduled."""
    return tuple(condition for agents in _of_plugins() for condition in agents.quiet)
