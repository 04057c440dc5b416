"""selfServiceDone: a new boot, or a long time."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconciler.model.plan import Verdict
from reconciler.model.record import SelfService
from tests.support.builders import NOW, ask, minutes, situation
from tests.support.planning import azure_node, drained


@pytest.mark.parametrize(
    ("asked", "boot", "verdict", "until"),
    [
        pytest.param(None, "boot-1", Verdict.PASSED, None, id="nobody asked"),
        pytest.param(NOW - minutes(5), "boot-1", Verdict.FAILED, NOW + minutes(55), id="no boot yet"),
        pytest.param(NOW - minutes(5), "", Verdict.FAILED, NOW + minutes(55), id="no boot reported"),
        pytest.param(NOW - minutes(5), "boot-2", Verdict.PASSED, None, id="booted"),
        pytest.param(NOW - minutes(60), "boot-1", Verdict.PASSED, None, id="but the node did not boot"),
    ],
)
def test_done_is_a_new_boot_or_a_long_time(
    asked: datetime | None, boot: str, verdict: Verdict, until: datetime | None
) -> None:
    held = drained(SelfService(asked, 1, "boot-1") if asked else None)
    answer = ask("selfServiceDone", situation(azure_node(boot), held=held))

    assert (answer.verdict, answer.until) == (verdict, until)
