"""The workflows of all nodes in the form of maintenance-controller's `/api/v1/info`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from jobs.runtime.health import Document
from jobs.runtime.process import Observer, Passed
from reconciler.features.workflows.reports import StepAnswer, WorkflowReport, reports_of
from reconciler.features.workflows.settings import PROFILES
from reconciler.model.expression import names, parse
from reconciler.model.moments import to_text
from reconciler.model.plan import Plan, Verdict


def to_node_info(plan: Plan, types: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return each node with its workflows and the answers of their checks; `types` are those of the checks.

    Labels are empty: `dashboard.labelFilter` has no effect here.
    """
    updated = to_text(plan.now)
    return [
        {
            "node": node.node,
            "profiles": [_profile(report, types) for report in reports_of(node)],
            "labels": {},
            "updated": updated,
        }
        for node in plan.nodes
        if reports_of(node)
    ]


def _profile(report: WorkflowReport, types: Mapping[str, str]) -> dict[str, Any]:
    unknown = [f"{one.name}: {one.words}" for one in report.answers if one.verdict is Verdict.UNKNOWN]
    applied = {
        "next": report.after.value,
        "transitions": [_transition(step, report, types) for step in report.steps],
        "error": ", ".join(unknown),
    }
    return {"applied": applied, "name": report.profile, "state": report.before.value}


def _transition(step: StepAnswer, report: WorkflowReport, types: Mapping[str, str]) -> dict[str, Any]:
    passed, asked = step.verdict is Verdict.PASSED, names(parse(step.check))
    answers = {
        one.name: {
            "id": types.get(one.name, ""),
            "passed": one.verdict is Verdict.PASSED,
            "info": {"error" if one.verdict is Verdict.UNKNOWN else "reason": one.words},
        }
        for one in report.answers
        if one.name in asked
    }
    chain = {"passed": passed, "info": answers, "expression": step.check}
    return {"passed": passed, "target": step.next.value, "chain": chain, "error": ""}


class NodeInfo(Observer):
    """Sends the workflows of all nodes, which only the process that leads knows."""

    def __init__(self) -> None:
        self._passed: Passed | None = None
        self._holder = "nobody"

    @property
    def documents(self) -> Mapping[str, Callable[[], Document]]:
        """Send them where maintenance-controller does."""
        return {"/api/v1/info": self._document}

    def after(self, passed: Passed) -> None:
        """Show this pass from now on."""
        self._passed = passed

    def stands_by(self, holder: str) -> None:
        """Show from now on that another process has the lock."""
        self._passed, self._holder = None, holder

    def _document(self) -> Document:
        passed = self._passed
        info: object = {"error": f"no pass has ended here; {self._holder} has the lock"}
        if passed is not None:
            types = {check.name: check.type for check in PROFILES.of(passed.settings).instances.check}
            info = to_node_info(passed.plan, types)
        return Document("application/json", json.dumps(info).encode())
