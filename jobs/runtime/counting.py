"""What a process counts of itself: nothing, unless it shows metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from reconciler.drain.drainer.requests import refusal_reason
from reconciler.kubernetes.eviction import Evictions
from reconciler.model.drains import DrainProgress
from reconciler.model.ended_case import EndedCase
from reconciler.model.errors import ReconcilerError
from reconciler.model.plan import Plan
from reconciler.model.pod import Pod
from reconciler.model.ports import CaseHistory
from reconciler.model.workflow import ShuffleRow


class Counting:
    """Counts nothing. May be called from any thread, and raises nothing."""

    def settings(self, *, good: bool) -> None:
        """Note whether the settings file can be used."""

    def leads(self, *, leads: bool) -> None:
        """Note whether this process holds the lock."""

    def succeeded(self, seconds: float, now: datetime) -> None:
        """Count a pass that ended `now` (aware) without an error, and how long it took."""

    def failed(self, seconds: float) -> None:
        """Count a pass that ended with an error, and how long it took."""

    def stands_by(self) -> None:
        """Count a pass while another process has the lock."""

    def after(self, plan: Plan, drains: Mapping[str, DrainProgress]) -> None:
        """Show this plan, and count what it says. `drains` is the progress of each drain, by node."""

    def drains(self, drains: Mapping[str, DrainProgress]) -> None:
        """Show these drains, and count those that have ended since the last call."""

    def cases(self, ended: Sequence[EndedCase]) -> None:
        """Count cases that have ended."""

    def refused(self, reason: str) -> None:
        """Count an eviction that was refused; see `refusal_reason`."""

    def notice(self, transport: str, *, sent: bool) -> None:
        """Count an attempt to send notices."""

    def waiting(self, messages: int | None) -> None:
        """Note how many messages wait to be sent, None if nobody gets any."""

    def shuffled(self, counts: Sequence[ShuffleRow]) -> None:
        """Show these counts of moved pods."""

    def unexpected(self) -> None:
        """Count an error in this program."""


class CountedHistory:
    """Hands the cases that end on to the history, if there is one, and counts them."""

    def __init__(self, history: CaseHistory | None, counting: Counting) -> None:
        """Hand them on to this history."""
        self._history, self._counting = history, counting

    def keep(self, cases: Sequence[EndedCase]) -> None:
        """See the port."""
        if self._history is not None:
            self._history.keep(cases)
        self._counting.cases(cases)


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
