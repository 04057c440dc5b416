"""Evictions, of which each refusal is counted. Only a process that drains loads this file."""

from __future__ import annotations

from jobs.runtime.counting import Counting
from reconciler.drain.drainer.refusals import refusal_reason
from reconciler.kubernetes.eviction import Evictions
from reconciler.model.errors import ReconcilerError
from reconciler.model.pod import Pod


class CountedEvictions(Evictions):
    """Evictions, of which each refusal is counted."""

    counting = Counting()

    def evict(self, pod: Pod, *, grace: int | None) -> None:
        """See Evictor."""
        try:
            super().evict(pod, grace=grace)
        except ReconcilerError as error:
            if reason := refusal_reason(error, pod):
                self.counting.refused(reason)
            raise
