"""Decide: from what was seen and the settings, what to do about each node, and why not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reconciler.checks.builtin import CHECKS
from reconciler.checks.cordon_adopted import is_adoptable
from reconciler.engine import case as cases
from reconciler.engine import publishing
from reconciler.engine.judging import judge
from reconciler.engine.machine import Walk, walk
from reconciler.engine.maintenances import maintenances
from reconciler.engine.orders import drain_order
from reconciler.engine.places import Places, count_places
from reconciler.engine.profile import builtin
from reconciler.engine.situation import Situation
from reconciler.errors import RecordUnreadable
from reconciler.eviction.survey import Survey, survey
from reconciler.model.assessment import Assessment, NodeAssessment
from reconciler.model.cloud import PerformMaintenance
from reconciler.model.drain import Blocker, DrainOptions, DrainOrder, DrainProgress, Phase
from reconciler.model.event import Answer, Kind
from reconciler.model.maintenance import MaintenanceWrite
from reconciler.model.moments import to_text
from reconciler.model.node import AUTOSCALER_TAINT, REMEDIATOR_TAINT, Node
from reconciler.model.own import own_keys
from reconciler.model.plan import (
    ConditionsWrite,
    Hold,
    JudgedEvent,
    NodePlan,
    NodeWrite,
    Notice,
    NoticeType,
    Plan,
)
from reconciler.model.record import DrainRecord, Record, State, from_annotation, to_annotation
from reconciler.model.snapshot import Ledger, Snapshot
from reconciler.settings.schema import Settings, Sign
from reconciler.sources import arm, aws, imds, node_condition, request
from reconciler.triggers.builtin import TRIGGERS

DEFAULT = "default"
_PROFILE = builtin(DEFAULT, CHECKS, TRIGGERS)


@dataclass(frozen=True, slots=True)
class _Seen:
    """One node with what the pass knows of it before it is decided about."""

    node: Node
    assessment: NodeAssessment
    judged: tuple[JudgedEvent, ...] = ()
    record: Record | None = None
    unreadable: str = ""


@dataclass(slots=True)
class _Progress:
    """What one decision leaves behind for the next: places, the last start, drains under way."""

    places: Places
    ledger: Ledger
    drains: int = 0
    undrained: int = 0
    plans: list[NodePlan] = field(default_factory=list)


def decide(snapshot: Snapshot, assessment: Assessment, settings: Settings, now: datetime) -> Plan:
    """Return the plan: the same for the same snapshot, settings and `now` (aware, UTC)."""
    fleet = [node for node in snapshot.nodes if settings.in_fleet(node.labels)]
    ours_or_theirs = [
        node
        for node in snapshot.nodes
        # A node that the settings no longer select is not forgotten while it has our record.
        if settings.in_fleet(node.labels) or f"{settings.keys.prefix}/record" in node.annotations
    ]
    seen = [
        one
        for node in ours_or_theirs
        if (one := _look(node, assessment.of(node.name), snapshot, settings, now)) is not None
    ]
    ours = {one.node.name: _in_hand(one.record) for one in seen if _in_hand(one.record)}
    places = count_places(fleet, ours, settings.budget, now)
    progress = _Progress(places, snapshot.ledger)
    queue = sorted(seen, key=lambda one: _order(one, snapshot.own_node))
    # Nodes in our hands first: what they hold is known before anybody new asks for a place or a slot.
    for one in sorted(queue, key=lambda one: not _in_hand(one.record)):
        progress.plans.append(_decide_node(one, snapshot, settings, progress, now))
    if snapshot.arm is not None:
        progress.ledger = replace(progress.ledger, arm=snapshot.arm)
    if snapshot.aws is not None:
        progress.ledger = replace(progress.ledger, aws=snapshot.aws)
    order = {one.node.name: position for position, one in enumerate(queue)}
    plans = (
        *sorted((plan for plan in progress.plans if _worth_telling(plan)), key=lambda plan: order[plan.node]),
        *_strays(snapshot, order),
    )
    shown, ends = _maintenances(snapshot, plans, settings, now)
    return Plan(
        now=now,
        mode=settings.mode.value,
        nodes=plans,
        looked_after=sum(1 for node in fleet if settings.looks_after(node.labels)),
        budget=progress.places.use(),
        ledger=progress.ledger if progress.ledger != snapshot.ledger else None,
        notes=(*_notes(snapshot, fleet, settings), *assessment.notes),
        next_change=min(
            (*_moments(plans), *_silences(seen, settings), *_asked_again(snapshot, now), *ends), default=None
        ),
        maintenances=shown,
    )


def _look(
    node: Node, assessment: NodeAssessment, snapshot: Snapshot, settings: Settings, now: datetime
) -> _Seen | None:
    """Return what is known of a node, None where there is nothing to decide and nothing to tell."""
    text = node.annotations.get(f"{settings.keys.prefix}/record")
    unknown = any(one.answer is Answer.UNKNOWN and one.installed for one in assessment.readings)
    marked = f"{settings.keys.prefix}/state" in node.labels
    signed = publishing.bears_signs(node, settings.keys.prefix)
    if not (assessment.events or text or unknown or marked or signed or is_adoptable(node, settings)):
        return None
    judged = tuple(judge(event, node, settings, snapshot.remediator, now) for event in assessment.events)
    if text is None:
        return _Seen(node, assessment, judged)
    try:
        return _Seen(node, assessment, judged, from_annotation(text, node.uid))
    except RecordUnreadable as error:
        return _Seen(node, assessment, judged, unreadable=str(error))


def _maintenances(
    snapshot: Snapshot, plans: Iterable[NodePlan], settings: Settings, now: datetime
) -> tuple[tuple[MaintenanceWrite, ...], tuple[datetime, ...]]:
    if snapshot.maintenances is None:
        return (), ()
    nodes = {node.name: node for node in snapshot.nodes}
    prefix = settings.keys.prefix
    writes, ends = maintenances(snapshot.maintenances, plans, nodes, settings.history, prefix, now)
    # A window that closes over a node that is held by something else changes nothing but what is shown.
    closes = (
        settings.calendar.at(now, nodes[plan.node].labels).changes_at
        for plan in plans
        if plan.node in nodes and any(event.may_start for event in plan.events)
    )
    return writes, (*ends, *(moment for moment in closes if moment is not None))


def _strays(snapshot: Snapshot, told: Collection[str]) -> Iterable[NodePlan]:
    """Yield a stop for every drain that runs on a node of which there is nothing to decide (any more)."""
    for name, drained in sorted(snapshot.drains.items()):
        if name not in told and _running(drained):
            state = State.OPERATIONAL
            yield NodePlan(name, "", "", state, state, stop_drain=True, progress=drained)


def _in_hand(record: Record | None) -> str:
    """Return in words why a node with this record is out of service, empty where it is not."""
    if record is None:
        return ""
    if record.claimed_by:
        return f"drained by hand by {record.claimed_by}"
    if record.state(DEFAULT) is not State.IN_MAINTENANCE:
        return ""
    return "ours, drained" if record.drain and record.drain.done else "ours, draining"


def _order(one: _Seen, own_node: str | None) -> tuple[bool, bool, str, str, str]:
    dates = [event.event.not_before for event in one.judged if event.asks and event.event.not_before]
    if one.record is not None:
        dates += [known.not_before for known in one.record.events if known.not_before]
    first = to_text(min(dates)) if dates else ""
    return (one.node.name == own_node, not dates, first, one.node.zone, one.node.name)


def _decide_node(
    one: _Seen, snapshot: Snapshot, settings: Settings, progress: _Progress, now: datetime
) -> NodePlan:
    node = one.node
    drained = snapshot.drains.get(node.name)
    hold = _untouchable(one, settings)
    if hold is not None:
        record = one.record or Record(node.uid)
        return _plan(one, record.state(DEFAULT), (hold,), stop_drain=_running(drained), progress=drained)
    before = one.record or Record(node.uid)
    judged = cases.not_dismissed(one.record, one.judged)
    switched_on = _switched_on(settings)
    record = _prune_dismissed(before, one, switched_on)
    view = cases.view(record, judged, one.assessment, switched_on)
    begun = record.state(DEFAULT) is State.IN_MAINTENANCE
    # What comes together with somebody's uncordon is not what that uncordon was about.
    opened = begun and not node.unschedulable
    again = begun and not opened and _drains_again(record, judged)
    if record.profiles or any(event.asks and event.starts for event in judged):
        fresh = cases.updated(record, view, one.assessment, switched_on, now)
        record = cases.without_new(fresh, record) if opened else fresh
    if again:
        record = replace(record, drain=DrainRecord(now.replace(microsecond=0)))
    situation = Situation(
        node=node,
        state=record.state(DEFAULT),
        record=record,
        judged=judged,
        case=view,
        settings=settings,
        places=progress.places,
        ledger=progress.ledger,
        now=now,
        skew=snapshot.skew,
        own_node=node.name == snapshot.own_node,
        waiting_nodes=progress.undrained,
    )
    walked = walk(_PROFILE, situation, CHECKS, TRIGGERS)
    started = any(step.begins for step in walked.transitions)
    if started:
        progress.places = progress.places.take(node, "ours, starting")
        if settings.budget.spacing > timedelta():
            progress.ledger = replace(progress.ledger, last_start=now.replace(microsecond=0))
    return _follow_drain(one, walked, view, drained, snapshot, settings, progress, now)


def _drains_again(record: Record, judged: tuple[JudgedEvent, ...]) -> bool:
    """Whether a node that is closed already is to be drained (anew).

    A case that has a drain goes on with a new event as it is, since that may let more pods go. One that has
    none, an adopted cordon, begins it when a start may be.
    """
    if record.drain is not None:
        return cases.newly_asking(record, judged)
    return any(one.asks and one.starts and one.may_start for one in judged)


def _untouchable(one: _Seen, settings: Settings) -> Hold | None:
    """Return why nothing at all may be done about the node, None where it may."""
    name = one.node.name
    if one.unreadable:
        fix = f"reconciler release {name} --reset takes it away"
        return Hold(name, "recordReadable", f"its record is left alone: {one.unreadable}; {fix}")
    if not settings.in_fleet(one.node.labels):
        undo = f"reconciler release {name} undoes what is ours on it"
        return Hold(name, "lookedAfter", f"nodeSelector does not select it any more; {undo}")
    if not settings.looks_after(one.node.labels):
        return Hold(name, "lookedAfter", f"label {settings.keys.prefix}/ignore takes it out")
    if one.record is not None and one.record.claimed_by:
        return Hold(name, "notClaimed", f"it is drained by hand by {one.record.claimed_by}")
    return None


def _prune_dismissed(record: Record, one: _Seen, switched_on: cases.SwitchedOn) -> Record:
    """Return the record without the dismissed events that are no longer told of."""
    kept = tuple(
        known
        for known in record.dismissed
        if any(known.tells_of(event.event) for event in one.judged)
        or any(cases.is_silent(known, source, one.assessment, switched_on) for source in known.sources)
    )
    return replace(record, dismissed=kept)


def _switched_on(settings: Settings) -> cases.SwitchedOn:
    """Return the answer to: is this source on, so that its silence means unknown?"""
    sources, named = settings.sources, settings.condition_types()

    def is_on(source: str) -> bool:
        if source == imds.SOURCE:
            return sources.imds.enabled
        if source == request.SOURCE:
            return sources.requests.enabled
        if source == arm.SOURCE:
            return sources.arm.enabled
        if source == aws.SOURCE:
            return sources.aws.enabled
        condition = source.removeprefix(node_condition.PREFIX)
        if condition in node_condition.CONDITIONS:
            return sources.node_conditions.enabled
        return condition in named

    return is_on


def _running(drained: DrainProgress | None) -> bool:
    return drained is not None and drained.phase is Phase.RUNNING


def _follow_drain(
    one: _Seen,
    walked: Walk,
    view: cases.CaseView,
    drained: DrainProgress | None,
    snapshot: Snapshot,
    settings: Settings,
    progress: _Progress,
    now: datetime,
) -> NodePlan:
    """Add to what the state machine decided the drain that the record speaks of."""
    node, record = one.node, walked.effects.record
    notices = list(walked.effects.notices)
    order, held = None, None
    kept: tuple[Blocker, ...] = ()
    stale = drained if drained is not None and drained.uid != node.uid else None
    drained = None if stale is not None else drained
    drain = record.drain if walked.state is State.IN_MAINTENANCE else None
    under_way = drain is not None and drain.done is None
    wanted = any(event.asks for event in view.present) or bool(view.unknown)
    goes_on = drain is not None and under_way and wanted
    # While a node is being emptied nobody waits for its uncordon yet.
    holds = [] if goes_on else list(walked.holds)
    if drain is not None and goes_on:
        order = drain_order(node, record.events, drain.since, settings, snapshot)
        held = _held_drain(node, snapshot, settings, progress)
        found = _pods_left(node, order.options, snapshot, now)
        if found is not None:
            kept = found.kept
        # What the drainer still waits for (volumes to be detached) is not seen in the pods.
        if found is not None and found.drained and not _running(drained):
            record = replace(record, drain=replace(drain, done=now.replace(microsecond=0)))
            order = None
            left = f"; kept: {', '.join(blocker.pod for blocker in kept)}" if kept else ""
            notices.append(Notice("MaintenanceDrained", f"drained{left}"))
        elif held is None and now - drain.since >= settings.drain.timeout:
            again = DrainRecord(now.replace(microsecond=0), drain.attempt + 1)
            record = replace(record, drain=again)
            order = replace(order, since=again.since)
            because = _blocked(drained)
            message = f"not drained after {settings.drain.timeout}, trying again{because}"
            notices.append(Notice("MaintenanceDrainTimedOut", message, NoticeType.WARNING))
    # The record as it is by now: our own node need not wait for a pass more when the last one is drained.
    if under_way and record.drain and not record.drain.done and node.name != snapshot.own_node:
        progress.undrained += 1
    if order is not None and held is not None:
        holds.append(held)
        order = None
    elif order is not None:
        progress.drains += 1
    if drained is not None and order is not None:
        holds += [Hold(node.name, "drain", f"{b.pod}: {b.because}") for b in drained.blockers]
    standing = publishing.Standing(walked.state, record, view, tuple(holds), draining=order is not None)
    signs, conditions = _signs(node, standing, settings, now)
    return _plan(
        one,
        walked.state,
        tuple(holds),
        walked=walked,
        record=record,
        conditions=conditions,
        write=_write(one, walked, record, settings, signs),
        order=order,
        stop_drain=order is None and (_running(drained) or _running(stale)),
        # A drain that ended with an earlier case is not this one's.
        progress=drained if drain is not None or _running(drained) else None,
        notices=tuple(notices),
        kept=kept,
        perform=walked.effects.perform,
    )


def _signs(
    node: Node, standing: publishing.Standing, settings: Settings, now: datetime
) -> tuple[Mapping[str, str | None], ConditionsWrite | None]:
    """Return what changes of the signs that others read, the annotations for the node's own patch."""
    shown = settings.publish
    annotations = publishing.drainsafe(node, standing, settings.keys.prefix, wanted=Sign.DRAINSAFE in shown)
    return annotations, publishing.lifecycle(node, standing, now, wanted=Sign.NODE_CONDITIONS in shown)


def _held_drain(node: Node, snapshot: Snapshot, settings: Settings, progress: _Progress) -> Hold | None:
    """Return why a cordoned node's drain has to wait, None where it goes on."""
    if node.has_taint(AUTOSCALER_TAINT):
        return Hold(
            node.name, "leftToUs", f"the cluster autoscaler is deleting it (taint {AUTOSCALER_TAINT})"
        )
    if node.name == snapshot.own_node and progress.undrained:
        reason = f"we run on it, so it goes last: {progress.undrained} other nodes are being drained"
        return Hold(node.name, "othersFirst", reason)
    limit = settings.drain.max_concurrent_nodes
    if progress.drains >= limit:
        return Hold(node.name, "drainSlot", f"{limit} nodes are drained at once (drain.maxConcurrentNodes)")
    return None


def _pods_left(node: Node, options: DrainOptions, snapshot: Snapshot, now: datetime) -> Survey | None:
    pods = snapshot.pods.get(node.name)
    if pods is None:
        return None
    return survey(pods, options, now=now, namespaces=snapshot.namespaces, own_pod=snapshot.own_pod)


def _blocked(drained: DrainProgress | None) -> str:
    if drained is None or not drained.blockers:
        return ""
    return "; " + "; ".join(f"{blocker.pod} {blocker.because}" for blocker in drained.blockers[:3])


def _plan(
    one: _Seen,
    after: State,
    holds: tuple[Hold, ...],
    *,
    walked: Walk | None = None,
    record: Record | None = None,
    conditions: ConditionsWrite | None = None,
    write: NodeWrite | None = None,
    order: DrainOrder | None = None,
    stop_drain: bool = False,
    progress: DrainProgress | None = None,
    notices: tuple[Notice, ...] = (),
    kept: tuple[Blocker, ...] = (),
    perform: PerformMaintenance | None = None,
) -> NodePlan:
    node = one.node
    before = one.record.state(DEFAULT) if one.record else State.OPERATIONAL
    # A patch that only shows something to others is no action: what holds the node is still to be told.
    acts = (write is not None and not write.only_shows) or order is not None or stop_drain
    return NodePlan(
        node=node.name,
        zone=node.zone,
        pool=node.pool,
        before=before,
        after=after,
        events=one.judged,
        checks=walked.answers if walked else (),
        transitions=walked.transitions if walked else (),
        holds=holds if acts or holds else _unspoken_holds(one),
        unknowns=tuple(
            f"{reading.source}: {reading.because}"
            for reading in one.assessment.readings
            if reading.answer is Answer.UNKNOWN and reading.installed
        ),
        write=write,
        drain=order,
        stop_drain=stop_drain,
        notices=notices,
        kept=kept,
        progress=progress,
        unschedulable=node.unschedulable,
        perform=perform,
        record=record if walked else one.record,
        conditions=conditions,
    )


def _unspoken_holds(one: _Seen) -> tuple[Hold, ...]:
    """Return the reasons that no check gives: law 7 wants one for every event that nothing is done about."""
    holds = []
    let_be = {event.event for event in one.judged} - {
        event.event for event in cases.not_dismissed(one.record, one.judged)
    }
    for event in one.judged:
        if event.event in let_be and event.asks:
            reason = "somebody uncordoned the node: it is let be until a new event"
            holds.append(Hold(one.node.name, "dismissed", reason))
        elif event.asks and not event.starts:
            holds.append(Hold(one.node.name, "inTime", event.because))
        elif not event.asks and event.event.kind is Kind.UNKNOWN:
            holds.append(Hold(one.node.name, "eventReadable", event.because, event.until))
    return tuple(dict.fromkeys(holds))


def _write(
    one: _Seen, walked: Walk, record: Record, settings: Settings, signs: Mapping[str, str | None]
) -> NodeWrite | None:
    """Return the one patch that makes the node what was decided, None where it is that already.

    `signs` are annotations that others read, which ride on it.
    """
    node, prefix = one.node, settings.keys.prefix
    labels: dict[str, str | None] = {
        key: value for key, value in walked.effects.labels.items() if node.labels.get(key) != value
    }
    state, shown = f"{prefix}/state", node.labels.get(f"{prefix}/state")
    wanted = None if record.worst is State.OPERATIONAL else record.worst.value
    if shown != wanted:
        labels[state] = wanted
    annotations: dict[str, str | None] = dict(signs)
    key = f"{prefix}/record"
    text = None if record.empty else to_annotation(record)
    if node.annotations.get(key) != text:
        annotations[key] = text
    unschedulable = walked.effects.unschedulable
    if unschedulable == node.unschedulable:
        unschedulable = None
    if not labels and not annotations and unschedulable is None:
        return None
    return NodeWrite(
        node=node.name,
        uid=node.uid,
        resource_version=node.resource_version,
        seen_unschedulable=node.unschedulable,
        seen_own=own_keys(node, prefix, walked.effects.labels),
        own_prefix=prefix,
        unschedulable=unschedulable,
        labels=labels,
        annotations=annotations,
    )


def _worth_telling(plan: NodePlan) -> bool:
    return bool(
        plan.events
        or plan.holds
        or plan.transitions
        or plan.unknowns
        or plan.acts
        or plan.write is not None
        or plan.conditions is not None
        or plan.after is not State.OPERATIONAL
    )


def _silences(seen: Iterable[_Seen], settings: Settings) -> Iterable[datetime]:
    """Yield when what is told of nodes that matter becomes too old to be believed."""
    for one in seen:
        if one.judged or one.record is not None:
            for reading in one.assessment.readings:
                if reading.as_of is not None and reading.answer is not Answer.UNKNOWN:
                    yield reading.as_of + settings.sources.node_conditions.stale_after + timedelta.resolution


def _asked_again(snapshot: Snapshot, now: datetime) -> Iterable[datetime]:
    """Yield when a cloud is asked again: whatever it says then may change the plan."""
    if snapshot.arm is not None:
        patience = snapshot.arm.not_before
        again = (max(one.again, patience) if patience else one.again for one in snapshot.arm.answers)
        yield from (moment for moment in again if moment > now)
    if snapshot.aws is not None:
        yield from aws.moments(snapshot.aws, now)


def _moments(plans: Iterable[NodePlan]) -> Iterable[datetime]:
    for plan in plans:
        if plan.drain is not None and plan.drain.timeout is not None:
            yield plan.drain.since + plan.drain.timeout
        yield from (hold.until for hold in plan.holds if hold.until is not None)
        yield from (event.until for event in plan.events if event.until is not None)


def _notes(snapshot: Snapshot, fleet: list[Node], settings: Settings) -> tuple[str, ...]:
    """Return what concerns the cluster as a whole, a sentence each."""
    notes = list(snapshot.problems)
    remediator, coexist = snapshot.remediator, settings.coexist
    tainted = sum(1 for node in fleet if node.has_taint(REMEDIATOR_TAINT))
    if remediator.config_found or tainted:
        freeze = "drains for Freeze too" if remediator.on_freeze else "does not drain for Freeze"
        notes.append(
            f"AKS's remediator is here: it drains for Redeploy and Preempt by default, {freeze}, "
            f"has {tainted} nodes now (coexist.aksRemediator: {coexist.aks_remediator})"
        )
    if remediator.problem:
        notes.append(f"AKS's remediator-config can't be read: {remediator.problem}")
    karpenter = sum(1 for node in fleet if node.is_karpenter)
    if karpenter:
        kinds = ", ".join(coexist.karpenter.leave) or "nothing"
        notes.append(f"{karpenter} nodes are Karpenter's: {kinds} left to it (coexist.karpenter.leave)")
    return tuple(notes)
