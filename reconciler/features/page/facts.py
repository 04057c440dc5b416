"""What a page is made of: a plan, and what the process knows beside it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct, field

from reconciler.calendar.windows import Calendar
from reconciler.features.page.readiness import ReadinessPart
from reconciler.model.ended_case import EndedCase
from reconciler.model.explanation import Obstacle
from reconciler.model.holds import HoldCode
from reconciler.model.outcome import Outcome
from reconciler.model.plan import NodePlan, Plan

BACK = timedelta(hours=24)
"""How far the page looks back."""

AHEAD = timedelta(hours=48)
"""How far the page looks ahead."""


class History(Struct, frozen=True):
    """The cases that have ended, as far as they are known.

    `since` is from when on this process knows them (UTC), None if it knows none. `read_from` is from when on
    those before are known from a file (UTC), None without a file.
    """

    since: datetime | None = None
    ended: tuple[EndedCase, ...] = ()
    read_from: datetime | None = None


class KnownReadiness(Struct, frozen=True):
    """Readiness as far as it is known. `note` says why there is none, or no newer one; else it is empty."""

    part: ReadinessPart | None = None
    note: str = ""


class PageFacts(Struct, frozen=True):
    """A plan, and what belongs to its page.

    `rehearsed` says that nothing was written, `outcomes` are the results of the actions. `obstacles` say for
    each node what holds it and who can end that. `calendar` has the windows and freezes of the settings,
    `words` is what the settings do, line by line. `trouble` is what is wrong with the process itself.
    """

    plan: Plan
    rehearsed: bool
    calendar: Calendar
    outcomes: tuple[Outcome, ...] = ()
    obstacles: Mapping[str, tuple[Obstacle, ...]] = field(default_factory=dict)
    history: History = History()
    words: str = ""
    trouble: tuple[str, ...] = ()
    readiness: KnownReadiness = KnownReadiness()

    @property
    def zone(self) -> ZoneInfo:
        """The zone in which people read moments."""
        return ZoneInfo(self.plan.time_zone)

    @property
    def observes(self) -> bool:
        """Whether there are cases of which nothing starts, because the mode is Observe."""
        return any(node.schedule is not None and node.schedule.observed for node in self.plan.nodes)

    def presses(self, node: NodePlan) -> bool:
        """Whether something blocks the node that can't wait: its latest start is over, and it is not drained.

        What ends by itself, and a pod that may still leave, blocks nothing. In mode Observe nothing starts.
        """
        schedule, drain = node.schedule, node.record.drain if node.record is not None else None
        if schedule is None or schedule.observed or (drain is not None and drain.done is not None):
            return False
        if schedule.latest_start is None or schedule.latest_start > self.plan.now:
            return False
        progress = node.draining.progress
        blocked = progress is not None and any(not one.leaving for one in progress.blockers)
        held = (one for one in self.obstacles.get(node.node, ()) if one.code != HoldCode.DRAIN)
        return schedule.missed or blocked or any(not one.by_itself for one in held)

    def recent(self) -> tuple[EndedCase, ...]:
        """Return the cases that ended in the time that the page looks back, the last one first."""
        first = self.plan.now - BACK
        found = (one for one in self.history.ended if one.times.ended >= first)
        return tuple(sorted(found, key=lambda one: one.times.ended, reverse=True))
