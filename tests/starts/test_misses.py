"""As many cases as possible are served in time, and what is said to prevent a miss prevents it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.calendar.windows import Calendar
from reconciler.model.event import Kind
from reconciler.model.schedule import Exemption, StartTimes
from reconciler.model.values import replace
from reconciler.starts.budget import Booking, PlacesAhead
from reconciler.starts.forecast import Reasons
from reconciler.starts.schedule import Case, Limits, Outage, Placed, Scheduler
from tests.laws.hits import Hits
from tests.support.builders import NOW, minutes
from tests.support.searching import examples

STEP = minutes(5)
ANY_TIME = Calendar().outlook(NOW, {})


@st.composite
def case(draw: st.DrawFn) -> Case:
    """A case whose moments are multiples of five minutes."""
    deadline = NOW + minutes(5 * draw(st.integers(1, 12)))
    date = deadline + minutes(draw(st.sampled_from((0, 15))))
    return Case(
        "",
        "",
        "",
        draw(st.sampled_from((Kind.REBOOT, Kind.REDEPLOY))),
        StartTimes(deadline - minutes(draw(st.sampled_from((0, 10, 30, 60)))), deadline, deadline),
        ANY_TIME,
        lasts=minutes(30),
        exempt=Exemption(windows=deadline),
        outage=Outage(
            date=date,
            taken_down=date if draw(st.booleans()) else None,
            back=date + minutes(draw(st.sampled_from((5, 20, 60)))),
        ),
    )


cases = st.lists(case(), min_size=1, max_size=4).map(
    lambda some: [replace(one, node=f"n{number}") for number, one in enumerate(some)]
)
held_for = st.lists(st.sampled_from((5, 15, 40)), max_size=1)


def scheduled(some: Iterable[Case], places: int, held: Sequence[int]) -> tuple[Limits, dict[str, Placed]]:
    """Place the cases where other nodes hold places for so many minutes."""
    fleet = PlacesAhead("maxUnavailable", places)
    for number, length in enumerate(held):
        fleet.book(Booking(f"held{number}", NOW - STEP, NOW + minutes(length)))
    limits = Limits(fleet)
    return limits, dict(Scheduler(limits, NOW).run(some))


@dataclass(frozen=True, slots=True)
class Span:
    """When a node is out of service.

    `tie`: it takes no place from a start at the moment at which it begins.
    """

    begin: datetime
    end: datetime
    tie: bool = False

    def holds(self, at: datetime) -> bool:
        """Whether it takes a place from a start at a moment."""
        return (self.begin < at if self.tie else self.begin <= at) and at < self.end


def most_served(some: Sequence[Case], places: int, held: Sequence[int]) -> int:
    """Return how many cases can be served in time: the best of all combinations of starts."""
    return max(
        sum(start is not None for start in starts)
        for starts in product(*(possible(one) for one in some))
        if allowed(some, starts, places, [*_held(held), *_down(some, starts)])
    )


def possible(one: Case) -> list[datetime | None]:
    """Return every start in time, on the grid, and none."""
    first, last = max(one.times.earliest, NOW), one.in_time_until
    assert last is not None
    return [None, *(first + number * STEP for number in range((last - first) // STEP + 1))]


def _held(held: Iterable[int]) -> list[Span]:
    return [Span(NOW - STEP, NOW + minutes(length)) for length in held]


def _down(some: Sequence[Case], starts: Sequence[datetime | None], *, ties: bool = False) -> list[Span]:
    """Return when the nodes without a start are taken down. They ask nobody.

    With `ties`, one that is taken down at the moment of a start comes after it.
    """
    return [
        Span(one.outage.taken_down, one.end(one.outage.taken_down), ties)
        for one, start in zip(some, starts, strict=True)
        if start is None and one.outage.taken_down is not None
    ]


def allowed(
    some: Sequence[Case], starts: Sequence[datetime | None], places: int, others: Sequence[Span]
) -> bool:
    """Whether no start finds every place taken, by another start or by the others."""
    begun = [
        Span(start, one.end(start)) for one, start in zip(some, starts, strict=True) if start is not None
    ]
    spans = [*others, *begun]
    return all(sum(other.holds(one.begin) for other in spans) <= places for one in begun)


CONTESTED = Hits()


@CONTESTED.at_least(40)
@settings(max_examples=examples(300))
@given(cases, st.sampled_from((1, 1, 2)), held_for)
def test_as_many_as_possible_are_served(some: list[Case], places: int, held: list[int]) -> None:
    _, placed = scheduled(some, places, held)
    served = sum(not one.missed for one in placed.values())
    CONTESTED.count(served < len(some))

    assert served >= most_served(some, places, held)


PROMISED = Hits()


@PROMISED.at_least(100)
@settings(max_examples=examples(600))
@given(cases, st.sampled_from((1, 1, 2)), held_for)
def test_each_start_that_is_promised_finds_a_place(some: list[Case], places: int, held: list[int]) -> None:
    _, placed = scheduled(some, places, held)
    found = [placed[case.node] for case in some]
    starts = [one.start.at if one.start is not None and not one.missed else None for one in found]
    PROMISED.count(sum(start is not None for start in starts))

    assert allowed(some, starts, places, [*_held(held), *_down(some, starts, ties=True)])


HELPED = Hits()


@HELPED.at_least(40)
@settings(max_examples=examples(400))
@given(cases, st.sampled_from((1, 1, 2)), held_for)
def test_the_budget_that_is_said_to_do_does(some: list[Case], places: int, held: list[int]) -> None:
    limits, placed = scheduled(some, places, held)
    reasons = Reasons(limits, placed, NOW)
    needs = [reasons.need(one) for one in placed.values() if one.missed]
    HELPED.count(len(needs))
    if not needs:
        return
    _, again = scheduled(some, max(needs), held)

    assert [name for name, one in again.items() if one.missed] == []


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_at_one_moment_the_kind_that_loses_the_machine_goes_first(first: int) -> None:
    kinds = [Kind.REBOOT, Kind.REDEPLOY]
    deadline, date = NOW + minutes(30), NOW + minutes(45)
    some = [
        Case(
            f"n{number}",
            "",
            "",
            kinds[number ^ first],
            StartTimes(NOW, deadline, deadline),
            ANY_TIME,
            lasts=minutes(30),
            exempt=Exemption(windows=deadline),
            # The longer maintenance would give way if the kinds were the same.
            outage=Outage(
                taken_down=date, back=date + minutes(60 if kinds[number ^ first] is Kind.REDEPLOY else 5)
            ),
        )
        for number in range(2)
    ]
    _, placed = scheduled(some, 1, ())

    assert {one.case.kind: one.missed for one in placed.values()} == {Kind.REBOOT: True, Kind.REDEPLOY: False}


def test_the_kind_that_loses_the_machine_gets_the_place_of_one_with_an_earlier_deadline() -> None:
    some = [
        Case(
            kind,
            "",
            "",
            kind,
            StartTimes(NOW, deadline, deadline),
            ANY_TIME,
            lasts=minutes(30),
            outage=Outage(taken_down=deadline + minutes(15), back=deadline + minutes(45)),
        )
        for kind, deadline in ((Kind.REBOOT, NOW + minutes(25)), (Kind.REDEPLOY, NOW + minutes(30)))
    ]
    _, placed = scheduled(some, 1, ())

    assert {name: one.missed for name, one in placed.items()} == {Kind.REBOOT: True, Kind.REDEPLOY: False}


def test_a_short_notice_gets_the_place_that_the_reserve_keeps() -> None:
    fleet = PlacesAhead("maxUnavailable", 2)
    deadline = NOW + minutes(30)
    planned = [
        Case(
            f"n{number}",
            "",
            "",
            Kind.REBOOT,
            StartTimes(NOW, deadline, deadline),
            ANY_TIME,
            timedelta(hours=1),
            outage=Outage(date=deadline, back=deadline + minutes(60)),
        )
        for number in range(2)
    ]
    late = replace(planned[0], node="short", times=StartTimes(NOW, NOW, NOW - minutes(1)), short=True)
    placed = Scheduler(Limits(fleet, PlacesAhead("planned", 1)), NOW).run([*planned, late])

    assert {name for name, one in placed.items() if not one.missed} == {"n0", "short"}


CHANGED = Hits()


@CHANGED.at_least(40)
@settings(max_examples=examples(1000))
@given(cases, st.sampled_from((1, 1, 2)), held_for, st.sampled_from((minutes(0), minutes(10))))
def test_only_what_is_planned_is_booked_whatever_was_tried_before(
    some: list[Case], places: int, held: list[int], spacing: timedelta
) -> None:
    fleet = PlacesAhead("maxUnavailable", places)
    for number, length in enumerate(held):
        fleet.book(Booking(f"held{number}", NOW - STEP, NOW + minutes(length)))
    limits = Limits(fleet, spacing=spacing)
    placed = dict(Scheduler(limits, NOW).run(some))
    spans = fleet.bookings.values()
    CHANGED.count(any(one.missed for one in placed.values()))

    for at in sorted({moment for one in spans for moment in (one.begin, one.end)}):
        assert fleet.held(at) == sum(one.begin <= at < one.end for one in spans)
    for one in placed.values():
        booked = fleet.bookings.get(one.case.node)
        begins = one.start.at if one.start is not None else one.case.outage.taken_down
        assert (booked.begin if booked is not None else None) == begins
    started = [one.start.at for one in placed.values() if one.start is not None and one.spaced]
    assert sorted(limits.starts) == sorted(started)
