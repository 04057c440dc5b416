"""How a request without an answer is worded."""

from __future__ import annotations

import pytest
import urllib3

from reconciler.http.failures import cause_of

POOL = urllib3.HTTPConnectionPool("127.0.0.1")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (urllib3.exceptions.MaxRetryError(POOL, "/secret", OSError("no route")), "no route"),
        (OSError("two\n  lines"), "two lines"),
        (TimeoutError(), "TimeoutError"),
        (OSError("x" * 400), "x" * 299 + "…"),
    ],
)
def test_the_cause_of_a_failure_is_one_line(error: Exception, said: str) -> None:
    assert cause_of(error) == said
