"""Metrics of workflows, under the names of maintenance-controller, which do not follow the usual rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jobs.runtime.metrics import Family, Sample, Type
from jobs.runtime.process import Observer, Passed
from reconciler.features.workflows.reports import reports_of
from reconciler.model.plan import Verdict


def _family(name: str, text: str, *labels: str) -> Family:
    return Family(f"maintenance_controller_{name}", Type.UNTYPED, text, labels)


SHUFFLES = _family(
    "pod_shuffle_count",
    "Pods on nodes that a workflow has put into maintenance, by their workload.",
    "owner",
    "profile",
)
SHUFFLES_PER_REPLICA = _family(
    "pod_shuffles_per_replica",
    "The same pods, each divided by the replicas of its workload.",
    "owner",
    "profile",
)
TRANSITION_FAILURES = _family(
    "transition_failure_count",
    "How often checks of a workflow could not be answered: once for each node and pass.",
    "profile",
)

FAMILIES = (SHUFFLES, SHUFFLES_PER_REPLICA, TRANSITION_FAILURES)


class Failures(Observer):
    """Counts how often checks of a workflow could not be answered, by the name of the workflow."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def after(self, passed: Passed) -> None:
        """Count each workflow of each node: 1 if one of its checks has no answer in this pass."""
        # A command without settings, such as a drain by hand, loads none.
        from reconciler.features.workflows.settings import PROFILES

        if not PROFILES.of(passed.settings).on:
            return
        counts = Counter(self._counts)
        for node in passed.plan.nodes:
            for report in reports_of(node):
                counts[report.profile] += any(answer.verdict is Verdict.UNKNOWN for answer in report.answers)
        # Another thread may read the one before.
        self._counts = counts

    def samples(self) -> Iterator[Sample]:
        """Yield the counts, sorted by name."""
        for profile, count in sorted(self._counts.items()):
            yield Sample(TRANSITION_FAILURES, count, (profile,))
