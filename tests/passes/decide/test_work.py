"""How the work of a decision grows with the number of its cases: it is counted in calls, not in time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from types import FrameType

import pytest

from reconciler.model.event import Kind, Signal, Status
from reconciler.model.holds import NODE_WRITABLE
from reconciler.model.snapshot import Ledger, ReadForSettings, Snapshot, Undone
from reconciler.model.values import replace
from reconciler.model.writes import CORDON
from reconciler.passes.node_facts import Progress
from reconciler.starts.budget import count_places
from tests.support import builders
from tests.support.builders import NOW, minutes, node, reported, signal

CASES = 60


def _growth(fleet: Callable[[int], Snapshot], text: str) -> float:
    """Return how many times the calls are made that a decision about some cases makes, for twice as many."""
    chosen = builders.settings(text)
    few, many = (_calls(partial(builders.planned, fleet(cases), chosen)) for cases in (CASES, 2 * CASES))
    return many / few


def _calls(work: Callable[[], object]) -> int:
    count = 0

    def counted(_frame: FrameType, event: str, _function: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def _fleet(cases: int, event: Callable[[int], Signal]) -> Snapshot:
    nodes = [node(f"n{number}", zone=f"z{number % 3}", pool="np") for number in range(cases)]
    return builders.snapshot(
        *nodes, readings={each.name: reported(event(number)) for number, each in enumerate(nodes)}
    )


def _at_once(_number: int) -> Signal:
    return signal(Kind.REDEPLOY)


def _some_day(_number: int) -> Signal:
    return signal(Kind.REDEPLOY, not_before=NOW + timedelta(hours=8))


def _ahead(number: int) -> Signal:
    return signal(Kind.REDEPLOY, not_before=NOW + timedelta(hours=8) + minutes(number))


def _half_has_started(number: int) -> Signal:
    if number % 2:
        return signal(Kind.REBOOT, not_before=None, status=Status.STARTED)
    return signal(Kind.REBOOT, not_before=NOW + minutes(5 + number))


def _kinds(number: int) -> Signal:
    kind = (Kind.REDEPLOY, Kind.FREEZE, Kind.REBOOT, Kind.TERMINATE)[number % 4]
    return signal(kind, not_before=NOW + timedelta(hours=2), duration=minutes(number % 7))


ALL = "budget: {maxUnavailable: 100%, perZone: 100%, perPool: 100%}\ndrain: {maxConcurrentNodes: 10000}"
WINDOW = "windows: [{name: night, start: '01:00', end: '05:00'}]"


@pytest.mark.parametrize(
    ("settings", "event", "starts"),
    [
        pytest.param(ALL, _at_once, CASES, id="all start"),
        pytest.param(WINDOW, _at_once, 0, id="all wait for a window"),
        pytest.param("budget: {maxUnavailable: 1}", _at_once, 1, id="one place"),
        pytest.param("budget: {maxUnavailable: 1}", _ahead, 0, id="one place for all dates"),
        pytest.param("budget: {maxUnavailable: 50%}", _some_day, 0, id="half of them find a place"),
        pytest.param("budget: {maxUnavailable: 50%, perZone: 20%}", _at_once, 12, id="places in zones"),
        pytest.param("budget: {maxUnavailable: 50%, spacing: 10m}", _ahead, 0, id="spaced"),
        pytest.param("budget: {maxUnavailable: 20%}", _half_has_started, 42, id="half of them have started"),
        pytest.param("budget: {maxUnavailable: 20%}", _kinds, 0, id="some lose more than others"),
    ],
)
def test_the_work_grows_with_the_number_of_cases(
    settings: str, event: Callable[[int], Signal], starts: int
) -> None:
    plan = builders.planned(_fleet(CASES, event), builders.settings(settings))

    assert sum(each.starts for each in plan.nodes) == starts
    assert _growth(lambda cases: _fleet(cases, event), settings) < 2.1


def test_the_work_grows_with_the_nodes_that_have_pods_of_one_group() -> None:
    def fleet(cases: int) -> Snapshot:
        found = _fleet(cases, _ahead)
        groups = {each.name: frozenset({"shop/web"}) for each in found.nodes}
        return replace(found, for_settings=ReadForSettings(groups=groups))

    assert _growth(fleet, "budget: {maxUnavailable: 100%}\ndrain: {groupsTogether: 6h}") < 2.1


def test_the_work_grows_with_the_number_of_writes_that_did_not_stay() -> None:
    def fleet(cases: int) -> Snapshot:
        found = _fleet(cases, _at_once)
        lost = tuple(Undone(each.name, each.uid, (CORDON,), "denied", 1, NOW) for each in found.nodes)
        return replace(found, ledger=replace(found.ledger, undone=lost))

    plan = builders.planned(fleet(CASES), builders.settings(ALL))

    assert {hold.code for each in plan.nodes for hold in each.holds} == {NODE_WRITABLE.code}
    assert _growth(fleet, ALL) < 2.1


def test_a_start_that_failed_costs_the_same_however_many_nodes_hold_a_place() -> None:
    def failing(holders: int) -> Callable[[], object]:
        fleet = [node(f"n{number}", unschedulable=True) for number in range(holders)]
        progress = Progress(count_places(fleet, {}, builders.settings(ALL).budget, NOW), Ledger())

        def fail() -> None:
            for number in range(CASES):
                before = progress.saved()
                progress.places = progress.places.take(node(f"m{number}"), "ours, starting")
                progress.restore(before)

        return fail

    assert _calls(failing(2 * CASES)) == _calls(failing(CASES))
