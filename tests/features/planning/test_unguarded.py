"""A plan beside nodes that nobody guards is never green."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.calendar.windows import Calendar
from reconciler.features.planning.text import ahead_document, as_lines
from reconciler.report.ahead import PlanAhead, plan_ahead
from reconciler.report.document import to_report
from reconciler.report.lines import ASCII, Screen
from tests.report.test_people import TYPO, pass_with


def ahead_of(text: str, mode: str = "Enforce") -> PlanAhead:
    """The plan of a week over two nodes; the first one has a Redeploy in an hour."""
    plan = pass_with(text, mode)
    return plan_ahead(plan, plan.labels, Calendar([], []), plan.now + timedelta(days=7))


def test_settings_that_select_no_node_are_red_in_the_plan() -> None:
    lines = as_lines(ahead_of(TYPO), Screen(200, None, ASCII))
    red = "\n".join(line.text for line in lines if line.alarm)

    assert "NO NODE: the settings select none of the 2 nodes" in red
    assert "UNGUARDED: a: Redeploy: nodeSelector does not select it" in red
    assert "UNGUARDED  a " in red
    assert "No case" not in "\n".join(line.text for line in lines)


@pytest.mark.parametrize(("text", "mode"), [(TYPO, "Enforce"), ("", "Finish"), ("", "Observe")])
def test_the_plan_and_the_report_have_the_same_reason_in_json(text: str, mode: str) -> None:
    ahead = ahead_of(text, mode)
    report = to_report(ahead.plan, rehearsed=True).document
    [case], row = ahead_document(ahead)["cases"], report["nodes"][0]

    assert case["unguarded"] == row["unguarded"]
    assert row["unguarded"]["why"] == ("notSelected" if text else "mode")
    [asked] = [each for each in report["people"] if each["nodes"]]
    assert (asked["nodes"], "reconciler drain a" in asked["who"]) == (["a"], True)
