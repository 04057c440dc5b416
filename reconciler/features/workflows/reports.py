"""What workflows say of a node in a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from reconciler.features.workflows.services import NAME
from reconciler.model.plan import CheckAnswer, NodePart, NodePlan, Verdict
from reconciler.model.record import State


class StepAnswer(Struct, frozen=True):
    """One transition of a workflow out of the state of a node, and its answer.

    `check` is its expression as the settings have it. `taken` is whether the node takes it in this pass.
    """

    next: State
    check: str
    verdict: Verdict
    taken: bool = False


class WorkflowReport(Struct, frozen=True):
    """One workflow of a node: its state before and after the pass, and every answer.

    `since` is when the state was entered (UTC). `waits` is why a chain of triggers can't go on, empty if none
    has to wait. `logged` is whether a person wants all answers in the log.
    """

    profile: str
    before: State
    after: State
    since: datetime
    waits: str = ""
    steps: tuple[StepAnswer, ...] = ()
    answers: tuple[CheckAnswer, ...] = ()
    logged: bool = False


class WorkflowReports(NodePart, frozen=True):
    """The workflows of a node. Their next message is due at `next_message` (UTC), None if none will be."""

    reports: tuple[WorkflowReport, ...] = ()
    next_message: datetime | None = None

    @property
    def news(self) -> bool:
        """Whether one of them has a step that the node may take."""
        return any(report.steps for report in self.reports)

    @property
    def states(self) -> Mapping[str, tuple[State, State]]:
        """The state of each of them before and after the pass."""
        return {report.profile: (report.before, report.after) for report in self.reports}

    def moments(self, now: datetime) -> Iterator[datetime]:
        """Yield when an answer changes, and when the next message is due."""
        answers = (answer for report in self.reports for answer in report.answers)
        yield from (answer.until for answer in answers if answer.until is not None and answer.until > now)
        if self.next_message is not None:
            yield self.next_message


def reports_of(node: NodePlan) -> tuple[WorkflowReport, ...]:
    """Return the workflows of a node in the order in which they ran, none for a node without them."""
    part = node.of_features.get(NAME)
    return part.reports if isinstance(part, WorkflowReports) else ()
