"""Retry-After in both of its forms, and everything that is neither."""

import pytest

from reconciler.http.plain import LONGEST_WAIT, retry_after

NOON = 1_767_268_800.0
"""2026-01-01T12:00:00Z as Unix time."""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("7", 7.0, id="seconds"),
        pytest.param(" 0 ", 0.0, id="zero, with spaces"),
        pytest.param("Thu, 01 Jan 2026 12:00:30 GMT", 30.0, id="a date"),
        pytest.param("Thu, 01 Jan 2026 12:00:30 -0000", 30.0, id="a date without a zone is UTC"),
        pytest.param("Thu, 01 Jan 2026 11:00:00 GMT", 0.0, id="a date in the past is no wait"),
        pytest.param(None, None, id="no header"),
        pytest.param("", None, id="empty"),
        pytest.param("soon", None, id="a word"),
        pytest.param("-5", None, id="a negative number"),
        pytest.param("1.5", None, id="a fraction"),
        pytest.param("86400", LONGEST_WAIT, id="a day is too long"),
        pytest.param("9" * 400, LONGEST_WAIT, id="more than a float holds"),
        pytest.param("Thu, 01 Jan 9999 12:00:30 GMT", LONGEST_WAIT, id="a date in year 9999"),
        pytest.param("Thu, 99 Jan 2026 12:00:30 GMT", None, id="no such day"),
    ],
)
def test_a_header_becomes_a_wait_in_seconds(text: str | None, seconds: float | None) -> None:
    assert retry_after(text, lambda: NOON) == seconds
