"""One node: update its record from the events, then run the state machine."""

from __future__ import annotations

from datetime import timedelta

from reconciler.model.expression import names
from reconciler.model.holds import INTERNAL
from reconciler.model.machine import Remove
from reconciler.model.moments import has_come
from reconciler.model.node import HOSTED_LABEL
from reconciler.model.plan import Actions, Hold, NodePlan
from reconciler.model.problems import internal
from reconciler.model.record import State
from reconciler.model.snapshot import Replaced, Undone
from reconciler.model.values import replace
from reconciler.model.writes import node_write
from reconciler.passes.decide.draining import follow_drain, holds_slot, is_stuck, running
from reconciler.passes.decide.facts import tell, with_starts
from reconciler.passes.decide.known import broken
from reconciler.passes.decide.planned import hold, node_patch, node_plan, remembering, repeated, second_patch
from reconciler.passes.decision import CaseDecision
from reconciler.passes.node_facts import DEFAULT, NodeFacts, PassContext, Progress
from reconciler.passes.parts import Parts
from reconciler.profiles import case as cases
from reconciler.profiles.checks import CHECKS
from reconciler.profiles.checks.people import is_adoptable
from reconciler.profiles.situation import Situation
from reconciler.profiles.state_machine import builtin, walk
from reconciler.profiles.triggers import TRIGGERS
from reconciler.starts.answer import as_decided, beside_mate, wait_of_own_node
from reconciler.starts.budget import pool_of

_PROFILE = builtin(DEFAULT, TRIGGERS, CHECKS)
START_CHECKS = frozenset(
    name
    for rules in _PROFILE.states.values()
    for step in rules.transitions
    if any(trigger.name == "drain" for trigger in step.triggers)
    for name in names(step.check)
)
"""The checks of every start of a drain."""


def decide_safely(node: NodeFacts, context: PassContext, progress: Progress, parts: Parts) -> NodePlan:
    """Return the plan of one node. An error becomes a hold of this node, and leaves nothing in `progress`."""
    if not node.problem:
        before = progress.saved()
        try:
            plan = decide_node(node, context, progress, parts)
            again = repeated(plan, context.undone)
            undone = again.undone
            if undone is None or not again.waits(context.now):
                return remembering(plan, node.read, again, context)
            if not again.is_needed:
                return replace(plan, todo=replace(plan.todo, write=None, noted=None, undone=undone))
            progress.restore(before)
            return _leave(node, context, progress, hold(undone), undone)
        except Exception as error:  # noqa: BLE001 - one node's data harms that node only
            progress.restore(before)
            problem = internal(f"node {node.name} can't be decided on", error)
            node = replace(broken(node.read, context, problem), schedule=node.schedule)
    reason = f"an error in this program, see its log; nothing is changed here: {node.problem}"
    return _leave(node, context, progress, INTERNAL.on(node.name, reason))


def _leave(
    node: NodeFacts, context: PassContext, progress: Progress, held: Hold, undone: Undone | None = None
) -> NodePlan:
    """Return the plan of a node on which nothing is changed now; a drain that runs goes on."""
    read = node.read
    drained = context.snapshot.drains.get(read.name)
    progress.holding.discard(read.name)
    progress.drains += holds_slot(drained)
    if running(drained) and not is_stuck(drained, None, context.now):
        progress.undrained += read.name != context.snapshot.itself.node
    schedule = node.schedule
    if node.state is State.REQUIRED:
        schedule = as_decided(schedule, (held,), context.now)
    decision = CaseDecision(node.state, node.case, (held,), schedule=schedule, progress=drained)
    return node_plan(decision, node, Actions(undone=undone), context)


def decide_node(node: NodeFacts, context: PassContext, progress: Progress, parts: Parts) -> NodePlan:
    """Return the plan of one node; add the places and slots that it takes to `progress`."""
    read, snapshot, settings, now = node.read, context.snapshot, context.settings, context.now
    own_node, prefix = read.name == snapshot.itself.node, settings.keys.prefix

    # A node that is not ours to change: what we have on it is taken back.
    if node.untouched is not None:
        drained = snapshot.drains.get(read.name)
        # Nodes that AKS manages itself deny every change.
        has_left = not settings.manages(read.labels) and HOSTED_LABEL not in read.labels
        left = parts.taken_back(read, prefix, has_left=has_left)
        cleared = node_write(read, prefix, labels=left.labels, annotations=left.annotations)
        todo = Actions(
            write=cleared if left.labels or left.annotations else None,
            stop_drain=running(drained),
            publications=left.writes,
        )
        decision = CaseDecision(node.state, node.case, (node.untouched,), progress=drained)
        return node_plan(decision, node, todo, context)

    # Its planned start. A node that was to start now with another one starts at its own time without that.
    if node.schedule is not None and node.schedule.with_node:
        mate = progress.plans.get(node.schedule.with_node)
        begun = mate is not None and mate.drain_begins
        schedule, judged = beside_mate(node.schedule, node.judged, begun=begun, now=now)
        node = replace(node, schedule=schedule, judged=judged)

    # The case with what its events say in this pass.
    switched_on, judged = context.reading_names.__contains__, node.current
    adopted = node.case.cordon.adopted or is_adoptable(read, settings)
    record = cases.without_ended_dismissals(node.case, node.judged, node.assessment, switched_on)
    view = cases.view(record, judged, node.assessment, switched_on, now, adopted=adopted)
    if record.open or any(event.asks and event.starts for event in judged):
        fresh = cases.updated(record, view, node.assessment, switched_on, context.fastest)
        if record.state is State.IN_MAINTENANCE and not read.unschedulable:
            # A person who uncordoned the node did not know of an event that appears in the same pass.
            was_known = [event for event in fresh.events if any(old.matches(event) for old in record.events)]
            fresh = replace(fresh, events=tuple(was_known))
        record = fresh
    if record.asked:
        record = cases.without_ended_requests(record)
    record = with_starts(record, view, node, context)

    # What the checks read, and which steps they let the node take.
    machine = snapshot.for_settings.machines.get(read.name)
    goes_last = wait_of_own_node(progress.undrained, progress.stuck_at) if own_node else None
    situation = Situation(
        node=read,
        record=record,
        judged=judged,
        case=view,
        settings=settings,
        places=progress.places,
        ledger=progress.ledger,
        now=now,
        own_node=own_node,
        schedule=node.schedule,
        goes_last=goes_last,
        machine=machine,
        twin=context.twins.get(read.name, ""),
        earlier=progress.plans,
        # What was asked is followed to its end, also where the settings no longer have its source.
        offers=parts.offers if record.asked else context.offers,
    )
    decision = CaseDecision(record.state, record, before=record, view=view, schedule=node.schedule)
    for decider in progress.deciders:
        node, situation = decider.decide(decision, node, situation, context)
    decision.known = situation.of_features
    walked = walk(_PROFILE, situation, CHECKS)
    steps, effects = walked.transitions, walked.effects
    decision.state, decision.record, decision.after = walked.state, effects.record, effects.node
    decision.transitions, decision.answers = steps, walked.answers
    decision.holds, decision.alone = walked.holds, walked.alone
    decision.notices = (*decision.notices, *effects.notices)

    # The place, the machine and the start that these steps take from the nodes that come later.
    for task in effects.tasks:
        if isinstance(task, Remove):
            gone = tuple(known for known in progress.ledger.replaced if known.uid != read.uid)
            # A replacement that exists already, because the pool was scaled up first, is not missing.
            if not task.replaced_already:
                fleet = (other for other in snapshot.every_node() if settings.in_fleet(other.labels))
                of_pool = {other.uid for other in fleet if pool_of(other) == read.pool}
                of_pool |= {known.uid for known in gone if known.pool == read.pool}
                size = len(of_pool)
                gone = (*gone, Replaced(read.name, read.uid, read.zone, read.pool, size, context.second))
            progress.ledger = replace(progress.ledger, replaced=gone)
    if any(step.begins for step in steps):
        progress.places = progress.places.take(read, "ours, starting")
    # A node that is drained again, for another event, has had its start. Starts that wait for no spacing
    # delay no others: spot VMs that go all the time would stop them.
    first = situation.record.drain is None and effects.record.drain is not None
    spaced = first and settings.budget.spacing > timedelta()
    spaced = spaced and not has_come(situation.start.exempt.spacing, now)
    if spaced:
        last_start = context.fastest.replace(microsecond=0)
        progress.ledger = replace(progress.ledger, last_start=last_start, unread="")
    if not any(step.drains for step in steps):
        in_maintenance = walked.state is State.IN_MAINTENANCE
        holds = [hold for hold in walked.holds if not in_maintenance or hold.code in START_CHECKS]
        decision.schedule = as_decided(node.schedule, holds, now)
    follow_drain(decision, node, context, progress)

    # What the case and the features have to say, and the patches of the node.
    if decision.schedule is not None and decision.schedule.missed:
        remedies = parts.remedies(decision, node, context)
        decision.schedule = replace(decision.schedule, remedies=remedies)
    tell(decision, node, context)
    for decider in progress.deciders:
        decider.finish(decision, node, context)
    # A cordon of this pass comes too late for what was drained before it.
    decision.cordoned = read.unschedulable and effects.node.unschedulable
    decision.signs = signs = parts.signs(decision, node, context)
    decision.holds = (*decision.holds, *signs.holds)
    write = node_patch(decision, node, context)
    noted = second_patch(node, write, decision.noted, context) if decision.noted is not None else None
    todo = Actions(
        write=write,
        drain=decision.drain,
        stop_drain=decision.stop_drain,
        tasks=(*decision.tasks, *effects.tasks, *signs.tasks),
        notices=(*decision.notices, *signs.notices, *decision.news),
        publications=signs.writes,
        pending=decision.pending,
        noted=noted,
        messages=decision.messages,
        spaced=spaced,
    )
    plan = node_plan(decision, node, todo, context)
    for decider in progress.deciders:
        decider.note(decision, node, progress)
    return plan
