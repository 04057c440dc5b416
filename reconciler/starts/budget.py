"""The budget: how many nodes may be out of service at once, and which ones are.

Nodes in maintenance hold a place until it ends, other nodes while they are cordoned, NotReady or tainted out
of service. A node that has been gone for a long time holds none, and neither does one that is NotReady since
the platform has taken its VM for good. A start on a node that holds a place needs no second one; a start on
any other node needs one.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from msgspec import Struct

from reconciler.calendar.occurrences import FOREVER
from reconciler.calendar.values import Limit
from reconciler.model.limits import count_of, first_of
from reconciler.model.moments import shifted
from reconciler.model.node import Node
from reconciler.model.plan import BudgetUse
from reconciler.model.problems import Faults, guarded
from reconciler.model.snapshot import Replaced, Resting
from reconciler.model.values import replace
from reconciler.settings.draining import Budget


class _Seat(Struct, frozen=True):
    """One node in the budget: why it holds a place (empty: it holds none), and when that ends by itself."""

    zone: str
    pool: str
    because: str = ""
    eases_at: datetime | None = None


_UNKNOWN = _Seat("", "", "an error in this program")
_FLEET = ("", "")
_NAMED = 3


class _Seats:
    """The nodes of all `Holders` that come from each other, by name, each with its number.

    `groups` has those of the fleet, of each zone and of each pool: the number of each, and the first names in
    the alphabet up to there.
    """

    def __init__(self) -> None:
        self.of: dict[str, tuple[int, _Seat]] = {}
        self.groups: dict[tuple[str, str], list[tuple[int, tuple[str, ...]]]] = {}

    def add(self, name: str, seat: _Seat) -> None:
        number = len(self.of)
        self.of[name] = (number, seat)
        for group in (_FLEET, ("zone", seat.zone), ("pool", seat.pool)):
            members = self.groups.setdefault(group, [])
            first = members[-1][1] if members else ()
            members.append((number, tuple(sorted((*first, name))[:_NAMED])))

    def remove_last(self) -> None:
        _, (_, seat) = self.of.popitem()
        for group in (_FLEET, ("zone", seat.zone), ("pool", seat.pool)):
            self.groups[group].pop()


class Holders(Mapping[str, str]):
    """The nodes that hold a place, each with the reason. They never change.

    Those after one more start share what they have with those before it, and each of them sees its own part:
    so a start costs the same, however many there are.
    """

    def __init__(self, seats: _Seats | None = None, count: int = 0) -> None:
        """Show the first `count` of these seats."""
        self._seats = _Seats() if seats is None else seats
        self._count = count

    def plus(self, name: str, seat: _Seat) -> Holders:
        """Return these holders and one more; a node that holds a place needs no second one."""
        if name in self:
            return self
        seats = self._seats
        if len(seats.of) > self._count:
            seats = _Seats()
            for known in self:
                seats.add(known, self._seats.of[known][1])
        seats.add(name, seat)
        return Holders(seats, self._count + 1)

    def forget_later(self) -> None:
        """Forget the starts after these, for which nobody asks any more: the next one needs no copy then."""
        while len(self._seats.of) > self._count:
            self._seats.remove_last()

    def where(self, name: str) -> tuple[str, str]:
        """Return the zone and the pool of a holder."""
        _, seat = self._seats.of[name]
        return seat.zone, seat.pool

    def within(self, kind: str = "", name: str = "") -> tuple[int, tuple[str, ...]]:
        """Return how many hold a place in the fleet, or a `zone` or `pool`, and the first three names."""
        members = self._seats.groups.get((kind, name), [])
        count = bisect.bisect_left(members, (self._count,))
        return count, members[count - 1][1] if count else ()

    def __contains__(self, name: object) -> bool:
        """Whether a node holds a place."""
        found = self._seats.of.get(name) if isinstance(name, str) else None
        return found is not None and found[0] < self._count

    def __getitem__(self, name: str) -> str:
        """Return why a node holds a place."""
        if name not in self:
            raise KeyError(name)
        return self._seats.of[name][1].because

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return islice(self._seats.of, self._count)

    def __len__(self) -> int:
        """Return how many there are."""
        return self._count


class PlacesLimit(Struct, frozen=True):
    """One limit of the budget: how many of `total` nodes may be out of service.

    `name` is for people, such as `perZone in b`. `kind` and `group` say of which nodes: of the `zone` or the
    `pool` with this name, or, if both are empty, of the fleet.
    """

    name: str
    share: Limit
    total: int
    kind: str = ""
    group: str = ""

    @property
    def places(self) -> int:
        """The number of places."""
        return self.share.of(self.total)

    def holds(self, zone: str, pool: str) -> bool:
        """Whether it counts a node of this zone and this pool."""
        return not self.kind or self.group == (zone if self.kind == "zone" else pool)


class DisruptionBudget(Struct, frozen=True):
    """The places of one pass: which nodes hold one, and why.

    `take` returns the places after one more start. `eases_at` is when the first NotReady holder counts as
    gone for long (UTC), None if there is none.
    """

    settings: Budget
    fleet: int
    zones: Mapping[str, int]
    pools: Mapping[str, int]
    holders: Holders
    eases_at: datetime | None

    def take(self, node: Node, reason: str) -> DisruptionBudget:
        """Return the places with this node as a holder."""
        if node.name in self.holders:
            return self
        return replace(self, holders=self.holders.plus(node.name, _Seat(node.zone, node.pool, reason)))

    def beside(self, resting: Iterable[Resting]) -> DisruptionBudget:
        """Return the places of a fleet with these nodes, too, none of which holds a place."""
        fleet, zones, pools = self.fleet, dict(self.zones), dict(self.pools)
        for one in resting:
            fleet += one.count
            zones[one.node.zone] = zones.get(one.node.zone, 0) + one.count
            pools[one.node.pool] = pools.get(one.node.pool, 0) + one.count
        return replace(self, fleet=fleet, zones=zones, pools=pools)

    def refusals(self, node: Node) -> tuple[str, ...]:
        """Return why the node may not start, one reason for each limit; empty if it may."""
        if node.name in self.holders:
            return ()
        reasons = []
        for limit in self.limits((node.zone,), (node.pool,)):
            held, first = self.holders.within(limit.kind, limit.group)
            if held < limit.places:
                continue
            named = [f"{name} ({self.holders[name]})" for name in first]
            reasons.append(
                f"{limit.name} is {limit.places}, taken by {first_of(named, count=held)}"
                if held
                else f"{limit.name} is {limit.share}, so no node may start"
            )
        return tuple(reasons)

    def limits(self, zones: Iterable[str], pools: Iterable[str]) -> tuple[PlacesLimit, ...]:
        """Return the limits of the fleet, and of these zones and pools; a node may have no zone or pool."""
        settings = self.settings
        limits = [PlacesLimit("maxUnavailable", settings.max_unavailable, self.fleet)]
        per = (
            ("zone", "perZone", settings.per_zone, self.zones, zones),
            ("pool", "perPool", settings.per_pool, self.pools, pools),
        )
        for kind, setting, share, sizes, groups in per:
            if share is not None:
                limits += [
                    PlacesLimit(f"{setting} in {group}", share, sizes.get(group, 0), kind, group)
                    for group in dict.fromkeys(groups)
                    if group
                ]
        return tuple(limits)

    def why_not_together(self, nodes: Sequence[Node], ours: Container[str]) -> str:
        """Return why these nodes can't be out of service at a time, empty if they can.

        Places of `ours` are given on. Those of others stay taken, as far as anybody knows.
        """
        names, where = {node.name for node in nodes}, [(node.zone, node.pool) for node in nodes]
        taken = [self.holders.where(name) for name in self.holders if name not in names and name not in ours]
        for limit in self.limits((zone for zone, _ in where), (pool for _, pool in where)):
            places = limit.places - (0 if limit.kind else self.settings.reserve.of(self.fleet))
            count, held = (sum(limit.holds(*each) for each in nodes) for nodes in (where, taken))
            if held + count > places:
                others = f", {held} of them taken by others" if held else ""
                return (
                    f"{count_of(count, 'node', 'have')} to be drained at a time, and {limit.name} has "
                    f"{count_of(places, 'place')}{others}"
                )
        return ""

    @property
    def limit(self) -> int:
        """How many nodes of the fleet may be out of service."""
        return self.settings.max_unavailable.of(self.fleet)

    def use(self) -> BudgetUse:
        """Return the fleet's budget for the report."""
        return BudgetUse(self.limit, self.fleet, tuple(sorted(self.holders.items())))


class OurPlace(Struct, frozen=True):
    """Why a node in maintenance is out of service, and from when on its VM is taken for good (UTC)."""

    because: str
    taken_from: datetime | None = None


def count_places(
    fleet: Iterable[Node],
    ours: Mapping[str, OurPlace],
    settings: Budget,
    now: datetime,
    replaced: Iterable[Replaced] = (),
    faults: Faults | None = None,
) -> DisruptionBudget:
    """Return which nodes of the fleet are out of service at `now`; `ours` are those in maintenance.

    `replaced` are nodes that we deleted and whose replacements do not exist yet (`still_missing`). A node
    whose data ends in an error is one of `faults` and holds a place, because unknown is not healthy.
    """
    faults = Faults() if faults is None else faults
    zones: dict[str, int] = {}
    pools: dict[str, int] = {}
    holders = Holders()
    leaving: list[datetime] = []
    there: set[str] = set()
    for node in fleet:
        there.add(node.name)
        work = partial(_seat, node, ours.get(node.name), settings, now)
        seat = faults.of(node.name, "its place is not known", work, _UNKNOWN)
        zones[seat.zone] = zones.get(seat.zone, 0) + 1
        pools[seat.pool] = pools.get(seat.pool, 0) + 1
        if seat.because:
            holders = holders.plus(node.name, seat)
            if seat.eases_at is not None:
                leaving.append(seat.eases_at)
    for one in {one.node: one for one in replaced}.values():
        if one.node not in there:
            because = "replaced by us; the new node is missing"
            holders = holders.plus(one.node, _Seat(one.zone, one.pool, because))
            leaving.append(one.at + settings.ignore.not_ready_for)
    eases_at = min(leaving, default=None)
    return DisruptionBudget(settings, len(there), zones, pools, holders, eases_at)


def _seat(node: Node, ours: OurPlace | None, settings: Budget, now: datetime) -> _Seat:
    zone, pool = node.zone, node.pool
    because = ours.because if ours is not None else node.out_of_service
    # Nodes that are labelled as quarantined may be in service: in our maintenance each takes a place.
    ignored = ours is None and settings.ignore.quarantined and node.is_quarantined
    if not because or ignored:
        return _Seat(zone, pool)
    if node.ready:
        return _Seat(zone, pool, because)
    # Nobody waits for a node that does not come back: its place is free for another one.
    changed = node.ready_changed
    moments = (
        ours.taken_from if ours is not None else None,
        changed + settings.ignore.not_ready_for if changed is not None else None,
    )
    eases_at = min((one for one in moments if one is not None), default=None)
    if eases_at is not None and eases_at <= now:
        return _Seat(zone, pool)
    return _Seat(zone, pool, because, eases_at)


def pool_of(node: Node) -> str:
    """Return the node's pool, empty if it can't be read: other nodes of a pool must not fail with it."""
    return guarded(f"node {node.name}: its pool is not known", lambda: node.pool, "")[0]


def still_missing(
    replaced: Sequence[Replaced],
    fleet: Iterable[Node],
    settings: Budget,
    now: datetime,
    resting: Iterable[Resting] = (),
) -> tuple[Replaced, ...]:
    """Return those without a replacement, except those that are gone for long or not gone yet.

    The number of nodes in a pool shows how many are missing. Which ones are missing does not matter.
    """
    if not replaced:
        return ()
    nodes = list(fleet)
    there = {node.uid for node in nodes}
    counts = Counter(pool_of(node) for node in nodes)
    for others in resting:
        counts[others.node.pool] += others.count
    waiting = [one for one in replaced if now - one.at < settings.ignore.not_ready_for]
    left: list[Replaced] = [one for one in waiting if one.uid in there]
    by_pool: dict[str, list[Replaced]] = {}
    for one in waiting:
        if one.uid not in there:
            by_pool.setdefault(one.pool, []).append(one)
    for pool, some in by_pool.items():
        # Nodes without a pool have nothing in common: none of them replaces another.
        there_now = counts[pool] if pool else 0
        missing = max(0, max(one.have for one in some) - there_now)
        # Replacements come in the order in which the nodes went.
        left += sorted(some, key=lambda one: (one.at, one.node))[max(0, len(some) - missing) :]
    return tuple(sorted(left, key=lambda one: (one.at, one.node)))


class Booking(Struct, frozen=True):
    """A place that a node holds from `begin` until `end` (UTC).

    `planned`: it begins with a planned start, which needs a free place. Any other node is out of service
    whether a place is free or not.
    """

    node: str
    begin: datetime
    end: datetime
    planned: bool = False


class PlacesAhead:
    """The bookings of one limit. Each question takes a time that grows with the logarithm of their number."""

    def __init__(self, name: str, places: int) -> None:
        """Create it without bookings; `name` is for people, such as `maxUnavailable`."""
        self.name = name
        self.places = places
        self.bookings: dict[str, Booking] = {}
        self._begins: list[datetime] = []
        self._ends: list[datetime] = []
        # Those with a planned start, by its moment; each has a number, in the order in which they came.
        self._planned: list[tuple[datetime, int, str]] = []
        self._numbers: dict[str, int] = {}
        self._booked, self._longest = 0, timedelta()
        # Spans in which no place is free, as far as they were looked at; sorted, and apart from each other.
        self._full: list[tuple[datetime, datetime]] = []

    def book(self, booking: Booking) -> None:
        """Add a booking; a node has one at most."""
        self.bookings[booking.node] = booking
        bisect.insort(self._begins, booking.begin)
        bisect.insort(self._ends, booking.end)
        if booking.planned:
            self._booked += 1
            self._numbers[booking.node] = self._booked
            self._longest = max(self._longest, booking.end - booking.begin)
            bisect.insort(self._planned, (booking.begin, self._booked, booking.node))

    def cancel(self, node: str) -> Booking:
        """Remove and return the booking of a node; KeyError if it has none."""
        booking = self.bookings.pop(node)
        # What is known to be full before and after it stays known: in between, a place may be free now.
        begin, end = booking.begin, booking.end
        first = bisect.bisect_right(self._full, begin, key=lambda span: span[1])
        last = bisect.bisect_left(self._full, end, key=lambda span: span[0])
        if first < last:
            around = ((self._full[first][0], begin), (end, self._full[last - 1][1]))
            self._full[first:last] = [(since, until) for since, until in around if since < until]
        del self._begins[bisect.bisect_left(self._begins, begin)]
        del self._ends[bisect.bisect_left(self._ends, end)]
        if booking.planned:
            number = self._numbers.pop(node)
            del self._planned[bisect.bisect_left(self._planned, (begin, number))]
        return booking

    def held(self, at: datetime) -> int:
        """Return how many nodes hold a place at a moment."""
        return bisect.bisect_right(self._begins, at) - bisect.bisect_right(self._ends, at)

    def planned_between(self, begin: datetime, end: datetime) -> tuple[str, ...]:
        """Return the nodes with a planned start that hold a place at some time in [begin, end)."""
        first = bisect.bisect_left(self._planned, (shifted(begin, -self._longest),))
        last = bisect.bisect_left(self._planned, (end,))
        near = ((number, node) for _, number, node in self._planned[first:last])
        return tuple(node for _, node in sorted(near) if begin < self.bookings[node].end)

    def free_from(
        self, moment: datetime, last: datetime, end: Callable[[datetime], datetime]
    ) -> datetime | None:
        """Return the first moment in [moment, last] at which a node may take a place until `end(start)`.

        It takes none from a start that is planned. None: there is no such moment.
        """
        while True:
            found = self._next_free(moment)
            if found is None or last < found:
                return None
            taken = self._last_full_start(found, end(found))
            if taken is None:
                return found
            moment = taken

    def _next_free(self, moment: datetime) -> datetime | None:
        """Return the first moment from `moment` on at which a place is free, None if there is none.

        What it passes is kept: the cases of a busy time all ask for the same moments.
        """
        begin, free = moment, moment
        while self.held(free) >= self.places:
            index = bisect.bisect_right(self._full, (free, FOREVER)) - 1
            if index >= 0 and free < self._full[index][1]:
                begin, free = min(begin, self._full[index][0]), self._full[index][1]
            else:
                after = bisect.bisect_right(self._ends, free)
                free = self._ends[after] if after < len(self._ends) else FOREVER
            if free == FOREVER:
                break
        if begin < free:
            first, last = (bisect.bisect_left(self._full, (at,)) for at in (begin, free))
            self._full[first:last] = [(begin, free)]
        return free if free != FOREVER else None

    def bears(self, begin: datetime, end: datetime) -> bool:
        """Whether one more booking at this time takes no place from a start that is booked."""
        return self._last_full_start(begin, end) is None

    def _last_full_start(self, begin: datetime, end: datetime) -> datetime | None:
        """Return the last booked start in [begin, end) that needs every place that is held then."""
        if bisect.bisect_left(self._begins, end) - bisect.bisect_right(self._ends, begin) < self.places:
            return None
        first = bisect.bisect_left(self._planned, (begin,))
        for index in range(bisect.bisect_left(self._planned, (end,)) - 1, first - 1, -1):
            start = self._planned[index][0]
            if self.held(start) >= self.places:
                return start
        return None
