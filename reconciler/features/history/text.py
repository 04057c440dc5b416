"""The sum of a history as plain text: what went wrong first, then a table by kind and by pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.calendar.values import format_duration
from reconciler.model.case_outcome import ENDS
from reconciler.report import safe
from reconciler.report.text import shown
from reconciler.report.values import Document

_ROWS = 50
"""Rows of a table, those with the most cases; the JSON output has all of them."""

_NAMED = 20
"""Missed and late nodes that are named; the JSON output has all of them."""

_NAME = 24
"""Columns of the name of a kind or a pool."""

_MEANING = (
    "in time: drained before its date and before the platform struck, of drained, late and missed",
    "node-hours: from the end of the drain to the uncordon",
    "notice: from the first sight of an event to its date, as median and (worst)",
    "drain: from its start to its end, as median and (worst)",
    "pods: moved by drains, and (left) on the node",
)


class _Column(Struct, frozen=True):
    head: str
    cell: Callable[[Document], str]


def as_text(document: Document, width: int | None = None) -> str:
    """Return the sum as text, at most `width` columns wide; None: lines have no limit.

    A table that is wider goes on below itself. Moments are in UTC.
    """
    lines = [_headline(document), *_lines_read(document["lines"])]
    if document["total"]["cases"]:
        lines += [*_struck(document), *_tables(document, width), "", *_MEANING]
    return shown(lines, ZoneInfo("UTC"), width)


def _headline(document: Document) -> str:
    total, since = document["total"], document["since"]
    if not total["cases"]:
        return f"no case has ended since {since}" if since else "no case is in the history"
    said = "1 case" if total["cases"] == 1 else f"{total['cases']} cases"
    return f"{said}, ended from {document['from']} to {document['to']}: {_share(total)}"


def _share(total: Document) -> str:
    known = total["inTime"]["yes"] + total["inTime"]["no"]
    if not known:
        return "it is not known of any whether it was in time"
    unknown = total["inTime"]["unknown"]
    rest = f"; not known of {unknown}" if unknown else ""
    return f"{total['inTime']['yes']} of {known} in time ({total['shareInTime']:.0%}){rest}"


def _lines_read(lines: Document) -> Iterator[str]:
    if lines["repeated"]:
        yield f"not counted: {_lines(lines['repeated'])} about a case that has a later line"
    if lines["older"]:
        yield f"not counted: {_lines(lines['older'])} about older cases"
    if lines["broken"]:
        yield f"not readable: {_lines(lines['broken'])}, see the messages on stderr"


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def _struck(document: Document) -> Iterator[str]:
    found = document["struck"]
    if not found:
        return
    yield ""
    for one in islice(found, _NAMED):
        what = ", ".join(part for part in (one["kind"], f"pool {one['pool']}" if one["pool"] else "") if part)
        yield f"  {one['outcome']:<9} {one['node']}{f' ({what})' if what else ''}: {one['why']}"
    if len(found) > _NAMED:
        yield f"  and {len(found) - _NAMED} more; --output json has all of them"


def _tables(document: Document, width: int | None) -> Iterator[str]:
    total = document["total"]
    for name in ("kind", "pool"):
        found = document[f"{name}s"]
        most = {one[name] for one in sorted(found, key=lambda one: -one["cases"])[:_ROWS]}
        rows = [(_name(one[name]), one) for one in found if one[name] in most]
        yield from _table(name, [*rows, ("all", total)], width)
        if len(found) > len(rows):
            yield f"and {len(found) - len(rows)} more; --output json has all of them"


def _table(name: str, rows: Sequence[tuple[str, Document]], width: int | None) -> Iterator[str]:
    """Yield the rows under as many columns as the width has room for, and again for the other columns."""
    names = [safe.line(row[0]) for row in rows]
    first = max(len(name), *map(len, names))
    left = list(_COLUMNS)
    while left:
        columns: list[tuple[str, list[str], int]] = []
        used = first
        while left:
            cells = [left[0].cell(sums) for _, sums in rows]
            wide = max(len(left[0].head), *map(len, cells))
            if columns and width is not None and used + 2 + wide > width:
                break
            columns.append((left.pop(0).head, cells, wide))
            used += 2 + wide
        yield ""
        yield f"{name:<{first}}" + "".join(f"  {head:>{wide}}" for head, _, wide in columns)
        for number, each in enumerate(names):
            yield f"{each:<{first}}" + "".join(f"  {found[number]:>{wide}}" for _, found, wide in columns)


def _name(name: str | None) -> str:
    shown = name or "unknown"
    return shown if len(shown) <= _NAME else f"{shown[: _NAME - 1]}…"


def _in_time(row: Document) -> str:
    known = row["inTime"]["yes"] + row["inTime"]["no"]
    return f"{row['inTime']['yes']}/{known}" if known else "-"


def _spread(spread: Document | None) -> str:
    if spread is None:
        return "-"
    return f"{_short(spread['medianSeconds'])} ({_short(spread['worstSeconds'])})"


def _short(seconds: float) -> str:
    """Return a duration in its two largest units."""
    for unit, above in ((60, 3600), (3600, 86400)):
        if seconds >= above:
            seconds -= seconds % unit
    return format_duration(timedelta(seconds=seconds))


def _pods(row: Document) -> str:
    moved = row["podsMoved"] if row["podsMovedKnown"] else "-"
    return f"{moved} ({row['podsLeft'] if row['podsLeftKnown'] else '-'})"


def _outcome(name: str) -> Callable[[Document], str]:
    return lambda row: str(row["outcomes"][name])


_COLUMNS = (
    _Column("cases", lambda row: str(row["cases"])),
    _Column("in time", _in_time),
    *(_Column(one.value, _outcome(one.value)) for one in ENDS),
    _Column("node-hours", lambda row: f"{row['nodeHoursEmpty']:.1f}"),
    _Column("notice (worst)", lambda row: _spread(row["notice"])),
    _Column("drain (worst)", lambda row: _spread(row["drain"])),
    _Column("pods (left)", _pods),
)
