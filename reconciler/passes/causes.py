"""What keeps a PodDisruptionBudget from an eviction, where the drain of a node can't see it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from reconciler.drain.refusal import with_unplaced
from reconciler.model.drains import Blocker, DrainProgress
from reconciler.model.errors import ClusterError
from reconciler.model.ports import ClusterReader
from reconciler.model.problems import expected
from reconciler.model.values import replace


def with_causes(drains: Mapping[str, DrainProgress], reader: ClusterReader) -> dict[str, DrainProgress]:
    """Return the drains. Where a budget blocks one, its pods are named for which the scheduler has no node.

    Only then are the budgets and the pods without a node read. What can't be read is not named.
    """
    blocked = {one.budget for drain in drains.values() for one in drain.blockers if one.budget}
    if not blocked:
        return dict(drains)

    def read() -> dict[str, str]:
        unplaced = reader.unplaced()
        budgets = reader.budgets() if any(pod.unplaced for pod in unplaced) else ()
        held = [budget for budget in budgets if budget.key in blocked]
        return {budget.key: budget.unplaced for budget in with_unplaced(held, unplaced)}

    causes: dict[str, str] = {}
    with suppress(ClusterError):
        causes = expected("what keeps budgets is not known", read)

    def named(blocker: Blocker) -> Blocker:
        cause = causes.get(blocker.budget)
        return replace(blocker, because=f"{blocker.because}; {cause}") if cause else blocker

    return {
        node: replace(drain, blockers=tuple(map(named, drain.blockers))) if drain.blockers else drain
        for node, drain in drains.items()
    }
