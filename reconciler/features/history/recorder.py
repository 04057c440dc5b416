"""Lets the cluster keep the cases that end and what people do, and tells of the latter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from jobs.runtime.line_keeper import Keeper
from reconciler.features.history.kept import HISTORY, HistoryLine
from reconciler.features.history.remembered import Look, Remembered
from reconciler.kubernetes.kept_lines import KeptInCluster, KeptLines
from reconciler.model.ended_case import EndedCase
from reconciler.model.sayings import Deed
from reconciler.model.values import replace

EVERY = 10.0
"""Seconds between two writes, and from what is kept to its write."""

Kept = KeptLines[HistoryLine]


class Recorder:
    """Keeps what passes see, and tells of each deed once it is kept.

    Where the settings keep nothing, it tells of what changes while it is there.
    """

    def __init__(
        self,
        place: KeptInCluster[HistoryLine],
        now: Callable[[], datetime],
        keep: Callable[[], timedelta],
        tell: Callable[[Deed], None],
        *,
        every: float = EVERY,
    ) -> None:
        """Keep it there; `now` is the clock (aware), and `keep` how long a line is kept."""
        self._keep, self._tell = keep, tell
        self._last: Look | None = None
        self._fresh: tuple[Deed, ...] = ()
        self._apart: Remembered | None = None
        self._keeper: Keeper[HistoryLine, HistoryLine | Look] = Keeper(
            place, now, keep, self._fold, written=self._written, every=every
        )

    def saw(self, look: Look) -> None:
        """Note what a pass saw; wait for nothing."""
        if look.same(self._last):
            return
        self._last = look
        if self._keep():
            self._apart = None
            self._keeper.add(look)
            return
        # What stands at the first look was said before this process began, and another process has logged it.
        before = self._apart
        self._apart, deeds = (before or Remembered()).after(look)
        for deed in deeds if before is not None else ():
            self._tell(deed)

    def add(self, line: HistoryLine) -> None:
        """Keep a line; wait for nothing."""
        if self._keep():
            self._keeper.add(line)
        elif isinstance(line, Deed):
            self._tell(line)

    def close(self) -> None:
        """Write what waits, for a short time."""
        self._keeper.close()

    def _fold(self, kept: Kept, items: Sequence[HistoryLine | Look], since: datetime) -> Kept:
        before = state = Remembered.read(kept.beside)
        deeds = [line for line in kept.lines if isinstance(line, Deed)]
        known = len(deeds)
        cases: list[EndedCase] = []
        for item in items:
            if isinstance(item, Look):
                state, more = state.after(item, deeds)
                deeds += more
            elif isinstance(item, Deed):
                deeds.append(item)
            else:
                cases.append(item)
        self._fresh = tuple(deeds[known:])
        if state == before and not cases and not self._fresh:
            return kept
        folded = kept.with_lines(HISTORY, (*cases, *self._fresh), since)
        return replace(folded, beside=state.text)

    def _written(self) -> None:
        fresh, self._fresh = self._fresh, ()
        for deed in fresh:
            self._tell(deed)
