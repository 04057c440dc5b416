"""What workflows show as metrics beside the counts of moved pods."""

from __future__ import annotations

from jobs.runtime.process import Passed
from reconciler.features.workflows.metrics import Failures
from reconciler.features.workflows.reports import WorkflowReport, WorkflowReports
from reconciler.features.workflows.services import NAME
from reconciler.model.plan import CheckAnswer, NodePlan, Plan, Verdict
from reconciler.model.record import State
from tests.support import builders
from tests.support.builders import NOW


def passed(*verdicts: Verdict) -> Passed:
    """A pass about one node with a workflow whose checks answer this."""
    answers = tuple(CheckAnswer(f"check{n}", verdict, "why") for n, verdict in enumerate(verdicts))
    report = WorkflowReport("reboots", State.OPERATIONAL, State.OPERATIONAL, NOW, answers=answers)
    node = NodePlan(
        "a", "", "", State.OPERATIONAL, State.OPERATIONAL, of_features={NAME: WorkflowReports((report,))}
    )
    return Passed(
        Plan(NOW, "Enforce", nodes=(node,)), builders.settings("profiles: {profiles: [{name: reboots}]}")
    )


def test_a_pass_in_which_a_workflow_has_no_answer_counts_as_a_failure() -> None:
    failures = Failures()

    def count() -> float:
        (sample,) = failures.samples()
        assert (sample.family.name, sample.labels) == (
            "maintenance_controller_transition_failure_count",
            ("reboots",),
        )
        return sample.value

    failures.after(passed(Verdict.PASSED, Verdict.FAILED))
    before = count()
    for _ in range(2):
        failures.after(passed(Verdict.UNKNOWN, Verdict.UNKNOWN))

    assert (before, count()) == (0, 2)
