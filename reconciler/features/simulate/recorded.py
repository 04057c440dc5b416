"""Cases that have ended in a real cluster, as a scenario: the same events for any policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from statistics import median
from uuid import UUID, uuid5

from reconciler.features.simulate.made_up import Draws, drain_time, filled
from reconciler.features.simulate.scenario import FleetNode, PlayedEvent, Scenario
from reconciler.model.case_outcome import CaseResult
from reconciler.model.ended_case import EndedCase
from reconciler.model.event import REQUEST, Kind

_NAMESPACE = UUID("6ba7b812-9dad-11d1-80b4-00c04fd430c8")
_DRAW = 0
"""The seed of what a history does not say: the drain times of nodes that it does not name."""

_LASTS = timedelta(minutes=10)
_SHORTEST, _LONGEST = timedelta(minutes=1), timedelta(days=1)
_AFTER = timedelta(hours=3)
_SPOT_NOTICE = timedelta(seconds=30)
_PLAYED = frozenset(Kind) - {Kind.UNKNOWN, Kind.REBALANCE}


def recorded(cases: Sequence[EndedCase], *, nodes: int, days: int | None, source: str) -> Scenario:
    """Return the events of these cases on a fleet of `nodes` nodes, at their own times.

    Only the last `days` are played, None for all. Nodes that no case names are like those that one names.
    Raises ValueError if no case can be played.
    """
    played = [event for case in cases if (event := _event(case)) is not None]
    if not played:
        raise ValueError("no case in it has a kind that can be played and a time")
    last = max(event.starts for event in played)
    first = last - timedelta(days=days) if days is not None else min(event.at for event in played)
    kept = [event for event in played if event.at >= first]
    named = tuple(_nodes(cases))
    return Scenario(
        start=_whole_hour(min(event.at for event in kept)),
        end=last + _AFTER,
        nodes=filled(named, nodes, _DRAW),
        events=tuple(sorted(kept, key=lambda event: (event.at, event.id))),
        source=f"from {source}",
        notes=tuple(_notes(cases, played, kept, named, nodes)),
    )


def _event(case: EndedCase) -> PlayedEvent | None:
    """Return the event of a case, None if it can't be played: a node condition, or without any time."""
    times = case.times
    kind = next((one for one in _PLAYED if one.value == case.kind), None)
    if kind is None:
        return None
    at = times.announced or times.case_start
    starts = max(times.not_before or at, at)
    if starts == at and kind in (Kind.PREEMPT, Kind.TERMINATE):
        # Nobody could see it without any notice, and the case was seen.
        starts = at + _SPOT_NOTICE
    gone = times.gone or times.ended
    # A case that was cancelled after its date has a date that did not hold.
    cancelled = gone if case.outcome is CaseResult.CANCELLED and gone > at else None
    if cancelled is not None and starts <= cancelled:
        starts = cancelled + _SHORTEST
    lasts = min(max(gone - starts, _SHORTEST), _LONGEST) if gone > starts else _LASTS
    return PlayedEvent(
        str(uuid5(_NAMESPACE, f"{case.place.uid} {times.case_start.isoformat()}")).upper(),
        case.place.node,
        kind,
        at,
        not_before=starts,
        starts=starts,
        lasts=lasts,
        cancelled=cancelled,
        by_request=set(case.sources) == {REQUEST},
    )


def _nodes(cases: Iterable[EndedCase]) -> Iterable[FleetNode]:
    """Yield each node that a case names, with the median of its drains, else one of another node."""
    took: dict[str, list[timedelta]] = {}
    places: dict[str, EndedCase] = {}
    for case in cases:
        name = case.place.node
        places[name] = case
        started, drained = case.times.started, case.times.drained
        if started is not None and drained is not None and drained >= started:
            took.setdefault(name, []).append(drained - started)
    known = sorted(one for several in took.values() for one in several)
    draws = Draws(_DRAW)
    spot = {case.place.node for case in cases if case.kind == Kind.PREEMPT}
    for name, case in sorted(places.items()):
        own = took.get(name)
        drain = (
            timedelta(seconds=median(one.total_seconds() for one in own))
            if own
            else draws.one_of(known, "drain", name)
            if known
            else drain_time(draws, name)
        )
        yield FleetNode(name, case.place.pool, case.place.zone, drain, spot=name in spot)


def _notes(
    cases: Sequence[EndedCase],
    played: Sequence[PlayedEvent],
    kept: Sequence[PlayedEvent],
    named: Sequence[FleetNode],
    nodes: int,
) -> Iterable[str]:
    left = Counter(case.kind or "unknown" for case in cases if _event(case) is None)
    if left:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(left.items()))
        yield f"{sum(left.values())} cases are not played, because no platform event caused them: {kinds}"
    if len(kept) < len(played):
        yield f"{len(played) - len(kept)} older events are not played (--days)"
    if len(named) > nodes:
        yield f"the history names {len(named)} nodes, more than --nodes {nodes}; all of them are played"


def _whole_hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)
