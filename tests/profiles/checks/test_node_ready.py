"""nodeReady, by the kubelet's word and the settle time."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconciler.model.plan import Verdict
from tests.support.builders import NOW, ask, minutes, node, situation


@pytest.mark.parametrize(
    ("ready", "since", "verdict", "until"),
    [
        pytest.param(False, NOW - minutes(60), Verdict.FAILED, None, id="NotReady"),
        pytest.param(True, NOW - minutes(1), Verdict.FAILED, NOW + minutes(1), id="Ready just now"),
        pytest.param(True, NOW - minutes(2), Verdict.PASSED, None, id="Ready for the settle time"),
        pytest.param(True, None, Verdict.PASSED, None, id="Ready, nobody says since when"),
    ],
)
def test_ready_means_ready_for_the_settle_time(
    ready: bool, since: datetime | None, verdict: Verdict, until: datetime | None
) -> None:
    answer = ask("nodeReady", situation(node(ready=ready, ready_since=since)))

    assert (answer.verdict, answer.until) == (verdict, until)
