"""The cases as a chart: a line of windows and freezes for each calendar, and below it a row for each node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from textwrap import wrap

from rich.cells import cell_len

from reconciler.calendar.occurrences import FOREVER
from reconciler.calendar.windows import Closure
from reconciler.features.planning.cases import PlannedCase, SharedCalendar, Status
from reconciler.features.planning.fitting import padded, short_names, shortened
from reconciler.features.planning.line import Line
from reconciler.features.planning.look import Look
from reconciler.features.planning.signs import Signs
from reconciler.features.planning.timeline import Timeline, timeline
from reconciler.report import safe

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
    groups = [(one, [shown[node] for node in one.nodes if node in shown]) for one in calendars]
    groups = [(one, members) for one, members in groups if members]
    room = min(max(map(cell_len, map(safe.line, shown)), default=0) + 2, look.width // _SHARE, _NAME + 2)
    room = max(room, len("(windows)") + 1)
    line = timeline(look.now, _needed(cases, until), until, look.width - room - 1, look.zone)
    names = short_names(shown, room - 2, look.cut)
    rows = [Line(f"{'':{room}} {line.axis()}".rstrip())]
    used: set[str] = set()
    for calendar, members in groups:
        cells = _calendar_cells(calendar, line, signs)
        used.update(cells)
        label = shortened(f"({_named(calendar)})", room, look.cut)
        rows.append(Line(f"{padded(label, room)} {''.join(cells)}".rstrip()))
        for case in members:
            cells = _case_cells(case, line, signs)
            used.update(cells)
            missed = case.status is Status.MISSED
            label = padded(f"{signs.missed if missed else ' '} {names[case.node]}", room)
            rows.append(Line(f"{label} {''.join(cells)}".rstrip(), missed))
    return [*rows, *_legend(used, [one for one, _ in groups], line, look, signs)]


def _needed(cases: Iterable[PlannedCase], until: datetime) -> datetime:
    """Return the last moment that the chart has to show."""
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
    return min(max(moments, default=until), until)


def _calendar_cells(calendar: SharedCalendar, line: Timeline, signs: Signs) -> list[str]:
    cells = [signs.closed] * line.columns
    for closure in calendar.closures:
        _paint(cells, line.cells(closure.start, closure.end or FOREVER), signs.freeze)
    # A column in which a drain may start at some time is open.
    for opening in calendar.openings:
        _paint(cells, line.cells(opening.start, opening.end or FOREVER), signs.window)
    return cells


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
    for moment, sign in _marks(case, signs):
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


def _marks(case: PlannedCase, signs: Signs) -> Iterator[tuple[datetime | None, str]]:
    """Yield the moments that still matter; a later one of the same column covers an earlier one."""
    if case.status is not Status.REPORTED:
        yield case.not_before, signs.platform
    if not case.begun:
        yield case.schedule.latest_start, signs.latest


def _paint(cells: list[str], columns: range, sign: str) -> None:
    for column in columns:
        cells[column] = sign


def _put(cells: list[str], column: int, sign: str) -> None:
    if 0 <= column < len(cells):
        cells[column] = sign


def _named(calendar: SharedCalendar) -> str:
    """Return the names of the windows that open in the time of the look ahead."""
    names = [name for one in calendar.openings for name in safe.line(one.window).split(", ")]
    return ", ".join(dict.fromkeys(names)) or "no window opens"


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
    words = [f"{sign} {meaning}" for sign, meaning in meanings if sign in used]
    yield from (Line(text) for text in _joined(words, look.width))
    found = dict.fromkeys(one for each in calendars for one in each.closures)
    frozen = sorted(found, key=lambda closure: closure.start)
    for closure in frozen[:_FREEZES]:
        yield from (Line(text) for text in wrap(_freeze(closure, look, signs), look.width))
    if len(frozen) > _FREEZES:
        yield Line(f"{signs.freeze} not allowed: {len(frozen) - _FREEZES} more times")
    change = line.clock_change()
    if change is not None:
        moment, before, after = change
        yield Line(f"The clocks change on {look.moment(moment)}, from {before} to {after}.")


def _joined(words: Iterable[str], width: int) -> Iterator[str]:
    """Yield the words in lines; what belongs together stays on one line."""
    text = ""
    for word in words:
        if text and len(text) + 3 + len(word) > width:
            yield text
            text = ""
        text = f"{text}   {word}" if text else word
    if text:
        yield text


def _freeze(closure: Closure, look: Look, signs: Signs) -> str:
    reason = f" ({closure.reason})" if closure.reason else ""
    start = f" from {look.moment(closure.start)}" if look.now < closure.start else ""
    end = f" until {look.moment(closure.end)}" if closure.end is not None else ", without an end"
    return safe.line(f"{signs.freeze} not allowed: {closure.name}{reason}{start}{end}")
