"""Decide: from the snapshot and the settings, what to do about each node, and why not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from reconciler.model.keys import keys_of
from reconciler.model.moments import shifted
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.polling import Memory
from reconciler.model.problems import Faults, guarded
from reconciler.model.record import State
from reconciler.model.schedule import CaseSchedule
from reconciler.model.snapshot import Assessment, Ledger, Snapshot
from reconciler.model.values import replace
from reconciler.model.workflow import upgraded_pools
from reconciler.passes.decide.acknowledging import acknowledgements
from reconciler.passes.decide.answers import source_states
from reconciler.passes.decide.context import PassContext
from reconciler.passes.decide.draining import holds_slot
from reconciler.passes.decide.one_node import decide_safely
from reconciler.passes.decide.progress import Progress
from reconciler.passes.decide.prospects import with_prospects
from reconciler.passes.decide.replacing import pools_in_replacement
from reconciler.passes.decide.reporting import (
    expiries,
    fleet_nodes,
    held_by_people,
    is_reported,
    lasted,
    moments,
    notes,
    of_the_future,
    orphaned_drains,
)
from reconciler.passes.decide.scheduling import schedules
from reconciler.passes.decide.seen import Seen, broken, last_key, look_safely, queue_key, why_out_of_service
from reconciler.passes.decide.twins import twins_of
from reconciler.passes.feature import Fleet, ObjectChanges
from reconciler.passes.parts import Parts
from reconciler.profiles.budget import count_places, still_missing
from reconciler.profiles.exemption import has_struck
from reconciler.profiles.situation import Acknowledgement
from reconciler.settings.schema import Settings


def decide(
    snapshot: Snapshot, assessment: Assessment, settings: Settings, now: datetime, parts: Parts
) -> Plan:
    """Return the plan; the same arguments give the same plan. `now` is aware, UTC."""
    # A step that goes over all nodes has a boundary around each: what fails holds this node only.
    faults = Faults()
    # Needed only where a pass may do something to a VM.
    changes_vms = bool(snapshot.machines) or settings.sources.arm.self_service
    twins = twins_of(snapshot.nodes, faults) if changes_vms else {}
    context = PassContext(
        snapshot,
        settings,
        now,
        parts,
        parts.sources.reading_names(settings),
        twins,
        parts.sources.notice_names(settings),
        upgraded_pools(snapshot.nodes, faults),
    )
    fleet = [
        node
        for node in snapshot.nodes
        if faults.of(node.name, "it may be selected", partial(settings.in_fleet, node.labels), True)
    ]
    resting = tuple(one for one in snapshot.resting if settings.in_fleet(one.node.labels))
    chosen = {node.name for node in fleet}
    ours_or_theirs = [
        node
        for node in snapshot.nodes
        # A node that the settings no longer select stays in the plan while it has our record or hints.
        if node.name in chosen
        or faults.of(
            node.name, "it may have a record or hints", partial(_is_marked, node, settings, parts), True
        )
    ]
    looked = [look_safely(node, assessment.of(node.name), context) for node in ours_or_theirs]
    seen = [one for one in looked if one is not None]
    held = {one.node.name: _place(one, faults) for one in seen}
    ours = {name: because for name, because in held.items() if because}
    read = snapshot.ledger.believed(context.times)
    missing, problems = guarded(
        "no replacement is missed",
        lambda: still_missing(read.replaced, fleet, settings.budget, now, resting),
        read.replaced,
    )
    ledger, unspaced = _spaced(read, settings, context.second)
    places = count_places(fleet, ours, settings.budget, now, missing, faults).beside(resting)
    none: Mapping[str, tuple[Acknowledgement, ...]] = {}
    acknowledged, unacknowledged = guarded(
        "no event is acknowledged", lambda: acknowledgements(seen, snapshot.nodes, settings, faults), none
    )
    nothing: Mapping[str, CaseSchedule] = {}
    planned_starts, unplanned = guarded(
        "no start is planned",
        lambda: with_prospects(schedules(seen, places, ledger, context, faults), seen, context, faults),
        nothing,
    )
    progress = Progress(
        places,
        replace(ledger, replaced=missing),
        acknowledged,
        pools_in_replacement(seen, snapshot.machines, faults),
        holding={one.node.name for one in seen if holds_slot(snapshot.drains.get(one.node.name))},
        schedules=planned_starts,
        beside=parts.beside(snapshot, settings),
        slot_free_at=min(
            (
                drain.blocked_at
                for drain in snapshot.drains.values()
                if holds_slot(drain) and drain.blocked_at is not None and drain.blocked_at > now
            ),
            default=None,
        ),
    )
    keys = {
        one.node.name: faults.of(
            one.node.name,
            "its place in the queue is not known",
            partial(queue_key, one, snapshot.own_node),
            last_key(one.node.name),
        )
        for one in seen
    }
    for node in ours_or_theirs:
        keys.setdefault(node.name, last_key(node.name))
    seen = _with_faults(seen, ours_or_theirs, faults, context)
    queue = sorted(seen, key=lambda one: keys[one.node.name])
    # Nodes in maintenance first: their places and slots are counted before another node needs one.
    # Those with fewer attempts come first: a process that lives for a minute would never come to the others.
    # Those that the platform has started come last: they need no place, and may take none from the others.
    own = snapshot.own_node

    def turn(one: Seen) -> tuple[bool, bool, bool, int]:
        waits = one.node.name not in ours
        return (waits, waits and any(map(has_struck, one.judged)), one.node.name == own, one.attempts)

    for one in sorted(queue, key=turn):
        progress.plans.append(decide_safely(one, context, progress))
    asked = {name: memory for name, memory in snapshot.memories.items() if memory != Memory()}
    if asked:
        progress.ledger = replace(progress.ledger, memories={**progress.ledger.memories, **asked})
    order = {one.node.name: position for position, one in enumerate(queue)}
    scheduled = [_with_schedule(plan, progress.schedules.get(plan.node)) for plan in progress.plans]
    plans = (
        *sorted((plan for plan in scheduled if is_reported(plan)), key=lambda plan: order[plan.node]),
        *orphaned_drains(snapshot, order),
    )
    nodes = {node.name: node for node in snapshot.nodes}
    shown, unshown = guarded(
        "objects for other tools are not changed",
        lambda: parts.object_changes(
            snapshot.published, Fleet(plans, nodes, settings, now), snapshot.ledger.published
        ),
        ObjectChanges(signs=snapshot.ledger.published),
    )
    answers, uncounted = guarded(
        "the answers of the sources are not counted",
        lambda: source_states(snapshot, assessment, context.reading_names, now),
        (),
    )
    lengths = lasted(snapshot.ledger.lasted, progress.plans, context.second)
    undone = tuple(plan.todo.undone for plan in plans if plan.todo.undone is not None)
    progress.ledger = replace(progress.ledger, published=shown.signs, lasted=lengths, undone=undone)
    return Plan(
        now=now,
        mode=settings.mode.value,
        nodes=plans,
        managed=sum(
            1
            for node in fleet
            if faults.of(node.name, "it may be managed", partial(settings.manages, node.labels), False)
        )
        + sum(one.count for one in resting if settings.manages(one.node.labels)),
        budget=progress.places.use(),
        ledger=progress.ledger if progress.ledger != snapshot.ledger else None,
        notes=(
            *unspaced,
            *held_by_people(snapshot, now),
            *of_the_future(seen, read != snapshot.ledger),
            *problems,
            *unacknowledged,
            *unshown,
            *unplanned,
            *uncounted,
            *notes(snapshot, fleet, settings, resting),
            *assessment.notes,
        ),
        next_change=earliest_after(
            now,
            (
                *moments(plans, now),
                *expiries(seen),
                *parts.sources.changes(snapshot.memories, now),
                *_eased(progress.ledger, settings),
                *_turns(progress),
                *shown.moments,
            ),
        ),
        publications=shown.writes,
        settings=settings.version,
        time_zone=settings.time_zone.key,
        unseen=snapshot.problems.unseen,
        uids=frozenset(node.uid for node in snapshot.nodes),
        labels={plan.node: nodes[plan.node].labels for plan in plans if plan.node in nodes},
        fleet=fleet_nodes(snapshot, settings),
        calendars=snapshot.for_settings.calendars,
        sources=answers,
    )


def earliest_after(now: datetime, moments: Iterable[datetime]) -> datetime | None:
    """Return the earliest moment after now (UTC), None without one.

    A moment that has come must not count: it would hide the next one, and ask for a pass every second.
    """
    return min((moment for moment in moments if moment > now), default=None)


def _with_schedule(plan: NodePlan, schedule: CaseSchedule | None) -> NodePlan:
    """Return the plan with its schedule. A drain that begins in this pass is no plan any more."""
    if schedule is not None and plan.drain_begins:
        because = schedule.because if schedule.by_pods else "its drain begins now"
        schedule = replace(schedule, because=because, started=True)
    return replace(plan, schedule=schedule)


def _is_marked(node: Node, settings: Settings, parts: Parts) -> bool:
    prefix = settings.keys.prefix
    return keys_of(prefix).record in node.annotations or parts.outlived(node, prefix).any


def _has_place(one: Seen) -> str:
    return why_out_of_service(one.record)


def _place(one: Seen, faults: Faults) -> str:
    what = "whether it is in maintenance is not known"
    # Unknown is not healthy: it keeps its place.
    return faults.of(one.node.name, what, partial(_has_place, one), "an error in this program")


def _with_faults(
    seen: Sequence[Seen], nodes: Iterable[Node], faults: Faults, context: PassContext
) -> list[Seen]:
    """Return what was seen, with each node that has a fault as one that can't be judged."""
    known = {one.node.name: one for one in seen}
    found = dict(known)
    for node in nodes:
        problem = faults.nodes.get(node.name)
        if problem and not (node.name in known and known[node.name].problem):
            found[node.name] = broken(node, context, problem)
    return list(found.values())


def _spaced(ledger: Ledger, settings: Settings, now: datetime) -> tuple[Ledger, tuple[str, ...]]:
    """Return the ledger with a last start for the spacing, and a note where it could not be read.

    The last start was before now, so a whole spacing from now keeps the spacing. The ledger is written, so
    the wait begins once.
    """
    if not ledger.unread:
        return ledger, ()
    note = f"the last start in the ledger can't be read: {ledger.unread}"
    if settings.budget.spacing <= timedelta():
        return ledger, (note,)
    return replace(ledger, last_start=now, unread=""), (f"{note}; budget.spacing counts from now",)


def _turns(progress: Progress) -> Iterable[datetime]:
    """Yield when a node that waits, and is out of service itself, needs a place of its own."""
    eases_at, holders = progress.places.eases_at, progress.places.holders
    waiting = (plan.node for plan in progress.plans if plan.after is State.REQUIRED)
    return () if eases_at is None or holders.keys().isdisjoint(waiting) else (eases_at,)


def _eased(ledger: Ledger, settings: Settings) -> Iterable[datetime]:
    """Yield when a node that we replaced no longer holds its place."""
    return (shifted(one.at, settings.budget.ignore.not_ready_for) for one in ledger.replaced)
