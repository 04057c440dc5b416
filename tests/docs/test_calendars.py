"""docs/calendars.md: its examples can be used as they stand."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic.alias_generators import to_snake

from reconciler.features.calendars.parsing import parse_calendar
from reconciler.features.calendars.settings import CALENDARS, CalendarSettings
from reconciler.model import limits
from reconciler.model.content import CalendarPlace
from reconciler.settings.load import parse_settings

PAGE = (Path(__file__).parents[2] / "docs" / "calendars.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


PLACES = ("file", "aks", "configMap", "secret")


def test_these_are_the_places_of_a_calendar() -> None:
    rest = {"name", "as", "nodeSelector", "timeZone", "reason", "absolute"}

    assert {str(field.alias) for field in CalendarSettings.model_fields.values()} == {*PLACES, *rest}


@pytest.mark.parametrize("place", PLACES)
def test_each_place_of_a_calendar_has_a_row_and_an_example_that_loads(place: str) -> None:
    (example,) = [block for block in BLOCKS if block.startswith("calendars:")]
    table = PAGE.partition("| place |")[2].partition("\n\n")[0]

    calendars = CALENDARS.of(parse_settings(example, "calendars.md"))

    assert f"`{place}`" in table
    assert [calendar for calendar in calendars if getattr(calendar, to_snake(place)) is not None]


def test_the_list_of_freezes_is_one() -> None:
    (text,) = [block for block in BLOCKS if block.startswith("- {start")]

    assert len(parse_calendar(text, CalendarPlace("c")).events) == 2


def test_the_limits_are_those_of_the_program() -> None:
    from reconciler.features.calendars import ical

    section = PAGE.partition("\n## Limits\n")[2]
    numbers = (
        limits.CALENDAR,
        ical.MOST_EVENTS,
        ical.MOST_REPEATING,
        ical.MOST_COUNTED,
        ical.MOST_STARTS,
        limits.CALENDARS,
    )
    assert [int(found.replace(",", "")) for found in re.findall(r"\d[\d,]*", section)] == list(numbers)


@pytest.mark.parametrize(
    ("language", "first"), [("ics", "2026-01-30T17:00:00+00:00"), ("json", "2026-01-02T21:00:00+00:00")]
)
def test_the_example_of_a_format_is_one(language: str, first: str) -> None:
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)

    run = next(parse_calendar(text, CalendarPlace("c")).runs(datetime(2026, 1, 1, tzinfo=UTC)))

    assert run.start.isoformat() == first
