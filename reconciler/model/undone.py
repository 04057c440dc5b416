"""Writes of nodes that the cluster refuses or undoes, at once or later: each try follows a longer pause."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from reconciler.model import limits
from reconciler.model.moments import shifted
from reconciler.model.values import Name, replace

FIRST_PAUSE = timedelta(seconds=10)
"""The pause after the first try. Each further pause is twice as long, so the tries grow with the logarithm of
the time.
"""

NOT_WRITTEN = "MaintenanceNotWritten"
"""The reason of the Warning Event about such a write."""

MOST = 500
"""Nodes that are remembered, the first ones by name."""

_LONGEST = 300
_MOST_LOST = 20
_MOST_TIMES = 1000


class Undone(Struct, frozen=True):
    """A write of a node of which not all stayed.

    `lost` names what did not stay, as `own.changes` and `own.rewritten` do. `because` is in words. `times`
    counts the tries in a row. The first conflict is no reason to wait, so it counts as none. `last` is the
    last try (UTC).
    """

    node: Name
    uid: Name
    lost: tuple[str, ...]
    because: str
    times: int
    last: datetime

    @property
    def until(self) -> datetime:
        """The moment of the next try (UTC)."""
        if not self.times:
            return self.last
        # Thirty doublings are centuries.
        return shifted(self.last, FIRST_PAUSE * 2 ** min(self.times - 1, 30))

    @property
    def words(self) -> str:
        """What happened, as a sentence without an end."""
        tries = f", {self.times} times in a row" if self.times > 1 else ""
        return f"{self.because}{tries}"

    def again(self, lost: Iterable[str], because: str, now: datetime) -> Undone:
        """Return what is remembered after one more try that did not stay; `now` is aware."""
        return replace(
            self,
            lost=tuple(sorted(lost)[:_MOST_LOST]),
            because=limits.text(because, _LONGEST),
            times=min(self.times + 1, _MOST_TIMES),
            last=now.replace(microsecond=0),
        )
