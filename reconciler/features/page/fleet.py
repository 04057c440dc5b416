"""The fleet as a grid: each node with its state, by zone and pool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum

from msgspec import Struct

from reconciler.model.case_outcome import CaseResult
from reconciler.model.plan import FleetNode, NodePlan, Plan
from reconciler.model.record import State


class Cell(StrEnum):
    """What a node of the grid is, the worst first."""

    MISSED = "missed"
    BLOCKED = "blocked"
    DRAINING = "draining"
    DRAINED = "drained"
    ANNOUNCED = "announced"
    CLOSED = "closed"
    UNKNOWN = "unknown"
    UNMANAGED = "unmanaged"
    SERVING = "serving"


MEANINGS = {
    Cell.MISSED: "missed, or will be",
    Cell.BLOCKED: "blocked, and can't wait",
    Cell.DRAINING: "draining",
    Cell.DRAINED: "drained",
    Cell.ANNOUNCED: "maintenance announced",
    Cell.CLOSED: "closed by others",
    Cell.UNKNOWN: "not known",
    Cell.UNMANAGED: "not managed",
    Cell.SERVING: "in service",
}
"""What each cell means, in the order in which people read them."""


MOST_NAMED = 1_000
"""Squares with a name. If there are more of them, the grid shows only how many there are of each kind."""


class Square(Struct, frozen=True):
    """One node. `about` is empty for a node in service, and for all nodes if too many are not."""

    cell: Cell
    about: str = ""


class Pool(Struct, frozen=True):
    """The nodes of one pool in one zone."""

    name: str
    squares: tuple[Square, ...]


class Zone(Struct, frozen=True):
    """The nodes of one zone by pool, and how many there are of each kind. An empty name is no zone."""

    name: str
    pools: tuple[Pool, ...]
    counts: Counter[Cell]


def zones(plan: Plan, presses: Callable[[NodePlan], bool], *, rehearsed: bool) -> tuple[Zone, ...]:
    """Return the grid of the whole fleet, sorted by zone, pool and name; `rehearsed`: nothing was written.

    `presses` is whether something blocks a node that can't wait.
    """
    plans = {node.node: node for node in plan.nodes}
    cells = {node.node: _cell(node, plans.get(node.node), presses, rehearsed) for node in plan.fleet}
    named = sum(cell is not Cell.SERVING for cell in cells.values()) <= MOST_NAMED
    found: dict[str, dict[str, list[Square]]] = {}
    for node in sorted(plan.fleet, key=lambda one: (one.zone, one.pool, one.node)):
        pools = found.setdefault(node.zone, {})
        square = _square(node, cells[node.node]) if named else Square(cells[node.node])
        pools.setdefault(node.pool, []).append(square)
    return tuple(
        Zone(
            zone,
            tuple(Pool(pool, tuple(squares)) for pool, squares in pools.items()),
            Counter(square.cell for squares in pools.values() for square in squares),
        )
        for zone, pools in found.items()
    )


def used(found: Iterable[Zone]) -> tuple[Cell, ...]:
    """Return the kinds of nodes that there are, in the order of the legend."""
    there = {cell for zone in found for cell in zone.counts}
    return tuple(cell for cell in MEANINGS if cell in there)


def cell_of(node: NodePlan, presses: Callable[[NodePlan], bool], *, rehearsed: bool) -> Cell | None:
    """Return what a node of the plan is, None if the plan says nothing about its state.

    A pass that is `rehearsed` leaves each node in its state.
    """
    state = node.before if rehearsed else node.after
    drained = node.outcome is not None and node.outcome.drained is not None
    if (node.schedule is not None and node.schedule.missed) or _struck(node):
        return Cell.MISSED
    if presses(node):
        return Cell.BLOCKED
    if state is State.IN_MAINTENANCE:
        return Cell.DRAINED if drained else Cell.DRAINING
    if node.schedule is not None or state is State.REQUIRED:
        return Cell.ANNOUNCED
    return None


def _struck(node: NodePlan) -> bool:
    return node.outcome is not None and node.outcome.result is CaseResult.MISSED


def _cell(
    node: FleetNode, plan: NodePlan | None, presses: Callable[[NodePlan], bool], rehearsed: bool
) -> Cell:
    cell = cell_of(plan, presses, rehearsed=rehearsed) if plan is not None else None
    if cell is not None:
        return cell
    if not node.managed:
        return Cell.UNMANAGED
    if node.closed:
        return Cell.CLOSED
    return Cell.UNKNOWN if plan is not None and plan.unread else Cell.SERVING


def _square(node: FleetNode, cell: Cell) -> Square:
    if cell is Cell.SERVING:
        return Square(cell)
    why = f", {node.closed}" if node.closed and cell in (Cell.CLOSED, Cell.UNMANAGED) else ""
    return Square(cell, f"{node.node}: {MEANINGS[cell]}{why}")
