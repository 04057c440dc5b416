"""Readiness as a document for machines, as text and Markdown for people, and as a part of the page.

The keys of the document only grow; `docs/output.md` has a heading for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from zoneinfo import ZoneInfo

from reconciler.features.readiness.findings import Finding, KeptByPeople, Readiness, WorkloadFindings
from reconciler.model.findings import FindingRow, FindingsPart, Severity
from reconciler.model.limits import count_of, first_of
from reconciler.report import safe
from reconciler.report.text import markdown_page, markdown_table, row, shown
from reconciler.report.values import Document, head, moment_value, plain, settings_value, unseen_lines

MOST_NAMES = 100
"""Names of nodes, and of pods, of one finding in the document; their numbers are always whole."""

MOST_WORKLOADS = 100
"""Workloads that are shown to people."""

_MOST_FINDINGS = 50
"""Findings that the page shows."""

_NAMED = 3


def to_document(readiness: Readiness) -> Document:
    """Return the document. All findings are in it."""
    counted = Counter(workload.severity for workload in readiness.workloads)
    document: Document = plain(
        {
            **head(readiness.now),
            "timeZone": readiness.time_zone,
            "settings": settings_value(readiness.settings, readiness.now),
            "assumed": readiness.kind,
            "nodeCount": readiness.nodes,
            "podCount": readiness.pods,
            "blockedNodes": readiness.blocked,
            "unsure": readiness.unsure,
            "counts": {severity.value: counted[severity] for severity in Severity},
            "notes": readiness.notes,
            "unseen": readiness.unseen,
            "people": list(map(_people_document, readiness.people)),
            "workloads": list(map(_workload_document, readiness.workloads)),
        }
    )
    return document


def _people_document(kept: KeptByPeople) -> Document:
    about = {"code": kept.code, "because": kept.because, "remedy": kept.remedy, "until": kept.until}
    return about | _names("node", kept.nodes)


def _workload_document(workload: WorkloadFindings) -> Document:
    return {
        "namespace": workload.workload.namespace,
        "kind": workload.workload.kind or None,
        "name": workload.workload.name or None,
        "severity": workload.severity,
        "findings": list(map(_finding_document, workload.findings)),
    }


def _finding_document(finding: Finding) -> Document:
    about = {"code": finding.code, "severity": finding.severity, "because": finding.because}
    more = {"remedy": finding.remedy, "about": finding.about}
    return {**about, **more, **_names("pod", finding.pods), **_names("node", finding.nodes)}


def _names(what: str, names: Sequence[str]) -> Document:
    return {f"{what}Count": len(names), f"{what}Names": names[:MOST_NAMES]}


_MEANINGS = {
    Severity.BLOCKS: "A drain would not end",
    Severity.OUTAGE: "Pods would be down until the node is back, or lost",
    Severity.NOTICE: "A drain would end, and the pods would run again",
}

_VERBS = {
    Severity.BLOCKS: ("blocks a drain", "block a drain"),
    Severity.OUTAGE: ("would be down or lose pods", "would be down or lose pods"),
    Severity.NOTICE: ("has a notice", "have a notice"),
}
"""For one workload, and for any other number."""

_PEOPLE = "No drain begins while people keep it from that"


def headline(readiness: Readiness) -> str:
    """Return the summary in one sentence."""
    if not readiness.nodes:
        return "no node was judged"
    known = " as far as is known" if readiness.unsure else ""
    begin = f"{len(readiness.blocked)} of {count_of(readiness.nodes, 'node')} would not drain{known}"
    counted = Counter(workload.severity for workload in readiness.workloads)
    parts = [
        f"{counted[severity]} {verbs[counted[severity] != 1]}"
        for severity, verbs in _VERBS.items()
        if counted[severity]
    ]
    return f"{begin}; of the workloads, {', '.join(parts)}" if parts else f"{begin}; nothing was found"


def _assumption(readiness: Readiness) -> str:
    judged = f"each node is judged alone, as if it had to go now for a {readiness.kind}"
    return f"{moment_value(readiness.now)}: {count_of(readiness.pods, 'pod')}; {judged}"


def _remarks(readiness: Readiness) -> Iterator[str]:
    yield from (f"note: {note}" for note in readiness.notes)
    yield from unseen_lines(readiness.unseen)


def _on_nodes(kept: KeptByPeople) -> str:
    return f"{count_of(len(kept.nodes), 'node')}: {first_of(kept.nodes, _NAMED)}"


def _more(every: Sequence[object], what: str) -> list[str]:
    """Return a line about those that people do not see, and one above it; none if they see all."""
    more = len(every) - MOST_WORKLOADS
    return [f"and {count_of(more, what)} more; --output json has all of them"] if more > 0 else []


def _title(findings: WorkloadFindings) -> str:
    workload = findings.workload
    if not workload.kind:
        return f"{workload.namespace}: pods without a controller"
    return f"{workload.namespace}/{workload.name} ({workload.kind})"


def _place(finding: Finding) -> str:
    return f"{count_of(len(finding.pods), 'pod')} on {first_of(finding.nodes, _NAMED)}"


def _sections(readiness: Readiness) -> Iterable[tuple[Severity, Iterator[WorkloadFindings]]]:
    return groupby(readiness.workloads[:MOST_WORKLOADS], key=lambda workload: workload.severity)


def as_text(readiness: Readiness, width: int | None = None) -> str:
    """Return readiness as text.

    A line that is longer than `width` columns goes on below its own text; None: lines have no limit.
    """
    lines = [headline(readiness), _assumption(readiness), *_remarks(readiness)]
    lines += ["", f"PEOPLE: {_PEOPLE}", ""] if readiness.people else []
    for kept in readiness.people[:MOST_WORKLOADS]:
        texts = {kept.code.value: kept.because, "where": _on_nodes(kept), "remedy": kept.remedy}
        lines += [row(label, text) for label, text in texts.items()]
    lines += _more(readiness.people, "reason")
    for severity, workloads in _sections(readiness):
        lines += ["", f"{severity.value.upper()}: {_MEANINGS[severity]}"]
        for workload in workloads:
            places = {_place(finding) for finding in workload.findings}
            where = places.pop() if len(places) == 1 else ""
            lines += ["", f"{_title(workload)}{f': {where}' if where else ''}"]
            for finding in workload.findings:
                lines.append(row(finding.severity.value, finding.because))
                lines += [] if where else [row("where", _place(finding))]
                if not workload.workload.kind:
                    lines.append(row("pods", first_of(finding.pods, _NAMED)))
                lines.append(row("remedy", finding.remedy))
    lines += ["", *rest] if (rest := _more(readiness.workloads, "workload")) else []
    return shown(lines, ZoneInfo(readiness.time_zone), width)


def as_markdown(readiness: Readiness) -> str:
    """Return readiness as Markdown."""
    lines = ["# Readiness for maintenance", "", f"**{safe.markdown(headline(readiness))}**", ""]
    lines += [safe.markdown(_assumption(readiness)), ""]
    lines += [f"> {safe.markdown(line)}" for line in _remarks(readiness)]
    if readiness.people:
        cells = (
            (kept.code.value, _on_nodes(kept), kept.because, kept.remedy)
            for kept in readiness.people[:MOST_WORKLOADS]
        )
        lines += ["", f"## {_PEOPLE}", "", *markdown_table(("", "nodes", "because", "remedy"), cells)]
        lines += ["", *map(safe.markdown, rest)] if (rest := _more(readiness.people, "reason")) else []
    for severity, workloads in _sections(readiness):
        rows = []
        for workload in workloads:
            for finding in workload.findings:
                pods = "" if workload.workload.kind else f": {first_of(finding.pods, _NAMED)}"
                where = f"{_place(finding)}{pods}"
                rows.append((_title(workload), where, finding.because, finding.remedy))
        heads = ("workload", "pods", "because", "remedy")
        lines += ["", f"## {_MEANINGS[severity]}", "", *markdown_table(heads, rows)]
    lines += ["", *map(safe.markdown, rest)] if (rest := _more(readiness.workloads, "workload")) else []
    return markdown_page(lines, ZoneInfo(readiness.time_zone))


def readiness_part(readiness: Readiness) -> FindingsPart:
    """Return what a page shows: the summary and the worst findings."""
    rows = [
        FindingRow(_title(workload), finding.severity, _place(finding), finding.because, finding.remedy)
        for workload in readiness.workloads[:MOST_WORKLOADS]
        for finding in workload.findings
    ]
    more = sum(len(workload.findings) for workload in readiness.workloads) - _MOST_FINDINGS
    rest = (
        f"and {count_of(more, 'more finding')}: reconciler readiness -o json has all of them"
        if more > 0
        else ""
    )
    return FindingsPart(
        headline(readiness),
        _assumption(readiness),
        tuple(_remarks(readiness)),
        tuple(rows[:_MOST_FINDINGS]),
        rest,
    )
