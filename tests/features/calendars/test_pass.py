"""A pass decides by what it has read of the calendars. What it can't read allows no early start."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import pytest

from reconciler.features.calendars.feature import LAST_CONTENT as KEPT
from reconciler.model.content import CalendarPlace, CalendarText
from reconciler.model.moments import to_text
from reconciler.model.plan import Plan
from reconciler.model.values import replace
from reconciler.run import rehearse, run_pass
from reconciler.simulation.world import World
from tests.support import builders
from tests.support.builders import NOW, REQUEST, plan_of
from tests.support.worlds import world_of

FREEZE = "calendars: [{name: freeze, file: /f.ics}]"
WINDOWS = "calendars: [{name: nights, file: /f.ics, as: windows}]"


class Read:
    """A reader of calendars that always finds the same."""

    def __init__(self, **found: CalendarText) -> None:
        self._found = found

    def read(self, places: Sequence[CalendarPlace]) -> Mapping[str, CalendarText]:
        return {place.name: self._found[place.name] for place in places}


class Broken:
    """A reader of calendars with a mistake in its program."""

    def read(self, places: Sequence[CalendarPlace]) -> Mapping[str, CalendarText]:
        raise RuntimeError("broken")


def requested(not_before: datetime | None = None) -> World:
    """Return a world with a node whose drain is requested."""
    when = f',"notBefore":"{to_text(not_before)}"' if not_before else ""
    return world_of([builders.node("a", annotations={REQUEST: f'{{"kind":"Reboot"{when}}}'})], [])


def plan(world: World, reader: Read | Broken, settings: str) -> Plan:
    return rehearse(replace(world.outside, calendars=reader), builders.settings(settings), NOW)


def span(days: int) -> CalendarText:
    """Return a list with one freeze of so many days from the day before NOW on."""
    start = NOW - timedelta(days=1)
    return CalendarText(f"- {{start: {to_text(start)}, end: {to_text(start + timedelta(days=days))}}}")


def test_a_freeze_of_a_calendar_holds_until_its_end() -> None:
    found = plan_of(plan(requested(), Read(freeze=span(3)), FREEZE))

    (hold,) = [hold for hold in found.holds if hold.code == "windowOpen"]
    assert hold.reason.startswith(f"not allowed: freeze until {to_text(NOW + timedelta(days=2))}")
    assert hold.until == NOW + timedelta(days=2)
    assert found.todo.drain is None


def test_a_freeze_that_is_over_holds_nothing() -> None:
    assert plan_of(plan(requested(), Read(freeze=span(1)), FREEZE)).todo.drain is not None


@pytest.mark.parametrize("settings", [FREEZE, WINDOWS])
@pytest.mark.parametrize(
    "reader", [Read(freeze=CalendarText(unread="gone"), nights=CalendarText(unread="gone")), Broken()]
)
def test_a_calendar_that_is_not_known_holds_and_says_so(settings: str, reader: Read | Broken) -> None:
    planned = plan(requested(), reader, settings)

    found = plan_of(planned)
    assert found.todo.drain is None
    assert any("can't be read: " in hold.reason for hold in found.holds if hold.code == "windowOpen")
    assert any("calendar" in note for note in planned.notes)


@pytest.mark.parametrize("settings", [FREEZE, WINDOWS, FREEZE.replace("}]", ", absolute: true}]")])
def test_but_not_beyond_a_deadline(settings: str) -> None:
    unread = CalendarText(unread="gone")

    found = plan_of(plan(requested(NOW), Read(freeze=unread, nights=unread), settings))

    assert found.todo.drain is not None


def passed(world: World, reader: Read | Broken, settings: str) -> Plan:
    """Run a pass in a process of its own, which may write."""
    world.restart()
    return run_pass(replace(world.outside, calendars=reader), builders.settings(settings), world.now)[0]


UNREAD = Read(freeze=CalendarText(unread="it is half written"))
ABSOLUTE = FREEZE.replace("}]", ", absolute: true}]")


@pytest.mark.parametrize("reader", [UNREAD, Broken()])
def test_the_last_good_content_counts_for_a_day_whichever_process_has_read_it(reader: Read | Broken) -> None:
    world = requested(NOW)
    passed(world, Read(freeze=span(3)), ABSOLUTE)
    world.advance(timedelta(hours=5))

    plans = [passed(world, reader, ABSOLUTE)]
    world.advance(KEPT - timedelta(seconds=1))
    plans.append(passed(world, reader, ABSOLUTE))

    until = to_text(NOW + timedelta(hours=5) + KEPT)
    for planned in plans:
        assert plan_of(planned).todo.drain is None
        assert any(note.endswith(f"what it said before counts until {until}") for note in planned.notes)
    world.advance(timedelta(seconds=1))
    over = passed(world, reader, ABSOLUTE)
    assert plan_of(over).todo.drain is not None
    assert any("allows no start before a deadline" in note for note in over.notes)


def test_a_content_that_is_good_again_ends_the_day() -> None:
    world = requested(NOW)
    good = Read(freeze=span(9))
    passed(world, good, ABSOLUTE)
    passed(world, UNREAD, ABSOLUTE)
    world.advance(KEPT - timedelta(hours=1))
    assert not any("freeze" in note for note in passed(world, good, ABSOLUTE).notes)
    passed(world, UNREAD, ABSOLUTE)
    world.advance(timedelta(hours=2))

    assert plan_of(passed(world, UNREAD, ABSOLUTE)).todo.drain is None


def test_the_content_of_another_place_does_not_count() -> None:
    world = requested(NOW)
    passed(world, Read(freeze=span(3)), ABSOLUTE)

    other = passed(world, UNREAD, ABSOLUTE.replace("/f.ics", "/g.ics"))

    assert plan_of(other).todo.drain is not None


def test_a_calendar_that_is_read_or_not_read_again_and_again_costs_no_write() -> None:
    world = requested()
    for reader in (Read(freeze=span(3)), UNREAD):
        passed(world, reader, FREEZE)
        for _ in range(3):
            world.advance(timedelta(minutes=1))
            before = world.api.writes
            passed(world, reader, FREEZE)
            assert world.api.writes == before


def test_what_has_no_room_is_said_and_costs_the_others_nothing() -> None:
    noise = CalendarText(
        f"- {{start: 2030-01-01, end: 2030-01-02, reason: {random.Random(1).randbytes(300_000).hex()}}}"
    )
    settings = "calendars: [{name: a, file: /a.ics}, {name: freeze, file: /f.ics, absolute: true}]"
    world = requested(NOW)

    planned = passed(world, Read(a=noise, freeze=span(3)), settings)
    unread = passed(world, Read(a=CalendarText(unread="gone"), freeze=CalendarText(unread="gone")), settings)

    assert [note for note in planned.notes if "calendar" in note] == [
        "the calendar a is too large to be kept: when it can't be read, it allows no start before a deadline"
    ]
    assert plan_of(unread).todo.drain is None
