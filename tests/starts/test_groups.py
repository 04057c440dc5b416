"""Nodes with pods of one group start together, where nothing else moves for that."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.calendar.windows import Calendar
from reconciler.model.event import Kind
from reconciler.model.schedule import StartTimes
from reconciler.model.values import replace
from reconciler.starts.budget import PlacesAhead
from reconciler.starts.schedule import Case, Limits, Outage, Placed, Scheduler
from tests.support.builders import NOW, minutes, settings

HOUR = minutes(60)
TRAIN = frozenset({"JobSet shop/train"})


def case(node: str, latest: int, *, groups: frozenset[str] = TRAIN, ahead: int = 0) -> Case:
    """A reboot whose drain starts `ahead` minutes before its latest start, which is in so many minutes."""
    deadline = NOW + minutes(latest)
    date = deadline + minutes(15)
    return Case(
        node,
        "",
        "",
        Kind.REBOOT,
        StartTimes(deadline - minutes(ahead), deadline, deadline),
        Calendar().outlook(NOW, {}),
        lasts=minutes(30),
        lead=minutes(15),
        outage=Outage(date=date, taken_down=date, back=date + minutes(10)),
        groups=groups,
        joins=True,
    )


def placed(*some: Case, places: int = 9, spacing: timedelta = timedelta()) -> dict[str, Placed]:
    limits = Limits(PlacesAhead("maxUnavailable", places), spacing=spacing, together=HOUR)
    return dict(Scheduler(limits, NOW).run(some))


def starts(found: dict[str, Placed]) -> dict[str, int]:
    """In how many minutes each case starts."""
    return {name: (one.start.at - NOW) // minutes(1) for name, one in found.items() if one.start is not None}


def test_a_group_starts_at_the_earliest_of_its_planned_starts() -> None:
    found = placed(case("a", 30), case("b", 70), case("c", 80, groups=frozenset()))

    assert starts(found) == {"a": 30, "b": 30, "c": 80}
    start = found["b"].start
    assert start is not None
    assert (start.mate, start.group, start.alone) == ("a", "JobSet shop/train", NOW + minutes(70))
    assert not found["b"].missed


@pytest.mark.parametrize(("apart", "together"), [(60, True), (61, False)])
def test_a_node_does_not_stand_empty_longer_than_the_setting_allows(apart: int, together: bool) -> None:
    found = placed(case("a", 30), case("b", 30 + apart))

    assert starts(found)["b"] == (30 if together else 30 + apart)


def test_without_a_place_for_both_each_node_starts_at_its_own_time() -> None:
    assert starts(placed(case("a", 30), case("b", 90), places=1)) == {"a": 30, "b": 90}


def test_nothing_moves_into_a_place_that_another_start_needs() -> None:
    other = case("other", 40, groups=frozenset())

    assert starts(placed(case("a", 30), case("b", 70), other, places=2)) == {"a": 30, "b": 70, "other": 40}


def test_the_spacing_keeps_starts_of_a_group_apart() -> None:
    assert starts(placed(case("a", 30), case("b", 70), spacing=minutes(10))) == {"a": 30, "b": 70}


def test_a_case_that_may_not_join_is_joined_by_others() -> None:
    found = placed(replace(case("a", 30), joins=False), replace(case("b", 50), joins=False), case("c", 70))

    assert starts(found) == {"a": 30, "b": 50, "c": 30}


def test_no_start_moves_out_of_its_windows() -> None:
    calendar = settings('windows: [{name: w, start: "13:00", end: "15:00"}]').calendar
    late = replace(case("b", 70), outlook=calendar.outlook(NOW, {}))

    assert starts(placed(case("a", 30), late)) == {"a": 30, "b": 70}
