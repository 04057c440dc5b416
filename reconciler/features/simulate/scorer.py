"""How well a policy did: the score of a play."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import date, datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from msgspec import Struct, field

from reconciler.features.simulate.fleet import TimedDrains
from reconciler.features.simulate.scenario import PlayedEvent, Scenario
from reconciler.model.event import Kind
from reconciler.model.node import Node
from reconciler.model.plan import Plan
from reconciler.profiles.checks.starts import budget_left
from reconciler.settings.schema import Settings
from reconciler.simulation.clock import Actor, Happening
from reconciler.simulation.cluster import SimulatedCluster


class Fate(StrEnum):
    """What has become of one event of one node. JSON shows the values, so they never change."""

    IN_WINDOW = "drainedInWindow"
    """The node was empty in time. Its drain had begun while windows and freezes allowed one."""

    AT_DEADLINE = "drainedOutsideWindow"
    """The node was empty in time. Its drain had begun although no window was open."""

    LATE = "late"
    """The node was drained after the date of the event, but before it started."""

    MISSED = "missed"
    """The event started while pods were on the node."""

    CANCELLED = "cancelled"
    """It did not start: it was cancelled, or its VM was gone."""

    OPEN = "open"
    """It had not started when the play ended."""

    IGNORED = "ignored"
    """The policy requires no drain for it."""

    UNSEEN = "unseen"
    """No source that the policy enables reported it."""


class Day(Struct, frozen=True):
    """One day in the time zone of the policy."""

    day: date
    missed: int = 0
    late: int = 0
    refused: int = 0
    most_out: int = 0

    @property
    def badness(self) -> tuple[int, int, int, int]:
        """A sort key: more is worse."""
        return (self.missed, self.late, self.refused, self.most_out)


class Score(Struct, frozen=True):
    """The result of one play.

    `hopeless` are the missed events that were announced later than the drain of their node takes. `empty` is
    the time from the end of each drain until its node was uncordoned or gone, `out` the time for which nodes
    were cordoned, not Ready or gone, both summed over the nodes. `most_out` is the largest number of such
    nodes, first reached at `most_out_at` (UTC). `refused` is how many nodes with an event had to wait for a
    place in the budget, once for each start, `waited` for how long in all. `days` are in order.
    """

    fates: Mapping[Fate, int]
    by_kind: Mapping[Kind, Mapping[Fate, int]]
    hopeless: int
    drains: int
    empty: timedelta
    out: timedelta
    most_out: int
    most_out_at: datetime | None
    refused: int
    waited: timedelta
    days: tuple[Day, ...]

    @property
    def asked(self) -> int:
        """The number of events for which the policy requires a drain."""
        none = (Fate.IGNORED, Fate.UNSEEN)
        return sum(count for fate, count in self.fates.items() if fate not in none)

    def worst_days(self, most: int = 3) -> tuple[Day, ...]:
        """Return the worst days, the worst one first; days on which nothing went wrong are not among them."""
        bad = [day for day in self.days if day.missed or day.late or day.refused]
        return tuple(sorted(bad, key=lambda day: (*(-one for one in day.badness), day.day))[:most])


class _Played(Struct, eq=False):
    """One event: what the plans said about it, and what happened. `fate` is as if the policy asked for it."""

    event: PlayedEvent
    seen: bool = False
    asked: bool = False
    fate: Fate | None = None
    at: datetime | None = None


class _Emptied(Struct, frozen=True):
    """When the last pod left a node, and whether a window was open when the drain began."""

    at: datetime
    in_window: bool


class _BudgetWaits(Struct):
    """The nodes that wait for a place in the budget, since when, and what that came to.

    `counted` are the nodes whose wait for the same start is in `refused` already.
    """

    since: datetime
    held: set[str] = field(default_factory=set)
    counted: set[str] = field(default_factory=set)
    refused: list[datetime] = field(default_factory=list)
    waited: timedelta = timedelta()

    def passed(self, held: set[str], waiting: set[str], now: datetime) -> None:
        """Take in which nodes are held now, of those that wait for a start."""
        self.until(now)
        # A node that waits for its window in between still waits for the same start.
        self.counted &= waiting
        self.refused += [now] * len(held - self.counted)
        self.counted |= held
        self.held = held

    def until(self, now: datetime) -> None:
        """Count the time until now."""
        self.waited += len(self.held) * (now - self.since)
        self.since = now


class Scorer:
    """Listens to the cluster and the drainer of a play; it takes part in nothing."""

    def __init__(
        self, scenario: Scenario, settings: Settings, cluster: SimulatedCluster, drains: TimedDrains
    ) -> None:
        """Listen from now on; nodes that are there already are in service."""
        self._scenario, self._settings, self._cluster = scenario, settings, cluster
        self._events = {event.id: _Played(event) for event in scenario.events}
        self._takes = {node.name: node.drain for node in scenario.nodes}
        self._begun: dict[str, bool] = {}
        self._emptied: dict[str, _Emptied] = {}
        self._late: dict[str, list[_Played]] = {}
        self._drains = 0
        self._empty = timedelta()
        self._out: set[str] = set()
        self._outs: list[tuple[datetime, int]] = [(scenario.start, 0)]
        self._waits = _BudgetWaits(scenario.start)
        cluster.node_listeners.append(self._node_changed)
        cluster.log.listeners.append(self._heard)
        drains.listeners.append(self._drained)

    def passed(self, plan: Plan) -> None:
        """Take in the plan of a pass."""
        held = {node.node for node in plan.nodes if any(hold.code == budget_left.name for hold in node.holds)}
        waiting = {node.node for node in plan.nodes if any(event.asks for event in node.events)}
        self._waits.passed(held, waiting, self._now)
        for node in plan.nodes:
            for judged in node.events:
                for id_ in judged.event.ids:
                    if (played := self._events.get(id_)) is not None:
                        played.seen = True
                        played.asked |= judged.asks
            if node.drain_begins:
                self._drains += 1
                self._waits.counted.discard(node.node)
                labels = self._cluster.nodes[node.node].labels
                self._begun[node.node] = self._settings.calendar.at(self._now, labels).open

    def dropped(self, event: PlayedEvent) -> None:
        """Take in that an event is never announced, because its VM is gone."""
        self._decide(self._events[event.id], Fate.CANCELLED)

    def due(self, event: PlayedEvent) -> None:
        """Take in that the date of a request is reached."""
        played = self._events[event.id]
        if event.node in self._emptied:
            self._decide(played, self._in_time(event))
        else:
            self._late.setdefault(event.node, []).append(played)

    def over(self, event: PlayedEvent) -> None:
        """Take in that a request is removed; nobody has drained for it if it is still due."""
        played = self._events[event.id]
        if played in self._late.get(event.node, ()):
            self._late[event.node].remove(played)
            self._decide(played, Fate.MISSED)

    def score(self, ignored: Collection[str]) -> Score:
        """Return the result at the end of the scenario; `ignored` are events that no plan was about."""
        for id_ in ignored:
            if id_ in self._events:
                self._events[id_].seen = True
        end = self._scenario.end
        self._waits.until(end)
        for emptied in self._emptied.values():
            self._empty += end - emptied.at
        fates: Counter[Fate] = Counter()
        by_kind: dict[Kind, Counter[Fate]] = {}
        hopeless = 0
        for played in self._events.values():
            fate = self._fate(played)
            fates[fate] += 1
            by_kind.setdefault(played.event.kind, Counter())[fate] += 1
            notice = played.event.starts - played.event.at
            hopeless += fate is Fate.MISSED and notice < self._takes[played.event.node]
        # The last count of each moment: what ends in the moment in which it began is none.
        outs = list(dict(self._outs).items())
        most_out_at, most_out = max(outs, key=lambda out: out[1])
        spans = [*outs, (end, 0)]
        return Score(
            fates=dict(fates),
            by_kind={kind: dict(counts) for kind, counts in sorted(by_kind.items())},
            hopeless=hopeless,
            drains=self._drains,
            empty=self._empty,
            out=sum(((later - at) * count for (at, count), (later, _) in pairwise(spans)), timedelta()),
            most_out=most_out,
            most_out_at=most_out_at if most_out else None,
            refused=len(self._waits.refused),
            waited=self._waits.waited,
            days=self._days(outs),
        )

    @property
    def _now(self) -> datetime:
        return self._cluster.clock.now()

    def _fate(self, played: _Played) -> Fate:
        if not played.seen:
            return Fate.CANCELLED if played.fate is Fate.CANCELLED else Fate.UNSEEN
        if not played.asked:
            return Fate.IGNORED
        if played.fate is not None:
            return played.fate
        return Fate.OPEN if played.event.starts > self._scenario.end else Fate.CANCELLED

    def _days(self, outs: list[tuple[datetime, int]]) -> tuple[Day, ...]:
        """Return every day of the play, with what went wrong on it and the most nodes out of service."""
        fates: Counter[tuple[date, Fate]] = Counter()
        for played in self._events.values():
            if played.at is not None:
                fates[self._day(played.at), self._fate(played)] += 1
        refused = Counter(map(self._day, self._waits.refused))
        most: dict[date, int] = {}
        last = self._scenario.end
        for (at, count), (later, _) in pairwise([*outs, (last, 0)]):
            day = self._day(at)
            while day <= self._day(later):
                most[day] = max(most.get(day, 0), count)
                day += timedelta(days=1)
        return tuple(
            Day(day, fates[day, Fate.MISSED], fates[day, Fate.LATE], refused[day], count)
            for day, count in sorted(most.items())
        )

    def _day(self, moment: datetime) -> date:
        return moment.astimezone(self._settings.time_zone).date()

    def _decide(self, played: _Played, fate: Fate) -> None:
        if played.fate is None:
            played.fate, played.at = fate, self._now

    def _in_time(self, event: PlayedEvent) -> Fate:
        emptied = self._emptied[event.node]
        if emptied.at > event.not_before:
            return Fate.LATE
        return Fate.IN_WINDOW if emptied.in_window else Fate.AT_DEADLINE

    def _heard(self, happening: Happening) -> None:
        if happening.actor is Actor.PLATFORM and (played := self._events.get(happening.subject)) is not None:
            if happening.what.endswith(" started"):
                empty = happening.node in self._emptied
                self._decide(played, self._in_time(played.event) if empty else Fate.MISSED)
            elif happening.what.endswith(" cancelled"):
                self._decide(played, Fate.CANCELLED)
        if happening.what == "node gone":
            self._filled(happening.node)
            # Its place is empty until a new VM has joined.
            self._count_out(happening.node, True)

    def _drained(self, node: str) -> None:
        self._emptied[node] = _Emptied(self._now, self._begun.get(node, True))
        for played in self._late.pop(node, ()):
            self._decide(played, Fate.LATE)

    def _node_changed(self, node: Node) -> None:
        if not node.unschedulable:
            self._filled(node.name)
        self._count_out(node.name, bool(node.out_of_service))

    def _filled(self, node: str) -> None:
        emptied = self._emptied.pop(node, None)
        if emptied is not None:
            self._empty += self._now - emptied.at

    def _count_out(self, node: str, out: bool) -> None:
        if out == (node in self._out):
            return
        if out:
            self._out.add(node)
        else:
            self._out.discard(node)
        self._outs.append((self._now, len(self._out)))
