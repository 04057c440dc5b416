"""What reports and explanations show of the workflows of a node."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.features.workflows.reports import StepAnswer, WorkflowReport, reports_of
from reconciler.report.columns import Column, NodeReport, Row, more, with_texts
from reconciler.report.values import Document, check_values, keys, moment_value, plain, until_words

_SHOWN = 8
"""Steps and checks of a workflow in an explanation."""

keys(StepAnswer, "to=next check answer=verdict taken")


def _value(node: NodeReport) -> list[Document]:
    return [
        {
            "profile": report.profile,
            "stateBefore": report.before,
            "state": report.after,
            "since": report.since,
            "waits": report.waits or None,
            "transitions": plain(report.steps),
            "checks": check_values(report.answers),
        }
        for report in reports_of(node.plan)
    ]


def _texts(node: NodeReport) -> Iterator[str]:
    for report in reports_of(node.plan):
        moved = report.after if report.before is report.after else f"{report.before} → {report.after}"
        waits = f", {report.waits}" if report.waits else ""
        yield f"{report.profile}: {moved} since {moment_value(report.since)}{waits}"


def _details(node: NodeReport) -> Iterator[Row]:
    for report in reports_of(node.plan):
        name = report.profile
        for step in report.steps[:_SHOWN]:
            condition = f", if {step.check}" if step.check else ""
            yield "step", f"{name} to {step.next}{condition}: {step.verdict}"
        for answer in report.answers[:_SHOWN]:
            until = until_words(answer.until, answer.words)
            yield answer.verdict.value, f"{name} {answer.name}: {answer.words}{until}"
        yield from more(report.answers, _SHOWN)


def _logged(report: WorkflowReport) -> Iterator[str]:
    """Yield a workflow for the log, with all answers if a person wants them."""
    yield f"{report.profile}: {report.after.value}"
    for answer in report.answers if report.logged else ():
        yield f"{report.profile}: {answer.name} {answer.verdict.value}: {answer.words}"


COLUMNS = (
    with_texts(
        Column(
            "workflows",
            _value,
            log="workflows",
            logged=lambda node: [text for report in reports_of(node.plan) for text in _logged(report)],
            details=_details,
            explained=True,
            after="checks",
        ),
        "workflow",
        _texts,
        "workflow ",
    ),
)
