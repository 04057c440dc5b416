"""Sums and differences of named stretches of time, lazily, since nobody knows how far the caller looks."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from reconciler.calendar.occurrences import FOREVER, Run


@dataclass(frozen=True, slots=True)
class Span:
    """A run, and the names of those that it comes from, in the order in which they begin."""

    run: Run
    names: tuple[str, ...] = ()


def union(sources: Iterable[Iterable[Span]], horizon: datetime) -> Iterator[Span]:
    """Yield the time in which any source is in force; what overlaps or touches becomes one.

    Each source ascends by start. What still goes on at `horizon`, one run joining the next, has no end in
    sight: sources that fill each other's gaps would be joined for ever.
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
    """Yield what is left of `spans` where nothing of `taken` is in force; both ascend and don't overlap."""
    rest = iter(taken)
    cut = next(rest, None)
    for span in spans:
        start = span.run.start
        while cut is not None and cut.run.start < span.run.end:
            if start < cut.run.start:
                yield Span(Run(start, cut.run.start), span.names)
            start = max(start, cut.run.end)
            if span.run.end < cut.run.end:
                break  # it may reach into the next one, too
            cut = next(rest, None)
        if start < span.run.end:
            yield Span(Run(start, span.run.end), span.names)


def _start(span: Span) -> datetime:
    return span.run.start
