"""What a drain of a node would do, whether it can end, and the pods that would keep it from its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from reconciler.calendar.values import format_duration
from reconciler.drain.filters import Action, judge, survey
from reconciler.drain.refusal import FITS_NOWHERE, STUCK_AFTER, BudgetIndex, Refusal, never_ends, refusal
from reconciler.drain.room import Elsewhere, room
from reconciler.drain.workloads import disrupted, owned_by, owner_of
from reconciler.model.drains import Behavior, Blocker, DrainOrder
from reconciler.model.findings import Severity
from reconciler.model.moments import shifted, to_text
from reconciler.model.node import Node
from reconciler.model.plan import Preview
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.problems import internal
from reconciler.model.schedule import DrainObstacle, ObstacleCode
from reconciler.model.values import replace


def preview(
    order: DrainOrder,
    nodes: Iterable[Node],
    pods: Sequence[Pod],
    budgets: Iterable[PodDisruptionBudget],
    now: datetime,
) -> Preview:
    """Return what the drain would do now (UTC); `nodes` and `pods` are those of the whole cluster."""
    options = order.options
    here = [pod for pod in pods if pod.node == order.node]
    seen = survey(here, options, now=now, namespaces=order.namespaces, own_pod=order.own_pod)
    known = BudgetIndex(() if options.use_delete else budgets)
    evictees = [judged.pod for judged in seen.to_go]
    blockers = [*seen.refused, *seen.kept]
    for pod in evictees:
        prefix, restarts = options.prefix, order.restart_singletons
        refused = refusal(pod, known.covering(pod), prefix=prefix, restart_singletons=restarts)
        if refused is not None:
            blockers.append(Blocker(pod.key, refused.because, ", ".join(refused.budgets)))
    return Preview(
        pods=seen.verdicts,
        blockers=tuple(blockers),
        room=room(nodes, pods, evictees),
        groups=disrupted(evictees, pods, order.node),
    )


def preview_safely(
    order: DrainOrder,
    nodes: Iterable[Node],
    pods: Sequence[Pod],
    budgets: Iterable[PodDisruptionBudget],
    now: datetime,
) -> Preview:
    """Return what `preview` does; where that fails, a preview that says so."""
    try:
        return preview(order, nodes, pods, budgets, now)
    except Exception as error:  # noqa: BLE001 - one node's pods harm that node's preview only
        problem = internal(f"the preview of node {order.node} failed", error)
        return Preview(room=(f"unknown, because of an error in this program: {problem}",))


MOST = 5
"""Obstacles of one node that are named."""

_NAMED = 3

LONG_GRACE = timedelta(minutes=5)
"""Only a pod with a longer grace period may need all the time until the date, where less is left for all."""


class ExpectedDrain(Struct, frozen=True):
    """A drain that is to end: its order, and when it begins or began (UTC).

    `elsewhere` finds the pods that can run on no other node; None if it is not asked.
    """

    order: DrainOrder
    begins: datetime
    elsewhere: Elsewhere | None = None


def obstacles(
    drain: ExpectedDrain, pods: Sequence[Pod], budgets: BudgetIndex, now: datetime
) -> tuple[DrainObstacle, ...]:
    """Return what keeps pods on the node, the worst first, each workload once; `now` is UTC.

    `pods` are those of the node. A pod that the policy leaves there keeps no drain from its end.
    """
    found: dict[tuple[ObstacleCode, tuple[str, ...], str], DrainObstacle] = {}
    # Most pods have no obstacle, and passes ask this of every case.
    waits = any(rule.behavior is Behavior.WAIT_COMPLETED for rule in drain.order.options.rules)
    nowhere: dict[str, str] = {}
    if drain.elsewhere is not None:
        # A pod that is going has its replacement.
        staying = (pod for pod in pods if pod.deleting_until is None)
        nowhere = {pod.key: why for pod in staying if (why := drain.elsewhere.nowhere(pod))}
    suspects = [pod for pod in pods if waits or pod.key in nowhere or _is_suspect(pod, budgets)]
    for pod in sorted(suspects, key=lambda pod: (pod.namespace, pod.name)):
        one = _of_pod(pod, drain, budgets, nowhere.get(pod.key, ""), now)
        if one is not None:
            key = (one.code, one.budgets, one.owner or one.pod)
            before = found.get(key)
            found[key] = one if before is None else replace(before, pods=before.pods + 1)
    codes = tuple(ObstacleCode)
    return tuple(sorted(found.values(), key=lambda one: (codes.index(one.code), one.budgets, one.pod))[:MOST])


def whose(pods: Sequence[Pod], budgets: Iterable[PodDisruptionBudget]) -> str:
    """Return the first of these pods in words, each with its workload and its PodDisruptionBudgets."""
    index = BudgetIndex(budgets)
    known = [(pod, tuple(f"PodDisruptionBudget {each.key}" for each in index.covering(pod))) for pod in pods]
    # Those that a budget may have kept say most.
    first = sorted(known, key=lambda pair: (not pair[1], pair[0].key))[:_NAMED]
    words = ", ".join(_whose(pod, names) for pod, names in first)
    more = len(pods) - len(first)
    return f"{words} and {more} more" if more > 0 else words


def _whose(pod: Pod, budgets: tuple[str, ...]) -> str:
    owner = owner_of(pod)
    names = ", ".join((*((owner,) if owner else ()), *budgets))
    return f"{pod.key} ({names})" if names else pod.key


def changes_at(pods: Iterable[Pod], now: datetime) -> datetime | None:
    """Return when an obstacle appears next although nothing changes (UTC), None if none does."""
    ends = (shifted(pod.deleting_until, STUCK_AFTER) for pod in pods if pod.deleting_until is not None)
    return min((end for end in ends if end > now), default=None)


def _is_suspect(pod: Pod, budgets: BudgetIndex) -> bool:
    """Whether more has to be known of a pod that the drain may have to wait for."""
    if pod.deleting_until is not None or pod.spec.grace_period > LONG_GRACE:
        return True
    covering = budgets.covering(pod)
    return len(covering) > 1 or any(budget.allowed <= 0 for budget in covering)


def _of_pod(
    pod: Pod, drain: ExpectedDrain, budgets: BudgetIndex, nowhere: str, now: datetime
) -> DrainObstacle | None:
    """Return what keeps a pod, None if nothing does, or if the drain does not wait for it."""
    order = drain.order
    if pod.finished or pod.mirror:
        return None
    going = pod.deleting_until is not None
    if going:
        # A drain that forces pods waits for none that does not end.
        forced = order.escalation.force_stuck_after is not None and not order.node_ready
        found = None if forced else never_ends(pod, now)
    else:
        found = _refused(pod, order, budgets)
    late = _late(pod, drain)
    refused = found is not None and found.severity is Severity.BLOCKS
    judged = judge(pod, order.options, now=now, namespaces=order.namespaces, own_pod=order.own_pod)
    if not (judged.goes or judged.action is Action.WAIT):
        return None
    # A wait with an end is followed by an eviction.
    completes = judged.action is Action.WAIT and judged.until is None and not going
    whom = owned_by(pod)
    if completes:
        because, remedy = "; ".join(judged.reasons), "Change the rule if the pod does not complete in time."
        return DrainObstacle(ObstacleCode.WAITS, pod.key, whom, because, remedy)
    if found is not None and refused:
        code = ObstacleCode(found.code.value)
        return DrainObstacle(
            code, pod.key, whom, found.because, found.remedy, found.budgets, commands=found.commands
        )
    if nowhere:
        return DrainObstacle(ObstacleCode.NO_ROOM, pod.key, whom, nowhere, FITS_NOWHERE)
    if late:
        remedy = "Start its drain earlier (leadTime), or set drain.maxGracePeriod."
        return DrainObstacle(ObstacleCode.LONG_GRACE, pod.key, whom, late, remedy)
    return None


def _late(pod: Pod, drain: ExpectedDrain) -> str:
    """Return why a pod may still end when the platform comes, empty if it has the time, or if none comes."""
    date, options = drain.order.escalation.deadline, drain.order.options
    grace = options.grace.capped(pod.spec.grace_period)
    ends = pod.deleting_until if pod.deleting_until is not None else shifted(drain.begins, grace)
    if date is None or ends <= date or grace <= LONG_GRACE:
        return ""
    return f"its grace period is {format_duration(grace)}, and the platform may start at {to_text(date)}"


def _refused(pod: Pod, order: DrainOrder, budgets: BudgetIndex) -> Refusal | None:
    """Return which budgets refuse the eviction, None if none does, or if the drain deletes the pod."""
    escalation = order.escalation
    if order.options.use_delete or (escalation.delete_before_deadline and escalation.deadline is not None):
        return None
    prefix, restarts = order.options.prefix, order.restart_singletons
    return refusal(pod, budgets.covering(pod), prefix=prefix, restart_singletons=restarts)
