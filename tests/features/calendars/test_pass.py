"""A pass decides by what it has read of the calendars. What it can't read allows no early start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import pytest

from reconciler.model.content import CalendarPlace, CalendarText
from reconciler.model.moments import to_text
from reconciler.model.plan import Plan
from reconciler.model.values import replace
from reconciler.run import rehearse
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

    def read(self, places: Sequence[CalendarPlace], now: datetime) -> Mapping[str, CalendarText]:
        return {place.name: self._found[place.name] for place in places}


class Broken:
    """A reader of calendars with a mistake in its program."""

    def read(self, places: Sequence[CalendarPlace], now: datetime) -> Mapping[str, CalendarText]:
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


def test_an_older_content_counts_with_a_note() -> None:
    planned = plan(requested(), Read(freeze=replace(span(3), note="it is half written")), FREEZE)

    assert "the calendar freeze: it is half written" in planned.notes
    assert plan_of(planned).todo.drain is None
