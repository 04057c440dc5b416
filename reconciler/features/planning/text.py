"""What will start when, as text for a terminal or a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from textwrap import wrap
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.calendar.formatting import format_local, in_zone
from reconciler.calendar.values import format_duration
from reconciler.features.planning.cases import PlanAhead, Status
from reconciler.features.planning.chart import chart
from reconciler.features.planning.line import Line
from reconciler.features.planning.look import Look
from reconciler.features.planning.signs import BLOCKS, Signs
from reconciler.features.planning.table import NARROW, table
from reconciler.model.moments import to_text
from reconciler.report import safe
from reconciler.report.values import unseen_line, unseen_value
from reconciler.settings.schema import Mode

_COUNTED = {
    Status.MISSED: "will be missed",
    Status.AT_RISK: "at risk",
    Status.STARTED: "started",
    Status.PLANNED: "planned",
    Status.WAITING: "without a known start",
    Status.REPORTED: "only reported",
}


class Screen(Struct, frozen=True):
    """What the text is for: so many columns, and lines if they are limited, with these signs."""

    columns: int = NARROW
    lines: int | None = None
    signs: Signs = BLOCKS


def as_lines(ahead: PlanAhead, screen: Screen) -> list[Line]:
    """Return the table and the chart, with as many cases as the screen has lines for, but at least one.

    On a screen with fewer than 80 columns there is no chart.
    """
    count = len(ahead.cases) if screen.lines is None else min(len(ahead.cases), screen.lines)
    lines = _lines(ahead, screen, count)
    while screen.lines is not None and count > 1 and len(lines) > screen.lines:
        count -= 1
        lines = _lines(ahead, screen, count)
    return lines


def _lines(ahead: PlanAhead, screen: Screen, count: int) -> list[Line]:
    zone = ZoneInfo(ahead.plan.time_zone)
    look = Look(ahead.plan.now, zone, max(screen.columns, 40), screen.signs.cut)
    shown = ahead.cases[:count]
    lines = [*_folded(_head(ahead), look), *_folded(_notes(ahead), look)]
    if not shown:
        return [*lines, Line(), *_folded(_nothing(ahead), look)]
    lines += [Line(), *table(shown, look)]
    lines += _folded(_rest(ahead, count), look)
    if look.width >= NARROW:
        lines += [Line(), *chart(shown, ahead.calendars, ahead.until, look, screen.signs)]
    return lines


def _head(ahead: PlanAhead) -> Iterator[str]:
    zone = ZoneInfo(ahead.plan.time_zone)
    now = format_local(ahead.plan.now.replace(second=0, microsecond=0), zone)
    yield f"{now}, mode {ahead.plan.mode}, the next {format_duration(ahead.until - ahead.plan.now)}"
    if ahead.plan.mode == Mode.OBSERVE and ahead.cases:
        yield "nothing of this starts in mode Observe; mode Enforce would start it"
    counted = Counter(one.status for one in ahead.cases)
    parts = [f"{counted[status]} {word}" for status, word in _COUNTED.items() if counted[status]]
    if parts:
        cases = "1 case" if len(ahead.cases) == 1 else f"{len(ahead.cases)} cases"
        yield f"{cases}: {', '.join(parts)}"


def _notes(ahead: PlanAhead) -> Iterator[str]:
    yield from (f"note: {note}" for note in ahead.plan.notes)
    yield from (f"could not see: {unseen_line(unseen_value(one))}" for one in ahead.plan.unseen)


def _nothing(ahead: PlanAhead) -> Iterator[str]:
    yield "No case: nothing is planned to start."
    yield ahead.openness
    yield from _later(ahead)


def _rest(ahead: PlanAhead, count: int) -> Iterator[str]:
    hidden = ahead.cases[count:]
    if hidden:
        yield f"and {len(hidden)} more; --all shows them"
    yield from _later(ahead)


def _later(ahead: PlanAhead) -> Iterator[str]:
    if ahead.later:
        first = f", the first on {to_text(ahead.later[0].first)}" if ahead.later[0].first else ""
        missed = sum(one.status is Status.MISSED for one in ahead.later)
        lost = f", {missed} of them will be missed" if missed else ""
        yield f"{len(ahead.later)} later{first}{lost}; a longer --until shows them"


def _folded(texts: Iterable[str], look: Look) -> Iterator[Line]:
    """Yield the texts in lines that the screen has columns for; moments are in the zone of the look."""
    for text in texts:
        words = safe.line(in_zone(text, look.zone, named=False))
        for part in wrap(
            words, look.width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        ):
            yield Line(part)
