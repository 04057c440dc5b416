"""What a start changes in a pass: what the drain does not wait for, until its case ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.features.start.instruction import NAME, key_of, may_begin, start_of
from reconciler.model.instructions import Waives
from reconciler.model.node import Node
from reconciler.model.record import CaseRecord, State
from reconciler.model.sayings import Saying, mark_of
from reconciler.passes.decide.one_node import START_CHECKS
from reconciler.passes.decision import CaseDecision, NodeSigns
from reconciler.passes.node_facts import NodeFacts, PassContext
from reconciler.passes.plugin import Feature
from reconciler.profiles.checks import CHECKS
from reconciler.profiles.instructed import case_of
from reconciler.settings.schema import Mode, Settings

_NONE = NodeSigns()


def _waives(node: Node, case: CaseRecord, settings: Settings) -> Waives | None:
    start = start_of(node, settings.keys.prefix)
    if start is None:
        return None
    return lambda event: start.waiver if start.said.covers(event, case_of(case)) else None


def _bears(node: Node, prefix: str) -> bool:
    return key_of(prefix) in node.annotations


def _sayings(node: Node, prefix: str) -> Iterator[Saying]:
    start = start_of(node, prefix)
    if start is not None:
        mark = mark_of(node.annotations[key_of(prefix)])
        yield Saying(NAME, "started", start.said.word, mark, "start ended", with_case=True)


def _removed(node: Node, prefix: str) -> NodeSigns:
    key = key_of(prefix)
    return NodeSigns(annotations={key: None}) if key in node.annotations else _NONE


def _signs(decision: CaseDecision, node: NodeFacts, context: PassContext) -> NodeSigns:
    """Remove the start with the case that it was for, and the copy of one of another node."""
    prefix = context.settings.keys.prefix
    over = node.case.open and not decision.record.open
    return _removed(node.read, prefix) if over or start_of(node.read, prefix) is None else _NONE


def _remedies(decision: CaseDecision, node: NodeFacts, context: PassContext) -> Sequence[str]:
    """Return the command that begins the drain now, if nothing else keeps the node from being in time."""
    schedule = decision.schedule
    if schedule is None or schedule.started or context.settings.mode is not Mode.ENFORCE:
        return ()
    begins = any(step.after is State.IN_MAINTENANCE for step in decision.transitions)
    if begins or any(obstacle.certain for obstacle in schedule.prospect.obstacles):
        # Pods that stay do so whenever the drain begins.
        return ()
    asking = [event for event in node.current if may_begin(event)]
    if not asking or all(event.waiver is not None and event.waiver.now for event in asking):
        return ()
    held = (CHECKS[hold.code].type for hold in decision.holds if hold.code in START_CHECKS)
    if any(not check.waived and check.wait is None for check in held):
        return ()
    return (f"{context.keys.permit(NAME, node.name)} --now",)


FEATURE = Feature(
    "start",
    waives=_waives,
    sayings=_sayings,
    remedies=_remedies,
    bears_signs=_bears,
    signs=_signs,
    outlived=_removed,
    removed=_removed,
)
