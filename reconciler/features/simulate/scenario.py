"""What is played: the nodes of a fleet, and all that happens to them, made up or from a history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from statistics import median
from typing import TypeVar
from uuid import UUID, uuid5

from msgspec import Struct, field

from reconciler.model.case_outcome import CaseResult
from reconciler.model.ended_case import EndedCase
from reconciler.model.event import REQUEST, Kind
from reconciler.model.limits import count_of
from reconciler.model.node import OS_LABEL, SPOT_LABEL, ZONE_LABEL, Node

LARGEST_FLEET = 20_000
"""Nodes of a fleet that can be played."""

LONGEST = 366
"""Days that can be played."""

MOST_EVENTS = 100_000
"""Events that can be played."""


class FleetNode(Struct, frozen=True):
    """One node of the fleet. `drain` is how long its pods need to leave it."""

    name: str
    pool: str
    zone: str
    drain: timedelta
    spot: bool = False

    def node(self) -> Node:
        """Return the node as it joins the cluster: with the labels of AKS, Ready and in service."""
        labels = {"agentpool": self.pool, "kubernetes.azure.com/agentpool": self.pool, OS_LABEL: "linux"}
        labels |= {ZONE_LABEL: self.zone} if self.zone else {}
        labels |= {SPOT_LABEL: "spot"} if self.spot else {}
        return Node(self.name, uid="", resource_version="", labels=labels)


class PlayedEvent(Struct, frozen=True):
    """One event of one node; moments are UTC, and it is announced `at` a moment not after `starts`.

    `not_before` is the date that it is announced with, `starts` when it really starts. An event that starts
    in the moment in which it is announced comes without notice. `seconds` is the announced pause, -1 for
    unknown. `cancelled` is when it is called off, None if it takes place. `by_request`: a person asks for it
    in an annotation, which is removed when it is over.
    """

    id: str
    node: str
    kind: Kind
    at: datetime
    not_before: datetime
    starts: datetime
    lasts: timedelta = timedelta(minutes=10)
    seconds: int = -1
    cancelled: datetime | None = None
    by_request: bool = False


class Scenario(Struct, frozen=True):
    """A fleet and its events from `start` to `end` (UTC), the same for every policy.

    `source` says where the events come from, in words. `notes` are for people: what was left out, and why.
    """

    start: datetime
    end: datetime
    nodes: tuple[FleetNode, ...]
    events: tuple[PlayedEvent, ...]
    source: str
    notes: tuple[str, ...] = field(default=())


_Item = TypeVar("_Item")
_BITS = 53


class Draws(Struct, frozen=True):
    """Numbers that depend on the seed and on what they are for, and on no other draw."""

    seed: int

    def part(self, *purpose: object) -> float:
        """Return a number from 0 to 1, 1 excluded, for this purpose."""
        digest = sha256(repr((self.seed, *map(str, purpose))).encode()).digest()
        return (int.from_bytes(digest[:8], "big") >> (64 - _BITS)) / (1 << _BITS)

    def between(self, least: float, most: float, *purpose: object) -> float:
        """Return a number from `least` to `most` for this purpose."""
        return least + (most - least) * self.part(*purpose)

    def one_of(self, items: Sequence[_Item], *purpose: object) -> _Item:
        """Return one of the items, which are at least one, for this purpose."""
        return items[int(self.part(*purpose) * len(items))]


_REGION = "westeurope"
_ZONES = 3
_NAMESPACE = UUID("6ba7b812-9dad-11d1-80b4-00c04fd430c8")
_SPOT = "spot"

_SHARES = (("general", 60), ("memory", 20), (_SPOT, 15), ("system", 5))
"""The pools, each with its share of the nodes in percent."""

_DRAIN_MINUTES = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 12.0, 25.0)
"""How long a tenth of the nodes each need for a drain."""

_LAST_HOURS = timedelta(hours=3)
"""No event starts in the last hours, so that each one has ended when the play ends."""

PER_NODES, PER_DAYS = 1_000, 90
"""What the counts of `RATES` are for."""

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class Rate(Struct, frozen=True):
    """One sort of event: how many there are in 1,000 nodes and 90 days, and what they are like.

    The notice lies between `least` and `most`. `seconds` is the longest announced pause, -1 for unknown. A
    wave is so many nodes of one zone, one each `apart`. `spot`: only spot nodes have it.
    """

    name: str
    kind: Kind
    count: int
    least: timedelta
    most: timedelta
    seconds: int = -1
    wave: int = 1
    apart: timedelta = timedelta()
    spot: bool = False


RATES = (
    Rate("pause", Kind.FREEZE, 800, 15 * _MINUTE, 15 * _MINUTE, seconds=30),
    Rate("live migration", Kind.LIVE_MIGRATION, 400, 15 * _MINUTE, 15 * _MINUTE, seconds=10),
    Rate("reboot of the host", Kind.REBOOT, 260, 15 * _MINUTE, 15 * _MINUTE),
    Rate("repair", Kind.REDEPLOY, 120, 10 * _MINUTE, 10 * _MINUTE),
    Rate("predicted failure", Kind.REDEPLOY, 30, _DAY, 7 * _DAY),
    Rate("planned reboot", Kind.REBOOT, 60, 14 * _DAY, 14 * _DAY, wave=12, apart=20 * _MINUTE),
    Rate("retirement", Kind.TERMINATE, 20, 14 * _DAY, 14 * _DAY),
    Rate("reclaimed spot VM", Kind.PREEMPT, 250, timedelta(seconds=30), timedelta(seconds=30), spot=True),
    Rate("failure", Kind.REDEPLOY, 60, timedelta(), timedelta()),
)
"""2,000 events in 1,000 nodes and 90 days."""


def made_up(seed: int, *, start: datetime, days: int, nodes: int) -> Scenario:
    """Return a fleet of so many nodes and its events, from `start` (UTC); the same seed gives the same."""
    draws = Draws(seed)
    fleet = []
    for number in range(nodes):
        pool = _pool_of(number, nodes)
        name = f"aks-{pool}-31415926-vmss{number:06d}"
        zone = f"{_REGION}-{number % _ZONES + 1}"
        fleet.append(FleetNode(name, pool, zone, drain_time(draws, name), spot=pool == _SPOT))
    end = start + timedelta(days=days)
    events = sorted(_events(draws, fleet, start, end), key=lambda event: (event.at, event.id))
    return Scenario(start, end, tuple(fleet), tuple(events), f"made up with seed {seed}")


def filled(nodes: Iterable[FleetNode], count: int, seed: int) -> tuple[FleetNode, ...]:
    """Return these nodes, and others like them until there are `count`."""
    known = tuple(nodes)
    taken = {one.name for one in known}
    draws = Draws(seed)
    found = list(known)
    number = 0
    while len(found) < count:
        like = draws.one_of(known, "like", number)
        name = f"other-{number:05d}"
        number += 1
        if name not in taken:
            found.append(FleetNode(name, like.pool, like.zone, drain_time(draws, name), like.spot))
    return tuple(found)


def drain_time(draws: Draws, node: str) -> timedelta:
    """Return how long the drain of a node takes that nothing is known about."""
    return timedelta(minutes=draws.one_of(_DRAIN_MINUTES, "drain", node))


def _pool_of(number: int, count: int) -> str:
    """Return the pool of a node; the shares are filled one after the other."""
    filled_up = 0
    for pool, share in _SHARES:
        filled_up += share
        if number * 100 < filled_up * count:
            return pool
    return _SHARES[0][0]


def _events(
    draws: Draws, fleet: Sequence[FleetNode], start: datetime, end: datetime
) -> Iterator[PlayedEvent]:
    for rate in RATES:
        chosen = [node for node in fleet if node.spot or not rate.spot]
        wanted = rate.count * len(fleet) * ((end - start) / _DAY) / (PER_NODES * PER_DAYS)
        # What is left of a whole event takes place with that chance.
        count = int(wanted) + (draws.part(rate.name, "rest") < wanted % 1)
        if chosen:
            yield from _of_a_rate(draws, rate, chosen, count, (start, end - _LAST_HOURS))


def _of_a_rate(
    draws: Draws, rate: Rate, fleet: Sequence[FleetNode], count: int, span: tuple[datetime, datetime]
) -> Iterator[PlayedEvent]:
    """Yield so many events of one sort, which start in the span."""
    start, end = span
    seen: set[tuple[str, datetime]] = set()
    by_zone: dict[str, list[FleetNode]] = {}
    for one in fleet:
        by_zone.setdefault(one.zone, []).append(one)
    for number in range(count):
        wave, place = divmod(number, rate.wave)
        purpose = (rate.name, wave) if rate.wave > 1 else (rate.name, number)
        first = start + (end - start) * draws.part(*purpose, "starts")
        starts = min(first + place * rate.apart, end).replace(second=0, microsecond=0)
        there = by_zone[draws.one_of(fleet, *purpose, "zone").zone] if rate.wave > 1 else fleet
        node = draws.one_of(there, rate.name, number, "node").name
        if starts < start or (node, starts) in seen:
            continue
        seen.add((node, starts))
        notice = timedelta(
            seconds=round(
                draws.between(rate.least.total_seconds(), rate.most.total_seconds(), *purpose, "notice")
            )
        )
        yield PlayedEvent(
            str(uuid5(_NAMESPACE, f"{draws.seed} {rate.name} {number}")).upper(),
            node,
            rate.kind,
            at=max(start, starts - notice),
            not_before=starts,
            starts=starts,
            seconds=rate.seconds
            if rate.seconds < 0
            else round(draws.between(1, rate.seconds, rate.name, number, "seconds")),
        )


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
        start=min(event.at for event in kept).replace(minute=0, second=0, microsecond=0),
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
        yield (
            f"{count_of(sum(left.values()), 'case', 'are')} not played, because no platform event "
            f"caused them: {kinds}"
        )
    if len(kept) < len(played):
        yield f"{len(played) - len(kept)} older events are not played (--days)"
    if len(named) > nodes:
        yield (
            f"the history names {count_of(len(named), 'node')}, more than --nodes {nodes}; all of them "
            f"are played"
        )
