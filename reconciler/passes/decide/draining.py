"""The recorded drain: whether it continues, waits, is done, or is tried again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from reconciler.calendar.values import format_duration
from reconciler.drain.filters import Survey
from reconciler.model import scheduled_events as imds
from reconciler.model.drains import VOLUMES_AWAITED, Blocker, DrainOrder, DrainProgress, KeptPods, Phase, Seen
from reconciler.model.event import Answer, Reading
from reconciler.model.holds import DRAIN_BLOCKED, DRAIN_SLOT, END_REPORTED, NAMESPACES_READABLE, PODS_READABLE
from reconciler.model.hooks import HookRecord, HookStep
from reconciler.model.instructions import PersonHold
from reconciler.model.limits import count_of
from reconciler.model.node import AUTOSCALER_TAINT, Node
from reconciler.model.plan import Hold, Notice, NoticeType
from reconciler.model.record import CaseRecord, DrainRecord, KnownEvent, State
from reconciler.model.values import replace
from reconciler.passes.decide.facts import CaseStep, coming_to, pods_left, with_returns
from reconciler.passes.decide.hooks import follow_hooks
from reconciler.passes.decide.planned import NodeDrain
from reconciler.passes.node_facts import NodeFacts, PassContext, Progress
from reconciler.profiles import case as cases
from reconciler.profiles.checks.people import not_stopped
from reconciler.profiles.checks.platform import left_to_us
from reconciler.profiles.checks.starts import first_lost_from, others_first
from reconciler.profiles.instructed import AUTOSCALER_DELETES, waits_for_others_until
from reconciler.profiles.orders import drain_order
from reconciler.profiles.state_machine import Walk

DRAINED = "MaintenanceDrained"
"""The reason of the Event about a drain that is done."""

KEEP_COMING = "MaintenancePodsKeepComing"
"""The reason of the Event about a namespace that sends new pods to a node that is drained."""

STUCK_AFTER = timedelta(minutes=5)
"""How long a drain may make no progress while our own node waits for it."""

HEAD_START = timedelta(seconds=30)
"""How long our own node waits for a drain that has just begun, although it can't wait any longer.

Our own pod goes with it, and another one needs a moment to take over.
"""


class _Begun(Struct, frozen=True):
    """A recorded drain that is not done, and its progress in this process, if there is any.

    `told` is the case as this pass has read it. `by_person` is the hold of a person, and `hooked` says what
    holds the drain if a hook does.
    """

    node: Node
    told: CaseRecord
    record: CaseRecord
    view: cases.CaseView
    progress: DrainProgress | None
    by_person: PersonHold | None
    hooked: Hold | None = None


class _Step(Struct, frozen=True):
    """The drain after this pass: the record, the order for the drainer, and what holds it.

    An order with a hold is not given. `waits` holds a drain that goes on.
    """

    record: CaseRecord
    order: DrainOrder | None = None
    hold: Hold | None = None
    waits: Hold | None = None
    kept: tuple[Blocker, ...] = ()
    notices: tuple[Notice, ...] = ()


def follow_drain(
    node: NodeFacts,
    before: CaseRecord,
    walked: Walk,
    view: cases.CaseView,
    context: PassContext,
    progress: Progress,
) -> NodeDrain:
    """Return the drain of a node: the result of the state machine, merged with the recorded drain.

    `before` is the case before the state machine ran.
    """
    read, found = node.read, context.snapshot.drains.get(node.name)
    drained = found if found is not None and found.uid == read.uid else None
    hooked = follow_hooks(node, walked, view, context)
    drain = walked.effects.record.drain if walked.state is State.IN_MAINTENANCE else None
    under_way = drain is not None and drain.done is None
    goes_on = under_way and cases.wants_drain(walked.effects.record, view)
    step = _Step(hooked.record)
    if goes_on:
        step = _go_on(
            _Begun(read, node.case, step.record, view, drained, node.instructions.hold, hooked.drain),
            context,
            progress,
        )
    progress.holding.discard(read.name)
    if under_way:
        _count(read, step, drained, context, progress)
    # While a node is drained, what holds its uncordon does not matter yet.
    holds = [] if goes_on else list(hooked.holds)
    if not goes_on and _waits_for_its_end(walked.state, view):
        holds += _unattended(node, step.record, context)
    unread = context.snapshot.problems.pods.get(read.name)
    if unread and under_way:
        holds.append(PODS_READABLE.on(read.name, f"its pods can't be read: {unread}"))
    ordered = _ordered(node, step, drained, context, progress)
    done = step.record.drain is not None and step.record.drain.done is not None
    first = drain is not None and drain.attempt == 1
    waits = under_way and first and _waits_to_begin(step, ordered.order, drained)
    has_begun = done or (drain is not None and not waits)
    case = CaseStep(
        before, step.record, view, has_begun, (*holds, *ordered.holds), progress.schedules.get(read.name)
    )
    # A drain that ended with an earlier case does not belong to this one.
    shown = drained if drain is not None or running(drained) else None
    stop = ordered.order is None and not _unjudged(ordered.stopped) and running(found)
    return NodeDrain(case, ordered.order, step.kept, step.notices, shown, stop, hooked)


def _unattended(node: NodeFacts, record: CaseRecord, context: PassContext) -> tuple[Hold, ...]:
    """Return the hold that names the silent sources and how to end the case; empty if no source is silent."""
    found = tuple(_silent(node, record, context))
    if not found:
        return ()
    annotation = context.keys.imds
    outdated = not context.snapshot.agents.installed and annotation in node.read.annotations
    first = f"remove the annotation {annotation} from the node and " if outdated else ""
    reason = f"nothing may report the end of the maintenance ({'; '.join(found)})"
    remedy = f"if it is over, {first}run {context.keys.release(node.name)}"
    return (END_REPORTED.on(node.name, f"{reason}; {remedy}"),)


def _silent(node: NodeFacts, record: CaseRecord, context: PassContext) -> Iterator[str]:
    """Yield each source of the case's events that nothing updates any more, with the reason."""
    for source in sorted({source for event in record.events for source in event.sources}):
        if source not in context.reading_names:
            continue
        readings = [reading for reading in node.assessment.readings if reading.source == source]
        if not readings:
            yield f"{source} reports nothing about the node any more"
        for reading in readings:
            if because := _why_silent(reading, context):
                yield f"{source}: {because}"


def _why_silent(reading: Reading, context: PassContext) -> str:
    if reading.answer is Answer.UNKNOWN:
        return "" if reading.installed else reading.because
    published = reading.source == imds.SOURCE and reading.answer is Answer.EVENT
    return "no node agent is installed" if published and not context.snapshot.agents.installed else ""


class _Ordered(Struct, frozen=True):
    """The order for the drainer, the hold in whose place it is not given, and all holds of the drain."""

    order: DrainOrder | None
    stopped: Hold | None
    holds: tuple[Hold, ...]


def _ordered(
    node: NodeFacts, step: _Step, drained: DrainProgress | None, context: PassContext, progress: Progress
) -> _Ordered:
    order, stopped = (step.order, None) if step.hold is None else (None, step.hold)
    holds = [step.hold] if step.order is not None and step.hold is not None else []
    waiting = node.workflows.order if node.workflows is not None else None
    if order is None and waiting is not None:
        order, stopped = _for_workflow(waiting, node, drained, context, progress)
        holds += [stopped] if stopped is not None else []
    if order is not None:
        progress.drains += order.slots is not None and not _yields(drained)
        holds += [step.waits] if step.waits is not None else []
        blockers = drained.blockers if drained is not None else ()
        holds += [DRAIN_BLOCKED.on(node.name, f"{b.pod}: {b.because}") for b in blockers]
        recorded = step.record.drain
        coming = drained.coming if drained is not None else ()
        coming = coming_to(recorded, drained) if recorded is not None else coming
        holds += [DRAIN_BLOCKED.on(node.name, one.words(node.name)) for one in coming]
    return _Ordered(order, stopped, tuple(holds))


def _count(
    node: Node, step: _Step, drained: DrainProgress | None, context: PassContext, progress: Progress
) -> None:
    """Count a drain for which our own node waits.

    The new record counts: when the last other node is drained, our own node starts in this pass.
    """
    if node.name == context.snapshot.itself.node or not _is_awaited(step, drained, context.now):
        return
    progress.undrained += 1
    drain = step.record.drain
    since = drain.since if drain is not None else context.now
    progress.begun = max(since, progress.begun or since)
    stuck_at = _stuck_at(drained, context.now)
    if stuck_at is not None:
        progress.stuck_at = min(stuck_at, progress.stuck_at or stuck_at)


def _for_workflow(
    order: DrainOrder,
    node: NodeFacts,
    drained: DrainProgress | None,
    context: PassContext,
    progress: Progress,
) -> tuple[DrainOrder | None, Hold | None]:
    """Return the order for the drain that a workflow waits for, or what holds it."""
    begun = _Begun(node.read, CaseRecord(), CaseRecord(), cases.CaseView(), drained, node.instructions.hold)
    held = _held_drain(begun, order, context, progress)
    if held is not None:
        return None, held
    if node.name != context.snapshot.itself.node and not is_stuck(drained, None, context.now):
        progress.undrained += 1
        progress.begun = max(order.since, progress.begun or order.since)
    return order, None


def _waits_for_its_end(state: State, view: cases.CaseView) -> bool:
    """Whether nothing is left to do about the case but to wait for its events, as far as they are known."""
    if state is State.REQUIRED:
        return not any(event.asks for event in view.present)
    return state is State.IN_MAINTENANCE


def _go_on(begun: _Begun, context: PassContext, progress: Progress) -> _Step:
    """Return the next step of a drain that is not done: it ends, is tried again, or continues."""
    settings, node, record, drained = context.settings, begun.node, begun.record, begun.progress
    drain = record.drain
    assert drain is not None
    order = _order(begun, context)
    found = pods_left(node, order.options, context)
    if found is not None and found.drained and not running(drained):
        # It evicts nothing, and only looks whether that is all.
        order = replace(order, slots=None)
    held = _held_drain(begun, order, context, progress)
    kept = found.kept if found is not None else ()
    after, notices = followed(
        node,
        drain,
        found if begun.hooked is None else None,
        drained,
        settings.drain.timeout if held is None else None,
        context,
    )
    if after.done is not None:
        after = replace(after, done=_ended_at(record, drained, context))
        record = replace(_with_moved(record, drained, context), drain=after)
        return _Step(record, kept=kept, notices=notices)
    if begun.hooked is None and _was_held(begun.told, drain):
        # The time limit of a drain is for evictions, not for hooks.
        record = _begun_after_hooks(begun.told, record, context.second)
        order = _order(replace(begun, record=record), context)
        return _Step(record, order, held, kept=kept)
    if after.attempt != drain.attempt:
        record = _with_moved(record, drained, context)
        message = (
            f"not drained after {format_duration(settings.drain.timeout)}, trying again{_blocked(drained)}"
        )
        return _Step(
            replace(record, drain=after),
            replace(order, since=after.since, seen=after.seen),
            kept=kept,
            notices=(*notices, Notice("MaintenanceDrainTimedOut", message, NoticeType.WARNING)),
        )
    waits = running(drained) and drained is not None and drained.slot.awaited
    record = replace(record, drain=after)
    waits_for = _no_slot(node, context, progress) if waits else None
    return _Step(record, order, held, waits_for, kept, notices)


def followed(
    node: Node,
    drain: DrainRecord,
    found: Survey | None,
    drained: DrainProgress | None,
    timeout: timedelta | None,
    context: PassContext,
) -> tuple[DrainRecord, tuple[Notice, ...]]:
    """Return the record of a drain after this pass: it is done, another attempt begins, or it goes on.

    With it come the Events that each drain has: that it is done, and who sends new pods to the node.

    `found` are the pods on the node, None if they are not known or must not end the drain. Without a
    `timeout`, it is not tried again.
    """
    # The volumes of pods that left, None if nobody read them.
    attached = context.snapshot.attached.get(node.name)
    after = _after(drain, found, drained, timeout, attached, context)
    before = {coming.namespace for coming in coming_to(drain, None)}
    notices = tuple(
        Notice(
            KEEP_COMING, coming.words(node.name), NoticeType.WARNING, once=f"{drain.since} {coming.namespace}"
        )
        for coming in coming_to(after, None)
        if coming.namespace not in before
    )
    if after.done is not None:
        notices = (*notices, Notice(DRAINED, after.kept.words(node.name)))
    return after, notices


def _after(
    drain: DrainRecord,
    found: Survey | None,
    drained: DrainProgress | None,
    timeout: timedelta | None,
    attached: tuple[str, ...] | None,
    context: PassContext,
) -> DrainRecord:
    if found is not None and found.drained and not running(drained):
        # The pods do not show whether volumes are still attached. What this process has drained knows it, and
        # a drain that is held has nobody who waits for them.
        # A start that a clock which was ahead has written counts as now, in each pass.
        same = drained is not None and (drained.since == drain.since or drain.since >= context.second)
        knows = same and drained is not None and drained.phase is Phase.DRAINED
        emptied = drain.seen.emptied
        over = emptied is not None and context.now >= emptied + VOLUMES_AWAITED
        if knows or attached == () or over or (timeout is None and emptied is None):
            kept = KeptPods.of(found.kept, coming_to(drain, drained))
            return replace(drain, done=context.second, kept=kept, seen=Seen())
        if attached:
            return replace(drain, seen=replace(drain.seen, emptied=emptied or context.second))
    if timeout is not None and context.now - drain.since >= timeout:
        seen = drained.seen if running(drained) and drained is not None else drain.seen
        return DrainRecord(context.second, drain.attempt + 1, seen=Seen(returned=seen.returned))
    if running(drained) and drained is not None:
        return replace(drain, seen=drained.seen)
    return drain


def _with_moved(record: CaseRecord, drained: DrainProgress | None, context: PassContext) -> CaseRecord:
    """Return the record with the pods that its drains have moved, at the end of an attempt.

    A process counts only what it drains itself. If another one drained the node in this case, too, the number
    is not known.
    """
    return replace(record, facts=replace(record.facts, moved=_moved(record, drained, context)))


def _moved(record: CaseRecord, drained: DrainProgress | None, context: PassContext) -> int | None:
    drain, facts, leads = record.drain, record.facts, context.snapshot.itself.leads_since
    if drain is None or leads is None:
        return None
    first = drain.attempt == 1 and drain.since == (facts.drain_began or context.second)
    if drain.since < leads.replace(microsecond=0) or (facts.moved is None and not first):
        return None
    before = facts.moved or 0
    if drained is not None and drained.finished is None:
        # This attempt goes on in the next one, with all that it has moved.
        return before
    # The drainer shows the drain of an earlier case until the next one begins.
    if drained is not None and drained.finished is not None and drained.finished >= drain.since:
        return before + drained.gone
    return before if drain.since == context.second else None


def _was_held(told: CaseRecord, drain: DrainRecord) -> bool:
    """Whether the case that this pass has read says that a hook holds this drain."""
    return told.drain == drain and any(map(_holds_drain, told.hooks))


def _begun_after_hooks(told: CaseRecord, record: CaseRecord, second: datetime) -> CaseRecord:
    """Return the record with the drain that begins at `second` (UTC), because no hook holds it any more.

    If a hook of `told`, the case that this pass has read, held it from the start, it has not begun before.
    """
    drain, facts = record.drain, record.facts
    assert drain is not None
    if any(_holds_drain(hook) and hook.since <= drain.since for hook in told.hooks):
        facts = replace(facts, drain_began=second)
    return replace(record, drain=replace(drain, since=second), facts=facts)


def _holds_drain(hook: HookRecord) -> bool:
    return hook.id.step is HookStep.PRE_DRAIN and hook.end is None


def _ended_at(record: CaseRecord, drained: DrainProgress | None, context: PassContext) -> datetime:
    """Return when the drain ended: now, unless a date has passed since, which the drain was in time for."""
    if drained is None or drained.phase is not Phase.DRAINED or drained.finished is None:
        return context.second
    ended = drained.finished.replace(microsecond=0)
    dates = (event.not_before for event in record.events if event.not_before is not None)
    return ended if any(ended <= date < context.second for date in dates) else context.second


def _waits_to_begin(step: _Step, order: DrainOrder | None, drained: DrainProgress | None) -> bool:
    """Whether the first attempt of a drain has moved no pod yet, because it is held or has no slot.

    A drain that a person has stopped has begun, also if another process has run it.
    """
    if drained is None:
        return order is None and (step.hold is None or step.hold.code != not_stopped.name)
    return drained.slot.awaited and not drained.gone and not drained.evicted


def _unjudged(hold: Hold | None) -> bool:
    """Whether the drain can't be judged now: one that runs goes on with what it knows."""
    return hold is not None and hold.code == NAMESPACES_READABLE.code


def _held_drain(begun: _Begun, order: DrainOrder, context: PassContext, progress: Progress) -> Hold | None:
    """Return why the drain of a cordoned node has to wait, None if it continues.

    A drain without a limit for slots waits neither for a slot nor for other nodes.
    """
    node, drained = begun.node, begun.progress
    hold = begun.by_person
    if hold is not None and hold.stops:
        return replace(not_stopped.hold(node.name, hold.words(node.name)), until=hold.word.until)
    if node.has_taint(AUTOSCALER_TAINT):
        ends = [at for one in begun.view.present if (at := waits_for_others_until(one)) is not None]
        until = min(ends, default=None)
        if until is None or context.now < until:
            return replace(left_to_us.hold(node.name, AUTOSCALER_DELETES), until=until)
    if node.name == context.snapshot.itself.node and progress.undrained:
        others = f"{count_of(progress.undrained, 'other node', 'are')} being drained"
        reason = f"the reconciler runs on it, so it goes last: {others}"
        until = _own_turn(begun.view, context, progress)
        if until is None or until > context.now:
            until = min((at for at in (until, progress.stuck_at) if at), default=None)
            return replace(others_first.hold(node.name, reason), until=until)
    unread = context.snapshot.problems.namespaces
    if unread:
        # A rule that selects namespaces by label would not find the pods that it is to spare.
        return NAMESPACES_READABLE.on(node.name, f"the namespaces can't be read: {unread}")
    if begun.hooked is not None:
        return begun.hooked
    if order.slots is None or _yields(drained):
        return None
    # A drain that holds a slot is not stopped for one that would begin.
    held = 0 if holds_slot(drained) else len(progress.holding)
    return _no_slot(node, context, progress) if progress.drains + held >= order.slots else None


def _own_turn(view: cases.CaseView, context: PassContext, progress: Progress) -> datetime | None:
    """Return from when on our own node waits for no other (UTC), None if it waits for all of them."""
    if not view.urgent:
        return first_lost_from(view.present)
    if any(event.event.started or event.exempt.places is not None for event in view.urgent):
        return context.now
    return (progress.begun or context.now) + HEAD_START


def _no_slot(node: Node, context: PassContext, progress: Progress) -> Hold:
    limit = context.settings.drain.max_concurrent_nodes
    reason = f"{count_of(limit, 'node', 'are')} drained at once at most (drain.maxConcurrentNodes)"
    return DRAIN_SLOT.on(node.name, reason, progress.slot_free_at)


def _blocked(drained: DrainProgress | None) -> str:
    if drained is None or not drained.blockers:
        return ""
    return "; " + "; ".join(f"{blocker.pod} {blocker.because}" for blocker in drained.blockers[:3])


def running(drained: DrainProgress | None) -> bool:
    """Whether a drain is in progress in this process."""
    return drained is not None and drained.phase is Phase.RUNNING


def holds_slot(drained: DrainProgress | None) -> bool:
    """Whether a drain in this process uses one of the slots."""
    return drained is not None and running(drained) and drained.slot.held


def _yields(drained: DrainProgress | None) -> bool:
    """Whether a drain in this process goes on without a slot, and takes one itself when it can go on."""
    return running(drained) and not holds_slot(drained)


def is_stuck(drained: DrainProgress | None, recorded: DrainRecord | None, now: datetime) -> bool:
    """Whether our own node does not wait for a drain: it has made no progress for long.

    An earlier attempt timed out and this one does not make progress, or it is blocked for `STUCK_AFTER`.
    """
    if drained is not None and running(drained):
        if drained.slot.blocked_since is None or drained.slot.awaited:
            return False
        if now - drained.slot.blocked_since >= STUCK_AFTER:
            return True
    return recorded is not None and recorded.attempt > 1


def _stuck_at(drained: DrainProgress | None, now: datetime) -> datetime | None:
    """Return when a drain may count as stuck, if it makes no progress before (UTC). None: not known."""
    if drained is None or not running(drained):
        return None
    since = drained.slot.blocked_since
    at = drained.slot.blocked_at if since is None else since + STUCK_AFTER
    return at if at is not None and at > now else None


def _is_awaited(step: _Step, drained: DrainProgress | None, now: datetime) -> bool:
    """Whether our own node waits for this node. A drain that something else holds may take for ever."""
    recorded = step.record.drain
    if recorded is None or recorded.done is not None:
        return False
    held = step.hold is not None and step.hold.code != DRAIN_SLOT.code
    return not held and not is_stuck(drained, recorded, now)


def _order(begun: _Begun, context: PassContext) -> DrainOrder:
    """Return the order for the recorded drain.

    A node that may be lost at any moment needs no slot if its event does without, or if we run on it.
    """
    settings, node, record, drain = context.settings, begun.node, begun.record, begun.record.drain
    assert drain is not None
    order = recorded_order(node, cases.allowed(record), drain, record.since, begun.progress, context)
    own = node.name == context.snapshot.itself.node
    lost = any(own or event.exempt.slots is not None for event in begun.view.urgent)
    return order if lost else replace(order, slots=settings.drain.max_concurrent_nodes)


def recorded_order(
    node: Node,
    events: tuple[KnownEvent, ...],
    drain: DrainRecord,
    begun: datetime | None,
    drained: DrainProgress | None,
    context: PassContext,
) -> DrainOrder:
    """Return the order for a recorded drain, without slots.

    `begun` is when the first attempt or the maintenance of the node began (UTC; None: with this attempt).
    """
    order = drain_order(node, events, drain.since, context.settings, context.snapshot, begun=begun)
    return replace(order, options=with_returns(order.options, drain, begun, drained), seen=drain.seen)
