"""Readiness as text and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from zoneinfo import ZoneInfo

from reconciler.calendar.values import in_zone
from reconciler.model.readiness import Severity
from reconciler.report import safe
from reconciler.report.text import row, shown
from reconciler.report.values import Document, unseen_line

MOST_WORKLOADS = 100
"""Workloads that are shown to people."""

_NAMED = 3

MEANINGS = {
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


def headline(document: Document) -> str:
    """Return the summary in one sentence."""
    if not document["nodeCount"]:
        return "no node was judged"
    blocked = len(document["blockedNodes"])
    known = " as far as is known" if document["unsure"] else ""
    begin = f"{blocked} of {_count(document['nodeCount'], 'node')} would not drain{known}"
    counts = document["counts"]
    parts = [
        f"{counts[severity.value]} {verbs[counts[severity.value] != 1]}"
        for severity, verbs in _VERBS.items()
        if counts[severity.value]
    ]
    return f"{begin}; of the workloads, {', '.join(parts)}" if parts else f"{begin}; nothing was found"


def assumption(document: Document) -> str:
    """Return what was judged, when (RFC 3339), and as for which event."""
    judged = f"each node is judged alone, as if it had to go now for a {document['assumed']}"
    return f"{document['at']}: {_count(document['podCount'], 'pod')}; {judged}"


def remarks(document: Document) -> Iterator[str]:
    """Yield what was left out, and what could not be seen."""
    yield from (f"note: {note}" for note in document["notes"])
    yield from (f"could not see: {unseen_line(one)}" for one in document["unseen"])


def worst(document: Document) -> list[Document]:
    """Return the workloads that people see, the worst."""
    found: list[Document] = document["workloads"][:MOST_WORKLOADS]
    return found


PEOPLE = "No drain begins while people keep it from that"


def people(document: Document) -> list[Document]:
    """Return what people see of the nodes that people keep from a drain."""
    found: list[Document] = document["people"][:MOST_WORKLOADS]
    return found


def on_nodes(kept: Document) -> str:
    """Return which nodes a person keeps from a drain."""
    names = _some(kept["nodeNames"], kept["nodeCount"])
    return f"{_count(kept['nodeCount'], 'node')}: {names}"


def other_people(document: Document) -> str:
    """Return a line about what `people` leaves out, empty for nothing."""
    more = len(document["people"]) - MOST_WORKLOADS
    return f"and {_count(more, 'reason')} more; --output json has all of them" if more > 0 else ""


def rest(document: Document) -> str:
    """Return a line about the workloads that are not shown, empty if all are."""
    more = len(document["workloads"]) - MOST_WORKLOADS
    return f"and {_count(more, 'workload')} more; --output json has all of them" if more > 0 else ""


def title(workload: Document) -> str:
    """Return the name of a workload."""
    if workload["kind"] is None:
        return f"{workload['namespace']}: pods without a controller"
    return f"{workload['namespace']}/{workload['name']} ({workload['kind']})"


def place(finding: Document) -> str:
    """Return how many pods are on which nodes."""
    return f"{_count(finding['podCount'], 'pod')} on {_some(finding['nodeNames'], finding['nodeCount'])}"


def common_place(workload: Document) -> str:
    """Return where the pods of the workload are if that is the same for all of its findings, else empty."""
    places = {place(finding) for finding in workload["findings"]}
    return places.pop() if len(places) == 1 else ""


def pods(finding: Document) -> str:
    """Return the names of the first pods."""
    return _some(finding["podNames"], finding["podCount"])


def _some(names: list[str], count: int) -> str:
    more = f" and {count - _NAMED} more" if count > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def as_text(document: Document, width: int | None = None) -> str:
    """Return the document as text.

    A line that is longer than `width` columns goes on below its own text; None: lines have no limit.
    """
    lines = [headline(document), assumption(document), *remarks(document)]
    lines += _people(document)
    section = ""
    for workload in worst(document):
        if workload["severity"] != section:
            section = workload["severity"]
            lines += ["", f"{section.upper()}: {MEANINGS[Severity(section)]}"]
        where = common_place(workload)
        lines += ["", f"{title(workload)}{f': {where}' if where else ''}"]
        lines += _rows(workload, everywhere=bool(where))
    if left := rest(document):
        lines += ["", left]
    return shown(lines, ZoneInfo(document["timeZone"]), width)


def _people(document: Document) -> Iterator[str]:
    if document["people"]:
        yield from ("", f"PEOPLE: {PEOPLE}", "")
    for kept in people(document):
        yield row(kept["code"], kept["because"])
        yield row("where", on_nodes(kept))
        yield row("remedy", kept["remedy"])
    if more := other_people(document):
        yield more


def _rows(workload: Document, *, everywhere: bool) -> Iterator[str]:
    for finding in workload["findings"]:
        yield row(finding["severity"], finding["because"])
        if not everywhere:
            yield row("where", place(finding))
        if workload["kind"] is None:
            yield row("pods", pods(finding))
        yield row("remedy", finding["remedy"])


_HEADS = ("workload", "pods", "because", "remedy")


def as_markdown(document: Document) -> str:
    """Return the document as Markdown."""
    lines = ["# Readiness for maintenance", "", f"**{safe.markdown(headline(document))}**", ""]
    lines += [safe.markdown(assumption(document)), ""]
    lines += [f"> {safe.markdown(line)}" for line in remarks(document)]
    lines += _markdown_people(document)
    section = ""
    for workload in worst(document):
        if workload["severity"] != section:
            section = workload["severity"]
            lines += ["", f"## {MEANINGS[Severity(section)]}", "", f"| {' | '.join(_HEADS)} |"]
            lines += [f"|{'---|' * len(_HEADS)}"]
        lines += [_row(workload, finding) for finding in workload["findings"]]
    if left := rest(document):
        lines += ["", safe.markdown(left)]
    # Nothing that makes text safe changes a moment.
    zone = ZoneInfo(document["timeZone"])
    return "\n".join(in_zone(line, zone) for line in lines).rstrip() + "\n"


def _markdown_people(document: Document) -> Iterator[str]:
    if not document["people"]:
        return
    yield from ("", f"## {PEOPLE}", "", "| | nodes | because | remedy |", "|---|---|---|---|")
    for kept in people(document):
        cells = (kept["code"], on_nodes(kept), kept["because"], kept["remedy"])
        yield f"| {' | '.join(map(safe.markdown, cells))} |"
    if more := other_people(document):
        yield from ("", safe.markdown(more))


def _row(workload: Document, finding: Document) -> str:
    where = place(finding)
    if workload["kind"] is None:
        where += f": {pods(finding)}"
    cells = (title(workload), where, finding["because"], finding["remedy"])
    return f"| {' | '.join(map(safe.markdown, cells))} |"
