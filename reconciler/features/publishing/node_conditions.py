"""The node conditions of KEP-5683, a write to the node's status."""

from __future__ import annotations

from datetime import datetime

from reconciler.features.publishing.settings import EnabledSigns, Sign
from reconciler.model.moments import to_text
from reconciler.model.node import DRAINED, DRAINING, IN_PROGRESS, LIFECYCLE, PLANNED, Condition, Node
from reconciler.model.record import KnownEvent, State
from reconciler.model.writes import ConditionsWrite
from reconciler.passes.decision import CaseDecision, NodeSigns

OUR_REASONS = "NodeMaintenance"
"""The prefix of the reason of each of our conditions, because the API has no owner of a condition."""


def bears(node: Node, prefix: str) -> bool:
    """Whether the node has a condition of ours. Conditions do not have the prefix of an installation."""
    del prefix
    return any(_is_ours(node.condition(kind)) for kind in LIFECYCLE)


def signs(node: Node, decision: CaseDecision, showing: EnabledSigns) -> NodeSigns:
    """Return the changes of the conditions."""
    write = changes(node, decision, showing.now, wanted=Sign.NODE_CONDITIONS in showing.signs)
    return NodeSigns(writes=(write,) if write is not None else ())


def removed(node: Node, prefix: str) -> NodeSigns:
    """Return the changes that remove our conditions."""
    del prefix
    kinds = tuple(kind for kind in LIFECYCLE if _is_ours(node.condition(kind)))
    return NodeSigns(writes=(ConditionsWrite(node.name, node.uid, gone=kinds),) if kinds else ())


def changes(node: Node, decision: CaseDecision, now: datetime, *, wanted: bool) -> ConditionsWrite | None:
    """Return the changes of the node's lifecycle conditions, None if there are none.

    A node with a case has all four, a node without a case has none of ours. A condition that another tool has
    set to True belongs to that tool.
    """
    target: dict[str, Condition] = {}
    if wanted and decision.open:
        announced = []
        for event in decision.record.events:
            when = f" not before {to_text(event.not_before)}" if event.not_before else ""
            announced.append(f"{event.condition or event.kind.value}{when} ({', '.join(event.sources)})")
        events = "; ".join(announced)
        lifecycle = (
            _planned(decision, events),
            _in_progress(decision, events, node.condition(IN_PROGRESS)),
            _draining(decision),
            _drained(decision),
        )
        target = {condition.type: condition for condition in lifecycle}
    there = {each.type: each for each in reversed(node.conditions) if each.type in LIFECYCLE}
    if not target and not there:
        return None
    put: list[Condition] = []
    gone: list[str] = []
    for kind in LIFECYCLE:
        have, wish = there.get(kind), target.get(kind)
        ours = _is_ours(have)
        if wish is None:
            if ours:
                gone.append(kind)
        elif have is None or (
            (ours or have.status != "True")
            and (have.status, have.reason, have.message) != (wish.status, wish.reason, wish.message)
        ):
            seen = now.replace(microsecond=0)
            moved = seen if have is None or have.status != wish.status else None
            put.append(Condition(wish.type, wish.status, wish.reason, wish.message, seen, moved))
    if not put and not gone:
        return None
    return ConditionsWrite(node.name, node.uid, tuple(put), tuple(gone))


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


def _lifecycle(node: Node, decision: CaseDecision) -> dict[str, Condition]:
    events = "; ".join(_words(event) for event in decision.record.events)
    found = (
        _planned(decision, events),
        _in_progress(decision, events, node.condition(IN_PROGRESS)),
        _draining(decision),
        _drained(decision),
    )
    return {one.type: one for one in found}


def _words(event: KnownEvent) -> str:
    name = event.condition or event.kind.value
    when = f" not before {to_text(event.not_before)}" if event.not_before else ""
    return f"{name}{when} ({', '.join(event.sources)})"


def _condition(kind: str, status: str, reason: str, message: str) -> Condition:
    return Condition(kind, status, f"{OUR_REASONS}{reason}", message)


def _planned(decision: CaseDecision, events: str) -> Condition:
    if decision.started:
        return _condition(PLANNED, "False", "Started", events)
    if decision.view.present:
        return _condition(PLANNED, "True", "Scheduled", events)
    if decision.view.unknown:
        return _condition(PLANNED, "Unknown", "SourceUnreadable", "; ".join(decision.view.unknown))
    return _condition(PLANNED, "False", "Gone", f"gone: {events}")


def _in_progress(decision: CaseDecision, events: str, before: Condition | None) -> Condition:
    if decision.started:
        return _condition(IN_PROGRESS, "True", "Started", events)
    if decision.view.present:
        return _condition(IN_PROGRESS, "False", "NotStarted", events)
    if decision.view.unknown:
        return _condition(IN_PROGRESS, "Unknown", "SourceUnreadable", "; ".join(decision.view.unknown))
    if before is not None and _is_ours(before) and before.status == "True":
        # The event is gone; the node must still prove that it is healthy.
        return _condition(IN_PROGRESS, "True", "Settling", f"gone: {events}")
    return _condition(IN_PROGRESS, "False", "Gone", f"gone: {events}")


def _draining(decision: CaseDecision) -> Condition:
    drain = decision.record.drain
    if decision.state is not State.IN_MAINTENANCE:
        return _condition(DRAINING, "False", "NotBegun", "the drain has not begun")
    if drain is None:
        return _condition(DRAINING, "False", "NoDrain", "nothing asks for a drain")
    if decision.drained:
        return _condition(DRAINING, "False", "Drained", "all pods that are to go have gone")
    if decision.drain is not None:
        return _condition(DRAINING, "True", "Draining", f"since {to_text(drain.since)}")
    return _condition(DRAINING, "False", "DrainHeld", "begun, and held now")


def _drained(decision: CaseDecision) -> Condition:
    drain = decision.record.drain
    if decision.drained and drain is not None and drain.done is not None:
        return _condition(DRAINED, "True", "Drained", f"since {to_text(drain.done)}")
    return _condition(DRAINED, "False", "NotDrained", "not drained")
