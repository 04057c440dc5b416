"""Endings: whether we can end the maintenance of a node ourselves, or only the platform can.

Only a case that we can end starts early: any other node would stand empty, and hold a place, until its date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, field

from reconciler.model import scheduled_events as imds
from reconciler.model.event import MaintenanceEvent, Reading, Signal
from reconciler.model.limits import count_of
from reconciler.model.machine import REPLACE, SURGE, Machine
from reconciler.model.moments import to_text
from reconciler.model.node import CONTROL_PLANE_LABELS, Node
from reconciler.model.plan import AfterDrain
from reconciler.model.record import CaseRecord
from reconciler.settings.policies import EventPolicy

ATTEMPTS = 5
"""Requests to change a pool for one node, of each sort: after so many without an effect, none has one."""


ACKNOWLEDGE = "acknowledge"
"""The name of the offer by which Azure is asked to start a scheduled event."""

FOLLOWED = timedelta(minutes=30)
"""So long after it was asked to start an event, Azure does not start it any more: usually it does at once."""


class Means(Struct, frozen=True):
    """What a pass knows about a node by which its maintenance could end before the platform does it.

    `notice` says that a source of the node reports maintenance minutes before it begins. `machine` is None if
    no provider knows the node. `twin` names a node with the same providerID, empty if there is none. `vms`
    returns the nodes of each VM, by its name in scheduled events (casefolded). `in_vain` says why Azure
    would not be asked soon to start an event although this node is drained, by the ID of it (casefolded).
    `spread` is how far another clock, which may be right, is ahead of the time of the pass: deadlines go by
    that one.
    """

    notice: bool = False
    machine: Machine | None = None
    twin: str = ""
    readings: tuple[Reading, ...] = ()
    vms: Callable[[], Mapping[str, Sequence[str]]] = dict
    record: CaseRecord = CaseRecord()
    in_vain: Mapping[str, str] = field(default_factory=dict)
    spread: timedelta = timedelta()


def after_drain(
    event: MaintenanceEvent, policy: EventPolicy, node: Node, means: Means, now: datetime
) -> AfterDrain:
    """Return how the event ends once the node is drained, and why only the platform ends it, if so.

    `now` is aware, UTC.
    """
    replaces = policy.replace or event.replaces
    plan = event.plan
    offered = plan.asks if plan is not None and plan.accept and plan.open_at(now) else ""
    refusals: list[str] = []
    if replaces:
        refusals.append(_why_not_now(node, means))
    asked = means.record.asked_by(ACKNOWLEDGE) if policy.acknowledge else None
    follows = asked.last + FOLLOWED if asked is not None else None
    until = follows if follows is not None and now < follows else None
    if policy.acknowledge:
        refusals.append(_why_not_acknowledged(event, means, now))
    if offered:
        refusals.append(why_not_asked(offered, means.twin))
    refused = "; ".join(refusals) if all(refusals) else ""
    if refusals and not refused and any(old.matches(event) for old in means.record.late):
        refused = "this was tried, and did not end it"
    return AfterDrain(policy.acknowledge, replaces, offered, refused, until)


def is_control_plane(node: Node, machine: Machine | None) -> bool:
    """Whether the node runs the cluster's own control plane."""
    declared = machine is not None and machine.control_plane
    return declared or any(label in node.labels for label in CONTROL_PLANE_LABELS)


def wanted_machines(record: CaseRecord) -> int | None:
    """Return to how many machines the pool was scaled up for the node, None if it was not."""
    asked = record.asked_by(SURGE)
    return int(asked.own) if asked is not None and asked.own.isdecimal() else None


def why_never_replaced(node: Node, machine: Machine | None, twin: str, record: CaseRecord) -> str:
    """Return why the machine is not replaced as things stand, whatever is waited for; empty if it may be."""
    if is_control_plane(node, machine):
        return "control-plane nodes are never replaced; handle this one by hand"
    if twin:
        return f"it is not replaced: node {twin} has the same providerID"
    if machine is None:
        return "it can't be replaced: the node does not name a machine provider"
    if machine.problem:
        return f"it can't be replaced: {machine.problem}"
    pool = machine.pool
    if machine.deleting:
        return ""
    if pool is None:
        return "it is not replaced: nothing would create a new machine"
    if pool.lowered_by_deletion and pool.wanted is None:
        return f"it is not replaced: {pool} has no single count that could be restored"
    if machine.stalls:
        return f"its deletion would not end: {machine.stalls}"
    removal, surge, wanted = record.asked_by(REPLACE), record.asked_by(SURGE), wanted_machines(record)
    if removal is not None and removal.attempts >= ATTEMPTS:
        return f"its machine is still there after {count_of(removal.attempts, 'request')} to delete it"
    if surge is not None and wanted is not None and removal is None:
        grown = pool.wanted is not None and pool.wanted >= wanted
        if not grown and surge.attempts >= ATTEMPTS:
            return (
                f"{pool} does not have {count_of(wanted, 'machine')} after "
                f"{count_of(surge.attempts, 'request')}"
            )
    return ""


def _why_not_now(node: Node, means: Means) -> str:
    """Return why the machine is not replaced, or, before the drain, why it is not yet known to be."""
    refusal = why_never_replaced(node, means.machine, means.twin, means.record)
    if refusal or means.record.drain is not None:
        return refusal
    # A drained node waits for its pool. One that is in service need not stand empty meanwhile.
    machine = means.machine
    return machine.pool.busy if machine is not None and machine.pool is not None else ""


def _why_not_acknowledged(event: MaintenanceEvent, means: Means, now: datetime) -> str:
    """Return why Azure can't be asked to start the event early, whatever is drained; empty if it can."""
    asked = means.record.asked_by(ACKNOWLEDGE)
    if asked is not None and now >= asked.last + FOLLOWED and not set(event.ids).isdisjoint(asked.events):
        return f"Azure was asked to start it at {to_text(asked.last)}, and has not started it"
    signals = signals_of(event, means.readings)
    if not signals:
        return "it can't be acknowledged: the node agent does not report it"
    vms = sorted({name.strip().casefold() for signal in signals for name in signal.resources})
    named = all(signal.resources for signal in signals)
    refusals = (why_no_node(vm, means.vms().get(vm, ())) for vm in vms)
    refusal = next(filter(None, refusals), "" if named else "it does not say which VMs it is about")
    refusal = refusal or next((why for one in signals if (why := means.in_vain.get(one.id.casefold()))), "")
    return f"it can't be acknowledged: {refusal}" if refusal else ""


def signals_of(event: MaintenanceEvent, readings: Iterable[Reading]) -> list[Signal]:
    """Return what Azure's scheduled events say about the event, each with an ID that can be acknowledged."""
    return [
        signal
        for reading in readings
        if reading.source == imds.SOURCE
        for signal in reading.signals
        if signal.id and signal.id in event.ids
    ]


def why_no_node(vm: str, names: Sequence[str]) -> str:
    """Return why it is not known which node a VM of an event is; `names` are the nodes that have it."""
    if not names:
        return f"VM {vm} is not a node of this cluster"
    return f"VM {vm} may be any of {', '.join(sorted(names))}" if len(names) > 1 else ""


def why_not_asked(platform: str, twin: str) -> str:
    """Return why a platform, in words, can't be asked to do the maintenance of a VM; empty if it can."""
    return f"{platform} is not asked: node {twin} has the same providerID" if twin else ""
