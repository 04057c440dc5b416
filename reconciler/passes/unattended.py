"""A plan that nobody carries out, because passes are overdue: it promises nothing."""

from __future__ import annotations

from reconciler.model.holds import RECONCILER_RUNS
from reconciler.model.plan import Actions, CheckAnswer, NodePlan, Plan, Verdict
from reconciler.model.record import State
from reconciler.model.schedule import CaseSchedule
from reconciler.model.values import replace

NOBODY_ACTS = "no reconciler runs, so nobody acts on this node now"


def unattended(plan: Plan) -> Plan:
    """Return the plan as it is while nobody makes passes; the same plan if somebody may."""
    if plan.reconciler.acts:
        return plan
    starting = {node.node for node in plan.nodes if node.starts}
    holders = tuple(holder for holder in plan.budget.holders if holder[0] not in starting)
    nodes = []
    for node in plan.nodes:
        # Whether a pass would act on the node, now or later.
        if node.schedule is None and not node.acts and node.before is State.OPERATIONAL:
            nodes.append(node)
            continue
        hold = RECONCILER_RUNS.on(node.node, NOBODY_ACTS)
        left = replace(
            node,
            after=node.before,
            transitions=(),
            # What ends at a moment ends by a pass at that moment.
            holds=(hold, *(other for other in node.holds if other.until is None)),
            checks=tuple(check for check in node.checks if not _ends(check)),
            todo=Actions(),
            schedule=_unplanned(node, node.schedule, plan) if node.schedule is not None else None,
        )
        nodes.append(left)
    return replace(plan, nodes=tuple(nodes), budget=replace(plan.budget, holders=holders))


def _ends(check: CheckAnswer) -> bool:
    return check.holds and check.verdict is Verdict.FAILED and check.until is not None


def _unplanned(node: NodePlan, schedule: CaseSchedule, plan: Plan) -> CaseSchedule:
    drain = node.record.drain if node.record is not None else None
    if schedule.started and not node.drain_begins:
        # Nobody uncordons a drained node either; whether it was drained in time is known.
        drained = drain is not None and drain.done is not None
        prospect = schedule.prospect if drained else replace(schedule.prospect, unknown=NOBODY_ACTS)
        return replace(schedule, ends=None, prospect=prospect)
    late = schedule.latest_start is not None and schedule.latest_start <= plan.now
    because = (
        schedule.because
        if schedule.missed
        else f"{NOBODY_ACTS}{', and its latest start is over' if late else ''}"
    )
    return replace(
        schedule,
        planned_start=None,
        window=None,
        ends=None,
        started=False,
        missed=schedule.missed or late,
        because=because,
        cause=schedule.cause or (NOBODY_ACTS if late else ""),
        forecast_until=None,
        remedies=(),
        prospect=replace(schedule.prospect, unknown=NOBODY_ACTS),
    )
