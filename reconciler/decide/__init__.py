"""Decide: from the snapshot and the settings, what to do about each node, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from reconciler.decide.acknowledging import acknowledgements
from reconciler.decide.context import PassContext
from reconciler.decide.one_node import decide_safely
from reconciler.decide.progress import Progress
from reconciler.decide.replacing import pools_in_hand
from reconciler.decide.seen import in_hand, look_safely, queue_key
from reconciler.decide.telling import (
    moments,
    notes,
    silences,
    strays,
    worth_telling,
)
from reconciler.decide.twins import twins_of
from reconciler.engine.budget import count_places, still_missing
from reconciler.engine.situation import Acknowledgement
from reconciler.model.assessment import Assessment
from reconciler.model.keys import OwnKeys
from reconciler.model.plan import Plan
from reconciler.model.polling import Memory
from reconciler.model.problems import guarded
from reconciler.model.snapshot import Snapshot
from reconciler.publishing.publisher import Fleet, ObjectChanges
from reconciler.publishing.registry import object_changes
from reconciler.settings.schema import Settings
from reconciler.sources.registry import changes, reading_names


def decide(snapshot: Snapshot, assessment: Assessment, settings: Settings, now: datetime) -> Plan:
    """Return the plan; the same snapshot, settings and `now` (aware, UTC) give the same plan."""
    # Needed only where a pass may do something to a VM.
    changes_vms = bool(snapshot.machines) or settings.sources.arm.self_service
    twins = twins_of(snapshot.nodes) if changes_vms else {}
    context = PassContext(snapshot, settings, now, reading_names(settings), twins)
    fleet = [node for node in snapshot.nodes if settings.in_fleet(node.labels)]
    ours_or_theirs = [
        node
        for node in snapshot.nodes
        # A node that the settings no longer select stays in the plan while it has our record.
        if settings.in_fleet(node.labels) or OwnKeys(settings.keys.prefix).record in node.annotations
    ]
    seen = [
        one
        for node in ours_or_theirs
        if (one := look_safely(node, assessment.of(node.name), context)) is not None
    ]
    ours = {one.node.name: in_hand(one.record) for one in seen if in_hand(one.record)}
    missing = still_missing(snapshot.ledger.replaced, fleet, settings.budget, now)
    places = count_places(fleet, ours, settings.budget, now, missing)
    none: Mapping[str, tuple[Acknowledgement, ...]] = {}
    acknowledged, problems = guarded(
        "no event is acknowledged", lambda: acknowledgements(seen, snapshot.nodes, settings), none
    )
    progress = Progress(
        places,
        replace(snapshot.ledger, replaced=missing),
        acknowledged,
        pools_in_hand(seen, snapshot.machines),
    )
    queue = sorted(seen, key=lambda one: queue_key(one, snapshot.own_node))
    # Nodes in maintenance first: their places and slots are counted before another node needs one.
    for one in sorted(queue, key=lambda one: not in_hand(one.record)):
        progress.plans.append(decide_safely(one, context, progress))
    asked = {name: memory for name, memory in snapshot.memories.items() if memory != Memory()}
    if asked:
        progress.ledger = replace(progress.ledger, memories={**progress.ledger.memories, **asked})
    order = {one.node.name: position for position, one in enumerate(queue)}
    plans = (
        *sorted((plan for plan in progress.plans if worth_telling(plan)), key=lambda plan: order[plan.node]),
        *strays(snapshot, order),
    )
    nodes = {node.name: node for node in snapshot.nodes}
    shown, unshown = guarded(
        "objects for other tools are not changed",
        lambda: object_changes(snapshot.published, Fleet(plans, nodes, settings, now)),
        ObjectChanges(),
    )
    return Plan(
        now=now,
        mode=settings.mode.value,
        nodes=plans,
        managed=sum(1 for node in fleet if settings.manages(node.labels)),
        budget=progress.places.use(),
        ledger=progress.ledger if progress.ledger != snapshot.ledger else None,
        notes=(*problems, *unshown, *notes(snapshot, fleet, settings), *assessment.notes),
        next_change=min(
            (
                *moments(plans),
                *silences(seen),
                *changes(snapshot.memories, now),
                *(one.at + settings.budget.ignore.not_ready_for for one in progress.ledger.replaced),
                *shown.moments,
            ),
            default=None,
        ),
        publications=shown.writes,
    )
