"""Rows of several columns, as a table for people and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct

from reconciler.report import safe
from reconciler.report.lines import padded, shortened

Row = TypeVar("Row")

_CELL = 32
"""Columns of a cell on a terminal; a longer text is shortened in its middle."""


def minute(moment: datetime | None) -> str:
    """Return a moment (aware) as a minute in UTC for a cell, empty if it is not known."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M") if moment is not None else ""


def second(moment: datetime) -> str:
    """Return a moment (aware) as a second in UTC for a cell."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


class Table(Struct, Generic[Row], frozen=True):
    """How rows are shown.

    `columns` have a heading and the text of a row; they stand side by side where there is room, otherwise the
    first `leading` of them are a line, and the others a line below it. `because` is a sentence about a row,
    below it, or empty. `fields` are the keys and values of a row for programs: a value of several is a list,
    and one of many parts a mapping with `words`.
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
    if isinstance(value, dict):
        return str(value.get("words", ""))
    return "" if value is None else str(value)


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(padded(cell, wide) for cell, wide in zip(cells, widths, strict=False)).rstrip()
