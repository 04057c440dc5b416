"""Whether the drain of each case can end: what is certain to keep pods on its node makes a case missed.

Every output asks the schedule of a case, so all of them say the same about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from reconciler.drain.filters import survey
from reconciler.drain.prospect import ExpectedDrain, changes_at, obstacles
from reconciler.drain.refusal import BudgetIndex
from reconciler.drain.room import Elsewhere
from reconciler.model import limits
from reconciler.model.schedule import PODS_STAY, CaseSchedule, Prospect
from reconciler.model.values import replace
from reconciler.passes.node_facts import NodeFacts, PassContext
from reconciler.profiles import case as cases
from reconciler.profiles.orders import drain_order


def with_prospects(
    schedules: Mapping[str, CaseSchedule], seen: Sequence[NodeFacts], context: PassContext
) -> Mapping[str, CaseSchedule]:
    """Return the schedules with what keeps pods on each node that is not drained.

    A node whose data ends in an error is one of the faults.
    """
    snapshot, ahead = context.snapshot, context.snapshot.for_settings.ahead
    budgets = BudgetIndex(ahead.budgets) if ahead.budgets is not None else None
    # A node that is drained, or to be drained now, takes no pods.
    leaving = frozenset(
        name
        for name, schedule in schedules.items()
        if schedule.started or (schedule.planned_start is not None and schedule.planned_start <= context.now)
    )
    elsewhere = Elsewhere(snapshot.nodes, snapshot.aside.groups, leaving=leaving, labels=ahead.labels)
    found = dict(schedules)
    for node in seen:
        schedule = schedules.get(node.name)
        if schedule is not None and _is_expected(node, schedule):
            work = partial(_with_prospect, schedule, node, budgets, elsewhere, context)
            what = "whether its drain can end is not known"
            found[node.name] = context.faults.of(node.name, what, work, schedule)
    return found


def _is_expected(node: NodeFacts, schedule: CaseSchedule) -> bool:
    """Whether a drain of the node is to end: one that is under way, or is planned.

    What the platform met when it started is a fact of the case, and no forecast.
    """
    planned = [judged for judged in node.current if judged.times is not None]
    has_begun = bool(planned) and all(judged.event.started for judged in planned)
    if has_begun or schedule.stopped:
        return False
    if schedule.started:
        return node.case.drain is not None and node.case.drain.done is None
    return schedule.plan_from is None


def _with_prospect(
    schedule: CaseSchedule,
    node: NodeFacts,
    budgets: BudgetIndex | None,
    elsewhere: Elsewhere,
    context: PassContext,
) -> CaseSchedule:
    snapshot, ahead = context.snapshot, context.snapshot.for_settings.ahead
    pods = snapshot.pods.get(node.name, ahead.pods.get(node.name))
    if pods is None:
        unread = snapshot.problems.pods.get(node.name)
        return _unknown(schedule, node, unread or ahead.unread.get(node.name, "its pods were not read"))
    if budgets is None:
        return _unknown(schedule, node, ahead.unbudgeted)
    if node.case.drain is not None:
        events = cases.allowed(node.case)
    else:
        events = tuple(cases.known(judged.event) for judged in node.current if judged.times is not None)
    date = min((event.not_before for event in events if event.not_before is not None), default=None)
    since = node.case.drain.since if node.case.drain is not None else context.now
    order = drain_order(node.read, events, since, context.settings, snapshot, begun=node.case.since or since)
    begins = max(schedule.planned_start or context.now, context.now)
    # Once a drain runs, a pod that fits nowhere is evicted, and keeps nothing from its end. What refuses an
    # eviction now only the process that drains knows, so it is no part of a forecast that all commands make.
    expected = ExpectedDrain(order, begins, None if schedule.started else elsewhere)
    count = None
    if schedule.observed:
        surveyed = survey(
            pods, order.options, now=context.now, namespaces=order.namespaces, own_pod=order.own_pod
        )
        count = len(surveyed.to_go) + len(surveyed.waiting) + len(surveyed.refused)
    prospect = Prospect(obstacles(expected, pods, budgets, context.now), pods=count)
    moments = (schedule.forecast_until, changes_at(pods, context.now))
    schedule = replace(
        schedule,
        prospect=prospect,
        forecast_until=min((moment for moment in moments if moment is not None), default=None),
    )
    if not prospect.obstacles or not prospect.obstacles[0].certain or date is None:
        return schedule
    # It is missed because of its pods, and maybe of its start as well.
    if schedule.missed:
        return replace(schedule, because=f"{schedule.because}; besides, {prospect.words}")
    cause = limits.text(prospect.obstacles[0].cause)
    return replace(schedule, missed=True, because=prospect.words, cause=cause)


def _unknown(schedule: CaseSchedule, node: NodeFacts, why: str) -> CaseSchedule:
    """Return the schedule of a case whose pods are not known: what was known of it before still counts."""
    schedule = replace(schedule, prospect=Prospect(unknown=f"not known whether its drain can end: {why}"))
    before = node.case.facts.will_be_missed
    if schedule.missed or before is None or before.over is not None or not before.cause.startswith(PODS_STAY):
        return schedule
    because = f"{before.cause}; whether that has changed is not known: {why}"
    return replace(schedule, missed=True, because=because, cause=before.cause)
