"""What the page is made of: a plan with what belongs to it, and the fleet as a grid.

Each node is in the grid with its state, by zone and pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from zoneinfo import ZoneInfo

from msgspec import Struct, field

from reconciler.calendar.windows import Calendar
from reconciler.model.case_outcome import CaseResult, InTime
from reconciler.model.drains import Phase
from reconciler.model.ended_case import EndedCase
from reconciler.model.explanation import Obstacle
from reconciler.model.findings import KnownFindings
from reconciler.model.holds import DRAIN_BLOCKED, NOT_CLAIMED
from reconciler.model.outcome import Outcome
from reconciler.model.panels import Panel
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.record import State
from reconciler.report.ahead import PlanAhead, plan_ahead
from reconciler.report.explain import FORECAST

BACK = timedelta(hours=24)
"""How far the page looks back."""

SUMMED = timedelta(days=30)
"""The cases of so many days are summed up."""

AHEAD = timedelta(hours=48)
"""How far the page looks ahead."""


class History(Struct, frozen=True):
    """The cases that have ended, as far as they are known.

    `since` is from when on this process knows them (UTC), None if it knows none. `read_from` is from when on
    those before are known from a file (UTC), None without a file.
    """

    since: datetime | None = None
    ended: tuple[EndedCase, ...] = ()
    read_from: datetime | None = None

    def in_time(self, now: datetime) -> tuple[int, int, datetime] | None:
        """Return how many cases were in time, of how many of which that is known, and since when.

        It is None if it is known of none in the days before `now` that are summed up.
        """
        first = now - SUMMED
        counted = Counter(case.outcome.in_time for case in self.ended if case.times.ended >= first)
        known = counted[InTime.YES] + counted[InTime.NO]
        if not known:
            return None
        begins = [moment for moment in (self.since, self.read_from) if moment is not None]
        return counted[InTime.YES], known, max(min(begins, default=first), first)


class PageFacts(Struct, frozen=True, dict=True):
    """A plan, and what belongs to its page.

    `rehearsed` says that nothing was written, `outcomes` are the results of the actions. `obstacles` say for
    each node what holds it and who can end that. `calendar` has the windows and freezes of the settings,
    `words` is what the settings do, line by line. `trouble` is what is wrong with the process itself.
    `served` says that a process sends the page, and a newer one to who asks again; else it is a file.
    `panels` are what other features show first.
    """

    plan: Plan
    rehearsed: bool
    calendar: Calendar
    outcomes: tuple[Outcome, ...] = ()
    obstacles: Mapping[str, tuple[Obstacle, ...]] = field(default_factory=dict)
    history: History = History()
    words: str = ""
    trouble: tuple[str, ...] = ()
    readiness: KnownFindings = KnownFindings()
    served: bool = False
    panels: tuple[Panel, ...] = ()

    @property
    def zone(self) -> ZoneInfo:
        """The zone in which people read moments."""
        return ZoneInfo(self.plan.settings.time_zone)

    @cached_property
    def ahead(self) -> PlanAhead:
        """What will start in the time that the page looks ahead."""
        return plan_ahead(self.plan, self.plan.labels, self.calendar, self.plan.now + AHEAD)

    @property
    def observes(self) -> bool:
        """Whether there are cases of which nothing starts, because the mode is Observe."""
        return any(node.schedule is not None and node.schedule.observed for node in self.plan.nodes)

    def presses(self, node: NodePlan) -> bool:
        """Whether something blocks the node that can't wait: its latest start is over, and it is not drained.

        What ends by itself, and a pod that may still leave, blocks nothing. In mode Observe nothing starts.
        """
        schedule, drain = node.schedule, node.record.drain if node.record is not None else None
        if schedule is None or schedule.observed or (drain is not None and drain.done is not None):
            return False
        if schedule.latest_start is None or schedule.latest_start > self.plan.now:
            return False
        progress = node.draining.progress
        blocked = progress is not None and any(not blocker.leaving for blocker in progress.blockers)
        held = (
            obstacle
            for obstacle in self.obstacles.get(node.node, ())
            if obstacle.code not in (DRAIN_BLOCKED.code, FORECAST)
        )
        return schedule.missed or blocked or any(not obstacle.by_itself for obstacle in held)

    def recent(self) -> tuple[EndedCase, ...]:
        """Return the cases that ended in the time that the page looks back, the last one first."""
        first = self.plan.now - BACK
        recent = (case for case in self.history.ended if case.times.ended >= first)
        return tuple(sorted(recent, key=lambda case: case.times.ended, reverse=True))


class Cell(StrEnum):
    """What a node of the grid is, the worst first."""

    MISSED = "missed"
    BLOCKED = "blocked"
    UNGUARDED = "unguarded"
    DRAINING = "draining"
    DRAINED = "drained"
    MAINTAINED = "maintained"
    ANNOUNCED = "announced"
    CLOSED = "closed"
    UNKNOWN = "unknown"
    UNMANAGED = "unmanaged"
    SERVING = "serving"


MEANINGS = {
    Cell.MISSED: "missed, or will be",
    Cell.BLOCKED: "blocked, and can't wait",
    Cell.UNGUARDED: "maintenance, and nobody guards it",
    Cell.DRAINING: "draining",
    Cell.DRAINED: "drained",
    Cell.MAINTAINED: "in maintenance, with its pods",
    Cell.ANNOUNCED: "maintenance announced",
    Cell.CLOSED: "closed by others",
    Cell.UNKNOWN: "not known",
    Cell.UNMANAGED: "not managed",
    Cell.SERVING: "in service",
}
"""What each cell means, in the order in which people read them."""


MOST_NAMED = 1_000
"""Squares with a name. If there are more of them, the grid shows only how many there are of each kind."""


MOST_LISTED = 300
"""Nodes without a case that the page lists by name. Those in service are listed in a fleet of this size."""


class Square(Struct, frozen=True):
    """One node. `node` and `about` are empty for a node in service, and for all nodes if too many are not."""

    cell: Cell
    about: str = ""
    node: str = ""


class Pool(Struct, frozen=True):
    """The nodes of one pool in one zone."""

    name: str
    squares: tuple[Square, ...]


class Zone(Struct, frozen=True):
    """The nodes of one zone by pool, and how many there are of each kind. An empty name is no zone."""

    name: str
    pools: tuple[Pool, ...]
    counts: Counter[Cell]


def cells(facts: PageFacts) -> Mapping[str, Cell]:
    """Return what each node of the fleet is on the map."""
    plans = {node.node: node for node in facts.plan.nodes}
    states = {}
    for node in facts.plan.fleet:
        plan = plans.get(node.node)
        cell = cell_of(plan, facts) if plan is not None else None
        if cell is None and not node.managed:
            cell = Cell.UNMANAGED
        elif cell is None and node.closed:
            cell = Cell.CLOSED
        elif cell is None:
            cell = Cell.UNKNOWN if plan is not None and plan.status.unread else Cell.SERVING
        states[node.node] = cell
    return states


def zones(facts: PageFacts) -> tuple[Zone, ...]:
    """Return the grid of the whole fleet, sorted by zone, pool and name."""
    fleet = facts.plan.fleet
    states = cells(facts)
    named = sum(cell is not Cell.SERVING for cell in states.values()) <= MOST_NAMED
    all_named = len(fleet) <= MOST_LISTED
    grid: dict[str, dict[str, list[Square]]] = {}
    for node in sorted(fleet, key=lambda node: (node.zone, node.pool, node.node)):
        pools = grid.setdefault(node.zone, {})
        cell = states[node.node]
        square = Square(cell)
        if named and (all_named or cell is not Cell.SERVING):
            why = f", {node.closed}" if node.closed and cell in (Cell.CLOSED, Cell.UNMANAGED) else ""
            square = Square(cell, f"{node.node}: {MEANINGS[cell]}{why}", node.node)
        pools.setdefault(node.pool, []).append(square)
    return tuple(
        Zone(
            zone,
            tuple(Pool(pool, tuple(squares)) for pool, squares in pools.items()),
            Counter(square.cell for squares in pools.values() for square in squares),
        )
        for zone, pools in grid.items()
    )


def listed(grid: Iterable[Zone], cases: Container[str]) -> tuple[Square, ...]:
    """Return the named nodes without a row in the table of cases, none if there are too many of them."""
    squares = (square for zone in grid for pool in zone.pools for square in pool.squares)
    named = [square for square in squares if square.node and square.node not in cases]
    return tuple(named) if len(named) <= MOST_LISTED else ()


NOT_KNOWN = "not known"
STATES = (*(state.value for state in State), NOT_KNOWN)
"""The columns of the table of profiles."""


def profiles(plan: Plan) -> Mapping[str, Counter[str]]:
    """Return how many nodes of each workflow are in which state."""
    found: dict[str, Counter[str]] = {}
    for nodes in plan.profiles:
        state = nodes.state.value if nodes.state is not None else NOT_KNOWN
        found.setdefault(nodes.profile, Counter())[state] += nodes.count
    return found


def used(grid: Iterable[Zone]) -> tuple[Cell, ...]:
    """Return the kinds of nodes that there are, in the order of the legend."""
    there = {cell for zone in grid for cell in zone.counts}
    return tuple(cell for cell in MEANINGS if cell in there)


def cell_of(node: NodePlan, facts: PageFacts) -> Cell | None:
    """Return what a node of the plan is, None if the plan says nothing about its state.

    A pass that is rehearsed leaves each node in its state.
    """
    state, outcome = node.before if facts.rehearsed else node.after, node.outcome
    struck = outcome is not None and outcome.result is CaseResult.MISSED
    if struck or (node.schedule is not None and node.schedule.missed):
        return Cell.MISSED
    if facts.presses(node):
        return Cell.BLOCKED
    if node.unguarded is not None:
        return Cell.UNGUARDED
    if state is State.IN_MAINTENANCE:
        if outcome is not None and outcome.drained is not None:
            return Cell.DRAINED
        return Cell.DRAINING if _drains(node) else Cell.MAINTAINED
    if node.schedule is not None or state is State.REQUIRED:
        return Cell.ANNOUNCED
    return None


def _drains(node: NodePlan) -> bool:
    """Whether pods are moved from the node: a workflow may be in maintenance without a cordon or a drain."""
    progress = node.draining.progress
    return (
        (node.record is not None and node.record.drain is not None)
        or node.drain_begins
        or node.todo.drain is not None
        or (progress is not None and progress.phase is Phase.RUNNING)
        or any(hold.code == NOT_CLAIMED.code for hold in node.holds)
    )
