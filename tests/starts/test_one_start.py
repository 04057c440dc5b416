"""What keeps one case from its earliest start, and until when a start is in time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest

from reconciler.calendar.windows import Calendar
from reconciler.model.event import Kind
from reconciler.model.schedule import StartTimes
from reconciler.starts.budget import Booking, PlacesAhead
from reconciler.starts.schedule import Case, Limits, Outage, Placed, Scheduler
from tests.support.builders import NOW, minutes


def case(node: str, *, lead: int = 15, short: bool = False) -> Case:
    """A reboot whose latest start is in half an hour."""
    deadline = NOW - minutes(10) if short else NOW + minutes(30)
    date = NOW + minutes(30) + minutes(lead)
    return Case(
        node,
        "",
        "",
        Kind.REBOOT,
        StartTimes(NOW, deadline, deadline),
        Calendar().outlook(NOW, {}),
        lasts=minutes(30),
        lead=minutes(lead),
        outage=Outage(date=date, taken_down=date, back=date + minutes(10)),
        short=short,
    )


def placed(some: Iterable[Case], limits: Limits) -> dict[str, Placed]:
    return dict(Scheduler(limits, NOW).run(some))


@pytest.mark.parametrize(
    ("free_in", "missed"),
    [pytest.param(30, False, id="at the latest start"), pytest.param(31, True, id="a minute after it")],
)
def test_no_start_is_planned_after_the_latest_start(free_in: int, missed: bool) -> None:
    fleet = PlacesAhead("maxUnavailable", 1)
    fleet.book(Booking("held", NOW, NOW + minutes(free_in)))

    assert placed([case("a")], Limits(fleet))["a"].missed is missed


@pytest.mark.parametrize(
    ("seconds", "lead", "missed"),
    [
        pytest.param(60, 15, False, id="a minute after it"),
        pytest.param(61, 15, True, id="more than a minute"),
        pytest.param(20, 1, False, id="a third of the lead time after it"),
        pytest.param(21, 1, True, id="more than a third"),
        pytest.param(1, 0, True, id="without lead time"),
    ],
)
def test_a_start_by_a_pass_that_comes_late_is_in_time(seconds: int, lead: int, missed: bool) -> None:
    now = NOW + timedelta(minutes=30, seconds=seconds)

    found = Scheduler(Limits(PlacesAhead("maxUnavailable", 1)), now).run([case("a", lead=lead)])
    assert found["a"].missed is missed
    assert found["a"].start is not None


def test_starts_keep_the_spacing_also_from_the_last_one() -> None:
    limits = Limits(PlacesAhead("maxUnavailable", 9), spacing=minutes(10), starts=[NOW - minutes(4)])
    found = placed([case("a"), case("b"), case("c"), case("d")], limits)

    starts = {name: one.start.at for name, one in found.items() if one.start and not one.missed}
    assert starts == {"a": NOW + minutes(6), "b": NOW + minutes(16), "c": NOW + minutes(26)}
    assert found["d"].missed


def test_a_short_notice_gets_the_next_place_before_what_can_wait() -> None:
    found = placed([case("a"), case("short", short=True)], Limits(PlacesAhead("maxUnavailable", 1)))

    assert found["short"].start is not None
    assert found["short"].start.at == NOW
    assert not found["short"].missed
