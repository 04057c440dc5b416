"""The plan as a document for machines, and as text: a table, and a chart below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from zoneinfo import ZoneInfo

from rich.cells import cell_len

from reconciler.calendar.values import format_duration, format_local, time_left, with_time_left
from reconciler.calendar.windows import Closure, Opening
from reconciler.features.planning.chart import chart
from reconciler.model.limits import count_of
from reconciler.model.moments import to_text
from reconciler.model.schedule import CaseForecast
from reconciler.report import safe
from reconciler.report.ahead import PlanAhead, PlannedCase, SharedCalendar, Status
from reconciler.report.document import heading
from reconciler.report.lines import (
    NARROW,
    Line,
    Look,
    Screen,
    folded,
    padded,
    short_names,
    shortened,
    wrapped,
)
from reconciler.report.moves import pod_lines
from reconciler.report.people import alarms, for_all, for_any
from reconciler.report.values import Document, keys, plain, unseen_lines
from reconciler.settings.schema import Mode

keys(PlannedCase, "name=node zone pool status standing=word kinds notBefore schedule unguarded")
keys(SharedCalendar, "nodes openings freezes=closures")
keys(Opening, "start end window")
keys(Closure, "start end name reason absolute")

_WITH_DATE = 100
_WITH_WINDOW = 120
_EVENT = 14
_WINDOW = 30
_NODE = 12
"""The least columns for a node's name."""

_INDENT = " " * 10

_LOUD = (Status.MISSED, Status.STOPPED, Status.UNGUARDED, Status.AT_RISK)
_ALARMS = (Status.MISSED, Status.STOPPED, Status.UNGUARDED)


def ahead_document(ahead: PlanAhead) -> Document:
    """Return the look ahead as plain values; moments are RFC 3339 in UTC."""
    plan = ahead.plan
    document: Document = plain(
        {
            **heading(plan),
            "until": ahead.until,
            "notes": plan.notes,
            "unseen": plan.unseen,
            "openness": ahead.openness,
            "namespace": ahead.pods and ahead.pods.namespace,
            "pods": ahead.pods and ahead.pods.moves,
            "cases": ahead.cases,
            "later": ahead.later,
            "calendars": ahead.calendars,
        }
    )
    return document


def table(cases: Sequence[PlannedCase], look: Look) -> list[Line]:
    """Return the rows of the cases, with a head; a case that needs words has them below its row."""
    reasons = _reasons(cases, look)
    if look.width < NARROW:
        lines = []
        for case, because in zip(cases, reasons, strict=True):
            alarm = case.status in _ALARMS
            state, name, event, start, latest, back = _cells(case, look)
            lines.append(Line(f"{padded(state, len(_INDENT))}{name}", alarm))
            parts = f"{event}, start {start}, latest start {latest}, back {back}"
            lines += [Line(f"{_INDENT}{text}", alarm) for text in wrapped(parts, look.width - len(_INDENT))]
            lines += because
        return lines
    heads = ["STATE".ljust(len(_INDENT) - 2), "NODE", "EVENT", "START", "LATEST START", "BACK"]
    rows = [_cells(case, look) for case in cases]
    if look.width >= _WITH_DATE:
        heads.append("NOT BEFORE")
        for case, row in zip(cases, rows, strict=True):
            row.append(look.moment(case.not_before) if case.not_before is not None else "none")
    if look.width >= _WITH_WINDOW:
        heads.append("WINDOW")
        for case, row in zip(cases, rows, strict=True):
            row.append(shortened(case.schedule.window or "none", _WINDOW, look.cut))
    rest = sum(_widest(heads, rows, column) + 2 for column in range(len(heads)) if column != 1)
    names = short_names((case.node for case in cases), max(look.width - rest, _NODE), look.cut)
    for case, row in zip(cases, rows, strict=True):
        row[1] = names[case.node]
    widths = [_widest(heads, rows, column) for column in range(len(heads))]
    lines = [Line(_row(heads, widths))]
    for case, row, because in zip(cases, rows, reasons, strict=True):
        lines += [Line(_row(row, widths), case.status in _ALARMS), *because]
    return lines


def _cells(case: PlannedCase, look: Look) -> list[str]:
    """Return the state, the node, the event, the start, the latest start, and when the node is back."""
    schedule = case.schedule
    state = case.word.upper() if case.status in _LOUD else case.word
    if case.status is Status.MISSED:
        state = "MISSED"

    starts = {Status.MISSED: "never", Status.UNGUARDED: "never", Status.REPORTED: "none"}
    start = starts.get(case.status, "unknown")
    if schedule.planned_start is not None:
        start = "now" if schedule.planned_start == look.now else look.moment(schedule.planned_start)

    latest = "none"
    if schedule.latest_start is not None:
        # Of a node that is announced late, it was over before anybody could know it.
        passed = schedule.latest_start < look.now and not case.begun
        latest = "passed" if passed else look.moment(schedule.latest_start)

    back = look.moment(schedule.ends) if schedule.ends is not None else "not known"
    event = shortened(", ".join(case.kinds) or "unknown", _EVENT, look.cut)
    back = back if schedule.comes_back else "does not come back"
    return [state, safe.line(case.node), event, start, latest, back]


def _reasons(cases: Sequence[PlannedCase], look: Look) -> list[list[Line]]:
    """Return for each case the lines that say why it is missed, or has no start, and how it ends.

    Cases that follow each other and have the same reason share it: the last one has it.
    """
    room = look.width - len(_INDENT)

    def said(case: PlannedCase) -> tuple[Status, str, str, str]:
        offer = for_any(case.node, case.schedule.offer)
        return case.status, case.forecast_words, offer, case.schedule.ending

    reasons: list[list[Line]] = []
    for (status, forecast, offer, ending), sharing in groupby(cases, said):
        names, lines = [case.node for case in sharing], []
        for words in (f"{forecast}{for_all(names, offer)}", ending):
            text = look.line(with_time_left(words, look.now))
            parts = wrapped(text, room)
            alarm = status in _ALARMS and words != ending
            lines += [Line(f"{_INDENT}{part}", alarm) for part in parts]
        reasons += [*([] for _ in names[1:]), lines]
    return reasons


def _widest(heads: Sequence[str], rows: Iterable[Sequence[str]], column: int) -> int:
    return max(cell_len(heads[column]), *(cell_len(row[column]) for row in rows), 0)


def _row(cells: Iterable[str], widths: Iterable[int]) -> str:
    pairs = zip(cells, widths, strict=True)
    return "  ".join(padded(cell, width) for cell, width in pairs).rstrip()


_COUNTED = {
    "will be missed": "will be missed",
    "missed": "missed",
    "unguarded": "unguarded",
    "blocked": "blocked",
    "at risk": "at risk",
    "held": "held by a person",
    "draining": "draining",
    "drained": "drained",
    "planned": "planned",
    "waits": "waiting, without a known start",
    "reported": "only reported",
}
"""How many cases there are of each word."""


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
    zone = ZoneInfo(ahead.plan.settings.time_zone)
    look = Look(ahead.plan.now, zone, max(screen.columns, 40), screen.signs.cut)
    shown, hidden = ahead.cases[:count], ahead.cases[count:]
    warned = list(alarms(ahead.plan))
    notes = [*(f"note: {note}" for note in ahead.plan.notes), *unseen_lines(ahead.plan.unseen)]
    lines = [
        *_text_folded(_head(ahead), look),
        *_text_folded(warned, look, alarm=True),
        *_text_folded(notes, look),
    ]
    of_pods = [Line()] if ahead.pods is not None else []
    for line in pod_lines(ahead.pods, look.now) if ahead.pods is not None else ():
        of_pods += _text_folded([line.text], look, alarm=line.alarm)

    later = []
    if ahead.later:
        first = f", the first on {to_text(ahead.later[0].first)}" if ahead.later[0].first else ""
        missed = sum(case.status is Status.MISSED for case in ahead.later)
        lost = f", {missed} of them will be missed" if missed else ""
        later.append(f"{len(ahead.later)} later{first}{lost}; a longer --until shows them")
    if not shown:
        none = "Nothing is planned to start in this time."
        none = none if warned else "No case: nothing is planned to start."
        return [*lines, *of_pods, Line(), *_text_folded([none, ahead.openness, *later], look)]

    lines += [*of_pods, Line(), *table(shown, look)]
    more = [f"and {len(hidden)} more; --all shows them"] if hidden else []
    lines += _text_folded([*more, *later], look)
    # Who asks for pods gets these instead of the chart.
    if look.width >= NARROW and not of_pods:
        lines += [Line(), *chart(shown, ahead.calendars, ahead.until, look, screen.signs)]
    return lines


def _head(ahead: PlanAhead) -> Iterator[str]:
    zone = ZoneInfo(ahead.plan.settings.time_zone)
    now = format_local(ahead.plan.now.replace(second=0, microsecond=0), zone)
    yield f"{now}, mode {ahead.plan.mode}, the next {format_duration(ahead.until - ahead.plan.now)}"
    if ahead.plan.mode == Mode.OBSERVE and ahead.cases and not ahead.plan.settings.rejected:
        yield "nothing of this starts in mode Observe; mode Enforce would start it"
    counted = Counter(case.word for case in ahead.cases)
    parts = [f"{counted[word]} {words}" for word, words in _COUNTED.items() if counted[word]]
    if parts:
        yield f"{count_of(len(ahead.cases), 'case')}: {', '.join(parts)}"

    # Which drain starts next, and which maintenance comes next, with how far away each is.
    at_once = ahead.plan.now
    starts = ((case.schedule.planned_start, case, "drain") for case in ahead.cases if not case.begun)
    strikes = ((case.not_before, case, ", ".join(case.kinds)) for case in ahead.cases)
    coming = []
    for moments in (starts, strikes):
        later = [(at, case.node, what) for at, case, what in moments if at is not None and at > at_once]
        coming += [min(later)] if later else []
    words = "; ".join(
        f"{what} of {node} {time_left(at, at_once)}, at {to_text(at)}" for at, node, what in sorted(coming)
    )
    if words:
        yield f"next: {words}"

    unknown = sum(case.schedule.forecast is CaseForecast.UNKNOWN for case in ahead.cases)
    if unknown:
        yield f"of {unknown} it is not known whether the drain can end"


def _text_folded(texts: Iterable[str], look: Look, *, alarm: bool = False) -> Iterator[Line]:
    """Yield the texts in lines that the screen has columns for; moments are in the zone of the look."""
    for text in texts:
        for part in folded(look.line(text), look.width):
            yield Line(part, alarm)
