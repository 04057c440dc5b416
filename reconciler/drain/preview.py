"""What a drain of a node would do, and what would block it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from reconciler.drain.budgets import BudgetIndex
from reconciler.drain.groups import disrupted
from reconciler.drain.refusal import refusal
from reconciler.drain.room import room
from reconciler.drain.survey import survey
from reconciler.model.drains import Blocker, DrainOrder
from reconciler.model.node import Node
from reconciler.model.plan import Preview
from reconciler.model.pod import Pod, PodDisruptionBudget


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
    refusing = (_blocker(one.pod, known, order) for one in seen.to_go)
    return Preview(
        pods=seen.verdicts,
        blockers=(*seen.refused, *seen.kept, *(blocker for blocker in refusing if blocker is not None)),
        room=room(nodes, pods, [one.pod for one in seen.to_go]),
        groups=disrupted((one.pod for one in seen.to_go), pods, order.node),
    )


def _blocker(pod: Pod, budgets: BudgetIndex, order: DrainOrder) -> Blocker | None:
    """Return why a PodDisruptionBudget would refuse the eviction of the pod now, or None."""
    prefix, restarts = order.options.prefix, order.restart_singletons
    found = refusal(pod, budgets.covering(pod), prefix=prefix, restart_singletons=restarts)
    return None if found is None else Blocker(pod.key, found.because, ", ".join(found.budgets))
