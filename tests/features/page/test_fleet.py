"""The grid of the fleet: each node once, in its zone and pool, as what it is."""

from __future__ import annotations

from reconciler.features.page.facts import (
    MOST_LISTED,
    MOST_NAMED,
    Cell,
    PageFacts,
    Square,
    Zone,
    listed,
    used,
    zones,
)
from reconciler.model.case_outcome import CaseResult
from reconciler.model.plan import NodePlan, NodeStatus, Plan
from reconciler.model.record import DrainRecord, PlatformStart, State
from reconciler.model.schedule import CaseSchedule
from reconciler.model.snapshot import FleetNode
from reconciler.model.values import replace
from tests.support import builders
from tests.support.builders import NOW, known, record

QUIET = NodePlan("a", "1", "web", State.OPERATIONAL, State.OPERATIONAL)
ANNOUNCED = replace(QUIET, after=State.REQUIRED, schedule=CaseSchedule())
BUSY = replace(QUIET, before=State.IN_MAINTENANCE, after=State.IN_MAINTENANCE)


def grid(nodes: tuple[NodePlan, ...], *fleet: FleetNode, rehearsed: bool = False) -> tuple[Zone, ...]:
    return zones(PageFacts(Plan(NOW, "Enforce", nodes, fleet=fleet), rehearsed, builders.settings().calendar))


def cell(plan: NodePlan | None, node: FleetNode | None = None, *, rehearsed: bool = False) -> Cell:
    node = node or FleetNode("a", "1", "web")
    found = grid((plan,) if plan else (), node, rehearsed=rehearsed)
    return found[0].pools[0].squares[0].cell


def test_a_node_is_what_the_plan_says_first() -> None:
    assert cell(None) is Cell.SERVING
    assert cell(QUIET) is Cell.SERVING
    assert cell(ANNOUNCED) is Cell.ANNOUNCED
    assert cell(replace(ANNOUNCED, schedule=CaseSchedule(missed=True))) is Cell.MISSED
    draining = record()
    assert draining.drain is not None
    assert (
        cell(replace(BUSY, record=replace(draining, drain=replace(draining.drain, done=None))))
        is Cell.DRAINING
    )
    assert cell(replace(BUSY, record=draining)) is Cell.DRAINED
    assert cell(replace(QUIET, status=NodeStatus(unread=(("imds", "away"),)))) is Cell.UNKNOWN


def test_a_dry_run_leaves_a_node_in_its_state() -> None:
    begun = record(drain=DrainRecord(NOW))
    begins = replace(BUSY, before=State.OPERATIONAL, schedule=CaseSchedule(), record=begun)

    assert cell(begins) is Cell.DRAINING
    assert cell(begins, rehearsed=True) is Cell.ANNOUNCED


def test_a_node_without_a_case_is_closed_or_not_managed() -> None:
    closed = FleetNode("a", closed="NotReady")

    assert cell(None, closed) is Cell.CLOSED
    assert cell(ANNOUNCED, closed) is Cell.ANNOUNCED
    assert cell(None, FleetNode("a", managed=False, closed="NotReady")) is Cell.UNMANAGED


def test_zones_and_pools_are_sorted_and_counted() -> None:
    fleet = (
        FleetNode("b", "2", "web"),
        FleetNode("c", "1", "web"),
        FleetNode("a", "2", "batch", closed="NotReady"),
        FleetNode("d", "2", "web"),
    )
    found = grid((), *fleet)

    assert [(zone.name, [pool.name for pool in zone.pools]) for zone in found] == [
        ("1", ["web"]),
        ("2", ["batch", "web"]),
    ]
    assert found[1].pools[0].squares == (Square(Cell.CLOSED, "a: closed by others, NotReady", "a"),)
    assert found[1].counts == {Cell.CLOSED: 1, Cell.SERVING: 2}
    assert used(found) == (Cell.CLOSED, Cell.SERVING)


def test_too_many_nodes_that_are_not_in_service_have_no_names() -> None:
    fleet = tuple(FleetNode(f"n{number}", closed="NotReady") for number in range(MOST_NAMED + 1))

    def squares(count: int) -> set[bool]:
        (zone,) = grid((), *fleet[:count])
        assert zone.counts == {Cell.CLOSED: count}
        return {bool(square.about) for square in zone.pools[0].squares}

    assert squares(MOST_NAMED) == {True}
    assert squares(MOST_NAMED + 1) == {False}


def test_in_a_small_fleet_each_node_has_its_name_and_in_a_large_one_those_not_in_service() -> None:
    def named(count: int) -> list[str]:
        fleet = [FleetNode(f"n{number:03}") for number in range(count)]
        (zone,) = grid((), FleetNode("closed", closed="NotReady"), *fleet)
        return [square.node for square in listed([zone], ())]

    assert named(2) == ["closed", "n000", "n001"]
    assert named(MOST_LISTED) == ["closed"]


def test_a_node_that_was_struck_is_missed() -> None:
    struck = record(drain=None)
    facts = replace(struck.facts, starts=(PlatformStart(known(), NOW, 3),))
    plan = replace(BUSY, record=replace(struck, drain=None, facts=facts))

    assert plan.outcome is not None
    assert plan.outcome.result is CaseResult.MISSED
    assert cell(plan) is Cell.MISSED
