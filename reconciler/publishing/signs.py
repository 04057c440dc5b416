"""Publishing: the signs of other tools that a node bears, kept true to its case.

drainsafe's annotations ride on the node's own patch; the conditions of KEP-5683 live in the node's status
and are a write of their own. Both are only ever shown: nothing is decided by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reconciler.engine.case import CaseView
from reconciler.model.event import REQUEST, Kind, MaintenanceEvent, Status
from reconciler.model.holds import WaitsFor
from reconciler.model.moments import to_text
from reconciler.model.node import Condition, Node
from reconciler.model.plan import ConditionsWrite, Hold
from reconciler.model.record import CaseRecord, KnownEvent, State


class Drainsafe(StrEnum):
    """The values of drainsafe's annotation, in its order."""

    SCHEDULED = "MaintenanceScheduled"
    APPROVED = "MaintenanceApproved"
    CORDONING = "NodeCordoning"
    CORDONED = "NodeCordoned"
    DRAINING = "NodeDraining"
    DRAINED = "NodeDrained"
    STARTED = "MaintenanceStarted"
    RUNNING = "NodeRunning"


DRAINSAFE_STATE = "drainsafe.azure.com/maintenancestate"
DRAINSAFE_TYPE = "drainsafe.azure.com/maintenancetype"
DRAINSAFE_OWNER = "drainsafe.azure.com/maintenanceowner"
DRAINSAFE_KEYS = frozenset((DRAINSAFE_STATE, DRAINSAFE_TYPE, DRAINSAFE_OWNER))

PLANNED = "MaintenancePlanned"
IN_PROGRESS = "MaintenanceInProgress"
DRAINING = "DrainInProgress"
DRAINED = "Drained"
LIFECYCLE = (PLANNED, IN_PROGRESS, DRAINING, DRAINED)
OUR_REASONS = "NodeMaintenance"
"""What the reason of every condition of ours begins with: the API knows no owner of a condition."""

_ORDER = tuple(Drainsafe)
# The costlier kind last; drainsafe knows IMDS's own types, in which a live migration is a freeze.
_COST = (
    Kind.UNKNOWN,
    Kind.REBALANCE,
    Kind.FREEZE,
    Kind.LIVE_MIGRATION,
    Kind.REBOOT,
    Kind.REDEPLOY,
    Kind.TERMINATE,
    Kind.PREEMPT,
)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a node stands after a pass: its record, its case's events, and whether its drain goes on now."""

    state: State
    record: CaseRecord
    case: CaseView
    holds: tuple[Hold, ...] = ()
    draining: bool = False

    @property
    def open(self) -> bool:
        """Whether there is a case."""
        return self.state is not State.OPERATIONAL

    @property
    def drained(self) -> bool:
        """Whether all pods that are to go have gone."""
        drain = self.record.drain
        return self.state is State.IN_MAINTENANCE and drain is not None and drain.done is not None

    @property
    def started(self) -> bool:
        """Whether the platform is at it; whoever asks without telling of a start may begin once drained."""
        events = [one.event for one in self.case.present]
        if any(event.status is Status.STARTED and not event.condition for event in events):
            return True
        return self.drained and bool(events) and all(_tells_no_start(event) for event in events)


def _tells_no_start(event: MaintenanceEvent) -> bool:
    return bool(event.condition) or set(event.sources) <= {REQUEST}


# drainsafe's annotation.


def drainsafe(node: Node, standing: Standing, owner: str, *, wanted: bool) -> Mapping[str, str | None]:
    """Return what changes of drainsafe's annotations; None takes one away.

    They are ours where the owner is. Another owner's are left alone, unless its node is back in service.
    """
    have = {key: node.annotations[key] for key in DRAINSAFE_KEYS if key in node.annotations}
    ours = have.get(DRAINSAFE_OWNER) == owner
    if not wanted:
        return dict.fromkeys(sorted(have)) if ours else {}
    before = have.get(DRAINSAFE_STATE)
    if not ours and before not in (None, Drainsafe.RUNNING.value):
        return {}
    if not standing.open:
        if not ours:
            return {}
        told: dict[str, str | None] = {DRAINSAFE_STATE: Drainsafe.RUNNING.value, DRAINSAFE_TYPE: None}
    else:
        value = drainsafe_state(standing, before if ours else None)
        told = {DRAINSAFE_STATE: value.value, DRAINSAFE_TYPE: _type(standing), DRAINSAFE_OWNER: owner}
    return {key: text for key, text in told.items() if have.get(key) != text}


def drainsafe_state(standing: Standing, before: str | None) -> Drainsafe:
    """Return the value for a node with a case, never before the one that is there.

    The one step back is a drain that a new event has begun anew: a node being emptied is not drained.
    """
    now = _drainsafe_now(standing)
    shown = next((value for value in _ORDER if value.value == before), None)
    if shown is None or shown is Drainsafe.RUNNING:
        return now
    anew = now in (Drainsafe.CORDONED, Drainsafe.DRAINING)
    if anew and shown in (Drainsafe.DRAINED, Drainsafe.STARTED) and standing.record.drain is not None:
        return now
    return max(now, shown, key=_ORDER.index)


def _drainsafe_now(standing: Standing) -> Drainsafe:
    if standing.state is State.REQUIRED:
        waits_for = {hold.waits_for for hold in standing.holds}
        if not waits_for or WaitsFor.PERMISSION in waits_for:
            return Drainsafe.SCHEDULED
        return Drainsafe.CORDONING if waits_for == {WaitsFor.TURN} else Drainsafe.APPROVED
    if standing.drained:
        return Drainsafe.STARTED if standing.started else Drainsafe.DRAINED
    return Drainsafe.DRAINING if standing.draining else Drainsafe.CORDONED


def _type(standing: Standing) -> str | None:
    events = standing.record.events
    if not events:
        return None
    worst = max(events, key=lambda one: _COST.index(one.kind))
    if worst.condition:
        return worst.condition
    return (Kind.FREEZE if worst.kind is Kind.LIVE_MIGRATION else worst.kind).value


# KEP-5683's conditions.


def lifecycle(node: Node, standing: Standing, now: datetime, *, wanted: bool) -> ConditionsWrite | None:
    """Return what changes of the node's lifecycle conditions, None where all are as they should be.

    A node with a case bears all four, one without none of ours. What somebody else says is True is theirs.
    """
    target = _lifecycle(node, standing) if wanted and standing.open else {}
    put: list[Condition] = []
    gone: list[str] = []
    for kind in LIFECYCLE:
        have, wish = node.condition(kind), target.get(kind)
        ours = _is_ours(have)
        if wish is None:
            if ours:
                gone.append(kind)
        elif (have is None or ours or have.status != "True") and not _same(have, wish):
            moved = have is None or have.status != wish.status
            put.append(_dated(wish, now.replace(microsecond=0), moved=moved))
    if not put and not gone:
        return None
    return ConditionsWrite(node.name, node.uid, tuple(put), tuple(gone))


def without_signs(node: Node, owner: str) -> tuple[Mapping[str, str | None], ConditionsWrite | None]:
    """Return what takes every sign of ours off a node."""
    nothing = Standing(State.OPERATIONAL, CaseRecord(), CaseView())
    annotations = drainsafe(node, nothing, owner, wanted=False)
    kinds = tuple(one for one in LIFECYCLE if _is_ours(node.condition(one)))
    return annotations, ConditionsWrite(node.name, node.uid, gone=kinds) if kinds else None


def bears_signs(node: Node, owner: str) -> bool:
    """Whether there is a sign of ours that may have to change although nothing else is told of the node."""
    state = node.annotations.get(DRAINSAFE_STATE)
    if node.annotations.get(DRAINSAFE_OWNER) == owner and state is not None:
        return True
    return any(_is_ours(node.condition(kind)) for kind in LIFECYCLE)


def _is_ours(have: Condition | None) -> bool:
    return have is not None and have.reason.startswith(OUR_REASONS)


def _same(have: Condition | None, wish: Condition) -> bool:
    return have is not None and (have.status, have.reason, have.message) == (
        wish.status,
        wish.reason,
        wish.message,
    )


def _dated(wish: Condition, now: datetime, *, moved: bool) -> Condition:
    return Condition(wish.type, wish.status, wish.reason, wish.message, now, now if moved else None)


def _lifecycle(node: Node, standing: Standing) -> dict[str, Condition]:
    told = "; ".join(_words(event) for event in standing.record.events)
    found = (
        _planned(standing, told),
        _in_progress(standing, told, node.condition(IN_PROGRESS)),
        _draining(standing),
        _drained(standing),
    )
    return {one.type: one for one in found}


def _words(event: KnownEvent) -> str:
    name = event.condition or event.kind.value
    when = f" not before {to_text(event.not_before)}" if event.not_before else ""
    return f"{name}{when} ({', '.join(event.sources)})"


def _say(kind: str, status: str, reason: str, message: str) -> Condition:
    return Condition(kind, status, f"{OUR_REASONS}{reason}", message)


def _planned(standing: Standing, told: str) -> Condition:
    if standing.started:
        return _say(PLANNED, "False", "Started", told)
    if standing.case.present:
        return _say(PLANNED, "True", "Scheduled", told)
    if standing.case.unknown:
        return _say(PLANNED, "Unknown", "SourceUnreadable", "; ".join(standing.case.unknown))
    return _say(PLANNED, "False", "Gone", f"gone: {told}")


def _in_progress(standing: Standing, told: str, before: Condition | None) -> Condition:
    if standing.started:
        return _say(IN_PROGRESS, "True", "Started", told)
    if standing.case.present:
        return _say(IN_PROGRESS, "False", "NotStarted", told)
    if standing.case.unknown:
        return _say(IN_PROGRESS, "Unknown", "SourceUnreadable", "; ".join(standing.case.unknown))
    if before is not None and _is_ours(before) and before.status == "True":
        # The event has gone, and the node has yet to show that it is well.
        return _say(IN_PROGRESS, "True", "Settling", f"gone: {told}")
    return _say(IN_PROGRESS, "False", "Gone", f"gone: {told}")


def _draining(standing: Standing) -> Condition:
    drain = standing.record.drain
    if standing.state is not State.IN_MAINTENANCE:
        return _say(DRAINING, "False", "NotBegun", "the drain has not begun")
    if drain is None:
        return _say(DRAINING, "False", "NoDrain", "nothing asks for a drain")
    if standing.drained:
        return _say(DRAINING, "False", "Drained", "all pods that are to go have gone")
    if standing.draining:
        return _say(DRAINING, "True", "Draining", f"since {to_text(drain.since)}")
    return _say(DRAINING, "False", "DrainHeld", "begun, and held now")


def _drained(standing: Standing) -> Condition:
    drain = standing.record.drain
    if standing.drained and drain is not None and drain.done is not None:
        return _say(DRAINED, "True", "Drained", f"since {to_text(drain.done)}")
    return _say(DRAINED, "False", "NotDrained", "not drained")
