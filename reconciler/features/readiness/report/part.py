"""What a page shows of readiness: the summary and the worst findings."""

from __future__ import annotations

from reconciler.features.readiness.report import text as words
from reconciler.features.readiness.report.document import to_document
from reconciler.model.readiness import FindingRow, Readiness, ReadinessPart

_MOST_FINDINGS = 50


def readiness_part(found: Readiness) -> ReadinessPart:
    """Return the part of the page."""
    document = to_document(found)
    rows = [
        FindingRow(
            words.title(workload),
            finding["severity"],
            words.place(finding),
            finding["because"],
            finding["remedy"],
        )
        for workload in words.worst(document)
        for finding in workload["findings"]
    ]
    return ReadinessPart(
        words.headline(document),
        words.assumption(document),
        tuple(words.remarks(document)),
        tuple(rows[:_MOST_FINDINGS]),
        _rest(sum(len(workload["findings"]) for workload in document["workloads"]) - _MOST_FINDINGS),
    )


def _rest(more: int) -> str:
    findings = "finding" if more == 1 else "findings"
    return f"and {more} more {findings}: reconciler readiness -o json has all of them" if more > 0 else ""
