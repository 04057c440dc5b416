"""The decisions about a node, as its plan and its only patch; one that does not stay waits for longer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from reconciler.model.case_outcome import outcome_of
from reconciler.model.drains import KeptPods
from reconciler.model.event import Answer, Kind
from reconciler.model.holds import DISMISSED, EVENT_READABLE, IN_TIME, NODE_WRITABLE
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.plan import Actions, DrainState, Hold, NodePlan, NodeStatus, Notice, NoticeType
from reconciler.model.record import CaseRecord, Record, State, shown_labels, to_annotation, worst_of
from reconciler.model.snapshot import NOT_WRITTEN, Undone
from reconciler.model.values import replace
from reconciler.model.writes import REWRITTEN, ListChanges, NodeWrite, node_write
from reconciler.passes.decide.facts import left_by_case
from reconciler.passes.decision import CaseDecision
from reconciler.passes.node_facts import DEFAULT, NodeFacts, PassContext
from reconciler.profiles import case as cases
from reconciler.starts.budget import pool_of


def node_plan(decision: CaseDecision, node: NodeFacts, todo: Actions, context: PassContext) -> NodePlan:
    """Return the plan of a node: what is decided and done, and what holds it."""
    read, record, readings = node.read, decision.record, node.assessment.readings
    silent = [reading for reading in readings if reading.answer is Answer.UNKNOWN and reading.installed]

    # A drain that is done names the pods that are still there.
    kept, stays, drain = decision.kept, "", record.drain
    if decision.after is not None and drain is not None and drain.done is not None:
        left = drain.kept
        if left.count or left.coming:
            found = left_by_case(record, cases.allowed(record), node, decision.progress, context)
            if found is not None:
                kept, left = found.kept, KeptPods.of(found.kept, left.coming)
            stays = left.words(node.name) if left.count or left.coming else ""

    holds = decision.holds
    if decision.state is not State.IN_MAINTENANCE:
        current = cases.not_dismissed(record, node.judged)
        if any(event.asks and event not in current for event in node.judged):
            words = cases.dismissed_words(record, context.now)
            reason = f"{words}; {context.keys.release(node.name)} lets the reconciler drain it again"
            holds = (*holds, DISMISSED.on(node.name, reason))
    # A patch that only shows something to other tools, or only records a fact, is no action. The end of a
    # drain also changes what is known of its pods.
    tells = record.facts != node.case.facts and record.drain == node.case.drain and not decision.transitions
    tells = tells and todo.drain is None and not todo.stop_drain
    if not holds and (tells or not todo.any):
        # Law 7: no event without an action or a hold. These come from no check.
        unspoken = [
            IN_TIME.on(node.name, event.because)
            if event.asks
            else EVENT_READABLE.on(node.name, event.because, event.until)
            for event in node.judged
            if (event.asks and not event.starts) or (not event.asks and event.event.kind is Kind.UNKNOWN)
        ]
        holds = tuple(dict.fromkeys(unspoken))
    outcome, before = outcome_of(decision.ended or record), outcome_of(node.case)
    bad = outcome is not None and not outcome.result.good
    known = record if decision.after is not None or node.record is not None else None
    schedule = decision.schedule
    if schedule is not None and any(step.drains for step in decision.transitions):
        # A drain that begins in this pass is no plan any more.
        because = schedule.because if schedule.by_pods else "its drain begins now"
        schedule = replace(schedule, because=because, started=True)
    worst_before, worst_after = decision.worst_of_features
    return NodePlan(
        node=read.name,
        zone=read.zone,
        pool=pool_of(read),
        before=worst_of(node.state, worst_before),
        after=worst_of(decision.state, worst_after),
        events=node.judged,
        checks=decision.answers,
        transitions=(*decision.transitions_of_features, *decision.transitions),
        holds=(*decision.holds_of_features, *holds),
        status=NodeStatus(
            read.unschedulable,
            tuple((reading.source, reading.because) for reading in silent),
            node.urgency,
            node.instructions,
        ),
        record=known,
        todo=todo,
        draining=DrainState(kept, decision.progress, stays=stays),
        ended=decision.ended,
        schedule=schedule,
        uid=read.uid,
        goes_by_us=any(asked.offer in context.ends_machines for asked in record.asked),
        # The record that the pass read does not say it yet.
        struck=bad and (before is None or outcome is None or before.result is not outcome.result),
        of_features=decision.of_features,
    )


def node_patch(decision: CaseDecision, node: NodeFacts, context: PassContext) -> NodeWrite | None:
    """Return the node's only patch, None if nothing changes.

    The annotations and labels in `signs` of the decision are for other tools, and part of the same patch.
    """
    read, keys, case, signs = node.read, context.keys, decision.record, decision.signs
    record = (node.record or context.new_record(read)).with_case(DEFAULT, case, context.now)
    left, after = decision.left or read, decision.after or read
    labels = {**_changed(read.labels, left.labels), **_changed(read.labels, after.labels)}
    labels |= _shown(read, record, context)
    labels |= signs.labels
    if decision.shown_by:
        _, worst_after = decision.worst_of_features
        state = worst_of(record.worst, worst_after).value
        if read.labels.get(decision.shown_by) != state:
            labels[decision.shown_by] = state
    annotations = {
        **_changed(read.annotations, left.annotations),
        **signs.annotations,
        **decision.annotations,
    }
    recorded = read.annotations.get(keys.record)
    # A record that says the same stays as it is written, also with the keys of a later program.
    text = None if record.empty else recorded if record == node.written else to_annotation(record)
    if text != recorded:
        annotations[keys.record] = text
    if node.case.open and not case.open:
        # They were for the case that has ended.
        annotations |= {key: None for key in keys.permissions if key in read.annotations}
    if keys.said_before in read.annotations and not case.open:
        annotations[keys.said_before] = None
    annotations |= read.uid_change(keys.prefix)
    closed = after.unschedulable
    unschedulable = closed if closed != read.unschedulable else None
    lists = ListChanges()
    if left is not read:
        lists = ListChanges(
            tuple(name for name in left.finalizers if name not in read.finalizers),
            tuple(name for name in read.finalizers if name not in left.finalizers),
            tuple(taint for taint in left.taints if taint not in read.taints),
            tuple(taint for taint in read.taints if taint not in left.taints),
        )
    if not (labels or annotations or read.copied or unschedulable is not None or lists.any):
        return None
    write = node_write(
        read, keys.prefix, unschedulable=unschedulable, labels=labels, annotations=annotations, lists=lists
    )
    return replace(write, seen_by_checks=decision.used) if decision.used else write


def _shown(read: Node, record: Record, context: PassContext) -> dict[str, str | None]:
    """Return the changes of the labels that show the record."""
    keys = context.keys
    wanted = shown_labels(record, keys) if context.settings.keys.state_label else {}
    return {key: wanted.get(key) for key in (keys.state, keys.why) if read.labels.get(key) != wanted.get(key)}


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    """Return what has changed, None for a key that is gone."""
    if before is after:
        return {}
    gone: dict[str, str | None] = {key: None for key in before if key not in after}
    return gone | {key: text for key, text in after.items() if before.get(key) != text}


def second_patch(
    node: NodeFacts, first: NodeWrite | None, case: CaseRecord, context: PassContext
) -> NodeWrite:
    """Return the patch that follows `first` in the same pass, and only writes the record.

    It expects the node as `first` leaves it.
    """
    read, keys = node.read, context.keys
    if first is not None:
        read = replace(
            read,
            labels=_merged(read.labels, first.labels),
            annotations=_merged(read.annotations, first.bound_annotations),
            unschedulable=read.unschedulable if first.unschedulable is None else first.unschedulable,
        )
    record = (node.record or context.new_record(read)).with_case(DEFAULT, case, context.now)
    labels = _shown(read, record, context)
    return node_write(read, keys.prefix, labels=labels, annotations={keys.record: to_annotation(record)})


def _merged(have: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    return {key: text for key, text in {**have, **changes}.items() if text is not None}


class Repeated(Struct, frozen=True):
    """What did not stay of an earlier write of a node, and what its plan writes now.

    `undone` is None if the plan writes nothing of it. `changes` are the names of all that the plan changes,
    `needed` those of them without which nothing may happen on the node; both are empty where nothing is
    remembered of the node. `rewritten` is as the function.
    """

    undone: Undone | None = None
    changes: frozenset[str] = frozenset()
    needed: frozenset[str] = frozenset()
    rewritten: frozenset[str] = frozenset()

    def waits(self, now: datetime) -> bool:
        """Whether the write waits for its next try.

        What only shows something, and did not stay, holds no write that has more to change.
        """
        if self.undone is None or now >= self.undone.until:
            return False
        return self.is_needed or self.changes <= set(self.undone.lost)

    @property
    def is_needed(self) -> bool:
        """Whether nothing may happen on the node before what did not stay is written."""
        return self.undone is not None and not self.needed.isdisjoint(self.undone.lost)


def repeated(plan: NodePlan, before: Mapping[tuple[str, str], Undone]) -> Repeated:
    """Return what the plan writes again; `before` is what did not stay, by name and UID of the node."""
    write = plan.todo.write or plan.todo.noted
    if write is None:
        return Repeated()
    again, known = write.rewritten, before.get((write.node, write.uid))
    if known is None:
        return Repeated(rewritten=again)
    changed = write.changes
    undone = None if (changed | again).isdisjoint(known.lost) else known
    return Repeated(undone, changed, write.essential | again, again)


def remembering(plan: NodePlan, node: Node, again: Repeated, context: PassContext) -> NodePlan:
    """Return the plan with what to remember of the writes of its node that did not stay.

    A record that somebody has removed counts when it is written again,
    and stays in the ledger until the case ends: each further removal is answered after a longer pause.
    """
    write, undone = plan.todo.write or plan.todo.noted, again.undone
    now, shown = context.now, context.keys.state in node.labels
    if write is not None and (node.cordoned_by_us or shown) and again.rewritten:
        # The record is written again. From the second time on, a Warning Event says so.
        because = f"somebody removes the record of the node (annotation {write.keys.record})"
        before = undone or Undone(node.name, node.uid, (), "", 0, now)
        undone, notices = before.again((REWRITTEN,), because, now), plan.todo.notices
        if undone.times > 1:
            notices = (*notices, Notice(NOT_WRITTEN, because, NoticeType.WARNING, once=because))
        return replace(plan, todo=replace(plan.todo, undone=undone, notices=notices))
    if undone is None:
        known = context.undone.get((node.name, node.uid))
        if known is not None and known.lost == (REWRITTEN,) and (node.unschedulable or shown):
            undone = known
    return plan if undone is None else replace(plan, todo=replace(plan.todo, undone=undone))


def hold(undone: Undone) -> Hold:
    """Return the hold of a node whose write waits for its next try."""
    reason = f"{undone.words}; tried again at {to_text(undone.until)}"
    return NODE_WRITABLE.on(undone.node, reason, undone.until)
