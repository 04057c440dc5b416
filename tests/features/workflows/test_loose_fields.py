"""Values as files for maintenance-controller have them."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter

from reconciler.features.workflows.trigger_types import LabelValue
from reconciler.settings.loose import Dates, LooseCount, LooseFlag, LooseText, LooseTexts, parse_go_duration
from reconciler.settings.yaml import GoFloat


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("1h30m", 5400),
        ("200ms", 0.2),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("+3s", 3),
        ("0", 0),
        ("1d", 86_400),
        (20, 20),
        (0.5, 0.5),
    ],
)
def test_durations_are_those_of_go(written: object, seconds: float) -> None:
    assert parse_go_duration(written) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "written",
    ["", "5", "1h 30m", "-1h", -3, True, None, "9" * 70 + "s", "4000d", 1e300, float("nan"), float("inf")],
)
def test_anything_else_is_no_duration(written: object) -> None:
    with pytest.raises(ValueError, match=r"is not a duration|is negative|longer than ten years"):
        parse_go_duration(written)


@pytest.mark.parametrize(
    ("kind", "written", "read"),
    [
        (LooseText, True, "true"),
        (LooseText, 3, "3"),
        (LooseTexts, "a", ("a",)),
        (LooseTexts, ["a", 1], ("a", "1")),
        (LooseCount, "12", 12),
        (LooseCount, GoFloat(2.0), 2),
        (LooseText, GoFloat(1.10), "1.1"),
        (LooseText, GoFloat(1.0), "1"),
        (LabelValue, GoFloat(1.10), "1.1"),
        (LooseFlag, "yes", True),
    ],
)
def test_values_are_read_as_loosely_as_there(kind: Any, written: object, read: object) -> None:
    assert TypeAdapter(kind).validate_python(written) == read


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (LooseText, None),
        (LooseText, "a" * 1025),
        (LooseTexts, ["a"] * 101),
        (LooseCount, -1),
        (LooseCount, True),
        (LooseCount, GoFloat(1.5)),
        (LooseCount, 2.0),
        (LabelValue, 1.1),
        (LooseCount, 10**9),
        (LooseFlag, "maybe"),
        (LooseFlag, 1),
        (Dates, "Dec 32"),
        (Dates, ["Dec 3"] * 367),
    ],
)
def test_what_nobody_can_mean_is_refused(kind: Any, written: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words are those of each field
        TypeAdapter(kind).validate_python(written)


def test_a_date_is_of_every_year_or_of_one() -> None:
    yearly, leap, once = TypeAdapter(Dates).validate_python(["Feb 3", "february 29", "2026-12-24"])

    assert yearly.covers(date(2031, 2, 3))
    assert not yearly.covers(date(2031, 2, 4))
    assert leap.covers(date(2028, 2, 29))
    assert once.covers(date(2026, 12, 24))
    assert not once.covers(date(2027, 12, 24))
