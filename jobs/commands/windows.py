"""`reconciler windows`: whether a drain may start at a moment, the next openings, and the next fortnight."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import click
from msgspec import Struct

from jobs import options
from jobs.runtime.environment import Target
from jobs.runtime.looks import echo_lines, screen
from jobs.runtime.output import echo, echo_for_programs, for_programs
from jobs.runtime.settings_source import SettingsInUse, SettingsSource, settings_in_use, with_calendars
from reconciler.calendar.occurrences import FOREVER
from reconciler.calendar.values import DAY_NAMES
from reconciler.calendar.windows import Calendar, Interval, NotAllowed
from reconciler.model.errors import SettingsError
from reconciler.model.values import replace
from reconciler.report import safe
from reconciler.report.lines import Line, Look, Signs, shortened
from reconciler.settings.explain import parse_at, windows_as_data, windows_as_text


@click.command("windows")
@click.argument("config", metavar=f"[{options.SOURCE_NAME}]", type=options.SETTINGS_SOURCE, required=False)
@click.option(
    "--at", help="A moment. Without an offset, it is in the time zone of the settings.  [default: now]"
)
@click.option(
    "--label", "labels", multiple=True, help="A label of the node, as key=value. Repeat it for more labels."
)
@options.cluster
@options.output
def command(
    config: SettingsSource | None, target: Target, at: str | None, labels: tuple[str, ...], output: str
) -> int:
    """Print whether a drain may start at a moment, and what is next.

    A column of the chart is open if a drain may start in it.
    """
    now = datetime.now(UTC)
    policy = settings_in_use(config, target, now)
    settings, notes = with_calendars(policy.settings, target, now)
    for note in notes:
        echo(f"warning: {note}", err=True)
    return windows(replace(policy, settings=settings), at=at, labels=labels, output=output)


def windows(policy: SettingsInUse, *, at: str | None, labels: tuple[str, ...], output: str) -> int:
    """Print whether a drain may start at a moment on a node with these labels, and the next openings."""
    settings = policy.settings
    try:
        moment = parse_at(at, settings) if at else datetime.now(UTC)
    except ValueError as error:
        raise SettingsError((f"--at: {error}",)) from error
    chosen = dict(label.partition("=")[::2] for label in labels) if labels else None
    echo_lines(policy.first_lines(output))
    if for_programs(output):
        document = policy.named_in(windows_as_data(settings, moment, chosen))
        echo_for_programs(json.dumps(document, indent=2), output)
    else:
        echo(windows_as_text(settings, moment, chosen), nl=False)
        seen = screen(everything=True)
        look = Look(moment, settings.time_zone, seen.columns, seen.signs.cut)
        echo_lines([Line(), *fortnight(settings.calendar, chosen, look, seen.signs)])
    return 0


DAYS = 14
_DAY = timedelta(days=1)
_SLICE = timedelta(minutes=15)
"""The clocks change at full quarters of an hour, and by full quarters."""

_LABEL = len("Mon 11-23 ")
_HALF_HOURS = 72
"""From so many columns on, there is one for each half hour, and room for names behind it."""

_LEGEND = 12
"""How many windows and freezes the legend describes."""


class _Spans(Struct, frozen=True):
    """When a drain may start, and when it may not although a window is open or none is needed."""

    opened: list[tuple[datetime, datetime]]
    frozen: list[tuple[datetime, datetime]]


def fortnight(calendar: Calendar, labels: Mapping[str, str] | None, look: Look, signs: Signs) -> list[Line]:
    """Return the chart from the day of `look.now` on, for a node with these labels; None: for all nodes.

    A column is a half hour or an hour of the wall clock. It is open if a drain may start at some time in it.
    What is over, and what the clocks skip, is empty.
    """
    today = look.now.astimezone(look.zone).date()
    until = _midnight(today + DAYS * _DAY, look.zone)
    intervals = calendar.intervals(look.now, labels, until)
    spans = _Spans(
        [
            (opening.start, opening.until)
            for opening in calendar.openings(look.now, labels, count=None, until=until)
        ],
        [
            (interval.start, interval.end or FOREVER)
            for interval in intervals
            if isinstance(interval.rule, NotAllowed)
            and (labels is not None or interval.rule.selector.selects_all)
        ],
    )
    minutes = 30 if look.width >= _HALF_HOURS else 60
    hours = "".join(f"{hour:02d}".ljust(3 * 60 // minutes) for hour in range(0, 24, 3)).rstrip()
    lines = [Line(f"The next {DAYS} days, in {look.zone.key}"), Line(" " * _LABEL + hours)]
    used: set[str] = set()
    for day in (today + number * _DAY for number in range(DAYS)):
        cells = _cells(day, minutes, spans, look, signs)
        used.update(cells)
        room = look.width - _LABEL - len(cells) - 2
        names = shortened(_names(day, intervals, look, signs), room, look.cut, head=room)
        label = f"{DAY_NAMES[day.weekday()]} {day:%m-%d} "
        lines.append(Line(f"{label}{''.join(cells)}  {names}".rstrip()))
    return [*lines, *_legend(used, intervals, today, look, signs)]


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)


def _cells(day: date, minutes: int, spans: _Spans, look: Look, signs: Signs) -> list[str]:
    """Return the signs of a day. An hour that comes twice has one column for both."""
    cells = [" "] * (24 * 60 // minutes)
    rank = {" ": 0, signs.closed: 1, signs.freeze: 2, signs.window: 3}
    moment, end = _midnight(day, look.zone), _midnight(day + _DAY, look.zone)
    while moment < end:
        following = moment + _SLICE
        if look.now < following:
            local = moment.astimezone(look.zone)
            column = (local.hour * 60 + local.minute) // minutes
            sign = signs.closed
            if _touched(spans.opened, max(moment, look.now), following):
                sign = signs.window
            elif _touched(spans.frozen, max(moment, look.now), following):
                sign = signs.freeze
            if rank[cells[column]] < rank[sign]:
                cells[column] = sign
        moment = following
    return cells


def _touched(spans: Iterable[tuple[datetime, datetime]], start: datetime, end: datetime) -> bool:
    return any(one < end and start < other for one, other in spans)


def _names(day: date, intervals: Iterable[Interval], look: Look, signs: Signs) -> str:
    """Return the names of what applies on a day, freezes first."""
    start, end = max(_midnight(day, look.zone), look.now), _midnight(day + _DAY, look.zone)
    there = [interval for interval in intervals if interval.start < end and start < (interval.end or FOREVER)]
    there.sort(key=lambda one: not isinstance(one.rule, NotAllowed))
    named = [
        f"{signs.freeze if isinstance(one.rule, NotAllowed) else signs.window} {safe.line(_title(one))}"
        for one in there
    ]
    return ", ".join(dict.fromkeys(named))


def _title(one: Interval) -> str:
    return f"{one.rule.name} ({one.said})" if one.said else one.rule.name


def _legend(
    used: set[str], intervals: Iterable[Interval], today: date, look: Look, signs: Signs
) -> Iterator[Line]:
    meanings = (
        (signs.window, "a drain may start"),
        (signs.freeze, "not allowed"),
        (signs.closed, "no window is open"),
    )
    yield Line("   ".join(f"{sign} {meaning}" for sign, meaning in meanings if sign in used))
    rules = list(dict.fromkeys(interval.rule for interval in intervals))
    for rule in rules[:_LEGEND]:
        sign = signs.freeze if isinstance(rule, NotAllowed) else signs.window
        times = str(rule.times)
        parts = [rule.name if rule.name == times else f"{rule.name}: {times}"]
        if isinstance(rule, NotAllowed):
            parts += [part for part in (rule.reason, "even at a deadline" if rule.absolute else "") if part]
        if not rule.selector.selects_all:
            parts.append(f"nodes {rule.selector}")
        yield Line(shortened(f"{sign} {', '.join(parts)}", look.width, look.cut))
    if len(rules) > _LEGEND:
        yield Line(f"and {len(rules) - _LEGEND} more")
    for day in (today + number * _DAY for number in range(DAYS)):
        length = _midnight(day + _DAY, look.zone) - _midnight(day, look.zone)
        if length != _DAY:
            hours = f"{length / timedelta(hours=1):g}"
            yield Line(f"{DAY_NAMES[day.weekday()]} {day:%m-%d} has {hours} hours: the clocks change")
