"""The recorded drain: whether it continues, waits, is done, or is tried again."""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.calendar.values import format_duration
from reconciler.drain.filters import Survey
from reconciler.model.drains import VOLUMES_AWAITED, DrainOrder, DrainProgress, KeptPods, Phase, Seen
from reconciler.model.ended_case import case_start, held_by
from reconciler.model.event import Answer
from reconciler.model.holds import DRAIN_BLOCKED, DRAIN_SLOT, END_REPORTED, NAMESPACES_READABLE, PODS_READABLE
from reconciler.model.limits import count_of
from reconciler.model.node import AUTOSCALER_TAINT, Node
from reconciler.model.plan import Hold, Notice, NoticeType
from reconciler.model.record import CaseFacts, CaseRecord, DrainRecord, KnownEvent, State
from reconciler.model.values import replace
from reconciler.passes.decide.facts import coming_to, pods_left, with_returns
from reconciler.passes.decision import CaseDecision
from reconciler.passes.node_facts import NodeFacts, PassContext, Progress
from reconciler.profiles import case as cases
from reconciler.profiles.checks.people import not_stopped
from reconciler.profiles.checks.platform import left_to_us
from reconciler.profiles.checks.starts import others_first
from reconciler.profiles.instructed import AUTOSCALER_DELETES, waits_for_others_until
from reconciler.profiles.orders import drain_order
from reconciler.starts.answer import first_lost_from

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


def follow_drain(decision: CaseDecision, node: NodeFacts, context: PassContext, progress: Progress) -> None:
    """Add to the decision what the recorded drain does in this pass, with what holds it.

    `progress` counts the slot that the drain uses, and whether our own node waits for it.
    """
    read, name, settings, now = node.read, node.name, context.settings, context.now
    known = context.snapshot.drains.get(name)
    drained = known if known is not None and known.uid == read.uid else None
    waits_of_features = [decider.follow(decision, node, context) for decider in progress.deciders]
    kept_back = next((wait.hold for wait in waits_of_features if wait.hold is not None), None)
    waited_since = min((wait.since for wait in waits_of_features if wait.since is not None), default=None)
    view, state = decision.view, decision.state
    drain = decision.record.drain if state is State.IN_MAINTENANCE else None
    under_way = drain is not None and drain.done is None
    goes_on = under_way and cases.wants_drain(decision.record, view)

    # The drain that is not done ends, is tried again, or goes on.
    order: DrainOrder | None = None
    held: Hold | None = None
    waits: Hold | None = None
    notices: tuple[Notice, ...] = ()
    if goes_on and drain is not None:
        order = _order(node, decision, drained, context)
        pods = pods_left(read, order.options, context)
        if pods is not None and pods.drained and not running(drained):
            # It evicts nothing, and only looks whether that is all.
            order = replace(order, slots=None)
        held = (
            _held_drain(node, view, context, progress)
            or kept_back
            or _held_for_slot(node, order, drained, context, progress)
        )
        decision.kept = pods.kept if pods is not None else ()
        timeout = settings.drain.timeout if held is None else None
        after, notices = followed(read, drain, pods if kept_back is None else None, drained, timeout, context)
        if after.done is not None:
            if drained is not None and drained.phase is Phase.DRAINED and drained.finished is not None:
                # It was in time for a date that has passed since it ended.
                ended = drained.finished.replace(microsecond=0)
                dates = (event.not_before for event in decision.record.events if event.not_before is not None)
                if any(ended <= date < context.second for date in dates):
                    after = replace(after, done=ended)
            facts = _counted(decision.record, drained, context)
            decision.record = replace(decision.record, drain=after, facts=facts)
            order = held = None
        elif kept_back is None and node.case.drain == drain and waited_since is not None:
            # No feature holds it any more. The time limit of a drain is for evictions, not for such waits.
            facts = decision.record.facts
            if waited_since <= drain.since:
                # It was held from the start, so it begins now.
                facts = replace(facts, drain_began=context.second)
            # What this pass has seen of it is neither kept nor told: the next one sees it again.
            begun, notices = replace(drain, since=context.second), ()
            decision.record = replace(decision.record, drain=begun, facts=facts)
            order = _order(node, decision, drained, context)
        elif after.attempt != drain.attempt:
            facts = _counted(decision.record, drained, context)
            decision.record = replace(decision.record, drain=after, facts=facts)
            order = replace(order, since=after.since, seen=after.seen)
            blockers = drained.blockers[:3] if drained is not None else ()
            blocked = "; ".join(f"{blocker.pod} {blocker.because}" for blocker in blockers)
            message = f"not drained after {format_duration(settings.drain.timeout)}, trying again"
            message = f"{message}; {blocked}" if blocked else message
            notices = (*notices, Notice("MaintenanceDrainTimedOut", message, NoticeType.WARNING))
        else:
            decision.record = replace(decision.record, drain=after)
            if running(drained) and drained is not None and drained.slot.awaited:
                waits = _no_slot(node, context, progress)
    recorded = decision.record.drain

    # Our own node waits for this one, unless something else than a slot holds its drain: that may take for
    # ever. The new record counts: when the last other node is drained, our own node starts in this pass.
    progress.holding.discard(name)
    by_other = held is not None and held.code != DRAIN_SLOT.code
    awaited = recorded is not None and recorded.done is None and not by_other
    awaited = awaited and not is_stuck(drained, recorded, now)
    if under_way and awaited and recorded is not None and name != context.snapshot.itself.node:
        progress.undrained += 1
        progress.begun = max(recorded.since, progress.begun or recorded.since)
        stuck_at = _stuck_at(drained, now)
        if stuck_at is not None:
            progress.stuck_at = min(stuck_at, progress.stuck_at or stuck_at)

    # While a node is drained, what holds its uncordon does not matter yet.
    holds = [] if goes_on else list(decision.holds)
    idle = state is State.REQUIRED and not any(event.asks for event in view.present)
    if not goes_on and (idle or state is State.IN_MAINTENANCE):
        # Nothing is left to do but to wait for the end of the events.
        holds += _unattended(node, decision.record, context)
    unread = context.snapshot.problems.pods.get(name)
    if unread and under_way:
        holds.append(PODS_READABLE.on(name, f"its pods can't be read: {unread}"))
    if held is not None:
        holds.append(held)

    # An order with a hold is not given. The drain that a feature waits for may take its place.
    ordered, stopped = (order, None) if held is None else (None, held)
    waiting = decision.drain
    if ordered is None and waiting is not None:
        stopped = _held_drain(node, cases.CaseView(), context, progress) or _held_for_slot(
            node, waiting, drained, context, progress
        )
        if stopped is not None:
            holds.append(stopped)
        else:
            ordered = waiting
            if name != context.snapshot.itself.node and not is_stuck(drained, None, now):
                progress.undrained += 1
                progress.begun = max(waiting.since, progress.begun or waiting.since)
    if ordered is not None:
        progress.drains += ordered.slots is not None and not _yields(drained)
        holds += [waits] if waits is not None else []
        blockers = drained.blockers if drained is not None else ()
        holds += [DRAIN_BLOCKED.on(name, f"{b.pod}: {b.because}") for b in blockers]
        coming = drained.coming if drained is not None else ()
        coming = coming_to(recorded, drained) if recorded is not None else coming
        holds += [DRAIN_BLOCKED.on(name, each.words(name)) for each in coming]

    # The first attempt has moved no pod yet if it is held or has no slot. A drain that a person has stopped
    # has begun, also if another process has run it.
    if drained is None:
        still = ordered is None and (held is None or held.code != not_stopped.name)
    else:
        still = drained.slot.awaited and not drained.gone and not drained.evicted
    first = drain is not None and drain.attempt == 1
    done = recorded is not None and recorded.done is not None
    decision.begun = done or (drain is not None and not (under_way and first and still))
    decision.holds = tuple(holds)
    # Its time counts by the clock of this process. The start of the drain is recorded by the slowest one.
    behind = context.snapshot.behind
    if behind and ordered is not None and ordered.timeout is not None:
        ordered = replace(ordered, timeout=ordered.timeout + behind)
    decision.drain = ordered
    decision.notices = (*decision.notices, *notices)
    # A drain that ended with an earlier case does not belong to this one.
    decision.progress = drained if drain is not None or running(drained) else None
    # One that can't be judged now goes on with what it knows.
    unjudged = stopped is not None and stopped.code == NAMESPACES_READABLE.code
    decision.stop_drain = ordered is None and not unjudged and running(known)


def _unattended(node: NodeFacts, record: CaseRecord, context: PassContext) -> tuple[Hold, ...]:
    """Return the hold that names the silent sources and how to end the case; empty if no source is silent."""
    silent: list[str] = []
    for source in sorted({source for event in record.events for source in event.sources}):
        if source not in context.reading_names:
            continue
        readings = [reading for reading in node.assessment.readings if reading.source == source]
        if not readings:
            silent.append(f"{source} reports nothing about the node any more")
        for reading in readings:
            if not reading.installed:
                silent.append(f"{source}: {reading.because}")
            elif reading.abandoned and reading.answer is Answer.EVENT:
                silent.append(f"{source}: {reading.abandoned}")
    if not silent:
        return ()
    reason = f"nothing may report the end of the maintenance ({'; '.join(silent)})"
    remedy = f"if it is over, run {context.keys.release(node.name)}"
    return (END_REPORTED.on(node.name, f"{reason}; {remedy}"),)


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
    now, after = context.now, drain
    if running(drained) and drained is not None:
        after = replace(drain, seen=drained.seen)
    if timeout is not None and now - drain.since >= timeout:
        returned = after.seen.returned
        after = DrainRecord(context.second, drain.attempt + 1, seen=Seen(returned=returned))
    if found is not None and found.drained and not running(drained):
        # The pods do not show whether volumes are still attached. What this process has drained knows it, and
        # a drain that is held has nobody who waits for them. None: nobody read the volumes of pods that left.
        attached, emptied = context.snapshot.attached.get(node.name), drain.seen.emptied
        # A start that a clock which was ahead has written counts as now, in each pass.
        same = drained is not None and (drained.since == drain.since or drain.since >= context.second)
        knows = same and drained is not None and drained.phase is Phase.DRAINED
        over = emptied is not None and now >= emptied + VOLUMES_AWAITED
        if knows or attached == () or over or (timeout is None and emptied is None):
            kept = KeptPods.of(found.kept, coming_to(drain, drained))
            after = replace(drain, done=context.second, kept=kept, seen=Seen())
        elif attached:
            after = replace(drain, seen=replace(drain.seen, emptied=emptied or context.second))
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


def _counted(record: CaseRecord, drained: DrainProgress | None, context: PassContext) -> CaseFacts:
    """Return the facts of a case at the end of an attempt: the pods that moved, and the budgets that held."""
    # An attempt that goes on in the next one is counted with that.
    over = drained if drained is not None and drained.finished is not None else None
    held = held_by(record, over, context.now)
    return replace(record.facts, moved=_moved(record, drained, context), held_by=held)


def _moved(record: CaseRecord, drained: DrainProgress | None, context: PassContext) -> int | None:
    """Return how many pods the drains of a case have moved at the end of an attempt, None if not known.

    A process counts only what it drains itself. If another one drained the node in this case, too, the number
    is not known.
    """
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


def _held_drain(
    node: NodeFacts, view: cases.CaseView, context: PassContext, progress: Progress
) -> Hold | None:
    """Return why the drain of a cordoned node for these events has to wait, None if it may go on."""
    hold = node.instructions.hold
    if hold is not None and hold.stops:
        return replace(not_stopped.hold(node.name, hold.words(node.name)), until=hold.word.until)
    if node.read.has_taint(AUTOSCALER_TAINT):
        ends = [at for event in view.present if (at := waits_for_others_until(event)) is not None]
        until = min(ends, default=None)
        if until is None or context.now < until:
            return replace(left_to_us.hold(node.name, AUTOSCALER_DELETES), until=until)
    if node.name == context.snapshot.itself.node and progress.undrained:
        others = f"{count_of(progress.undrained, 'other node', 'are')} being drained"
        reason = f"the reconciler runs on it, so it goes last: {others}"
        # From when on it waits for no other.
        until = first_lost_from(view.present)
        if any(event.event.started or event.exempt.places is not None for event in view.urgent):
            until = context.now
        elif view.urgent:
            until = (progress.begun or context.now) + HEAD_START
        if until is None or until > context.now:
            until = min((at for at in (until, progress.stuck_at) if at), default=None)
            return replace(others_first.hold(node.name, reason), until=until)
    unread = context.snapshot.problems.namespaces
    if unread:
        # A rule that selects namespaces by label would not find the pods that it is to spare.
        return NAMESPACES_READABLE.on(node.name, f"the namespaces can't be read: {unread}")
    return None


def _held_for_slot(
    node: NodeFacts,
    order: DrainOrder,
    drained: DrainProgress | None,
    context: PassContext,
    progress: Progress,
) -> Hold | None:
    """Return that a drain waits for a slot, None if it needs none or gets one."""
    if order.slots is None or _yields(drained):
        return None
    # A drain that holds a slot is not stopped for one that would begin.
    holding = 0 if holds_slot(drained) else len(progress.holding)
    return _no_slot(node, context, progress) if progress.drains + holding >= order.slots else None


def _no_slot(node: NodeFacts, context: PassContext, progress: Progress) -> Hold:
    limit = context.settings.drain.max_concurrent_nodes
    reason = f"{count_of(limit, 'node', 'are')} drained at once at most (drain.maxConcurrentNodes)"
    return DRAIN_SLOT.on(node.name, reason, progress.slot_free_at)


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


def _order(
    node: NodeFacts, decision: CaseDecision, drained: DrainProgress | None, context: PassContext
) -> DrainOrder:
    """Return the order for the recorded drain.

    A node that may be lost at any moment needs no slot if its event does without, or if we run on it.
    """
    record = decision.record
    assert record.drain is not None
    events = cases.allowed(record)
    order = recorded_order(node.read, events, record.drain, record.since, drained, context)
    order = replace(order, case=case_start(record))
    own = node.name == context.snapshot.itself.node
    lost = any(own or event.exempt.slots is not None for event in decision.view.urgent)
    return order if lost else replace(order, slots=context.settings.drain.max_concurrent_nodes)


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
