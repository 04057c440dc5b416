"""Schedule: when the drain of each case is planned to start, and which cases can't be served in time.

The schedule is made from what is seen, in each pass, and nothing of it is kept. If nothing changes, each
later pass makes the same one: what is planned for a moment starts then (law 14). The order is this:

1. A node that the platform has started needs no place. It is out of service from now on, so it counts.
2. A short notice, which was announced at its deadline or later, takes the next place at once.
3. Every other case with a date starts as early as it may, if that takes no place from a case whose latest
   start is earlier. Where not all can be served, as many as possible are: a node that would stay in service
   anyway gives way to one that the platform takes down.
4. What is too late, and what has no date, uses the places that the others leave free.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from heapq import nlargest

from msgspec import Struct, field

from reconciler.calendar.occurrences import FOREVER
from reconciler.calendar.outlook import Outlook
from reconciler.model.event import Kind
from reconciler.model.limits import EARLIEST
from reconciler.model.moments import has_come, shifted
from reconciler.model.schedule import Exemption, StartTimes
from reconciler.model.values import replace
from reconciler.starts.budget import Booking, PlacesAhead
from reconciler.starts.times import first_allowed

GRACE = timedelta(minutes=5)
"""So soon after the latest start, a case still goes before those that can wait: it loses the least time."""

SHORTEST_STAY = timedelta(minutes=30)
"""How long a place stays taken at least of which nobody says until when it is taken."""

_STEP = timedelta(minutes=1)
"""A pass runs once a minute or so."""


def assumed_end(since: datetime | None, now: datetime) -> tuple[datetime, datetime]:
    """Return when a place is free of which nobody says so, and when this answer changes. All moments are UTC.

    It is assumed to stay taken for as long as it has been taken. The answer is that of the next whole minute,
    so the forecast changes at moments that are known.
    """
    changes = now.replace(second=0, microsecond=0) + _STEP
    so_far = timedelta() if since is None else changes - since
    return shifted(changes, max(so_far, SHORTEST_STAY)), changes


_TRIES = 10
"""How many cases at most are asked whether they give way to another one."""


class Outage(Struct, frozen=True):
    """The maintenance itself, which the platform does whatever a schedule says. All moments are UTC.

    It begins at `date`, None if that is unknown. `taken_down` is when the platform takes the node out of
    service, drained or not, None if it does not. The node is expected `back`, None if the end depends on the
    start of the drain. A node that was not drained is `up` again earlier where the platform names days: it is
    out of service once, and not on all of them. `up` is None if both are the same. From `too_late_from` on no
    drain begins, because the platform has begun. `struck`: it has started, or another event of the node has.
    """

    date: datetime | None = None
    taken_down: datetime | None = None
    back: datetime | None = None
    up: datetime | None = None
    too_late_from: datetime | None = None
    struck: bool = False


class Case(Struct, frozen=True):
    """One node that waits for its drain. All moments are UTC.

    `times`, `kind` and `outage` are those of its most urgent event. If the end depends on the start, the node
    is back `lasts` after it. `exempt` is what it does without, `short`: it was announced at its deadline or
    later. `has_place`: the node is out of service already. `groups` are those with pods on the node, and
    `joins` is whether it may start earlier than its times say, together with another node of a group.
    `ending` says how it ends, in words, and `knows_end` whether anybody knows when.
    """

    node: str
    zone: str
    pool: str
    kind: Kind
    times: StartTimes
    outlook: Outlook
    lasts: timedelta
    lead: timedelta = timedelta()
    exempt: Exemption = Exemption()
    outage: Outage = Outage()
    short: bool = False
    has_place: bool = False
    groups: frozenset[str] = frozenset()
    joins: bool = False
    ending: str = ""
    knows_end: bool = True

    @property
    def kept_out(self) -> bool:
        """Whether a person gave no moment at which its drain may start."""
        return self.times.earliest == FOREVER

    def kept_too_long(self, now: datetime) -> bool:
        """Whether a person keeps its drain from every start that would be in time."""
        earliest = self.times.earliest
        if not self.times.kept or earliest <= now:
            return False
        if self.short:
            return self.outage.date is None or earliest >= self.outage.date
        return self.times.deadline is None or earliest > self.times.deadline

    def end(self, start: datetime) -> datetime:
        """Return when the node is expected back if its drain starts then."""
        back = self.outage.back
        return shifted(start, self.lasts) if back is None or back <= start else back

    def up_again(self, down: datetime) -> datetime:
        """Return when the node is expected up if it was not drained and the platform takes it down then."""
        return self.outage.up or self.end(down)

    @property
    def in_time_until(self) -> datetime | None:
        """The last moment at which it goes before cases that can wait, None if the case has no date."""
        deadline = self.times.deadline
        return None if deadline is None else deadline + min(GRACE, self.lead / 3)

    @property
    def late_from(self) -> datetime | None:
        """From when on a start that begins now is late, None if the case has no date.

        A pass that comes a little after the latest start is in time.
        """
        deadline = self.times.deadline
        return None if deadline is None else deadline + _STEP

    def is_late(self, start: datetime, now: datetime) -> bool:
        """Whether a start then is after the latest start. What the platform may have started is no forecast.

        A short notice has no time until its deadline, and is in time before its maintenance begins.
        """
        if self.outage.struck:
            return False
        if self.short:
            return self.outage.date is not None and now < self.outage.date <= start
        last = self.times.deadline if start > now else self.late_from
        return last is not None and start > last


class Start(Struct, frozen=True):
    """When a case starts, and in which window (empty: it needs none). `waits` says what it waits for.

    `mate` is the node with which it starts together, because both run pods of `group`. `alone` is then when
    it would start without that.
    """

    at: datetime
    window: str = ""
    waits: str = ""
    mate: str = ""
    group: str = ""
    alone: datetime | None = None


class Placed(Struct, frozen=True):
    """A case with its start, None if it has none. `missed`: it is not drained in time.

    `limit` names the limit of the budget that is full at its latest start, empty if that is not the reason.
    `spaced`: its start counts for the spacing.
    """

    case: Case
    start: Start | None = None
    missed: bool = False
    limit: str = ""
    spaced: bool = False


class Place(Struct, frozen=True):
    """Where a node that is out of service holds its places; `short`: it went for a short notice."""

    name: str
    zone: str
    pool: str
    short: bool = False


class Limits(Struct):
    """The limits of the budget over time, and the starts that `spacing` keeps apart.

    Starts of nodes with pods of one group are brought together if they are no further apart than `together`.
    `groups` has those of zones and pools, by the kind and the name of the group.
    `planned` has the places of the fleet that are no reserve, None if all are. Short notices are not in it.
    `changes_at` is when an assumed end of a place changes (UTC), None if no end is assumed.
    """

    fleet: PlacesAhead
    planned: PlacesAhead | None = None
    groups: Mapping[tuple[str, str], PlacesAhead] = field(default_factory=dict)
    spacing: timedelta = timedelta()
    starts: list[datetime] = field(default_factory=list)
    together: timedelta = timedelta()
    changes_at: datetime | None = None

    def of(self, node: Case | Place) -> Iterator[PlacesAhead]:
        """Yield the limits that apply to a node."""
        yield self.fleet
        if self.planned is not None and not node.short:
            yield self.planned
        for group in (("zone", node.zone), ("pool", node.pool)):
            if group in self.groups:
                yield self.groups[group]

    @property
    def all(self) -> tuple[PlacesAhead, ...]:
        """Every limit."""
        planned = () if self.planned is None else (self.planned,)
        return (self.fleet, *planned, *self.groups.values())

    def hold(self, node: Place, end: datetime) -> None:
        """Note that a node is out of service until then."""
        for limit in self.of(node):
            limit.book(Booking(node.name, EARLIEST, end))


class _Starts:
    """The moments of the starts so far of one group, each with its first node."""

    def __init__(self) -> None:
        self._moments: list[datetime] = []
        self._nodes: dict[datetime, str] = {}

    def add(self, at: datetime, node: str) -> None:
        if at not in self._nodes:
            self._nodes[at] = node
            insort(self._moments, at)

    def between(self, since: datetime, before: datetime) -> Iterator[tuple[datetime, str]]:
        """Yield the first of those in [since, before), as many as are tried."""
        first, last = bisect_left(self._moments, since), bisect_left(self._moments, before)
        return ((at, self._nodes[at]) for at in self._moments[first : min(last, first + _TRIES)])


class Scheduler:
    """Places the cases of one pass one by one."""

    def __init__(self, limits: Limits, now: datetime) -> None:
        """Use these limits, which have the bookings of the nodes that are out of service; `now` is UTC."""
        self._limits = limits
        self._now = now
        self._placed: dict[str, Placed] = {}
        self._struck: list[str] = []
        # The candidates that were looked for since the last start was placed or taken back.
        self._known: dict[tuple[object, ...], list[Case]] = {}

    def run(self, cases: Iterable[Case]) -> Mapping[str, Placed]:
        """Return every case with its start, by node."""
        rest: list[Case] = []
        for case in sorted(cases, key=_order):
            last = case.in_time_until
            if case.kept_out:
                self._keep_out(case)
            elif case.outage.struck:
                # It needs no place any more. What has started is no forecast: the record says what the
                # platform met.
                self._struck.append(case.node)
                start = self._exempt(case)
                if start is None:
                    self._miss(case)
                else:
                    self._place(case, start)
            elif has_come(case.exempt.places, self._now):
                self._place(case, self._exempt(case))
            elif case.short:
                self._at_once(case)
            elif last is None:
                rest.append(case)
            elif last < self._now or case.times.never:
                self._miss(case)
            else:
                self._in_time(case, last)
        self._prefer_what_is_lost()
        missed = [
            one.case
            for one in self._placed.values()
            if one.missed and one.start is None and not one.case.kept_out
        ]
        for case in sorted((*missed, *rest), key=_late_order):
            self._place_late(case)
        self._bring_together()
        for one in list(self._placed.values()):
            if not one.missed and one.start is not None and one.case.is_late(one.start.at, self._now):
                self._take_back(one.case)
                limit = self._full_limit(one.case)
                self._place(one.case, one.start)
                self._placed[one.case.node] = replace(one, missed=True, limit=limit)
        return self._placed

    def _bring_together(self) -> None:
        """Move each start to an earlier one of a node with pods of the same group, if no other one moves.

        The group is then disrupted once. A node stands empty longer for that, but not for more than
        `together`.
        """
        if self._limits.together <= timedelta():
            return
        earlier: dict[str, _Starts] = {}
        starting = [one for one in self._placed.values() if one.start is not None and one.case.groups]
        for one in sorted(starting, key=_start_order):
            if one.case.joins and one.spaced and not one.missed:
                self._join(one, earlier)
            start = self._placed[one.case.node].start
            if start is not None:
                for group in one.case.groups:
                    earlier.setdefault(group, _Starts()).add(start.at, one.case.node)

    def _join(self, one: Placed, earlier: Mapping[str, _Starts]) -> None:
        """Move a start to the first of the earlier ones of its groups that has a place for it."""
        case, before = one.case, one.start
        assert before is not None
        since = shifted(before.at, -self._limits.together)
        mates = sorted(
            (at, group, node)
            for group in case.groups & earlier.keys()
            for at, node in earlier[group].between(since, before.at)
        )
        for at, group, mate in mates[:_TRIES]:
            allowed = first_allowed(case.outlook, case.exempt, at)
            if allowed is None or allowed[0] != at:
                continue
            self._take_back(case)
            if self._free(case, at, at) == at and self._spaced(case, at) == at:
                self._place(case, Start(at, allowed[1], "", mate, group, before.at))
                return
            self._place(case, before)

    def _beside_the_platform(self, case: Case) -> Start | None:
        """Return a start now beside the nodes that the platform has started, None if there is none.

        Their cordons take no place from a drain that can still help. Once they are cordoned, they count.
        """
        struck = [one for name in self._struck if (one := self._placed[name]).start is not None]
        struck = [one for one in struck if not one.case.has_place]
        if not struck or case.times.earliest > self._now:
            return None
        for one in struck:
            self._take_back(one.case)
        start = self._find(case, self._now)
        for one in struck:
            self._place(one.case, one.start)
            self._placed[one.case.node] = one
        return start

    def _at_once(self, case: Case) -> None:
        start = self._find(case, None)
        if start is None or start.at > self._now:
            start = self._beside_the_platform(case) or start
        first = max(case.times.earliest, self._now)
        if case.times.kept and case.outage.too_late_from is not None and first > case.outage.too_late_from:
            start = None
        # Once its maintenance has begun, it takes no place from a case that can be served.
        in_time = first if case.outage.date is None else case.outage.date - timedelta.resolution
        if start is not None and start.at <= in_time:
            self._place(case, start)
            if case.kept_too_long(self._now):
                self._placed[case.node] = replace(self._placed[case.node], missed=True)
        else:
            self._miss(case)

    def _keep_out(self, case: Case) -> None:
        if case.times.deadline is None and not case.short:
            self._place(case, None)
        else:
            self._miss(case)

    def _in_time(self, case: Case, last: datetime) -> None:
        start = self._find(case, last) or self._beside_the_platform(case)
        if start is not None:
            self._place(case, start)
        elif case.exempt.places is not None:
            self._place(case, self._exempt(case))
        elif not self._given_way(case, last):
            self._miss(case)

    def _find(self, case: Case, last: datetime | None) -> Start | None:
        moment, waits = max(case.times.earliest, self._now), ""
        while True:
            allowed = first_allowed(case.outlook, case.exempt, moment)
            if allowed is None:
                return None
            at, window = allowed
            waits = "window" if at > moment else waits
            free = self._free(case, at, last or FOREVER)
            if free is None:
                return None
            spaced = self._spaced(case, free)
            waits = "spacing" if spaced > free else "place" if free > at else waits
            if spaced > (last or FOREVER):
                return None
            if spaced == at:
                return Start(at, window, waits)
            moment = spaced

    def _free(self, case: Case, moment: datetime, last: datetime) -> datetime | None:
        if case.has_place:
            return moment
        while True:
            found: datetime | None = moment
            for limit in self._limits.of(case):
                found = limit.free_from(found, last, case.end) if found is not None else None
            if found is None or found == moment:
                return found
            moment = found

    def _spaced(self, case: Case, moment: datetime) -> datetime:
        spacing, starts, free = self._limits.spacing, self._limits.starts, case.exempt.spacing
        if spacing <= timedelta() or has_come(free, moment):
            return moment
        index = bisect_right(starts, shifted(moment, -spacing))
        while index < len(starts) and starts[index] < shifted(moment, spacing):
            moment = shifted(starts[index], spacing)
            index += 1
        return moment if free is None else min(moment, free)

    def _exempt(self, case: Case) -> Start | None:
        moment = max(case.exempt.places or self._now, case.times.earliest, self._now)
        allowed = first_allowed(case.outlook, case.exempt, moment)
        return Start(*allowed) if allowed is not None else None

    def _place(self, case: Case, start: Start | None) -> None:
        self._known.clear()
        spaced = start is not None and not has_come(case.exempt.spacing, start.at)
        self._placed[case.node] = Placed(case, start, spaced=spaced)
        if start is None:
            return
        begin = self._now if case.has_place else start.at
        planned = not (case.has_place or has_come(case.exempt.places, start.at))
        for limit in self._limits.of(case):
            limit.book(Booking(case.node, begin, case.end(start.at), planned))
        if spaced:
            insort(self._limits.starts, start.at)

    def _take_back(self, case: Case) -> None:
        self._known.clear()
        before = self._placed.pop(case.node)
        for limit in self._limits.of(case):
            if case.node in limit.bookings:
                limit.cancel(case.node)
        if before.spaced and before.start is not None:
            del self._limits.starts[bisect_left(self._limits.starts, before.start.at)]

    def _miss(self, case: Case) -> None:
        """Note that a case is missed. The platform takes its node down all the same, if it does that."""
        self._placed[case.node] = Placed(case, None, True, self._full_limit(case))
        down = case.outage.taken_down
        if down is None or case.has_place:
            return
        for limit in self._limits.of(case):
            limit.book(Booking(case.node, down, case.up_again(down)))

    def _full_limit(self, case: Case) -> str:
        """Return the first limit without a place at the latest start of a case, empty if each has one.

        Empty also if a person keeps the case from a start: then it does not wait for a place.
        """
        if case.kept_too_long(self._now):
            return ""
        at = max(case.times.latest or case.times.deadline or self._now, self._now)
        full = (limit.name for limit in self._limits.of(case) if limit.free_from(at, at, case.end) is None)
        return next(full, "")

    def _given_way(self, case: Case, last: datetime) -> bool:
        """Place a case that finds no place in time by missing another one; return whether that helps.

        The choice is the one that keeps fewer node-minutes out of service: a node that stays in service
        anyway gives way to one that the platform takes down, and the longer maintenance to the shorter one.
        """
        at = case.times.deadline or last
        for other in self._candidates(case, at):
            if _busy(case, at) + _down(other) < _busy(other, at) + _down(case) and self._swap(
                case, other, last
            ):
                return True
        return False

    def _prefer_what_is_lost(self) -> None:
        """Serve the kinds that lose the machine first, where another case can be missed in their place."""
        missed = [
            one.case
            for one in self._placed.values()
            if one.missed and one.start is None and not one.case.kept_out
        ]
        for case in sorted(missed, key=lambda one: -one.kind.severity):
            last = case.in_time_until
            for other in self._candidates(case, case.times.deadline or self._now):
                less = other.kind.severity < case.kind.severity
                if less and last is not None and self._swap(case, other, last):
                    break

    def _candidates(self, case: Case, at: datetime) -> list[Case]:
        limits, end = tuple(self._limits.of(case)), case.end(at)
        # Where many are missed at a time, they all ask for the same.
        asked = (*map(id, limits), at, end)
        if asked not in self._known:
            found = {
                name: one.case
                for limit in limits
                for name in limit.planned_between(at, end)
                if (one := self._placed.get(name)) is not None and one.start is not None and not one.missed
            }
            kept = (
                case for case in found.values() if not (case.short or case.has_place or case.exempt.places)
            )
            self._known[asked] = nlargest(_TRIES, kept, key=lambda one: (one.end(at), one.node))
        return self._known[asked]

    def _swap(self, case: Case, other: Case, last: datetime) -> bool:
        """Place a case in time and miss another in its place; return whether the others stay as they are."""
        before, missed = self._placed[other.node], self._placed.get(case.node)
        if missed is not None:
            self._take_back(case)
        self._take_back(other)
        start = self._find(case, last)
        if start is not None:
            self._place(case, start)
            if self._bears(other):
                self._miss(other)
                return True
            self._take_back(case)
        self._place(other, before.start)
        if missed is not None:
            self._miss(case)
        return False

    def _bears(self, case: Case) -> bool:
        down = case.outage.taken_down
        return down is None or all(limit.bears(down, case.up_again(down)) for limit in self._limits.of(case))

    def _place_late(self, case: Case) -> None:
        limit = self._placed[case.node].limit if case.node in self._placed else self._full_limit(case)
        if case.node in self._placed:
            self._take_back(case)
        start = self._find(case, case.outage.too_late_from)
        if case.times.deadline is None and not case.short:
            self._place(case, start)
            return
        if start is None:
            self._miss(case)
        else:
            self._place(case, start)
        self._placed[case.node] = replace(self._placed[case.node], missed=True, limit=limit)


def _busy(case: Case, at: datetime) -> timedelta:
    return case.end(at) - at


def _down(case: Case) -> timedelta:
    """Return how long the node of a case is out of service if it is missed."""
    down = case.outage.taken_down
    return case.up_again(down) - down if down is not None else timedelta()


def _order(case: Case) -> tuple[bool, bool, datetime, int, datetime, str, str]:
    """Return the sort key of a case: what has started, short notices, the latest start, the worse kind."""
    deadline = case.times.deadline or FOREVER
    return (
        not case.outage.struck,
        not case.short,
        deadline,
        -case.kind.severity,
        case.end(deadline),
        case.zone,
        case.node,
    )


def _late_order(case: Case) -> tuple[bool, datetime, int, str, str]:
    deadline = case.times.deadline
    return (deadline is None, deadline or FOREVER, -case.kind.severity, case.zone, case.node)


def _start_order(one: Placed) -> tuple[datetime, str]:
    return (one.start.at if one.start is not None else FOREVER, one.case.node)
