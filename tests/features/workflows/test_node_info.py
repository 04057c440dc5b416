"""The workflows of nodes in the form of maintenance-controller's `/api/v1/info`."""

from __future__ import annotations

import json
from typing import Any

from jobs.runtime.process import Passed
from reconciler.features.workflows.node_info import NodeInfo, to_node_info
from reconciler.features.workflows.reports import StepAnswer, WorkflowReport, WorkflowReports
from reconciler.features.workflows.services import NAME
from reconciler.model.plan import CheckAnswer, NodePlan, Plan, Verdict
from reconciler.model.record import State
from tests.support.builders import NOW, settings

REPORT = WorkflowReport(
    "reboots",
    State.OPERATIONAL,
    State.REQUIRED,
    NOW,
    steps=(
        StepAnswer(State.REQUIRED, "go && !late", Verdict.PASSED, taken=True),
        StepAnswer(State.IN_MAINTENANCE, "turn", Verdict.UNKNOWN),
        StepAnswer(State.IN_MAINTENANCE, "", Verdict.PASSED),
    ),
    answers=(
        CheckAnswer("go", Verdict.PASSED, "the node has the label"),
        CheckAnswer("late", Verdict.FAILED, "it is early"),
        CheckAnswer("turn", Verdict.UNKNOWN, "a Lease can't be read"),
    ),
)


def test_each_node_has_its_profiles_with_the_answers_of_each_transition() -> None:
    def plan(name: str, *reports: WorkflowReport) -> NodePlan:
        return NodePlan(
            name, "", "", State.OPERATIONAL, State.OPERATIONAL, of_features={NAME: WorkflowReports(reports)}
        )

    (node,) = to_node_info(Plan(NOW, "Enforce", (plan("a", REPORT), plan("b"))), {"go": "hasLabel"})

    assert (node["node"], node["labels"], node["updated"]) == ("a", {}, "2026-11-21T12:00:00Z")
    (profile,) = node["profiles"]
    assert (profile["name"], profile["state"]) == ("reboots", "operational")
    applied = profile["applied"]
    assert (applied["next"], applied["error"]) == ("maintenance-required", "turn: a Lease can't be read")
    assert [(one["target"], one["passed"]) for one in applied["transitions"]] == [
        ("maintenance-required", True),
        ("in-maintenance", False),
        ("in-maintenance", True),
    ]
    assert applied["transitions"][0]["chain"] == {
        "passed": True,
        "expression": "go && !late",
        "info": {
            "go": {"id": "hasLabel", "passed": True, "info": {"reason": "the node has the label"}},
            "late": {"id": "", "passed": False, "info": {"reason": "it is early"}},
        },
    }
    assert applied["transitions"][1]["chain"]["info"]["turn"]["info"] == {"error": "a Lease can't be read"}
    assert applied["transitions"][2]["chain"]["info"] == {}


def test_the_workflows_of_nodes_are_known_to_the_process_that_leads_only() -> None:
    info = NodeInfo()

    def known() -> Any:
        document = info.documents["/api/v1/info"]()
        assert document.content_type == "application/json"
        return json.loads(document.body)

    info.stands_by("another")
    assert "another" in known()["error"]
    info.after(Passed(Plan(NOW, "Enforce"), settings()))
    assert known() == []
