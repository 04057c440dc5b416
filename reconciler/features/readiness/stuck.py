"""Where a drain waits for a budget without end, because the pods that it evicted can run nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.drain.budgets import BudgetIndex, asks, asks_none
from reconciler.features.readiness.found import Found
from reconciler.model.readiness import FindingCode, Severity

_REMEDY = "Add nodes on which they can run, or spread the pods over more nodes."


def stuck(found: Iterable[Found], budgets: BudgetIndex) -> Iterator[Found]:
    """Yield the pods of one node that can't all be evicted under their budget.

    `found` are the findings about the node. Each evicted pod that can run nowhere else uses one of the
    disruptions that its budget allows, until the node is back.
    """
    by_budget: dict[tuple[str, int], list[Found]] = {}
    for one in found:
        if one.code not in (FindingCode.NO_ROOM, FindingCode.VOLUME_NODE) or asks_none(one.pod):
            continue
        covering = budgets.covering(one.pod)
        if len(covering) == 1 and covering[0].allowed > 0 and asks(covering[0], one.pod):
            by_budget.setdefault((covering[0].key, covering[0].allowed), []).append(one)
    for (key, allowed), down in by_budget.items():
        if len(down) <= allowed:
            continue
        because = (
            f"{len(down)} pods of one node under PodDisruptionBudget {key} can run nowhere else, and it"
            f" allows only {allowed} to be down, so a drain waits for the rest"
        )
        for one in down:
            yield Found(one.pod, FindingCode.BUDGET_NO_ROOM, Severity.BLOCKS, because, _REMEDY, (key,))
