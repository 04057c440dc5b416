"""Readiness as Markdown, for a ticket or a chat: a summary, and a table for each severity."""

from __future__ import annotations

from collections.abc import Iterator
from zoneinfo import ZoneInfo

from reconciler.calendar.formatting import in_zone
from reconciler.features.readiness.report import words
from reconciler.model.readiness import Severity
from reconciler.report import safe
from reconciler.report.values import Document

_HEADS = ("workload", "pods", "because", "remedy")


def as_markdown(document: Document) -> str:
    """Return the document as Markdown."""
    lines = ["# Readiness for maintenance", "", f"**{safe.markdown(words.headline(document))}**", ""]
    lines += [safe.markdown(words.assumption(document)), ""]
    lines += [f"> {safe.markdown(line)}" for line in words.remarks(document)]
    lines += _people(document)
    section = ""
    for workload in words.worst(document):
        if workload["severity"] != section:
            section = workload["severity"]
            lines += ["", f"## {words.MEANINGS[Severity(section)]}", "", f"| {' | '.join(_HEADS)} |"]
            lines += [f"|{'---|' * len(_HEADS)}"]
        lines += [_row(workload, finding) for finding in workload["findings"]]
    if rest := words.rest(document):
        lines += ["", safe.markdown(rest)]
    # Nothing that makes text safe changes a moment.
    zone = ZoneInfo(document["timeZone"])
    return "\n".join(in_zone(line, zone) for line in lines).rstrip() + "\n"


def _people(document: Document) -> Iterator[str]:
    if not document["people"]:
        return
    yield from ("", f"## {words.PEOPLE}", "", "| | nodes | because | remedy |", "|---|---|---|---|")
    for kept in words.people(document):
        cells = (kept["code"], words.on_nodes(kept), kept["because"], kept["remedy"])
        yield f"| {' | '.join(map(safe.markdown, cells))} |"
    if more := words.other_people(document):
        yield from ("", safe.markdown(more))


def _row(workload: Document, finding: Document) -> str:
    pods = words.place(finding)
    if workload["kind"] is None:
        pods += f": {words.pods(finding)}"
    cells = (words.title(workload), pods, finding["because"], finding["remedy"])
    return f"| {' | '.join(map(safe.markdown, cells))} |"
