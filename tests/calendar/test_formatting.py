"""Moments for people: in one zone, which a line names once."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.calendar.values import in_zone
from reconciler.model.moments import to_text

BERLIN = ZoneInfo("Europe/Berlin")
MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Auckland", "Asia/Kolkata"])


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("until 2026-11-21T22:00:00Z", "until Sat 2026-11-21 23:00 CET (Europe/Berlin)"),
        (
            "opens at 2026-11-21T22:00:00Z, before 2026-11-22T07:45:30Z",
            "opens at Sat 2026-11-21 23:00 CET (Europe/Berlin), before Sun 2026-11-22 08:45:30",
        ),
        (
            "from 2026-10-25T00:30:00Z to 2026-10-25T01:30:00Z",
            "from Sun 2026-10-25 02:30 CEST (Europe/Berlin) to Sun 2026-10-25 02:30 CET",
        ),
        (
            "Azure writes 2026-11-21T22:00:00.1234567+00:00",
            "Azure writes Sat 2026-11-21 23:00 CET (Europe/Berlin)",
        ),
        (
            "since:2026-11-21T22:00:00Z: it settles",
            "since:Sat 2026-11-21 23:00 CET (Europe/Berlin): it settles",
        ),
        ("2026-11-26T00:00-05:00.", "Thu 2026-11-26 06:00 CET (Europe/Berlin)."),
    ],
)
def test_a_line_has_one_zone_and_names_it_once(line: str, shown: str) -> None:
    assert in_zone(line, BERLIN) == shown


def test_a_page_that_names_the_zone_once_has_lines_without_it() -> None:
    line = "from 2026-10-25T00:30:00Z to 2026-10-25T01:30:00Z"

    assert in_zone(line, BERLIN, named=False) == "from Sun 2026-10-25 02:30 to Sun 2026-10-25 02:30 CET"


@pytest.mark.parametrize(
    "line",
    [
        "no moment",
        "2026-13-41T22:00:00Z",
        "9999-12-31T23:59:59Z",
        "pod-2026-11-21T22:00:00Z",
        "2026-11-21T22:00:00Zulu",
        "2026-11-21T22:00",
    ],
)
def test_what_is_no_moment_stays_as_it_is(line: str) -> None:
    assert in_zone(line, BERLIN) == line


@given(st.lists(MOMENTS, min_size=1, max_size=4), ZONES)
def test_whatever_the_moments_and_the_zone(moments: list[datetime], name: str) -> None:
    shown = in_zone(" and ".join(map(to_text, moments)), ZoneInfo(name))
    assert not re.search(r"\dZ", shown)
    assert shown.count(name) == 1


@given(st.text())
def test_whatever_is_in_the_line_it_never_raises_and_ends(line: str) -> None:
    in_zone(line, BERLIN)
