"""The chart of what starts when, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from textwrap import wrap
from zoneinfo import ZoneInfo

from msgspec import Struct
from rich.cells import cell_len

from reconciler.calendar.occurrences import FOREVER
from reconciler.model.limits import count_of
from reconciler.report import safe
from reconciler.report.ahead import PlannedCase, SharedCalendar, Status, day_text, round_times
from reconciler.report.lines import Line, Look, Signs, padded, short_names, shortened

_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_STEPS = tuple(
    minutes * _MINUTE
    for minutes in (10, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1440, 2880, 4320, 10080)
)
_TICKS = tuple(minutes * _MINUTE for minutes in (60, 120, 180, 240, 360, 720)) + tuple(
    days * _DAY for days in (1, 2, 7, 14, 28)
)

_LOOK = timedelta(minutes=30)
"""Clocks change at full and half hours of UTC."""

_LABEL = 8
"""Columns that a label of the axis needs, with a space behind it."""


class Timeline(Struct, frozen=True):
    """So many columns of `step` each, from `start` (UTC) on; people read them in `zone`."""

    start: datetime
    step: timedelta
    columns: int
    zone: ZoneInfo

    @property
    def end(self) -> datetime:
        """The end of the last column."""
        return self.start + self.columns * self.step

    def column(self, moment: datetime) -> int:
        """Return the column of a moment; it is negative or too large outside of the timeline."""
        return (moment - self.start) // self.step

    def cells(self, start: datetime, end: datetime) -> range:
        """Return the columns that [start, end) touches."""
        if end <= start:
            return range(0)
        last = -((self.start - end) // self.step)
        return range(max(self.column(start), 0), min(last, self.columns))

    def axis(self) -> str:
        """Return the line with the days and times of day."""
        apart = next((tick for tick in _TICKS if tick >= _LABEL * self.step), _TICKS[-1])
        far = self.end - self.start > timedelta(days=28)
        ticks = []
        for local in round_times(self.start, self.end, apart, self.zone):
            label = f"{local:%H:%M}" if local.time() != time() else day_text(local, far=far)
            ticks.append((self.column(local), label))
        if not ticks or ticks[0][0] > len("|now"):
            ticks.insert(0, (0, "now"))
        line = ""
        for column, label in ticks:
            text = f"|{label}"
            if (not line or len(line) < column) and column + len(text) <= self.columns:
                line = line.ljust(column) + text
        return line

    def clock_change(self) -> tuple[datetime, str, str] | None:
        """Return when the clocks first change (UTC), and the names of the offsets before and after."""
        before = self.start.astimezone(self.zone)
        moment = self.start.replace(minute=0, second=0, microsecond=0)
        while (moment := moment + _LOOK) < self.end:
            after = moment.astimezone(self.zone)
            if after.utcoffset() != before.utcoffset():
                return moment, before.tzname() or "", after.tzname() or ""
        return None


def timeline(now: datetime, needed: datetime, until: datetime, width: int, zone: ZoneInfo) -> Timeline:
    """Return a timeline of at most `width` columns from a round time before `now` on.

    It has the shortest columns with which it reaches `needed`, and ends at `until` at the latest.
    """
    midnight = datetime.combine(now.astimezone(zone).date(), time(), tzinfo=zone).astimezone(UTC)
    for step in _STEPS:
        start = midnight + (now - midnight) // step * step
        if -((start - needed) // step) <= width:
            break
    columns = min(width, -((start - until) // step))
    return Timeline(start, step, max(columns, 1), zone)


_SHARE = 3
"""The names have one of so many parts of the width."""

_NAME = 34
"""The most columns for a name."""

_FREEZES = 3
"""How many freezes the legend names."""


def chart(
    cases: Sequence[PlannedCase],
    calendars: Iterable[SharedCalendar],
    until: datetime,
    look: Look,
    signs: Signs,
) -> list[Line]:
    """Return the chart with its axis and its legend; it ends at `until` (UTC) at the latest."""
    shown = {case.node: case for case in cases}
    groups = [(calendar, [shown[node] for node in calendar.nodes if node in shown]) for calendar in calendars]
    groups = [(calendar, members) for calendar, members in groups if members]
    room = min(max(map(cell_len, map(safe.line, shown)), default=0) + 2, look.width // _SHARE, _NAME + 2)
    room = max(room, len("(windows)") + 1)
    moments = [
        moment
        for case in cases
        for moment in (
            case.schedule.planned_start,
            case.schedule.latest_start,
            case.schedule.ends,
            case.schedule.plan_until,
            case.not_before,
        )
        if moment is not None
    ]
    needed = min(max(moments, default=until), until)
    line = timeline(look.now, needed, until, look.width - room - 1, look.zone)
    names = short_names(shown, room - 2, look.cut)
    rows = [Line(f"{'':{room}} {line.axis()}".rstrip())]
    used: set[str] = set()
    for calendar, members in groups:
        cells = [signs.closed] * line.columns
        for closure in calendar.closures:
            _paint(cells, line.cells(closure.start, closure.end or FOREVER), signs.freeze)
        # A column in which a drain may start at some time is open.
        for opening in calendar.openings:
            _paint(cells, line.cells(opening.start, opening.end or FOREVER), signs.window)
        used.update(cells)
        windows = [name for opening in calendar.openings for name in safe.line(opening.window).split(", ")]
        named = ", ".join(dict.fromkeys(windows)) or "no window opens"
        label = shortened(f"({named})", room, look.cut)
        rows.append(Line(f"{padded(label, room)} {''.join(cells)}".rstrip()))
        for case in members:
            cells = _case_cells(case, line, signs)
            used.update(cells)
            missed = case.status is Status.MISSED
            label = padded(f"{signs.missed if missed else ' '} {names[case.node]}", room)
            rows.append(Line(f"{label} {''.join(cells)}".rstrip(), missed))
    return [*rows, *_legend(used, [calendar for calendar, _ in groups], line, look, signs)]


def _case_cells(case: PlannedCase, line: Timeline, signs: Signs) -> list[str]:
    cells = [" "] * line.columns
    plan = case.schedule
    if case.status is Status.REPORTED and plan.plan_from is not None:
        _paint(cells, line.cells(plan.plan_from, plan.plan_until or FOREVER), signs.span)
    start = None if plan.planned_start is None else max(plan.planned_start, line.start)
    begins = None if start is None else line.column(start)
    if start is not None and begins is not None:
        _paint(cells, line.cells(start, plan.ends or start), signs.out)
        _put(cells, begins, signs.out)
        if plan.ends is None:
            _put(cells, begins + 1, signs.unknown)
    # Moments that still matter; a later one of the same column covers an earlier one.
    strikes = case.not_before if case.status is not Status.REPORTED else None
    latest = plan.latest_start if not case.begun else None
    for moment, sign in ((strikes, signs.platform), (latest, signs.latest)):
        # The column in which the drain starts says that first.
        if moment is not None and line.column(moment) != begins:
            _put(cells, line.column(moment), sign)
    last = plan.ends or plan.plan_until or start
    if last is not None and last > line.end:
        _put(cells, line.columns - 1, signs.onwards)
    if case.status is Status.WAITING:
        _put(cells, 0, signs.unknown)
    if case.status is Status.MISSED:
        at = plan.latest_start or case.not_before or start or line.start
        _put(cells, min(max(line.column(at), 0), line.columns - 1), signs.missed)
    return cells


def _paint(cells: list[str], columns: range, sign: str) -> None:
    for column in columns:
        cells[column] = sign


def _put(cells: list[str], column: int, sign: str) -> None:
    if 0 <= column < len(cells):
        cells[column] = sign


def _legend(
    used: set[str], calendars: Sequence[SharedCalendar], line: Timeline, look: Look, signs: Signs
) -> Iterator[Line]:
    meanings = (
        (signs.out, "out of service"),
        (signs.latest, "latest start"),
        (signs.platform, "the platform may start"),
        (signs.span, "the platform starts some time in it"),
        (signs.missed, "will be missed"),
        (signs.unknown, "not known when"),
        (signs.onwards, "goes on"),
        (signs.window, "a drain may start"),
        (signs.closed, "no window is open"),
    )
    # What belongs together stays on one line.
    text = ""
    for word in (f"{sign} {meaning}" for sign, meaning in meanings if sign in used):
        if text and len(text) + 3 + len(word) > look.width:
            yield Line(text)
            text = ""
        text = f"{text}   {word}" if text else word
    if text:
        yield Line(text)
    freezes = dict.fromkeys(closure for calendar in calendars for closure in calendar.closures)
    frozen = sorted(freezes, key=lambda closure: closure.start)
    for closure in frozen[:_FREEZES]:
        reason = f" ({closure.reason})" if closure.reason else ""
        start = f" from {look.moment(closure.start)}" if look.now < closure.start else ""
        end = f" until {look.moment(closure.end)}" if closure.end is not None else ", without an end"
        words = safe.line(f"{signs.freeze} not allowed: {closure.name}{reason}{start}{end}")
        yield from (Line(part) for part in wrap(words, look.width))
    if len(frozen) > _FREEZES:
        yield Line(f"{signs.freeze} not allowed: {count_of(len(frozen) - _FREEZES, 'more time')}")
    change = line.clock_change()
    if change is not None:
        moment, before, after = change
        yield Line(f"The clocks change on {look.moment(moment)}, from {before} to {after}.")
