"""What starts when: the cases of a plan, and their moments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, time, timedelta, tzinfo
from enum import StrEnum
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.calendar.values import DAY_NAMES
from reconciler.calendar.windows import Calendar, Closure, Opening
from reconciler.model.explanation import NamespacePods
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.schedule import CaseForecast, CaseSchedule
from reconciler.model.unguarded import Unguarded
from reconciler.report.standing import Standing, standing

_WEEKDAY_FOR = timedelta(days=20)
"""For how long a weekday and the day of the month are enough."""

_YEAR_FROM = timedelta(days=300)
"""From when on the year belongs to a date."""


def day_text(local: datetime, *, far: bool) -> str:
    """Return a local day as `Sun 22`, or as `11-22` if it is far away."""
    return f"{local:%m-%d}" if far else f"{DAY_NAMES[local.weekday()]} {local:%d}"


def moment_text(moment: datetime | None, now: datetime, zone: tzinfo) -> str:
    """Return a moment as `Sun 22 22:00`, or as `12-24 22:00` or `2028-01-30` if it is far from `now`.

    A time of day that comes twice has the abbreviation of its offset. None is `unknown`.
    """
    if moment is None:
        return "unknown"
    away = abs(moment - now)
    try:
        local = moment.astimezone(zone)
    except OverflowError:
        return "never"
    if away >= _YEAR_FROM:
        return local.date().isoformat()
    text = f"{day_text(local, far=away >= _WEEKDAY_FOR)} {local:%H:%M}"
    twice = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
    return f"{text} {local.tzname()}" if twice else text


def clock_text(moment: datetime, now: datetime, zone: tzinfo) -> str:
    """Return a moment as `22:00` on the day of `now`, and as `moment_text` does on any other."""
    local = moment.astimezone(zone)
    if local.date() != now.astimezone(zone).date():
        return moment_text(moment, now, zone)
    return moment_text(moment, now, zone).removeprefix(f"{day_text(local, far=False)} ")


_DAY = timedelta(days=1)


def round_times(start: datetime, end: datetime, apart: timedelta, zone: ZoneInfo) -> Iterator[datetime]:
    """Yield the round times of day from `start` until before `end`, as an axis names them, in `zone`.

    They are `apart` from each other, a whole part of a day or several days, counted from the day of `start`.
    A time that the clocks skip is left out.
    """
    day = start.astimezone(zone).date()
    for _ in range((end - start) // _DAY + 2):
        for number in range(max(_DAY // apart, 1)):
            wall = datetime.combine(day, time()) + number * apart
            local = wall.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)
            if local.replace(tzinfo=None) == wall and start <= local < end:
                yield local
        day += max(apart, _DAY)


_LAST = datetime.max.replace(tzinfo=UTC)


class Status(StrEnum):
    """What a case is in the plan."""

    MISSED = "missed"
    """The node will not be drained in time."""

    AT_RISK = "at risk"
    """The node may not be drained in time."""

    STOPPED = "stopped"
    """A person has stopped its drain."""

    UNGUARDED = "unguarded"
    """The reconciler does not act on the node, so nobody drains it."""

    STARTED = "started"
    PLANNED = "planned"
    WAITING = "waiting"
    """No moment is known for its start."""

    REPORTED = "reported"
    """The platform's plan names days and no moment: it starts nothing."""


class PlannedCase(Struct, frozen=True):
    """One node with a case. Moments are UTC.

    `kinds` are the kinds of its events, or the types of the conditions, each once. `not_before` is the
    earliest moment from which the platform may start, None if no event has one. `begun` is whether its drain
    has begun. `unguarded` is why nobody drains the node, or brings it back, None for any other.
    """

    node: str
    zone: str
    pool: str
    status: Status
    standing: Standing
    schedule: CaseSchedule
    kinds: tuple[str, ...] = ()
    not_before: datetime | None = None
    begun: bool = False
    unguarded: Unguarded | None = None

    @property
    def word(self) -> str:
        """What the case is in one word, as each output says it."""
        match self.status:
            case Status.MISSED:
                return Standing.WILL_BE_MISSED.value
            case Status.STOPPED:
                return Standing.HELD.value
            case Status.STARTED if self.standing in (Standing.PLANNED, Standing.AT_RISK, Standing.WAITS):
                return Standing.DRAINING.value
            case Status.STARTED | Status.WAITING:
                return self.standing.value
            case Status.PLANNED if self.standing is Standing.HELD:
                return self.standing.value
        return self.status.value

    @property
    def forecast_words(self) -> str:
        """Why the node may not be drained in time, or why no start is known; empty where neither is so."""
        if self.status is Status.UNGUARDED and self.unguarded is not None:
            return f"{self.unguarded.words}; {self.unguarded.who}"
        known = self.status in (Status.STARTED, Status.PLANNED, Status.AT_RISK)
        return self.schedule.forecast_words or ("" if known else self.schedule.because)

    @property
    def first(self) -> datetime | None:
        """The first moment at which something happens, None if no moment is known."""
        plan = self.schedule
        if self.status is Status.REPORTED:
            return plan.plan_from
        known = (plan.planned_start, plan.latest_start)
        return min((moment for moment in known if moment is not None), default=self.not_before)


class SharedCalendar(Struct, frozen=True):
    """The windows and the freezes that apply to all of these nodes, sorted by start."""

    nodes: tuple[str, ...]
    openings: tuple[Opening, ...]
    closures: tuple[Closure, ...]


class PlanAhead(Struct, frozen=True):
    """What will start from `plan.now` until `until` (UTC).

    `cases` have the misses first, then the earliest. `later` are the cases of which nothing happens before
    `until`. Each node of `cases` is in one of the `calendars`. `openness` says in a sentence whether a drain
    may start now, and when the next window opens. `pods` are those of the namespace that was asked for, None
    without one.
    """

    plan: Plan
    until: datetime
    cases: tuple[PlannedCase, ...]
    later: tuple[PlannedCase, ...]
    calendars: tuple[SharedCalendar, ...]
    openness: str
    pods: NamespacePods | None = None


def plan_ahead(
    plan: Plan, labels: Mapping[str, Mapping[str, str]], calendar: Calendar, until: datetime
) -> PlanAhead:
    """Return what the plan does until a moment (aware); `labels` are those of the nodes, by name."""
    ordered = sorted(
        (
            _case(node, plan.now)
            for node in plan.nodes
            if node.schedule is not None or node.unguarded is not None
        ),
        key=_urgency,
    )
    cases = tuple(case for case in ordered if case.first is None or case.first < until)
    later = tuple(case for case in ordered if case.first is not None and until <= case.first)

    # Nodes that the same windows and freezes select share an entry, in the order of the cases.
    sharing: dict[object, list[str]] = {}
    for case in cases:
        sharing.setdefault(calendar.selected_by(labels.get(case.node, {})), []).append(case.node)
    calendars = []
    for names in sharing.values():
        chosen = labels.get(names[0], {})
        openings = calendar.openings(plan.now, chosen, count=None, until=until)
        calendars.append(SharedCalendar(tuple(names), openings, calendar.closures(plan.now, chosen, until)))

    openness = calendar.at(plan.now, None).because
    return PlanAhead(plan, until.astimezone(UTC), cases, later, tuple(calendars), openness)


def _case(node: NodePlan, now: datetime) -> PlannedCase:
    schedule = node.schedule
    if schedule is None:
        # Of a start that nobody plans, there is only to say when it would be too late.
        latest = (
            (judged.times.latest if judged.times is not None else None) or judged.deadline
            for judged in node.events
            if judged.asks
        )
        schedule = CaseSchedule(latest_start=min((at for at in latest if at is not None), default=None))
    events = [judged.event for judged in node.events if judged.asks] or [
        judged.event for judged in node.events
    ]
    kinds = [event.condition or event.kind.value for event in events]
    if not kinds and node.record is not None:
        kinds = [event.condition or event.kind.value for event in node.record.events]
    dates = [event.not_before for event in events if event.not_before is not None]
    return PlannedCase(
        node.node,
        node.zone,
        node.pool,
        _status(node, schedule, now),
        standing(node),
        schedule,
        tuple(dict.fromkeys(kinds)),
        min(dates, default=None),
        _begun(schedule, now),
        node.unguarded,
    )


def _status(node: NodePlan, schedule: CaseSchedule, now: datetime) -> Status:
    if schedule.forecast is CaseForecast.WILL_BE_MISSED:
        return Status.MISSED
    if schedule.stopped:
        return Status.STOPPED
    # In mode Observe the plan shows what mode Enforce would do.
    if node.unguarded is not None and not (schedule.observed and not schedule.started):
        return Status.UNGUARDED
    if schedule.forecast is CaseForecast.AT_RISK:
        return Status.AT_RISK
    if schedule.planned_start is not None:
        return Status.STARTED if _begun(schedule, now) else Status.PLANNED
    return Status.WAITING if schedule.plan_from is None else Status.REPORTED


def _begun(schedule: CaseSchedule, now: datetime) -> bool:
    # A rehearsal begins no drain: what would begin now is planned for now.
    return schedule.planned_start is not None and schedule.started and schedule.planned_start < now


def _urgency(case: PlannedCase) -> tuple[bool, datetime, str]:
    return case.status not in (Status.MISSED, Status.UNGUARDED), case.first or _LAST, case.node
