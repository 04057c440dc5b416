"""Unions and differences of named spans of time. They are lazy, because spans may go on forever."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct

from reconciler.calendar.occurrences import FOREVER, Run


class Span(Struct, frozen=True):
    """A run, and the names of the rules that it comes from, in the order in which they start."""

    run: Run
    names: tuple[str, ...] = ()


def union(sources: Iterable[Iterable[Span]], horizon: datetime) -> Iterator[Span]:
    """Yield the time in which at least one source applies. Spans that overlap or touch are joined.

    Each source is sorted by start. A span that continues after `horizon` gets no end, because sources that
    fill each other's gaps would be joined forever.
    """
    current: Span | None = None
    for span in heapq.merge(*sources, key=_start):
        if current is not None and span.run.start <= current.run.end:
            names = current.names + tuple(name for name in span.names if name not in current.names)
            current = Span(Run(current.run.start, max(current.run.end, span.run.end)), names)
            if horizon < span.run.start:
                yield Span(Run(current.run.start, FOREVER), names)
                return
            continue
        if current is not None:
            yield current
        current = span
    if current is not None:
        yield current


def subtract(spans: Iterable[Span], taken: Iterable[Span]) -> Iterator[Span]:
    """Yield `spans` without the time of `taken`. Both are sorted by start and have no overlaps."""
    rest = iter(taken)
    cut = next(rest, None)
    for span in spans:
        start = span.run.start
        while cut is not None and cut.run.start < span.run.end:
            if start < cut.run.start:
                yield Span(Run(start, cut.run.start), span.names)
            start = max(start, cut.run.end)
            if span.run.end < cut.run.end:
                break  # it may also overlap the next span
            cut = next(rest, None)
        if start < span.run.end:
            yield Span(Run(start, span.run.end), span.names)


def _start(span: Span) -> datetime:
    return span.run.start
