"""The sum of a history: how many cases ended how, in time or not, and what they cost. It is a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from statistics import median

from reconciler import __version__
from reconciler.model.case_outcome import ENDS, InTime
from reconciler.model.ended_case import EndedCase
from reconciler.model.moments import to_text
from reconciler.report.values import Document, moment_value


def to_document(cases: Iterable[EndedCase], since: datetime | None, now: datetime) -> Document:
    """Return the sum of these cases, each of them once.

    `since` (UTC) is from when on they ended, None for all of them. `now` is when the sum was made (UTC).
    """
    ended = sorted(cases, key=lambda case: (case.times.ended, case.place.node))
    struck = [case for case in ended if not case.outcome.good]
    return {
        "version": "v1",
        "program": __version__,
        "at": to_text(now),
        "since": moment_value(since),
        "from": moment_value(ended[0].times.ended if ended else None),
        "to": moment_value(ended[-1].times.ended if ended else None),
        "total": _sum(ended),
        "kinds": _grouped("kind", ended, lambda case: case.kind),
        "pools": _grouped("pool", ended, lambda case: case.place.pool),
        "struck": [_struck(case) for case in struck],
    }


def _grouped(name: str, cases: Sequence[EndedCase], key: Callable[[EndedCase], str]) -> list[Document]:
    groups: dict[str, list[EndedCase]] = {}
    for case in cases:
        groups.setdefault(key(case), []).append(case)
    return [{name: one or None, **_sum(groups[one])} for one in sorted(groups)]


def _sum(cases: Sequence[EndedCase]) -> Document:
    outcomes = Counter(case.outcome for case in cases)
    in_time = Counter(case.outcome.in_time for case in cases)
    known = in_time[InTime.YES] + in_time[InTime.NO]
    empty = [one for one in map(_empty, cases) if one is not None]
    moved = [case.pods_moved for case in cases if case.pods_moved is not None]
    left = [case.pods_left for case in cases if case.pods_left is not None]
    return {
        "cases": len(cases),
        "outcomes": {one.value: outcomes[one] for one in ENDS},
        "inTime": {one.value: in_time[one] for one in InTime},
        "shareInTime": round(in_time[InTime.YES] / known, 4) if known else None,
        "nodeHoursEmpty": round(sum(empty, timedelta()) / timedelta(hours=1), 2),
        "notice": _spread(map(_notice, cases), min),
        "drain": _spread(map(_drain, cases), max),
        "podsMoved": sum(moved),
        "podsMovedKnown": len(moved),
        "podsLeft": sum(left),
        "podsLeftKnown": len(left),
    }


def _spread(
    lengths: Iterable[timedelta | None], worst: Callable[[Iterable[float]], float]
) -> Document | None:
    """Return the median and the worst of the lengths that are known, None if none is."""
    known = [one.total_seconds() for one in lengths if one is not None]
    if not known:
        return None
    return {"medianSeconds": median(known), "worstSeconds": worst(known), "known": len(known)}


def _notice(case: EndedCase) -> timedelta | None:
    """Return the time from the first sight to the date of the event."""
    return _between(case.times.announced, case.times.not_before)


def _drain(case: EndedCase) -> timedelta | None:
    return _between(case.times.started, case.times.drained)


def _empty(case: EndedCase) -> timedelta | None:
    """Return for how long the node could run no pods: from the end of its drain, or from its start."""
    return _between(case.times.drained or case.times.started, case.times.uncordoned)


def _between(start: datetime | None, end: datetime | None) -> timedelta | None:
    """Return the time between two moments, at least 0: a clock may have gone back. None: not known."""
    return None if start is None or end is None else max(end - start, timedelta())


def _struck(case: EndedCase) -> Document:
    return {
        "node": case.place.node,
        "zone": case.place.zone,
        "pool": case.place.pool,
        "kind": case.kind or None,
        "ended": to_text(case.times.ended),
        "outcome": case.outcome.value,
        "inTime": case.outcome.in_time.value,
        "podsLeft": case.pods_left,
        "why": case.why,
    }
