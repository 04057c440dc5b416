"""Pods that the drains of the coming night move: what is said of one, and what a pass knows of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.drain.prospect import preview
from reconciler.model.explanation import Moves, PodMove
from reconciler.model.node import Node
from reconciler.model.plan import NodePart, NodePlan
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.problems import guarded
from reconciler.model.record import State
from reconciler.model.values import Name, Written, replace
from reconciler.passes.plugin import Fleet
from reconciler.profiles.orders import drain_order, why_drained
from reconciler.report.explain import blocked_by, order_events
from reconciler.report.moves import move_of

MORNING = time(8)
"""When a night ends, in the time zone of the settings."""

NOBODY = "nobody drains its node now"
"""Why a pod does not move, for its owner: the reason may name other people and namespaces."""


class ComingPod(Struct, frozen=True):
    """A pod (`namespace/name`) on a node that is drained in the coming night.

    `start` is when the drain of the node starts or began (UTC), None if it may start at any moment. `why` are
    the events for which it is drained. `because` says why the pod does not move, or what else there is to
    know, and `who` can change that.
    """

    pod: Name
    node: Name
    answer: Moves
    owner: Written[Name] = ""
    start: datetime | None = None
    why: Written[str] = ""
    because: Written[str] = ""
    who: Written[str] = ""

    @property
    def namespace(self) -> str:
        """The namespace of the pod."""
        return self.pod.partition("/")[0]


def coming(move: PodMove, why: str) -> ComingPod:
    """Return what is said of a pod, from whether it moves and why its node is drained."""
    return ComingPod(move.pod, move.node, move.answer, move.owner, move.start, why, move.because, move.who)


class Foreseen(NodePart, frozen=True):
    """The pods that a drain in the coming night moves, None if those of the node are not known now."""

    pods: tuple[ComingPod, ...] | None


def end_of_night(now: datetime, zone: ZoneInfo) -> datetime:
    """Return the end of the coming night (UTC): the morning of the day after `now` (aware) in the zone."""
    tomorrow = now.astimezone(zone).date() + timedelta(days=1)
    return datetime.combine(tomorrow, MORNING, zone).astimezone(UTC)


def foreseen(fleet: Fleet) -> Mapping[str, NodePart]:
    """Return for each node that is drained in the coming night which pods that moves, as the pass knows them.

    It reads nothing. Owners of pods may see it, so it says nothing of other namespaces and people.
    """
    until = end_of_night(fleet.now, fleet.settings.time_zone)
    ahead = fleet.snapshot.for_settings.ahead
    # Each preview sorts the budgets that it gets, and a cluster has thousands.
    budgets: defaultdict[str, list[PodDisruptionBudget]] = defaultdict(list)
    for budget in ahead.budgets or ():
        budgets[budget.namespace].append(budget)
    parts: dict[str, NodePart] = {}
    for plan in fleet.plans:
        node, begins = fleet.nodes.get(plan.node), _begins(plan)
        if node is None or begins is None or begins > until:
            continue
        pods = fleet.snapshot.pods.get(plan.node, ahead.pods.get(plan.node))
        known: tuple[ComingPod, ...] | None = None
        if pods is not None and ahead.budgets is not None:
            own = [budget for name in {pod.namespace for pod in pods} for budget in budgets[name]]
            of_node = partial(_of_node, node, plan, pods, own, fleet, begins)
            known, _ = guarded(f"the pods of node {plan.node} that are to be moved", of_node, None)
        parts[plan.node] = Foreseen(known)
    return parts


def _begins(plan: NodePlan) -> datetime | None:
    """Return when the drain of a node begins or began (UTC), None if none does, or if it has ended."""
    drain = plan.record.drain if plan.record is not None else None
    if drain is not None and plan.before is State.IN_MAINTENANCE:
        return drain.since if drain.done is None else None
    return plan.schedule.planned_start if plan.schedule is not None else None


def _of_node(
    node: Node,
    plan: NodePlan,
    pods: Sequence[Pod],
    budgets: Sequence[PodDisruptionBudget],
    fleet: Fleet,
    begins: datetime,
) -> tuple[ComingPod, ...]:
    events = order_events(plan)[0]
    order = drain_order(node, events, begins, fleet.settings, fleet.snapshot)
    seen = preview(order, (), pods, budgets, fleet.now)
    verdicts = {verdict.uid: verdict for verdict in seen.pods}
    blockers = {blocker.pod: blocker for blocker in reversed(seen.blockers)}
    why = why_drained(events)

    def rows() -> Iterator[ComingPod]:
        for pod in pods:
            verdict = verdicts.get(pod.uid)
            if verdict is None or verdict.action == "skip" or pod.finished:
                continue
            blocker = blockers.get(pod.key)
            move = move_of(pod, plan, verdict, blocked_by(blocker, pod) if blocker is not None else None)
            if plan.unguarded is not None:
                move = PodMove(pod.key, pod.node, move.owner, Moves.BLOCKED, begins, NOBODY)
            # A start that may be now moves on with each pass.
            waits = plan.before is not State.IN_MAINTENANCE and begins <= fleet.now
            yield coming(replace(move, start=None if waits else begins), why)

    return tuple(sorted(rows(), key=lambda pod: pod.pod))
