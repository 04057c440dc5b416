"""What a start changes in a pass: what the drain does not wait for, until its case ends."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.features.start.instruction import key_of, start_of
from reconciler.model.instructions import Waives
from reconciler.model.keys import DEFAULT_PREFIX, OwnKeys
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan
from reconciler.model.record import CaseRecord
from reconciler.passes.decision import CaseDecision, NodeSigns
from reconciler.passes.node_facts import NodeFacts, PassContext
from reconciler.passes.plugin import Feature
from reconciler.profiles.instructed import case_of
from reconciler.settings.schema import Settings

_NONE = NodeSigns()


def _waives(node: Node, case: CaseRecord, settings: Settings) -> Waives | None:
    start = start_of(node, settings.keys.prefix)
    if start is None:
        return None
    return lambda event: start.waiver if start.said.covers(event, case_of(case)) else None


def _bears(node: Node, prefix: str) -> bool:
    return key_of(prefix) in node.annotations


def _removed(node: Node, prefix: str) -> NodeSigns:
    key = key_of(prefix)
    return NodeSigns(annotations={key: None}) if key in node.annotations else _NONE


def _signs(decision: CaseDecision, node: NodeFacts, context: PassContext) -> NodeSigns:
    """Remove the start with the case that it was for, and the copy of one of another node."""
    prefix = context.settings.keys.prefix
    over = node.case.open and not decision.record.open
    return _removed(node.read, prefix) if over or start_of(node.read, prefix) is None else _NONE


def _remedies(plan: NodePlan, keys: OwnKeys) -> Sequence[str]:
    """Return the command that begins the drain now, if that is what keeps the node from being in time."""
    schedule = plan.schedule
    if schedule is None or schedule.started or schedule.by_pods or schedule.observed:
        return ()
    may = any(event.asks and event.starts and event.waiver is None for event in plan.events)
    if not may or plan.status.instructions.hold is not None or plan.unguarded is not None:
        return ()
    config = " --config FILE" if keys.prefix != DEFAULT_PREFIX else ""
    return (f"reconciler start {plan.node} --now{config}",)


FEATURE = Feature(
    "start",
    waives=_waives,
    remedies=_remedies,
    bears_signs=_bears,
    signs=_signs,
    outlived=_removed,
    removed=_removed,
)
