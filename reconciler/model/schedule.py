"""The schedule: when the drain of each case is planned to start, and which cases can't be served in time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class StartTimes:
    """When a drain for one event may start, by its date, its policy and the calendar. All moments are UTC.

    No drain starts before `earliest`. `latest` is the last moment, not after `deadline`, at which windows and
    freezes allow a start and leave the lead time; None if the event has no date, or if there is no such
    moment. `never` says why the calendar allows no start in time, empty if it does, and `remedy` what would
    allow one. `kept` says which person keeps the drain from an earlier start, empty if nobody does. Without
    an end of that, `earliest` is the last moment of the calendar.
    """

    earliest: datetime
    latest: datetime | None = None
    deadline: datetime | None = None
    never: str = ""
    remedy: str = ""
    kept: str = ""


@dataclass(frozen=True, slots=True)
class CaseSchedule:
    """The plan for one node with a case. All moments are UTC.

    `planned_start` is when its drain starts if nothing changes; it is in the past if the drain has started,
    and None if no moment is known. `latest_start` is the last allowed moment before the deadline, None if the
    case has no date. `window` names the windows that the planned start uses, None if it uses none. `missed`:
    the node will not be drained in time. `because` says why the start is planned for this moment; for a miss
    it says why, and what would help. `ends` is when the node is expected back, None if that is unknown.
    `plan_from` and `plan_until` are the days of a plan that names no moment: such a plan starts nothing.
    `cause` is what a miss comes from, the same text as long as the reason is the same. `started`: the drain
    has begun, and `planned_start` is when it did. `forecast_until` is when a forecast may change although
    nothing happens, because a case that is planned for now is held, or a window ends; None if it is not.
    `with_node` is the node with whose drain this one starts together, because both run pods of one group, and
    empty if there is none; `alone` is then when it would start without that.
    """

    planned_start: datetime | None = None
    latest_start: datetime | None = None
    window: str | None = None
    missed: bool = False
    because: str = ""
    ends: datetime | None = None
    plan_from: datetime | None = None
    plan_until: datetime | None = None
    cause: str = ""
    started: bool = False
    forecast_until: datetime | None = None
    with_node: str = ""
    alone: datetime | None = None
