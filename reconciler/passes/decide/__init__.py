"""Decide: from the snapshot and the settings, what to do about each node, and why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from msgspec import Struct, field

from reconciler.model.content import kept_calendars
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan, Plan, PlanSettings, ProfileNodes
from reconciler.model.polling import Memory
from reconciler.model.problems import Faults, guarded
from reconciler.model.reconciler import Reconciler
from reconciler.model.record import State
from reconciler.model.schedule import LEAST_URGENT, CaseSchedule
from reconciler.model.snapshot import Assessment, Ledger, Resting, Snapshot
from reconciler.model.values import replace
from reconciler.model.workflow import upgraded_pools
from reconciler.model.writes import LabelsWrite
from reconciler.passes.decide.draining import holds_slot
from reconciler.passes.decide.forecasts import with_prospects
from reconciler.passes.decide.guarding import unguarded
from reconciler.passes.decide.known import (
    QueueKey,
    broken,
    common_conditions,
    last_key,
    look_safely,
    queue_key,
    why_out_of_service,
)
from reconciler.passes.decide.one_node import decide_safely
from reconciler.passes.decide.reporting import (
    expiries,
    fleet_nodes,
    holds_of_people,
    is_reported,
    lasted,
    moments,
    not_installed,
    notes,
    of_the_future,
    orphaned_drains,
    source_states,
    uids_of,
)
from reconciler.passes.decide.scheduling import as_held, schedules
from reconciler.passes.decide.shared_events import events_of_several, together
from reconciler.passes.node_facts import NodeFacts, PassContext, Progress, pools_in_replacement, twins_of
from reconciler.passes.parts import Parts
from reconciler.passes.plugin import Fleet, LabelsOf, ObjectChanges
from reconciler.profiles.case import taken_for_good
from reconciler.profiles.instructed import beside_most, beside_older
from reconciler.settings.coverage import seen_now
from reconciler.settings.schema import Settings
from reconciler.starts.budget import OurPlace, count_places, still_missing

LABELS_AT_MOST = 100
"""Nodes whose labels one pass changes: each takes a request."""


def decide(
    snapshot: Snapshot, assessment: Assessment, settings: Settings, now: datetime, parts: Parts
) -> Plan:
    """Return the plan; the same arguments give the same plan. `now` is aware, UTC."""
    sources, faults = parts.sources, Faults()
    # Needed only where a pass may do something to a VM.
    changes_vms = bool(snapshot.for_settings.machines) or sources.change_vms(settings)
    context = PassContext(
        snapshot,
        assessment,
        settings,
        now,
        faults,
        reading_names=sources.reading_names(settings),
        twins=twins_of(snapshot.every_node(), faults) if changes_vms else {},
        notice_names=sources.notice_names(settings),
        upgraded=upgraded_pools(snapshot.nodes, faults),
    )
    fleet = _fleet(context, parts)
    progress = _progress(fleet, context)
    fleet = _queue(fleet, context)
    for node in sorted(fleet.known, key=partial(_turn, context, fleet.ours)):
        progress.plans[node.name] = decide_safely(node, context, progress, parts)
    plans = _in_order(fleet, progress, context)
    shown = _shown(plans, context, fleet)
    _keep(progress, plans, shown, context)
    return _plan(plans, shown, fleet, context, progress)


class _Fleet(Struct, frozen=True):
    """What is known of the nodes before the first is decided on.

    `selected` are those of `nodeSelector`, `resting` those of them that were only counted. `marked` are also
    those that it does not select while they have our record or hints, or an event of a kind that drains, and
    `known` what is known of those with something to decide or report. `ours` says why a node has a place of
    ours, `keys` its place in the queue.
    `common` says which conditions are on most nodes.
    """

    selected: tuple[Node, ...]
    resting: tuple[Resting, ...]
    marked: tuple[Node, ...]
    known: tuple[NodeFacts, ...]
    ours: Mapping[str, OurPlace]
    parts: Parts
    common: tuple[str, ...] = ()
    keys: Mapping[str, QueueKey] = field(default_factory=dict)


def _fleet(context: PassContext, parts: Parts) -> _Fleet:
    snapshot, settings, faults = context.snapshot, context.settings, context.faults
    selected = tuple(
        node
        for node in snapshot.nodes
        if faults.of(node.name, "it may be selected", partial(settings.in_fleet, node.labels), True)
    )
    names = {node.name for node in selected}
    marked = tuple(
        node
        for node in snapshot.nodes
        if node.name in names
        or faults.of(
            node.name, "it may have something to report", partial(_is_marked, node, context, parts), True
        )
    )
    looked = [look_safely(node, context, parts) for node in marked]
    known = tuple(facts for facts in looked if facts is not None)
    resting = tuple(part for part in snapshot.aside.groups if settings.in_fleet(part.node.labels))
    shared = faults.step("events of several VMs are not known", lambda: events_of_several(known, context), {})
    ours = {facts.name: place for facts in known if (place := _place(facts, faults)) is not None}
    if shared:
        places = count_places(selected, ours, settings.budget, context.now, (), faults).beside(resting)
        known = faults.step(
            "nodes of one event do not wait for each other",
            lambda: together(known, shared, places, ours, context, parts),
            known,
        )
    common = faults.step(
        "conditions on most nodes are not known",
        lambda: common_conditions(known, selected, resting, context),
        {},
    )
    if common:
        known = tuple(
            replace(facts, judged=tuple(beside_most(judged, common, context.now) for judged in facts.judged))
            for facts in known
        )
    older = snapshot.reconciler.yields_to
    if older:
        known = tuple(
            replace(facts, judged=tuple(beside_older(judged, older, context.now) for judged in facts.judged))
            for facts in known
        )
    return _Fleet(selected, resting, marked, known, ours, parts, common=tuple(common.values()))


def _progress(fleet: _Fleet, context: PassContext) -> Progress:
    snapshot, settings, now, faults = context.snapshot, context.settings, context.now, context.faults
    read = snapshot.ledger.believed(context.times)
    missing = faults.step(
        "no replacement is missed",
        lambda: still_missing(read.replaced, fleet.selected, settings.budget, now, fleet.resting),
        read.replaced,
    )
    ledger = _spaced(read, settings, context.fastest.replace(microsecond=0))
    places = count_places(fleet.selected, fleet.ours, settings.budget, now, missing, faults)
    places = places.beside(fleet.resting)
    deciders = fleet.parts.deciders(fleet.known, context)
    nothing: Mapping[str, CaseSchedule] = {}
    planned = faults.step(
        "no start is planned",
        lambda: with_prospects(schedules(fleet.known, places, ledger, context), fleet.known, context),
        nothing,
    )
    holders = [drain for drain in snapshot.drains.values() if holds_slot(drain)]
    return Progress(
        places,
        replace(ledger, replaced=missing),
        pools=pools_in_replacement(fleet.known, context),
        holding={facts.name for facts in fleet.known if holds_slot(snapshot.drains.get(facts.name))},
        schedules=dict(planned),
        deciders=deciders,
        slot_free_at=earliest_after(
            now, (drain.slot.blocked_at for drain in holders if drain.slot.blocked_at)
        ),
    )


def _queue(fleet: _Fleet, context: PassContext) -> _Fleet:
    """Return the fleet with its nodes by urgency; each with a fault is one that can't be judged."""
    keys = {
        facts.name: context.faults.of(
            facts.name,
            "its place in the queue is not known",
            partial(queue_key, facts, context.snapshot.itself.node),
            last_key(facts.name),
        )
        for facts in fleet.known
    }
    known = _with_faults(fleet.known, fleet.marked, context)
    keys = {facts.name: keys.get(facts.name) or last_key(facts.name) for facts in known}
    return replace(fleet, known=tuple(sorted(known, key=lambda facts: keys[facts.name])), keys=keys)


def _turn(
    context: PassContext, ours: Mapping[str, OurPlace], facts: NodeFacts
) -> tuple[bool, bool, bool, int]:
    """Return the sort key of a node in this pass.

    Nodes in maintenance first: their places and slots are counted before another node needs one. Those with
    fewer attempts come first: a process that lives for a minute would never come to the others. Those that
    the platform has started come last: they need no place, and may take none from the others.
    """
    waits = facts.name not in ours
    struck = waits and any(judged.struck for judged in facts.judged)
    return (waits, struck, facts.name == context.snapshot.itself.node, facts.attempts)


def _in_order(fleet: _Fleet, progress: Progress, context: PassContext) -> tuple[NodePlan, ...]:
    """Return all plans that are reported, by urgency, with those of nodes that rest."""
    keys = fleet.keys
    rested: Mapping[str, NodePlan] = context.snapshot.aside.plans
    own_node = context.snapshot.itself.node

    def key(plan: NodePlan) -> QueueKey:
        return keys.get(plan.node) or (plan.node == own_node, LEAST_URGENT.key, plan.zone, plan.node)

    decided = []
    for facts in fleet.known:
        plan = _with_schedule(progress.plans[facts.name], progress.schedules.get(facts.name), context.now)
        what = f"node {facts.name}: whether it is guarded is not known"
        why, _ = guarded(what, partial(unguarded, facts, plan, context), None)
        if why is not None:
            # Nobody ends its case, so nobody knows when it is back.
            schedule = plan.schedule
            if schedule is not None and schedule.started:
                schedule = replace(schedule, ends=None)
            plan = replace(plan, unguarded=why, schedule=schedule)
        decided.append(plan)
    reported = sorted((*filter(is_reported, decided), *rested.values()), key=key)
    return (*reported, *orphaned_drains(context.snapshot, keys.keys() | rested.keys()))


def _shown(plans: tuple[NodePlan, ...], context: PassContext, fleet: _Fleet) -> ObjectChanges:
    snapshot, nodes = context.snapshot, {node.name: node for node in context.snapshot.nodes}
    nodes |= {name: snapshot.aside.nodes[name] for name in snapshot.aside.plans}
    shown = Fleet(plans, nodes, context.settings, context.now, snapshot)
    changes = context.faults.step(
        "objects for other tools are not changed",
        lambda: fleet.parts.object_changes(snapshot.for_settings.published, shown, snapshot.ledger.published),
        ObjectChanges(signs=snapshot.ledger.published),
    )
    labels_of = context.faults.step("no labels are changed", lambda: fleet.parts.labels(shown), None)
    if labels_of is None:
        return changes
    labels = islice(_label_writes(fleet.selected, labels_of, context.settings), LABELS_AT_MOST)
    return replace(changes, writes=(*changes.writes, *labels))


def _label_writes(nodes: Iterable[Node], labels_of: LabelsOf, settings: Settings) -> Iterator[LabelsWrite]:
    """Yield what makes the labels of managed nodes as features want them."""
    for node in filter(lambda node: settings.manages(node.labels), nodes):
        labels, _ = guarded(f"node {node.name}: its labels are not changed", partial(labels_of, node), {})
        changed = {key: value for key, value in labels.items() if node.labels.get(key) != value}
        if changed:
            yield LabelsWrite(node.name, node.uid, changed)


def _keep(progress: Progress, plans: Iterable[NodePlan], shown: ObjectChanges, context: PassContext) -> None:
    """Put into the ledger what later passes have to know."""
    memories = context.snapshot.memories.items()
    asked = {name: memory for name, memory in memories if memory != Memory()}
    ledger = progress.ledger
    progress.ledger = replace(
        ledger,
        memories={**ledger.memories, **asked} if asked else ledger.memories,
        published=shown.signs,
        lasted=lasted(context.snapshot.ledger.lasted, progress.plans.values(), context.second),
        calendars=kept_calendars(context.settings.calendar_places(), context.snapshot.for_settings.calendars),
        undone=tuple(plan.todo.undone for plan in plans if plan.todo.undone is not None),
    )


def _plan(
    plans: tuple[NodePlan, ...], shown: ObjectChanges, fleet: _Fleet, context: PassContext, progress: Progress
) -> Plan:
    snapshot, settings, now, faults = context.snapshot, context.settings, context.now, context.faults
    answers = faults.step("the answers of the sources are not counted", lambda: source_states(context), ())
    believed = snapshot.ledger.believed(context.times)
    holds = holds_of_people(snapshot, now)
    labels = {node.name: node.labels for node in snapshot.nodes}
    labels |= {name: snapshot.aside.nodes[name].labels for name in snapshot.aside.plans}
    return Plan(
        now=now,
        mode=settings.mode.value,
        nodes=plans,
        managed=_managed(fleet, context),
        budget=progress.places.use(),
        ledger=progress.ledger if progress.ledger != snapshot.ledger else None,
        notes=(
            *fleet.common,
            *_unspaced(believed, settings),
            *(hold.words("") for hold in holds),
            *of_the_future(fleet.known, believed != snapshot.ledger),
            *faults.steps,
            *notes(snapshot, fleet.selected, context, fleet.resting),
            *not_installed(context),
        ),
        next_change=_next_change(plans, shown, fleet, context, progress),
        publications=shown.writes,
        settings=PlanSettings(
            settings.version,
            settings.time_zone.key,
            snapshot.for_settings.calendars,
            settings.keys.prefix,
            settings.rejected,
        ),
        unseen=snapshot.problems.unseen,
        uids=uids_of(snapshot),
        labels={plan.node: labels[plan.node] for plan in plans if plan.node in labels},
        fleet=fleet_nodes(snapshot, settings),
        sources=answers,
        reconciler=faults.step(
            "what the settings guard is not known", lambda: _covering(context), snapshot.reconciler
        ),
        disagreement=snapshot.disagreement,
        holds=holds,
        profiles=faults.step(
            "the nodes of the profiles are not counted", lambda: _profiles(fleet, context, progress), ()
        ),
    )


def _profiles(fleet: _Fleet, context: PassContext, progress: Progress) -> tuple[ProfileNodes, ...]:
    """Count the nodes of each workflow by their states: those that rest are operational."""
    settings = context.settings
    if not settings.profile_names:
        return ()
    counts: Counter[tuple[str, State | None]] = Counter()

    def selected(node: Node) -> frozenset[str]:
        return settings.profiles_of(node.labels) if settings.manages(node.labels) else frozenset()

    for node in fleet.selected:
        plan = progress.plans.get(node.name)
        states = {report.profile: report.after for report in plan.workflows} if plan is not None else {}
        counts.update((name, states.get(name)) for name in selected(node))
    for resting in fleet.resting:
        for name in selected(resting.node):
            counts[name, State.OPERATIONAL] += resting.count
    return tuple(
        ProfileNodes(name, state, counts[name, state])
        for name in settings.profile_names
        for state in (*State, None)
        if counts[name, state]
    )


def _covering(context: PassContext) -> Reconciler:
    """Return who acts on the nodes, with what these settings guard, compared with those of the last pass."""
    snapshot, settings = context.snapshot, context.settings
    acts = snapshot.reconciler
    if settings.version is None:
        # Nobody has chosen the default settings.
        return acts
    nodes = [(node.labels, 1) for node in snapshot.nodes]
    nodes += [(resting.node.labels, resting.count) for resting in snapshot.aside.groups]
    seen = seen_now(acts.seen, settings, nodes, acts.last_pass or context.now)
    return replace(acts, seen=seen, lost=seen.shown(context.now))


def _managed(fleet: _Fleet, context: PassContext) -> int:
    settings = context.settings
    managed = (
        context.faults.of(node.name, "it may be managed", partial(settings.manages, node.labels), False)
        for node in fleet.selected
    )
    resting = (part.count for part in fleet.resting if settings.manages(part.node.labels))
    return sum(managed) + sum(resting)


def _next_change(
    plans: tuple[NodePlan, ...], shown: ObjectChanges, fleet: _Fleet, context: PassContext, progress: Progress
) -> datetime | None:
    """Return when the plan changes next by time alone (UTC), None if it does not."""
    return earliest_after(
        context.now,
        (
            *moments(plans, context.now),
            *context.snapshot.aside.moments,
            *expiries(fleet.known),
            *fleet.parts.sources.changes(context.snapshot.memories, context.now),
            *_eased(progress.ledger, context.settings),
            *_turns(progress),
            *shown.moments,
        ),
    )


def earliest_after(now: datetime, moments: Iterable[datetime]) -> datetime | None:
    """Return the earliest moment after now (UTC), None without one.

    A moment that has come must not count: it would hide the next one, and ask for a pass every second.
    """
    return min((moment for moment in moments if moment > now), default=None)


def _with_schedule(plan: NodePlan, schedule: CaseSchedule | None, now: datetime) -> NodePlan:
    """Return the plan with its schedule. A drain that begins in this pass is no plan any more."""
    if not plan.drain_begins:
        # A node that was left alone in this pass has no answers of checks.
        schedule = as_held(schedule, plan.holds if plan.before is State.REQUIRED else (), now)
    if schedule is not None and plan.drain_begins:
        because = schedule.because if schedule.by_pods else "its drain begins now"
        schedule = replace(schedule, because=because, started=True)
    return replace(plan, schedule=schedule)


def _is_marked(node: Node, context: PassContext, parts: Parts) -> bool:
    keys = context.keys
    if keys.record in node.annotations or parts.outlived(node, keys.prefix).any:
        return True
    events = context.assessment.of(node.name).events
    policies = context.settings.policies(node.labels) if events else None
    meant = (policies[event.kind, event.condition] for event in events) if policies is not None else ()
    return any(policy is not None and policy.drain for policy in meant)


def _has_place(node: NodeFacts) -> OurPlace | None:
    hold = node.instructions.hold
    because = why_out_of_service(node.record, stopped=hold is not None and hold.stops)
    taken = taken_for_good(node.case)
    return OurPlace(because, taken[1] if taken is not None else None) if because else None


def _place(node: NodeFacts, faults: Faults) -> OurPlace | None:
    what = "whether it is in maintenance is not known"
    # Unknown is not healthy: it keeps its place.
    return faults.of(node.name, what, partial(_has_place, node), OurPlace("an error in this program"))


def _with_faults(seen: Sequence[NodeFacts], nodes: Iterable[Node], context: PassContext) -> list[NodeFacts]:
    """Return what was seen, with each node that has a fault as one that can't be judged."""
    known = {facts.name: facts for facts in seen}
    found = dict(known)
    for node in nodes:
        problem = context.faults.nodes.get(node.name)
        if problem and not (node.name in known and known[node.name].problem):
            found[node.name] = broken(node, context, problem)
    return list(found.values())


def _spaced(ledger: Ledger, settings: Settings, now: datetime) -> Ledger:
    """Return the ledger with a last start for the spacing, also where it could not be read.

    The last start was before now, so a whole spacing from now keeps the spacing. The ledger is written, so
    the wait begins once.
    """
    if not ledger.unread or settings.budget.spacing <= timedelta():
        return ledger
    return replace(ledger, last_start=now, unread="")


def _unspaced(ledger: Ledger, settings: Settings) -> Iterator[str]:
    if ledger.unread:
        counts = "" if settings.budget.spacing <= timedelta() else "; budget.spacing counts from now"
        yield f"the last start in the ledger can't be read: {ledger.unread}{counts}"


def _turns(progress: Progress) -> Iterable[datetime]:
    """Yield when a node that waits, and is out of service itself, needs a place of its own."""
    eases_at, holders = progress.places.eases_at, progress.places.holders
    waiting = (name for name, plan in progress.plans.items() if plan.after is State.REQUIRED)
    return () if eases_at is None or holders.keys().isdisjoint(waiting) else (eases_at,)


def _eased(ledger: Ledger, settings: Settings) -> Iterable[datetime]:
    """Yield when a node that we replaced no longer holds its place."""
    return (machine.at + settings.budget.ignore.not_ready_for for machine in ledger.replaced)
