"""The counts of moved pods that `serve` keeps from its start on."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from msgspec import Struct, field

from jobs.runtime.metrics import Sample
from jobs.runtime.process import Observer, Passed
from reconciler.features.workflows.metrics import SHUFFLES, SHUFFLES_PER_REPLICA
from reconciler.features.workflows.reports import reports_of
from reconciler.features.workflows.settings import PROFILES
from reconciler.model.errors import ClusterError, Unreachable
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import Plan, outcome_name
from reconciler.model.pod import Workload
from reconciler.model.problems import internal
from reconciler.model.record import State

log = logging.getLogger(__name__)

NODES = 20
"""Nodes that are counted after one pass. Each takes some requests, and the next pass waits for them."""

LONGEST = 10.0
"""Seconds after which no further node is counted."""


_RIGHTS = "k8s/shuffles has the permissions for workloads"


class ShuffleRow(Struct, frozen=True):
    """The counters of one owner and profile: pods, and pods divided by the replicas of their owner.

    `per_replica` is infinite once a pod was counted whose owner had no replica, as in maintenance-controller.
    """

    owner: str
    profile: str
    pods: int = 0
    per_replica: float = 0.0


class WorkloadReader(Protocol):
    """Reads workloads of pods."""

    def on_node(self, node: str) -> tuple[Workload, ...]:
        """Return the workload of each pod of the node that has one; raises ClusterError."""


class ShuffleCounter:
    """Counts after each pass. Other threads may read `counts` at any time."""

    def __init__(self, reader: WorkloadReader, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with no counts. The clock in seconds is for the time that a pass may take."""
        self._reader = reader
        self._clock = clock
        self.counts = ShuffleCounts()
        """The counts so far: a value, which the next pass replaces."""

    def after(self, plan: Plan, outcomes: Iterable[Outcome]) -> None:
        """Count the pods of the nodes that the pass has put into maintenance for a workflow.

        The counters of a node that is to be maintained begin, so that they exist before they increase.
        A node whose workloads can't be read is not counted, which the log says. Raises nothing.
        """
        found = entered(plan, outcomes)
        counts, ends = self.counts, self._clock() + LONGEST
        for place, one in enumerate(found):
            if place >= NODES or self._clock() > ends:
                log.warning(
                    "the pods of %d nodes are not counted: it would take too long", len(found) - place
                )
                break
            try:
                workloads = self._reader.on_node(one.node)
                count = counts.begun if one.waits else counts.counted
                counts = count(one.profile, workloads)
            except ClusterError as error:
                why = f"needs {error.needs}; {_RIGHTS}" if error.needs else str(error)
                log.warning("node %s: its pods are not counted for %s: %s", one.node, one.profile, why)
                if isinstance(error, Unreachable):
                    break
            except Exception as error:  # noqa: BLE001 - a count harms nothing else
                internal(f"node {one.node}: its pods are not counted", error)
        self.counts = counts


class Shuffles(Observer):
    """Counts after each pass, where the settings ask for it, and shows the counts."""

    def __init__(self, counter: ShuffleCounter) -> None:
        """Show what this counter counts."""
        self._counter = counter
        self._shown: tuple[ShuffleRow, ...] = ()

    def after(self, passed: Passed) -> None:
        """Count the pods of this pass."""
        if passed.rehearsed:
            return
        counted = PROFILES.of(passed.settings).shuffle_counts
        if counted:
            self._counter.after(passed.plan, passed.outcomes)
        self._shown = self._counter.counts.rows if counted else ()

    def samples(self) -> Iterator[Sample]:
        """Yield the counts of moved pods."""
        for row in self._shown:
            labels = (row.owner, row.profile)
            yield Sample(SHUFFLES, row.pods, labels)
            yield Sample(SHUFFLES_PER_REPLICA, row.per_replica, labels)


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
        for report in reports_of(node)
        if report.after is not State.OPERATIONAL and report.before is not report.after
    )
