"""Until when a forecast stays the same while a case that is planned for now is held."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconciler.model.event import Kind
from reconciler.model.limits import EARLIEST
from reconciler.model.schedule import StartTimes
from reconciler.starts.budget import Booking, PlacesAhead
from reconciler.starts.forecast import forecast_until
from reconciler.starts.schedule import Case, Limits, Place, Placed, Start, assumed_end
from tests.support import builders
from tests.support.builders import NOW, minutes

AT_NOON = 'windows: [{name: noon, start: "11:00", end: "12:40"}]'


def placed(name: str, start: float, text: str = "", *, missed: bool = False) -> Placed:
    """A case without a date that takes an hour, planned for so many minutes from now."""
    case = Case(
        node=name,
        zone="",
        pool="",
        kind=Kind.REBOOT,
        times=StartTimes(EARLIEST),
        outlook=builders.settings(text).calendar.outlook(NOW, {}),
        lasts=minutes(60),
    )
    return Placed(case, Start(NOW + minutes(start)), missed)


def until(*some: Placed, others: bool = False) -> datetime | None:
    """Until when the forecast of these cases stays the same; with `others` somebody else holds a place."""
    limits = Limits(PlacesAhead("maxUnavailable", 1))
    if others:
        end, limits.changes_at = assumed_end(None, NOW)
        limits.hold(Place("theirs", "", ""), end)
    for one in some:
        assert one.start is not None
        limits.fleet.book(Booking(one.case.node, one.start.at, one.case.end(one.start.at), planned=True))
    return forecast_until(limits, {one.case.node: one for one in some}, NOW)


def test_where_nothing_is_planned_for_now_time_alone_changes_nothing() -> None:
    assert until(placed("a", 10), placed("b", 90)) is None


def test_what_waits_for_a_start_that_moves_moves_too_until_it_meets_a_start_that_does_not() -> None:
    # b takes the place of a at 13:00, until 14:00.
    chain = (placed("a", 0), placed("b", 60), placed("c", 150))
    assert until(*chain) == NOW + minutes(30) + minutes(0).resolution


def test_the_assumed_end_of_a_place_that_somebody_else_holds_stays_for_a_minute() -> None:
    assert until(placed("a", 90), others=True) == NOW + minutes(1)


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(placed("a", 0, AT_NOON), id="a start that moves"),
        pytest.param(placed("a", 600, AT_NOON, missed=True), id="the reason of a miss"),
    ],
)
def test_the_end_of_a_window_may_change_a_forecast(one: Placed) -> None:
    assert until(one) == NOW + minutes(40)
