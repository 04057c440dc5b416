"""What makes the holds of workflows, and what their checks print, for the entries in docs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from zoneinfo import ZoneInfo

from reconciler.features.workflows import holds
from reconciler.features.workflows.checks import CHECK_TYPES
from reconciler.model.keys import OwnKeys
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan, Verdict
from reconciler.report.explain import who_ends
from reconciler.report.text import shown
from reconciler.settings.load import parse_settings
from tests.docs.holds import plan_on
from tests.docs.situations import NODE, WIDTH
from tests.features.workflows import test_checks as workflow_checks
from tests.features.workflows import test_decide as workflows
from tests.features.workflows.scene import ask as ask_workflow
from tests.support import builders
from tests.support.builders import PREFIX

WORKFLOW = """profiles:
  instances:
    check: [{type: hasLabel, name: agreed, config: {key: agreed}}]
  profiles:
  - name: os
    maintenance-required: {transitions: [{check: agreed, next: in-maintenance}]}
"""


def _in_workflow(state: str, profile: str = "os", data: str = "") -> Node:
    kept = {"Transition": "2026-11-21T11:00:00Z", "Current": state, "Previous": state}
    text = data or json.dumps({"Profiles": {"os": kept}, "Notifications": {}})
    labels = {f"{PREFIX}/maintenance-profile": profile}
    return builders.node(NODE, labels=labels, annotations={f"{PREFIX}/maintenance-data": text})


def _without_its_workflow() -> NodePlan:
    world = workflows.with_pod("draining")
    workflows.passes(world, workflows.theirs(), 4)
    without = parse_settings("mode: Enforce\nkeys: {prefix: cloud.sap}", "maintenance.yaml")
    return workflows.plan_of(workflows.passes(world, without, 2))


def _uncordoned() -> NodePlan:
    world = workflows.with_pod("draining")
    world.cluster.bare_pods_stop_after = timedelta(hours=1)
    workflows.passes(world, workflows.theirs(), 3)
    world.cluster.cordon("a", on=False)
    return workflows.plan_of(workflows.passes(world, workflows.theirs(), 2))


HOLDS: Mapping[str, Callable[[], NodePlan]] = {
    holds.WORKFLOW.code: lambda: plan_on(_in_workflow("maintenance-required"), WORKFLOW),
    holds.WORKFLOW_DATA_READABLE.code: lambda: plan_on(_in_workflow("", data="{"), WORKFLOW),
    holds.WORKFLOW_GONE.code: _without_its_workflow,
    holds.WORKFLOW_UNCORDONED.code: _uncordoned,
    holds.WORKFLOW_UNKNOWN.code: lambda: plan_on(_in_workflow("operational", "oss"), WORKFLOW),
}

# The first answer of these types that is not passed is a rare one.
_CASES = {"approved": "nobody has", "anyLabel": "with its value"}


def example_of_type(name: str) -> str:
    """What the program prints of a check of a workflow that does not pass, and who can change that."""
    # A `!` stands before these, so they hold the node when they pass.
    wanted = Verdict.PASSED if name in ("anyLabel", "notAllowed") else Verdict.FAILED
    cases = workflow_checks.ANSWERS[name]
    answers = {case: ask_workflow(name, seen, **keys) for case, (seen, keys, _) in cases.items()}
    first = next(case for case, answer in answers.items() if answer.verdict is wanted)
    words = answers[_CASES.get(name, first)].reason
    who = who_ends(holds.WORKFLOW.code, "NODE", OwnKeys(), who=CHECK_TYPES[name].who)
    return shown((words, f"ask: {who}"), ZoneInfo("UTC"), WIDTH)
