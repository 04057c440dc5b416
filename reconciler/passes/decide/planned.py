"""The decisions about a node, as its plan and its only patch; one that does not stay waits for longer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from reconciler.model.case_outcome import outcome_of
from reconciler.model.drains import Blocker, DrainOrder, DrainProgress, KeptPods
from reconciler.model.event import Answer, Kind
from reconciler.model.holds import DISMISSED, EVENT_READABLE, IN_TIME, NODE_WRITABLE
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.plan import Actions, DrainState, Hold, NodePlan, NodeStatus, Notice, NoticeType
from reconciler.model.record import CaseRecord, Record, State, shown_labels, to_annotation, worst_of
from reconciler.model.snapshot import NOT_WRITTEN, Undone
from reconciler.model.values import replace
from reconciler.model.writes import REWRITTEN, ListChanges, NodeWrite, node_write
from reconciler.passes.decide.facts import CaseStep, left_by_case, tell
from reconciler.passes.decide.hooks import Hooked, timed_out
from reconciler.passes.node_facts import DEFAULT, NodeFacts, PassContext, WorkflowStep
from reconciler.passes.parts import Parts
from reconciler.passes.plugin import NodeSigns, Standing
from reconciler.profiles import case as cases
from reconciler.profiles.hooks import told
from reconciler.profiles.state_machine import Walk
from reconciler.starts.budget import pool_of


class NodeDrain(Struct, frozen=True):
    """The drain of a node after this pass, and the case for which it is.

    `order` is for the drainer, `kept` are the pods that stay, `shown` is the progress for the plan, `stop` is
    whether a drain has to stop.
    """

    case: CaseStep
    order: DrainOrder | None
    kept: tuple[Blocker, ...]
    notices: tuple[Notice, ...]
    shown: DrainProgress | None
    stop: bool
    hooks: Hooked


class Decided(Struct, frozen=True):
    """A node after the pass: its state, its profile's data, what holds it, and the case that ended."""

    state: State
    record: CaseRecord | None
    holds: tuple[Hold, ...]
    ended: CaseRecord | None = None


def plan_of(node: NodeFacts, walked: Walk, drain: NodeDrain, context: PassContext, parts: Parts) -> NodePlan:
    """Return the plan with what the case has to say, its signs, and its patches."""
    case = drain.case
    telling = tell(case, node, context)
    record = telling.record
    over = timed_out(drain.hooks.over, record, context)
    noted = telling.noted
    if over and record.open:
        noted = told(noted or record)
    draining = drain.order is not None
    standing = Standing(
        walked.state,
        record,
        case.view,
        case.holds,
        draining=draining,
        # A cordon of this pass comes too late for what was drained before it.
        cordoned=node.read.unschedulable and walked.effects.node.unschedulable,
        acknowledgements=node.acknowledgements,
    )
    signs = parts.signs(node.read, standing, context)
    write = node_patch(node, walked, record, signs, context)
    beside = node.workflows.todo if node.workflows is not None else Actions()
    todo = replace(
        beside,
        write=write,
        drain=drain.order,
        stop_drain=drain.stop,
        perform=walked.effects.perform or signs.request,
        machine=walked.effects.machine,
        notices=(*beside.notices, *walked.effects.notices, *drain.notices, *signs.notices, *telling.fresh),
        publications=signs.writes,
        hooks=drain.hooks.runs,
        pending=(*telling.pending, *over),
        noted=second_patch(node, write, noted, context) if noted is not None else None,
    )
    decided = Decided(walked.state, record, (*case.holds, *signs.holds), telling.ended)
    shown = _drain_state(node, record, drain.kept, drain.shown, context)
    return node_plan(node, walked, decided, todo, shown, context)


def _drain_state(
    node: NodeFacts,
    record: CaseRecord,
    kept: tuple[Blocker, ...],
    shown: DrainProgress | None,
    context: PassContext,
) -> DrainState:
    """Return how far the drain is; one that is done names the pods that are still there."""
    drain = record.drain
    if drain is None or drain.done is None or not (drain.kept.count or drain.kept.coming):
        return DrainState(kept, shown)
    stays = drain.kept
    found = left_by_case(record, cases.allowed(record), node, shown, context)
    if found is not None:
        kept, stays = found.kept, KeptPods.of(found.kept, stays.coming)
    return DrainState(kept, shown, stays=stays.words(node.name) if stays.count or stays.coming else "")


def node_plan(
    node: NodeFacts,
    walked: Walk | None,
    after: Decided,
    todo: Actions,
    draining: DrainState,
    context: PassContext,
) -> NodePlan:
    """Return the plan of a node; `walked` is None if the node must not be changed."""
    read, step = node.read, node.workflows or WorkflowStep(node.read, node.record)
    readings = node.assessment.readings
    silent = [reading for reading in readings if reading.answer is Answer.UNKNOWN and reading.installed]
    return NodePlan(
        node=read.name,
        zone=read.zone,
        pool=pool_of(read),
        before=worst_of(node.state, step.before),
        after=worst_of(after.state, *(report.after for report in step.reports)),
        events=node.judged,
        checks=walked.answers if walked else (),
        transitions=(*step.transitions, *(walked.transitions if walked else ())),
        holds=(*step.holds, *_holds(node, walked, after, todo, context)),
        status=NodeStatus(
            read.unschedulable,
            tuple((reading.source, reading.because) for reading in silent),
            node.urgency,
            node.instructions,
        ),
        record=after.record,
        todo=todo,
        draining=draining,
        ended=after.ended,
        uid=read.uid,
        workflows=step.reports,
        struck=_is_struck(node.case, after.ended or after.record),
    )


def _is_struck(before: CaseRecord, after: CaseRecord | None) -> bool:
    """Whether a case is late or missed after this pass, and the record that the pass read does not say so."""
    found = outcome_of(after) if after is not None else None
    if found is None or found.result.good:
        return False
    known = outcome_of(before)
    return known is None or known.result is not found.result


def _holds(
    node: NodeFacts, walked: Walk | None, after: Decided, todo: Actions, context: PassContext
) -> tuple[Hold, ...]:
    """Return what holds the node.

    A patch that only shows something to other tools, or only records a fact, is no action.
    """
    acts = todo.any and not _only_tells(node, walked, after, todo)
    left = _left_by_hand(node, after, context)
    if after.holds or acts or left:
        return (*after.holds, *left)
    return _unspoken_holds(node)


def _left_by_hand(node: NodeFacts, after: Decided, context: PassContext) -> tuple[Hold, ...]:
    """Return the hold of a node on which an event that requires a drain is ignored, none for any other."""
    record = after.record
    if record is None or after.state is State.IN_MAINTENANCE:
        return ()
    current = cases.not_dismissed(record, node.judged)
    if not any(event.asks and event not in current for event in node.judged):
        return ()
    words = cases.dismissed_words(record, context.now)
    reason = f"{words}; {context.keys.release(node.name)} lets the reconciler drain it again"
    return (DISMISSED.on(node.name, reason),)


def _only_tells(node: NodeFacts, walked: Walk | None, after: Decided, todo: Actions) -> bool:
    moved = walked is not None and walked.transitions
    record = after.record
    # The end of a drain also changes what is known of its pods.
    facts = record is not None and record.facts != node.case.facts and record.drain == node.case.drain
    return facts and not moved and todo.drain is None and not todo.stop_drain


def _unspoken_holds(node: NodeFacts) -> tuple[Hold, ...]:
    """Return the holds that do not come from a check:

    law 7 requires one for every event without an action.
    """
    holds = []
    for event in node.judged:
        if event.asks and not event.starts:
            holds.append(IN_TIME.on(node.name, event.because))
        elif not event.asks and event.event.kind is Kind.UNKNOWN:
            holds.append(EVENT_READABLE.on(node.name, event.because, event.until))
    return tuple(dict.fromkeys(holds))


def node_patch(
    node: NodeFacts, walked: Walk, case: CaseRecord, signs: NodeSigns, context: PassContext
) -> NodeWrite | None:
    """Return the node's only patch, None if nothing changes.

    `case` is the profile's data after this pass. The annotations and labels in `signs` are for other tools,
    and part of the same patch.
    """
    read, keys = node.read, context.keys
    record = (node.record or context.new_record(read)).with_case(DEFAULT, case, context.now)
    step = node.workflows or WorkflowStep(read, node.record)
    labels = {**_changed(read.labels, step.node.labels), **_changed(read.labels, walked.effects.node.labels)}
    labels |= _shown(read, record, context)
    labels |= signs.labels
    if node.workflows is not None and step.readable and context.settings.keys.state_label:
        state = worst_of(record.worst, *(report.after for report in step.reports)).value
        if read.labels.get(keys.workflow_state) != state:
            labels[keys.workflow_state] = state
    annotations = {**_changed(read.annotations, step.node.annotations), **signs.annotations}
    if step.text is not None:
        annotations[keys.workflow_data] = step.text
    recorded = read.annotations.get(keys.record)
    # A record that says the same stays as it is written, also with the keys of a later program.
    text = None if record.empty else recorded if record == node.written else to_annotation(record)
    if text != recorded:
        annotations[keys.record] = text
    if keys.approved in read.annotations and node.case.open and not case.open:
        # It was for the case that has ended.
        annotations[keys.approved] = None
    if keys.said_before in read.annotations and not case.open:
        annotations[keys.said_before] = None
    annotations |= read.uid_change(keys.prefix)
    closed = walked.effects.node.unschedulable
    unschedulable = closed if closed != read.unschedulable else None
    lists = _list_changes(read, step.node)
    if not (labels or annotations or read.copied or unschedulable is not None or lists.any):
        return None
    write = node_write(
        read, keys.prefix, unschedulable=unschedulable, labels=labels, annotations=annotations, lists=lists
    )
    if node.workflows is None or not step.readable:
        return write
    return replace(write, seen_by_checks=step.used)


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


def _list_changes(before: Node, after: Node) -> ListChanges:
    if before is after:
        return ListChanges()
    return ListChanges(
        tuple(name for name in after.finalizers if name not in before.finalizers),
        tuple(name for name in before.finalizers if name not in after.finalizers),
        tuple(taint for taint in after.taints if taint not in before.taints),
        tuple(taint for taint in before.taints if taint not in after.taints),
    )


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
        return _rewriting(plan, write, undone or Undone(node.name, node.uid, (), "", 0, now), now)
    if undone is None:
        known = context.undone.get((node.name, node.uid))
        if known is not None and known.lost == (REWRITTEN,) and (node.unschedulable or shown):
            undone = known
    return plan if undone is None else replace(plan, todo=replace(plan.todo, undone=undone))


def _rewriting(plan: NodePlan, write: NodeWrite, before: Undone, now: datetime) -> NodePlan:
    """Return the plan that writes the record again. From the second time on a Warning Event says so."""
    because = f"somebody removes the record of the node (annotation {write.keys.record})"
    undone, notices = before.again((REWRITTEN,), because, now), plan.todo.notices
    if undone.times > 1:
        notices = (*notices, Notice(NOT_WRITTEN, because, NoticeType.WARNING, once=because))
    return replace(plan, todo=replace(plan.todo, undone=undone, notices=notices))


def hold(undone: Undone) -> Hold:
    """Return the hold of a node whose write waits for its next try."""
    reason = f"{undone.words}; tried again at {to_text(undone.until)}"
    return NODE_WRITABLE.on(undone.node, reason, undone.until)
