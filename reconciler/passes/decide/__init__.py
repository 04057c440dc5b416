"""Decide: from the snapshot and the settings, what to do about each node, and why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from reconciler.model.node import Node, upgraded_pools
from reconciler.model.plan import NodePlan, Plan, PlanSettings, ProfileNodes
from reconciler.model.problems import Faults, guarded
from reconciler.model.reconciler import Reconciler
from reconciler.model.record import State
from reconciler.model.schedule import LEAST_URGENT, CaseSchedule
from reconciler.model.snapshot import Assessment, Resting, Snapshot
from reconciler.model.values import replace
from reconciler.model.writes import LabelsWrite
from reconciler.passes.decide.draining import holds_slot
from reconciler.passes.decide.guarding import unguarded
from reconciler.passes.decide.known import (
    broken,
    common_conditions,
    look_safely,
    queue_key,
    why_out_of_service,
)
from reconciler.passes.decide.one_node import decide_safely
from reconciler.passes.decide.prospects import with_prospects
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
    unknown_in_ledger,
    unknown_parts,
)
from reconciler.passes.decide.sayings import sayings
from reconciler.passes.decide.scheduling import schedules
from reconciler.passes.decide.shared_events import together
from reconciler.passes.node_facts import NodeFacts, PassContext, Progress, twins_of
from reconciler.passes.parts import Parts
from reconciler.passes.plugin import Fleet, LabelsOf
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
    sources, faults, resting = parts.sources, Faults(), snapshot.aside.groups
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
        awaits=parts.awaits,
        vm_name=sources.vm_name,
        offers=parts.offers_of(settings),
        ends_machines=frozenset(offer.name for offer in parts.offers if offer.ends_machine),
    )

    # What is known of the nodes of `nodeSelector`, and of those with our record or hints, or an event of a
    # kind that drains, that it does not select. Those that rest are only counted.
    selected = tuple(node for node in snapshot.nodes if settings.in_fleet(node.labels))
    resting = tuple(part for part in resting if settings.in_fleet(part.node.labels))
    looked = (look_safely(node, context, parts) for node in snapshot.nodes)
    known = tuple(facts for facts in looked if facts is not None)
    # Unknown is not healthy: a node whose place is not known keeps it.
    unknown = OurPlace("an error in this program")
    places_of_ours = {
        facts.name: faults.of(
            facts.name, "whether it is in maintenance is not known", partial(_our_place, facts), unknown
        )
        for facts in known
    }
    ours = {name: place for name, place in places_of_ours.items() if place is not None}
    known = faults.step(
        "nodes of one event do not wait for each other",
        lambda: together(known, selected, resting, ours, context, parts),
        known,
    )
    common = faults.step(
        "conditions on most nodes are not known",
        lambda: common_conditions(known, selected, resting, context),
        {},
    )
    older = snapshot.reconciler.yields_to
    if common or older:
        # Events wait while their condition is on most nodes, or an older reconciler acts.
        known = tuple(
            replace(
                facts,
                judged=tuple(
                    beside_older(beside_most(judged, common, now), older, now) for judged in facts.judged
                ),
            )
            for facts in known
        )

    # The places of the budget, and when each drain starts.
    read = snapshot.ledger.believed(context.times)
    missing = faults.step(
        "no replacement is missed",
        lambda: still_missing(read.replaced, selected, settings.budget, now, resting),
        read.replaced,
    )
    spaced = settings.budget.spacing > timedelta()
    ledger = read
    if read.unread and spaced:
        # The last start was before now, so a whole spacing from now keeps the spacing. The ledger is written,
        # so the wait begins once.
        ledger = replace(read, last_start=context.fastest.replace(microsecond=0), unread="")
    places = count_places(selected, ours, settings.budget, now, missing, faults).beside(resting)
    deciders = parts.deciders(known, context)
    nothing: Mapping[str, CaseSchedule] = {}
    planned = faults.step(
        "no start is planned",
        lambda: with_prospects(schedules(known, places, ledger, context), known, context),
        nothing,
    )
    slots = [drain.slot for drain in snapshot.drains.values() if holds_slot(drain)]
    progress = Progress(
        places,
        replace(ledger, replaced=missing),
        holding={facts.name for facts in known if holds_slot(snapshot.drains.get(facts.name))},
        deciders=deciders,
        slot_free_at=earliest_after(now, (slot.blocked_at for slot in slots if slot.blocked_at)),
    )

    # The nodes, one after the other. Each with a fault is one that can't be judged.
    by_name = {facts.name: replace(facts, schedule=planned.get(facts.name)) for facts in known}
    for node in snapshot.nodes:
        problem = faults.nodes.get(node.name)
        if problem and not (node.name in by_name and by_name[node.name].problem):
            by_name[node.name] = replace(broken(node, context, problem), schedule=planned.get(node.name))
    own_node = snapshot.itself.node
    keys = {name: queue_key(facts, own_node) for name, facts in by_name.items()}
    in_queue = sorted(by_name.values(), key=lambda facts: keys[facts.name])

    def turn(facts: NodeFacts) -> tuple[bool, bool, bool, int]:
        # Nodes in maintenance first: their places and slots are counted before another node needs one. Those
        # with fewer attempts come first: a process that lives for a minute would never come to the others.
        # Those that the platform has started come last: they need no place, and may take none from others.
        waits = facts.name not in ours
        struck = waits and any(judged.struck for judged in facts.judged)
        return (waits, struck, facts.name == own_node, facts.attempts)

    for facts in sorted(in_queue, key=turn):
        progress.plans[facts.name] = decide_safely(facts, context, progress, parts)

    # What is reported, by urgency, with the plans of nodes that rest.
    decided = [_with_guard(progress.plans[facts.name], facts, context) for facts in in_queue]
    rested = snapshot.aside.plans
    reported = sorted(
        (*filter(is_reported, decided), *rested.values()),
        key=lambda plan: (
            keys.get(plan.node) or (plan.node == own_node, LEAST_URGENT.key, plan.zone, plan.node)
        ),
    )
    plans = (*reported, *orphaned_drains(snapshot, keys.keys() | rested.keys()))

    # What other tools are shown.
    nodes = {node.name: node for node in snapshot.nodes}
    nodes |= {name: snapshot.aside.nodes[name] for name in rested}
    fleet = Fleet(plans, nodes, settings, now, snapshot)
    fleet, unsaid = parts.with_parts(fleet)
    plans = fleet.plans
    shown, not_shown = parts.object_changes(snapshot.for_settings.objects, fleet)
    labels_of, not_labelled = parts.labels(fleet)
    writes = shown.writes
    if labels_of is not None:
        writes = (*writes, *islice(_label_writes(selected, labels_of, settings), LABELS_AT_MOST))

    # What later passes have to know.
    kept, not_kept = parts.kept(
        replace(
            progress.ledger,
            lasted=lasted(snapshot.ledger.lasted, progress.plans.values(), context.second),
            undone=tuple(plan.todo.undone for plan in plans if plan.todo.undone is not None),
        ),
        replace(fleet, writes=shown.writes),
    )

    # When the plan changes next by time alone. A node that waits, and is out of service itself, needs a place
    # of its own once it no longer counts; one that we replaced no longer holds its place.
    waiting = (name for name, plan in progress.plans.items() if plan.after is State.REQUIRED)
    eases_at = progress.places.eases_at
    eases = eases_at is not None and not progress.places.holders.keys().isdisjoint(waiting)
    next_change = earliest_after(
        now,
        (
            *moments(plans, now),
            *snapshot.aside.moments,
            *expiries(in_queue),
            *sources.changes(snapshot.memories, now),
            *(machine.at + settings.budget.ignore.not_ready_for for machine in kept.replaced),
            *((eases_at,) if eases and eases_at is not None else ()),
            *shown.moments,
        ),
    )

    holds = holds_of_people(snapshot, now)
    answers, reconciler, profiles = faults.step(
        "the answers of the sources, the nodes of profiles, and what the settings guard are not known",
        lambda: (source_states(context), _covering(context), _profiles(selected, resting, context, progress)),
        ((), snapshot.reconciler, ()),
    )
    notes_of_ledger = []
    if read.unread:
        counts = "; budget.spacing counts from now" if spaced else ""
        notes_of_ledger.append(f"the last start in the ledger can't be read: {read.unread}{counts}")
    managed = sum(1 for node in selected if settings.manages(node.labels))
    return Plan(
        now=now,
        mode=settings.mode.value,
        nodes=plans,
        managed=managed + sum(part.count for part in resting if settings.manages(part.node.labels)),
        budget=progress.places.use(),
        ledger=kept if kept != snapshot.ledger else None,
        notes=(
            *common.values(),
            *notes_of_ledger,
            *(hold.words("") for hold in holds),
            *of_the_future(in_queue, read != snapshot.ledger),
            *unknown_parts(in_queue, parts.in_record),
            *unknown_in_ledger(snapshot.ledger, parts.in_ledger),
            *not_kept,
            *faults.steps,
            *unsaid,
            *not_shown,
            *not_labelled,
            *notes(snapshot, selected, context, resting),
            *(note for decider in deciders for note in decider.notes),
            *not_installed(context),
        ),
        next_change=next_change,
        publications=writes,
        settings=PlanSettings(
            settings.version,
            settings.time_zone.key,
            snapshot.for_settings.calendars,
            settings.keys.prefix,
            settings.rejected,
        ),
        unseen=snapshot.problems.unseen,
        uids=uids_of(snapshot),
        labels={plan.node: nodes[plan.node].labels for plan in plans if plan.node in nodes},
        fleet=fleet_nodes(snapshot, settings),
        sources=answers,
        reconciler=reconciler,
        disagreement=snapshot.disagreement,
        holds=holds,
        ended=snapshot.ledger.ended,
        sayings=sayings(context, parts),
        profiles=profiles,
    )


def _label_writes(nodes: Iterable[Node], labels_of: LabelsOf, settings: Settings) -> Iterator[LabelsWrite]:
    """Yield what makes the labels of managed nodes as features want them."""
    for node in filter(lambda node: settings.manages(node.labels), nodes):
        changed = {key: value for key, value in labels_of(node).items() if node.labels.get(key) != value}
        if changed:
            yield LabelsWrite(node.name, node.uid, changed)


def _profiles(
    selected: Iterable[Node], resting: Iterable[Resting], context: PassContext, progress: Progress
) -> tuple[ProfileNodes, ...]:
    """Count the nodes of each profile of the settings by their states: those that rest are operational."""
    settings = context.settings
    if not settings.profile_names:
        return ()
    counts: Counter[tuple[str, State | None]] = Counter()

    def chosen(node: Node) -> frozenset[str]:
        return settings.profiles_of(node.labels) if settings.manages(node.labels) else frozenset()

    for node in selected:
        plan = progress.plans.get(node.name)
        parts = plan.of_features.values() if plan is not None else ()
        states = {profile: after for part in parts for profile, (_, after) in part.states.items()}
        counts.update((name, states.get(name)) for name in chosen(node))
    for part in resting:
        for name in chosen(part.node):
            counts[name, State.OPERATIONAL] += part.count
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


def earliest_after(now: datetime, moments: Iterable[datetime]) -> datetime | None:
    """Return the earliest moment after now (UTC), None without one.

    A moment that has come must not count: it would hide the next one, and ask for a pass every second.
    """
    return min((moment for moment in moments if moment > now), default=None)


def _with_guard(plan: NodePlan, facts: NodeFacts, context: PassContext) -> NodePlan:
    """Return the plan with why nobody guards the node, if so."""
    what = f"node {facts.name}: whether it is guarded is not known"
    why, _ = guarded(what, partial(unguarded, facts, plan, context), None)
    if why is None:
        return plan
    schedule = plan.schedule
    if schedule is not None:
        # Nobody ends its case, so nobody knows when it is back. Nobody drains it when a person asks for it.
        schedule = replace(schedule, ends=None if schedule.started else schedule.ends, remedies=())
    return replace(plan, unguarded=why, schedule=schedule)


def _our_place(node: NodeFacts) -> OurPlace | None:
    hold = node.instructions.hold
    because = why_out_of_service(node.record, stopped=hold is not None and hold.stops)
    taken = taken_for_good(node.case)
    return OurPlace(because, taken[1] if taken is not None else None) if because else None
