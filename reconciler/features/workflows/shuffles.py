"""Counts the pods that have to move because workflows maintain their nodes, as maintenance-controller does.

They are its metrics `maintenance_controller_pod_shuffle_count` and
`maintenance_controller_pod_shuffles_per_replica`, each with the labels `owner` and `profile`. Whoever shows
them needs `ShuffleCounts.rows` only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from reconciler.model.actions import outcome_name
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import Plan
from reconciler.model.pod import Workload
from reconciler.model.record import State
from reconciler.model.workflow import ShuffleRow

SERIES = 10_000
"""Owners and profiles that are counted. Then those that were not counted for the longest time go."""


class Entered(Struct, frozen=True):
    """A node that a workflow has put into maintenance, or with `waits` into `maintenance-required`."""

    node: str
    profile: str
    waits: bool = False


class ShuffleCounts(Struct, frozen=True):
    """All counters since the start of the process. A value, which another thread may read at any time."""

    by_key: Mapping[tuple[str, str], ShuffleRow] = field(default_factory=dict)

    @property
    def rows(self) -> tuple[ShuffleRow, ...]:
        """The counters, sorted by owner and profile."""
        return tuple(row for _, row in sorted(self.by_key.items()))

    def begun(self, profile: str, workloads: Iterable[Workload]) -> ShuffleCounts:
        """Return the counters with zero for each of these workloads that has none.

        Prometheus sees an increase only of a counter that it has read before.
        """
        found = dict(self.by_key)
        for one in workloads:
            found.setdefault((one.label, profile), ShuffleRow(one.label, profile))
        return ShuffleCounts(_newest(found))

    def counted(self, profile: str, workloads: Iterable[Workload]) -> ShuffleCounts:
        """Return the counters with one more pod for each of these workloads, one entry per pod."""
        found = dict(self.by_key)
        for one in workloads:
            key = (one.label, profile)
            # At the end, as the one that was counted last.
            before = found.pop(key, ShuffleRow(*key))
            share = 1 / one.replicas if one.replicas > 0 else math.inf
            found[key] = ShuffleRow(*key, before.pods + 1, before.per_replica + share)
        return ShuffleCounts(_newest(found))


def _newest(found: dict[tuple[str, str], ShuffleRow]) -> dict[tuple[str, str], ShuffleRow]:
    return dict(list(found.items())[-SERIES:])


def entered(plan: Plan, outcomes: Iterable[Outcome]) -> tuple[Entered, ...]:
    """Return the nodes that a pass has put into one of the two states for a workflow.

    Only steps that were written count.
    """
    written = {(one.node, one.action) for one in outcomes if one.result is Result.DONE}
    return tuple(
        Entered(node.node, report.profile, report.after is State.REQUIRED)
        for node in plan.nodes
        if (node.node, outcome_name(node)) in written
        for report in node.workflows
        if report.after is not State.OPERATIONAL and report.before is not report.after
    )
