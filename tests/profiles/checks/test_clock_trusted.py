"""clockTrusted, by how far answers of the API server are from the time of the pass."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.plan import Verdict
from reconciler.model.structs import replace
from tests.support.builders import ask, situation


@pytest.mark.parametrize(
    ("skew", "verdict", "reason"),
    [
        pytest.param(None, Verdict.PASSED, "", id="nobody can say"),
        pytest.param(30.0, Verdict.PASSED, "", id="just within"),
        pytest.param(-30.0, Verdict.PASSED, "", id="just within, behind"),
        pytest.param(
            31.0,
            Verdict.FAILED,
            "answers of the API server are 31s behind others of the last minute; correct the clocks of its"
            " machines",
            id="ahead",
        ),
        pytest.param(
            -90.0,
            Verdict.FAILED,
            "answers of the API server are 90s ahead of others of the last minute; correct the clocks of its"
            " machines",
            id="behind",
        ),
    ],
)
def test_a_clock_that_is_off_starts_nothing(skew: float | None, verdict: Verdict, reason: str) -> None:
    off = None if skew is None else timedelta(seconds=skew)
    answer = ask("clockTrusted", replace(situation(), skew=off))

    assert (answer.verdict, answer.reason) == (verdict, reason)
