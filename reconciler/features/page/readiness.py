"""What the page shows of readiness: the summary and the worst findings."""

from __future__ import annotations

from msgspec import Struct

from reconciler.features.readiness.report import text as words
from reconciler.features.readiness.report.document import to_document
from reconciler.model.readiness import Readiness

_MOST_FINDINGS = 50


class FindingRow(Struct, frozen=True):
    """A finding about a workload: how bad it is, where its pods are, why, and what helps."""

    title: str
    severity: str
    place: str
    because: str
    remedy: str


class ReadinessPart(Struct, frozen=True):
    """The summary, what was judged and when, what could not be seen, and the worst findings.

    `rest` says how many findings are left out, empty for none. A large cluster has tens of thousands of
    findings, so a process keeps this part and not all of them.
    """

    headline: str
    assumption: str
    remarks: tuple[str, ...]
    rows: tuple[FindingRow, ...]
    rest: str = ""


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
