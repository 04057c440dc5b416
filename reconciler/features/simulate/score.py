"""What has become of the events of a play, and what it has cost, counted from what happened to the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from reconciler.model.event import Kind


class Fate(StrEnum):
    """What has become of one event of one node. JSON shows the values, so they never change."""

    IN_WINDOW = "drainedInWindow"
    """The node was empty in time. Its drain had begun while windows and freezes allowed one."""

    AT_DEADLINE = "drainedOutsideWindow"
    """The node was empty in time. Its drain had begun although no window was open."""

    LATE = "late"
    """The node was drained after the date of the event, but before it started."""

    MISSED = "missed"
    """The event started while pods were on the node."""

    CANCELLED = "cancelled"
    """It did not start: it was cancelled, or its VM was gone."""

    OPEN = "open"
    """It had not started when the play ended."""

    IGNORED = "ignored"
    """The policy requires no drain for it."""

    UNSEEN = "unseen"
    """No source that the policy enables reported it."""


class Day(Struct, frozen=True):
    """One day in the time zone of the policy."""

    day: date
    missed: int = 0
    late: int = 0
    refused: int = 0
    most_out: int = 0

    @property
    def badness(self) -> tuple[int, int, int, int]:
        """A sort key: more is worse."""
        return (self.missed, self.late, self.refused, self.most_out)


class Score(Struct, frozen=True):
    """The result of one play.

    `hopeless` are the missed events that were announced later than the drain of their node takes. `empty` is
    the time from the end of each drain until its node was uncordoned or gone, `out` the time for which nodes
    were cordoned, not Ready or gone, both summed over the nodes. `most_out` is the largest number of such
    nodes, first reached at `most_out_at` (UTC). `refused` is how many nodes with an event had to wait for a
    place in the budget, once for each start, `waited` for how long in all. `days` are in order.
    """

    fates: Mapping[Fate, int]
    by_kind: Mapping[Kind, Mapping[Fate, int]]
    hopeless: int
    drains: int
    empty: timedelta
    out: timedelta
    most_out: int
    most_out_at: datetime | None
    refused: int
    waited: timedelta
    days: tuple[Day, ...]

    @property
    def asked(self) -> int:
        """The number of events for which the policy requires a drain."""
        none = (Fate.IGNORED, Fate.UNSEEN)
        return sum(count for fate, count in self.fates.items() if fate not in none)

    def worst_days(self, most: int = 3) -> tuple[Day, ...]:
        """Return the worst days, the worst one first; days on which nothing went wrong are not among them."""
        bad = [day for day in self.days if day.missed or day.late or day.refused]
        return tuple(sorted(bad, key=lambda day: (*(-one for one in day.badness), day.day))[:most])
