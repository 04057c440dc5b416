"""A drain that a person has stopped is said to be so, and not to be begun earlier."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconciler.features.planning.text import as_lines
from reconciler.report.ahead import plan_ahead
from reconciler.report.lines import Screen
from tests.passes.decide.test_stops import stopped
from tests.support import builders
from tests.support.builders import NOW, minutes


@pytest.mark.parametrize(
    ("until", "said"), [(None, "its drain is stopped"), (NOW + minutes(5), "HELD")], ids=["a miss", "no miss"]
)
def test_a_stopped_drain(until: datetime | None, said: str) -> None:
    plan = stopped(until)
    ahead = plan_ahead(plan, plan.labels, builders.settings().calendar, NOW + minutes(600))
    text = "\n".join(line.text for line in as_lines(ahead, Screen(120)))

    assert said in text
    assert "Start its drain earlier" not in text
