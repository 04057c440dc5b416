"""When `serve` makes a pass although nothing has changed: each time, and the longest time between two."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from reconciler.settings.load import parse_settings

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "longest"),
    [
        ("{}", None),
        ("{every: 5m}", timedelta(minutes=5)),
        ('{cron: "*/10 * * * *"}', timedelta(minutes=10)),
        ('{cron: "*/10 8-17 * * mon-fri"}', timedelta(days=2, hours=14, minutes=10)),
        ('{cron: "0 9 1 * *"}', timedelta(days=31)),
    ],
)
def test_the_longest_time_between_two_passes_is_known(text: str, longest: timedelta | None) -> None:
    passes = parse_settings(f"passes: {text}", "f").passes

    assert passes.apart(datetime(2026, 11, 24, 12, tzinfo=UTC), BERLIN) == longest


@pytest.mark.parametrize(
    ("began", "then"),
    [
        ("2026-10-24T07:59:58+02:00", "2026-10-24T08:00:00+02:00"),
        ("2026-10-24T07:59:59.5+02:00", "2026-10-25T08:00:00+01:00"),
        ("2026-10-24T08:00:00+02:00", "2026-10-25T08:00:00+01:00"),
    ],
)
def test_a_pass_is_for_one_time_of_the_schedule(began: str, then: str) -> None:
    passes = parse_settings('passes: {cron: "0 8 * * *"}', "f").passes

    assert passes.next_after(datetime.fromisoformat(began), BERLIN) == datetime.fromisoformat(then)
