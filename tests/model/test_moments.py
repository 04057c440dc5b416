"""Times that are moved, to the ends of the calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.moments import shifted

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "by", "found"),
    [
        pytest.param(NOON, timedelta(hours=-1), NOON - timedelta(hours=1), id="in the calendar"),
        pytest.param(LAST, timedelta(microseconds=1), LAST, id="after its end"),
        pytest.param(NOON, timedelta.max, LAST, id="far after its end"),
        pytest.param(FIRST, -timedelta(microseconds=1), FIRST, id="before its begin"),
        pytest.param(NOON, timedelta.min, FIRST, id="far before its begin"),
    ],
)
def test_a_time_that_is_moved_stays_in_the_calendar(moment: datetime, by: timedelta, found: datetime) -> None:
    assert shifted(moment, by) == found
