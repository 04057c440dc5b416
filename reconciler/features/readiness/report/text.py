"""Readiness as plain text for a terminal or a log: the worst first, by workload."""

from __future__ import annotations

from collections.abc import Iterator
from zoneinfo import ZoneInfo

from reconciler.features.readiness.report import words
from reconciler.model.readiness import Severity
from reconciler.report.text import row, shown
from reconciler.report.values import Document


def as_text(document: Document, width: int | None = None) -> str:
    """Return the document as text.

    A line that is longer than `width` columns goes on below its own text; None: lines have no limit.
    """
    lines = [words.headline(document), words.assumption(document), *words.remarks(document)]
    lines += _people(document)
    section = ""
    for workload in words.worst(document):
        if workload["severity"] != section:
            section = workload["severity"]
            lines += ["", f"{section.upper()}: {words.MEANINGS[Severity(section)]}"]
        where = words.common_place(workload)
        lines += ["", f"{words.title(workload)}{f': {where}' if where else ''}"]
        lines += _rows(workload, everywhere=bool(where))
    if rest := words.rest(document):
        lines += ["", rest]
    return shown(lines, ZoneInfo(document["timeZone"]), width)


def _people(document: Document) -> Iterator[str]:
    if document["people"]:
        yield from ("", f"PEOPLE: {words.PEOPLE}", "")
    for kept in words.people(document):
        yield row(kept["code"], kept["because"])
        yield row("where", words.on_nodes(kept))
        yield row("remedy", kept["remedy"])
    if more := words.other_people(document):
        yield more


def _rows(workload: Document, *, everywhere: bool) -> Iterator[str]:
    for finding in workload["findings"]:
        yield row(finding["severity"], finding["because"])
        if not everywhere:
            yield row("where", words.place(finding))
        if workload["kind"] is None:
            yield row("pods", words.pods(finding))
        yield row("remedy", finding["remedy"])
