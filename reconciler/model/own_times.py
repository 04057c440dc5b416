"""Times that this program wrote, as a later pass reads them: a clock that was ahead wrote future ones."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

CLOCK_TOLERANCE = timedelta(seconds=30)
"""How far two clocks may differ and still count as equal."""


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


def own_times(now: datetime, skew: timedelta | None) -> OwnTimes:
    """Return what to believe at `now`; `skew` is our clock minus the API server's, None if it is unknown.

    If our own clock is behind, the times that it takes for future ones may be right.
    """
    behind = max(-skew, timedelta()) if skew is not None else timedelta()
    return OwnTimes(now.replace(microsecond=0), now + behind + CLOCK_TOLERANCE)
