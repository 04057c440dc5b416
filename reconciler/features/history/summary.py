"""The sum of a history: how many cases ended how, in time or not, and what they cost.

It is a document for machines, and text for people: what went wrong first, then a table by kind and by pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.calendar.values import format_duration
from reconciler.model.case_outcome import ENDS, CaseResult, InTime
from reconciler.model.ended_case import EndedCase
from reconciler.model.limits import count_of
from reconciler.report import safe
from reconciler.report.text import shown
from reconciler.report.values import Document, head, keys, moment_value, plain

_ROWS = 50
"""Rows of a table, those with the most cases; the JSON output has all of them."""

_NAMED = 20
"""Missed and late nodes that are named; the JSON output has all of them."""

_NAME = 24
"""Columns of the name of a kind or a pool."""


class Spread(Struct, frozen=True):
    """The median and the worst of the lengths that are known, in seconds, and how many these are."""

    median: float
    worst: float
    known: int


class Sums(Struct, frozen=True):
    """The numbers of some cases. A share and a spread are None if nothing is known."""

    cases: int
    outcomes: Mapping[CaseResult, int]
    in_time: Mapping[InTime, int]
    node_hours_empty: float
    notice: Spread | None
    drain: Spread | None
    pods_moved: int
    pods_moved_known: int
    pods_left: int
    pods_left_known: int

    @property
    def known(self) -> int:
        """Of how many cases it is known whether they were in time."""
        return self.in_time[InTime.YES] + self.in_time[InTime.NO]

    @property
    def share_in_time(self) -> float | None:
        """The share of those that were, rounded."""
        return round(self.in_time[InTime.YES] / self.known, 4) if self.known else None


class Summary(Struct, frozen=True):
    """The cases that have ended since a moment (None: all), each once, sorted by their end.

    `lines` counts the lines that were read by what they are, and `broken` are the first of those that can't
    be read: file, number, and why. `at` is when the sum was made (UTC).
    """

    cases: tuple[EndedCase, ...]
    since: datetime | None
    at: datetime
    lines: Mapping[str, int]
    broken: tuple[Any, ...] = ()

    @property
    def struck(self) -> list[EndedCase]:
        """The cases that were missed or late."""
        return [case for case in self.cases if not case.outcome.good]

    def groups(self, name: str) -> dict[str, Sums]:
        """Return the sums by `kind` or by `pool`, sorted."""
        grouped: dict[str, list[EndedCase]] = {}
        for case in self.cases:
            grouped.setdefault(case.kind if name == "kind" else case.place.pool, []).append(case)
        return {key: sums(grouped[key]) for key in sorted(grouped)}

    @property
    def document(self) -> Document:
        """The sum as plain values."""
        document: Document = plain(
            {
                **head(self.at),
                "since": self.since,
                "from": self.cases[0].times.ended if self.cases else None,
                "to": self.cases[-1].times.ended if self.cases else None,
                "total": sums(self.cases),
                "kinds": self._grouped("kind"),
                "pools": self._grouped("pool"),
                "struck": self.struck,
                **self.read,
            }
        )
        return document

    @property
    def read(self) -> Document:
        """What was read of which lines, as plain values."""
        broken = [{"file": line.file, "line": line.number, "because": line.because} for line in self.broken]
        return {"lines": dict(self.lines), "brokenLines": broken}

    @property
    def headline(self) -> str:
        """How many cases there are, and how many of them were in time."""
        if not self.cases:
            since = moment_value(self.since)
            return f"no case has ended since {since}" if since else "no case is in the history"
        total = sums(self.cases)
        share = "it is not known of any whether it was in time"
        if total.known:
            unknown = total.in_time[InTime.UNKNOWN]
            rest = f"; not known of {unknown}" if unknown else ""
            share = f"{total.in_time[InTime.YES]} of {total.known} in time ({total.share_in_time:.0%}){rest}"
        first, last = moment_value(self.cases[0].times.ended), moment_value(self.cases[-1].times.ended)
        return f"{count_of(len(self.cases), 'case')}, ended from {first} to {last}: {share}"

    def _grouped(self, name: str) -> list[Document]:
        return [{name: key or None, **plain(group)} for key, group in self.groups(name).items()]


keys(Spread, "medianSeconds=median worstSeconds=worst known")
keys(
    Sums,
    "cases outcomes inTime shareInTime nodeHoursEmpty notice drain"
    " podsMoved podsMovedKnown podsLeft podsLeftKnown",
)
keys(
    EndedCase,
    "node=place.node zone=place.zone pool=place.pool kind? ended=times.ended outcome"
    " inTime=outcome.in_time podsLeft why",
)


def summed_up(
    cases: Iterable[EndedCase],
    since: datetime | None,
    now: datetime,
    lines: Mapping[str, int],
    broken: Iterable[Any] = (),
) -> Summary:
    """Return the sum of these cases. `lines` and `broken` say what was read of which lines."""
    ended = sorted(cases, key=lambda case: (case.times.ended, case.place.node))
    return Summary(tuple(ended), since, now, lines, tuple(broken))


def sums(cases: Sequence[EndedCase]) -> Sums:
    """Return the numbers of these cases."""
    outcomes = Counter(case.outcome for case in cases)
    in_time = Counter(case.outcome.in_time for case in cases)
    empty = [length for length in map(_empty, cases) if length is not None]
    moved = [case.pods_moved for case in cases if case.pods_moved is not None]
    left = [case.pods_left for case in cases if case.pods_left is not None]
    return Sums(
        len(cases),
        {result: outcomes[result] for result in ENDS},
        {answer: in_time[answer] for answer in InTime},
        round(sum(empty, timedelta()) / timedelta(hours=1), 2),
        # From the first sight to the date of the event.
        _spread((between(case.times.announced, case.times.not_before) for case in cases), min),
        _spread((between(case.times.started, case.times.drained) for case in cases), max),
        sum(moved),
        len(moved),
        sum(left),
        len(left),
    )


def _spread(lengths: Iterable[timedelta | None], worst: Callable[[Iterable[float]], float]) -> Spread | None:
    known = [length.total_seconds() for length in lengths if length is not None]
    return Spread(median(known), worst(known), len(known)) if known else None


def _empty(case: EndedCase) -> timedelta | None:
    """Return for how long the node could run no pods: from the end of its drain, or from its start."""
    return between(case.times.drained or case.times.started, case.times.uncordoned)


def between(start: datetime | None, end: datetime | None) -> timedelta | None:
    """Return the time between two moments, at least 0: a clock may have gone back. None: not known."""
    return None if start is None or end is None else max(end - start, timedelta())


_MEANING = (
    "in time: drained before its date and before the platform struck, of drained, late and missed",
    "node-hours: from the end of the drain to the uncordon",
    "notice: from the first sight of an event to its date, as median and (worst)",
    "drain: from its start to its end, as median and (worst)",
    "pods: moved by drains, and (left) on the node",
)


def as_text(summary: Summary, width: int | None = None) -> str:
    """Return the sum as text, at most `width` columns wide; None: lines have no limit.

    A table that is wider goes on below itself. Moments are in UTC.
    """
    cases, read = summary.cases, summary.lines
    lines = [summary.headline]
    clusters = sorted({case.place.cluster for case in cases} - {""})
    if clusters:
        lines.append(f"{'cluster' if len(clusters) == 1 else 'clusters'} {', '.join(clusters)}")
    for number, words in (
        (read["repeated"], "not counted: {} about a case that has a later line"),
        (read["older"], "not counted: {} about older cases"),
        (read["broken"], "not readable: {}, see the messages on stderr"),
    ):
        lines += [words.format(count_of(number, "line"))] if number else []

    struck = summary.struck
    lines += [""] if struck else []
    for case in struck[:_NAMED]:
        pool = f"pool {case.place.pool}" if case.place.pool else ""
        what = ", ".join(part for part in (case.kind, pool) if part)
        lines.append(f"  {case.outcome:<9} {case.place.node}{f' ({what})' if what else ''}: {case.why}")
    if len(struck) > _NAMED:
        lines.append(f"  and {len(struck) - _NAMED} more; --output json has all of them")

    for heading in ("kind", "pool") if cases else ():
        groups = summary.groups(heading)
        most = set(sorted(groups, key=lambda key: -groups[key].cases)[:_ROWS])
        rows = [(_name(key), group) for key, group in groups.items() if key in most]
        lines += _table(heading, [*rows, ("all", sums(cases))], width)
        if len(groups) > len(rows):
            lines.append(f"and {len(groups) - len(rows)} more; --output json has all of them")
    lines += ["", *_MEANING] if cases else []
    return shown(lines, ZoneInfo("UTC"), width)


def _table(name: str, rows: Sequence[tuple[str, Sums]], width: int | None) -> Iterator[str]:
    """Yield the rows under as many columns as the width has room for, and again for the other columns."""
    heads = [name, *(safe.line(label) for label, _ in rows)]
    first = max(map(len, heads))
    block, used = list(heads), first
    columns = [[head, *(cell(group) for _, group in rows)] for head, cell in _COLUMNS]
    for number, column in enumerate(columns):
        wide = max(map(len, column))
        if number and width is not None and used + 2 + wide > width:
            yield from ("", *block)
            block, used = list(heads), first
        block = [f"{line:<{first}}  {cell:>{wide}}" for line, cell in zip(block, column, strict=True)]
        used += 2 + wide
    yield from ("", *block)


def _name(name: str) -> str:
    text = name or "unknown"
    return text if len(text) <= _NAME else f"{text[: _NAME - 1]}…"


def _lengths(spread: Spread | None) -> str:
    return f"{_short(spread.median)} ({_short(spread.worst)})" if spread is not None else "-"


def _short(seconds: float) -> str:
    """Return a duration in its two largest units."""
    for unit, above in ((60, 3600), (3600, 86400)):
        if seconds >= above:
            seconds -= seconds % unit
    return format_duration(timedelta(seconds=seconds))


def _pods(group: Sums) -> str:
    moved = group.pods_moved if group.pods_moved_known else "-"
    return f"{moved} ({group.pods_left if group.pods_left_known else '-'})"


def _ended(result: CaseResult) -> tuple[str, Callable[[Sums], str]]:
    return result.value, lambda group: str(group.outcomes[result])


_COLUMNS: tuple[tuple[str, Callable[[Sums], str]], ...] = (
    ("cases", lambda group: str(group.cases)),
    ("in time", lambda group: f"{group.in_time[InTime.YES]}/{group.known}" if group.known else "-"),
    *map(_ended, ENDS),
    ("node-hours", lambda group: f"{group.node_hours_empty:.1f}"),
    ("notice (worst)", lambda group: _lengths(group.notice)),
    ("drain (worst)", lambda group: _lengths(group.drain)),
    ("pods (left)", _pods),
)
