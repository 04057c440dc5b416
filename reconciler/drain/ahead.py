"""Reads the pods of nodes that wait for a drain, at a bounded pace, and keeps them between passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from reconciler.drain.refusal import BudgetIndex, with_unplaced
from reconciler.model.errors import ClusterError, Forbidden, Late, Unauthorized, Unreachable
from reconciler.model.limits import EARLIEST
from reconciler.model.pod import Placement, Pod, PodDisruptionBudget
from reconciler.model.ports import ClusterReader
from reconciler.model.problems import expected
from reconciler.model.snapshot import ReadAhead
from reconciler.model.values import replace

AT_ONCE = 50
"""Nodes whose pods one pass reads: each takes a request."""

LONGEST = 1.0
"""Seconds after which a pass begins no further request for them."""

EVERY = timedelta(minutes=2)
"""How long the pods of a node count before they are read again."""

BUDGETS_EVERY = timedelta(seconds=30)
"""How long the budgets count. They are one list, and people change them to end a forecast."""

PLACEMENT = 4 << 10
"""Characters of a pod's selector, affinity and tolerations that are kept. A larger one is not judged."""

_LATER = "its pods were not read yet; a later pass reads them"

_NO_BUDGETS = "the PodDisruptionBudgets were not read yet; a later pass reads them"

_FOR_ALL = (Forbidden, Unauthorized, Unreachable)
"""Answers about one node that the next node would get, too."""


class _Known(Struct, frozen=True):
    """What one node had when it was asked, or why it could not be read."""

    at: datetime
    pods: tuple[Pod, ...] = ()
    problem: str = ""


class PodsAhead:
    """An AheadReader. It forgets a node once it no longer waits."""

    def __init__(
        self,
        reader: ClusterReader,
        *,
        every: timedelta = EVERY,
        budgets_every: timedelta = BUDGETS_EVERY,
        seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Read with this reader; `seconds` is a clock that never goes back, for the time of one call."""
        self._reader, self._every, self._budgets_every = reader, every, budgets_every
        self._seconds = seconds
        self._known: dict[str, _Known] = {}
        self._budgets: tuple[PodDisruptionBudget, ...] | None = None
        self._budgets_at = EARLIEST
        self._unbudgeted = _NO_BUDGETS

    def read(self, nodes: Sequence[str], now: datetime, *, drains: bool, asks: bool = True) -> ReadAhead:
        """Return what is known of these nodes, after the reads that are due; see AheadReader."""
        self._known = {name: self._known[name] for name in nodes if name in self._known}
        later = _LATER
        if asks:
            began = self._seconds()
            due = [name for name in nodes if self._is_due(name, now)]
            # A sort is stable: nodes that were never read come first, in the order of their urgency.
            for number, name in enumerate(sorted(due, key=self._read_at)):
                if number >= AT_ONCE or self._seconds() - began > LONGEST:
                    break
                try:
                    what = f"node {name}: its pods can't be read"
                    pods = expected(what, partial(self._reader.pods, name, placement=True))
                except Late:
                    break
                except _FOR_ALL as error:
                    later = f"its pods can't be read: {error.because}"
                    self._known |= dict.fromkeys(due[:AT_ONCE], _Known(now, problem=later))
                    break
                except ClusterError as error:
                    self._known[name] = _Known(now, problem=f"its pods can't be read: {error.because}")
                else:
                    # No drain waits for mirrors, or for pods of a DaemonSet.
                    awaited = (
                        pod
                        for pod in pods
                        if not pod.mirror and (pod.owner is None or pod.owner.kind != "DaemonSet")
                    )
                    self._known[name] = _Known(now, tuple(map(_kept, awaited)))
        if asks and (nodes or drains):
            self._read_budgets(now)
        unread = {name: known.problem for name, known in self._known.items() if known.problem}
        return ReadAhead(
            {name: known.pods for name, known in self._known.items() if not known.problem},
            {**dict.fromkeys((name for name in nodes if name not in self._known), later), **unread},
            self._budgets,
            self._unbudgeted,
        )

    def _is_due(self, name: str, now: datetime) -> bool:
        # A clock that was set back makes everything due.
        return not timedelta() <= now - self._read_at(name) < self._every

    def _read_at(self, name: str) -> datetime:
        known = self._known.get(name)
        return EARLIEST if known is None else known.at

    def _read_budgets(self, now: datetime) -> None:
        if timedelta() <= now - self._budgets_at < self._budgets_every:
            return
        unread = "PodDisruptionBudgets can't be read"

        def read() -> tuple[PodDisruptionBudget, ...]:
            budgets = self._reader.budgets()
            # Pods without a node say why a budget refuses the eviction of pods on these nodes, if one does.
            full = BudgetIndex(budget for budget in budgets if budget.allowed <= 0)
            if any(full.covering(pod) for known in self._known.values() for pod in known.pods):
                with suppress(ClusterError):
                    budgets = with_unplaced(budgets, self._reader.unplaced())
            return budgets

        try:
            budgets = expected(unread, read)
        except Late:
            # The next pass asks again, and the former ones count until then.
            return
        except ClusterError as error:
            # Only the forecasts are unknown without them.
            self._budgets, self._unbudgeted = None, f"{unread}: {error.because}"
        else:
            self._budgets, self._unbudgeted = budgets, ""
        self._budgets_at = now


def _kept(pod: Pod) -> Pod:
    """Return the pod with what it requires of labels and taints, which stays until the next read."""
    placement = pod.placement
    if placement is None:
        return pod
    small = replace(placement, requests=(), prefers=()) if _size(placement) <= PLACEMENT else None
    return replace(pod, placement=small)


def _size(placement: Placement) -> int:
    required = (one for term in placement.affinity for one in term)
    texts = (
        *(text for pair in placement.node_selector.items() for text in pair),
        *(text for one in required for text in (one.key, *one.values)),
        *(text for toleration in placement.tolerations for text in (toleration.key, toleration.value)),
    )
    return len(placement.affinity) + len(texts) + sum(map(len, texts))
