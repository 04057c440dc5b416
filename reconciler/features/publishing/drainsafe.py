"""drainsafe's annotations, which change with the node's own patch."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from reconciler.features.publishing.settings import EnabledSigns, Sign
from reconciler.model.event import Kind
from reconciler.model.node import Node
from reconciler.model.outcome import WaitsFor
from reconciler.model.record import State
from reconciler.passes.decision import CaseDecision, NodeSigns


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

_ORDER = tuple(Drainsafe)


def bears(node: Node, prefix: str) -> bool:
    """Whether the node has a value of ours."""
    return node.annotations.get(DRAINSAFE_OWNER) == prefix and DRAINSAFE_STATE in node.annotations


def signs(node: Node, decision: CaseDecision, showing: EnabledSigns) -> NodeSigns:
    """Return the changes of the annotations."""
    return NodeSigns(changes(node, decision, showing.prefix, wanted=Sign.DRAINSAFE in showing.signs))


def removed(node: Node, prefix: str) -> NodeSigns:
    """Return the changes that remove our annotations."""
    ours = node.annotations.get(DRAINSAFE_OWNER) == prefix
    return NodeSigns(dict.fromkeys(sorted(DRAINSAFE_KEYS & node.annotations.keys())) if ours else {})


def changes(node: Node, decision: CaseDecision, owner: str, *, wanted: bool) -> Mapping[str, str | None]:
    """Return the changes of drainsafe's annotations; None removes one.

    They are ours if the owner annotation names us. Another owner's annotations are left alone, unless its
    node is back in service.
    """
    have = {key: node.annotations[key] for key in DRAINSAFE_KEYS if key in node.annotations}
    ours = have.get(DRAINSAFE_OWNER) == owner
    if not wanted:
        return dict.fromkeys(sorted(have)) if ours else {}
    before = have.get(DRAINSAFE_STATE)
    if not ours and before not in (None, Drainsafe.RUNNING.value):
        return {}
    if not decision.open:
        if not ours:
            return {}
        annotations: dict[str, str | None] = {DRAINSAFE_STATE: Drainsafe.RUNNING.value, DRAINSAFE_TYPE: None}
    else:
        value = value_of(decision, before if ours else None)
        annotations = {DRAINSAFE_STATE: value.value, DRAINSAFE_TYPE: _type(decision), DRAINSAFE_OWNER: owner}
    return {key: text for key, text in annotations.items() if have.get(key) != text}


def value_of(decision: CaseDecision, before: str | None) -> Drainsafe:
    """Return the value for a node with a case, never one that comes before `before`.

    The only step back is a drain that a new event has started again: a node that is being drained is not
    drained.
    """
    now = _value_now(decision)
    shown = next((value for value in _ORDER if value.value == before), None)
    if shown is None or shown is Drainsafe.RUNNING:
        return now
    again = now in (Drainsafe.CORDONED, Drainsafe.DRAINING)
    if again and shown in (Drainsafe.DRAINED, Drainsafe.STARTED) and decision.record.drain is not None:
        return now
    return max(now, shown, key=_ORDER.index)


def _value_now(decision: CaseDecision) -> Drainsafe:
    if decision.state is State.REQUIRED:
        waits_for = {hold.waits_for for hold in decision.holds}
        if not waits_for or WaitsFor.PERMISSION in waits_for:
            return Drainsafe.SCHEDULED
        return Drainsafe.CORDONING if waits_for == {WaitsFor.TURN} else Drainsafe.APPROVED
    if decision.drained:
        return Drainsafe.STARTED if decision.started else Drainsafe.DRAINED
    return Drainsafe.DRAINING if decision.drain is not None else Drainsafe.CORDONED


def _type(decision: CaseDecision) -> str | None:
    events = decision.record.events
    if not events:
        return None
    worst = max(events, key=lambda one: one.kind.severity)
    if worst.condition:
        return worst.condition
    # drainsafe knows the types of IMDS, where a live migration is a freeze.
    return (Kind.FREEZE if worst.kind is Kind.LIVE_MIGRATION else worst.kind).value
