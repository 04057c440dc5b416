"""What `reconciler plan` shows of a case agrees with the report."""

from __future__ import annotations

from datetime import timedelta

from reconciler.features.planning.text import ahead_document
from reconciler.report.ahead import plan_ahead
from tests.laws.agreement import ShownNode


def agrees(shown: ShownNode) -> None:
    """The document has the same schedule."""
    plan = shown.plan
    ahead = plan_ahead(plan, plan.labels, shown.history.settings.calendar, plan.now + timedelta(days=7))
    (case,) = (each for each in ahead_document(ahead)["cases"] if each["name"] == shown.node.node)

    assert case["schedule"] == shown.report["schedule"]
