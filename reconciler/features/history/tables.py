"""Rows of the history, one for each case, as a table for people and as CSV."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from reconciler import __version__
from reconciler.calendar.values import format_duration
from reconciler.features.history.summary import Summary, between
from reconciler.model.ended_case import EndedCase, to_fields
from reconciler.report.rows import Table
from reconciler.report.text import shown
from reconciler.report.values import Document, moment_value


def minute(moment: datetime) -> str:
    """Return a moment (aware) as a minute in UTC, for a cell."""
    return moment.astimezone(ZoneInfo("UTC")).strftime("%Y-%m-%d %H:%M")


def _length(length: timedelta | None) -> str:
    return "" if length is None else format_duration(length)


def _pods(case: EndedCase) -> str:
    moved = "-" if case.pods_moved is None else case.pods_moved
    left = "-" if case.pods_left is None else case.pods_left
    return "" if case.pods_moved is None and case.pods_left is None else f"{moved} ({left})"


CASES: Table[EndedCase] = Table(
    (
        ("ended (UTC)", lambda case: minute(case.times.ended)),
        ("node", lambda case: case.place.node),
        ("outcome", lambda case: case.outcome.value),
        ("in time", lambda case: case.outcome.in_time.value),
        ("kind", lambda case: case.kind),
        ("pool", lambda case: case.place.pool),
        ("drain", lambda case: _length(between(case.times.started, case.times.drained))),
        ("pods (left)", _pods),
    ),
    3,
    lambda case: "" if case.outcome.good else case.why,
    to_fields,
)

_CASE_KEYS = (
    *("ended", "node", "outcome", "inTime", "kind", "pool", "zone", "cluster", "notBefore", "announced"),
    *("planned", "started", "drained", "gone", "uncordoned", "podsMoved", "podsLeft", "why", "people"),
    *("sources", "uid", "caseStart"),
)


def case_document(summary: Summary, node: str | None) -> Document:
    """Return the cases as plain values, each with the fields of its line. `node`: only of this one."""
    return {
        "version": "v1",
        "program": __version__,
        "at": moment_value(summary.at),
        "since": moment_value(summary.since),
        "node": node,
        "cases": [to_fields(case) for case in summary.cases],
        **summary.read,
    }


def cases_as_csv(summary: Summary) -> str:
    """Return the cases as CSV."""
    return CASES.csv(summary.cases, _CASE_KEYS)


def cases_as_text(summary: Summary, width: int | None = None) -> str:
    """Return the cases as a table, the latest end last; None: lines have no limit."""
    lines = CASES.lines(summary.cases, width) if summary.cases else [summary.headline]
    return shown(lines, ZoneInfo("UTC"), width)
