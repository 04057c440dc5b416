"""The clocks of the API servers, where they disagree, and the times of ours that a pass believes."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from reconciler.model.moments import to_text

CLOCK_TOLERANCE = timedelta(seconds=30)
"""How far two clocks may differ and still count as equal."""

_NONE = timedelta()


class Disagreement(Struct, frozen=True):
    """What answers of the last minute say that contradict the time of the pass.

    `away` is their time minus that of the pass, negative if they are behind. There are `some` of them among
    `answers`. They `count` unless they are so few that one API server of several must be wrong.
    """

    away: timedelta
    some: int = 1
    answers: int = 2
    counts: bool = True

    @property
    def spread(self) -> timedelta:
        """How far the fastest clock that counts is ahead of the slowest."""
        return abs(self.away) if self.counts else _NONE

    @property
    def behind(self) -> timedelta:
        """How far the slowest clock that counts is behind that of the pass."""
        return max(-self.away, _NONE) if self.counts else _NONE

    def words(self, now: datetime) -> str:
        """Return the disagreement with its numbers; `now` is what the slowest clock that counts says."""
        ours = (now + self.behind).replace(microsecond=0)
        said = (
            f"the clocks of the API servers disagree by {abs(self.away).total_seconds():.0f}s: {self.some} "
            f"of {self.answers} answers of the last minute say {to_text(ours + self.away)}, "
            f"the others {to_text(ours)}"
        )
        if not self.counts:
            return f"{said}. What most of them say counts"
        return f"{said}. Deadlines go by the faster clock, windows and ends by the slower one"


class OwnTimes(Struct, frozen=True):
    """Which of our own times to believe: `now` in whole seconds, and the `latest` believable moment (UTC)."""

    now: datetime
    latest: datetime

    def of(self, moment: datetime) -> datetime:
        """Return the moment; `now` in place of one in the future.

        Otherwise a clock that was a day ahead would leave waits of a day behind.
        """
        return moment if moment <= self.latest else self.now

    def maybe(self, moment: datetime | None) -> datetime | None:
        """Return what `of` does, None for None."""
        return None if moment is None else self.of(moment)


def own_times(now: datetime, disagreement: Disagreement | None = None) -> OwnTimes:
    """Return what to believe at `now`, the time of the slowest clock that counts."""
    spread = disagreement.spread if disagreement is not None else _NONE
    return OwnTimes(now.replace(microsecond=0), now + spread + CLOCK_TOLERANCE)
