"""Rows of the history, one for each case, as a table for people and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler import __version__
from reconciler.calendar.values import format_duration
from reconciler.features.history.summary import Summary, between
from reconciler.model.ended_case import EndedCase, to_fields
from reconciler.report import safe
from reconciler.report.lines import padded, shortened
from reconciler.report.text import shown
from reconciler.report.values import Document, moment_value

Row = TypeVar("Row")

_CELL = 32
"""Columns of a cell on a terminal; a longer text is shortened in its middle."""


class Table(Struct, Generic[Row], frozen=True):
    """How rows are shown.

    `columns` have a heading and the text of a row; they stand side by side where there is room, otherwise the
    first `leading` of them are a line, and the others a line below it. `because` is a sentence about a row,
    below it, or empty. `fields` are the keys and values of a row for programs: a value of several is a list.
    """

    columns: tuple[tuple[str, Callable[[Row], str]], ...]
    leading: int
    because: Callable[[Row], str]
    fields: Callable[[Row], dict[str, Any]]

    def lines(self, rows: Sequence[Row], width: int | None) -> list[str]:
        """Return the rows as lines that fit into `width` columns; None: without a limit."""
        cells = [[safe.line(cell(row)) or "-" for _, cell in self.columns] for row in rows]
        if width is not None:
            cells = [[shortened(cell, _CELL, "…") for cell in line] for line in cells]
        heads = [head for head, _ in self.columns]
        wide = _widths([heads, *cells])
        fits = width is None or sum(wide) + 2 * (len(wide) - 1) <= width
        count = len(heads) if fits else self.leading
        lines = [_joined(heads[:count], wide)]
        for row, line in zip(rows, cells, strict=True):
            lines.append(_joined(line[:count], wide))
            rest = zip(heads[count:], line[count:], strict=True)
            if text := ", ".join(f"{head} {cell}" for head, cell in rest if cell != "-"):
                lines.append(f"    {text}")
            if because := self.because(row):
                lines.append(f"    {because}")
        return lines

    def csv(self, rows: Iterable[Row], keys: Sequence[str]) -> str:
        """Return the rows as CSV (RFC 4180, with line feeds), with these keys as the heading."""
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(keys)
        for row in rows:
            fields = self.fields(row)
            writer.writerow([safe.csv_cell(_text(fields.get(key))) for key in keys])
        return written.getvalue()


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(map(_text, value))
    return "" if value is None else str(value)


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(padded(cell, wide) for cell, wide in zip(cells, widths, strict=False)).rstrip()


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
