"""The report as Markdown, for a ticket or a chat."""

from __future__ import annotations

from reconciler.calendar.values import in_zone
from reconciler.report import safe
from reconciler.report.columns import FOR_PEOPLE, Point
from reconciler.report.limited import filter_lines
from reconciler.report.text import (
    budget_line,
    headline,
    is_quiet,
    outcome_lines,
    settings_lines,
    zone_of,
)
from reconciler.report.values import Document, unseen_line

_CELLS = tuple(column.cell for column in FOR_PEOPLE if column.cell is not None)


def as_markdown(document: Document) -> str:
    """Return the document as Markdown: a table of nodes, then each node's reasons."""
    lines = [
        "# Node maintenance",
        "",
        safe.markdown(headline(document)),
        "",
        *(part for line in settings_lines(document) for part in (safe.markdown(line), "")),
        safe.markdown(budget_line(document)),
        "",
    ]
    lines += [f"> {safe.markdown(note)}" for note in document["notes"]]
    lines += [f"> Could not see: {safe.markdown(unseen_line(one))}" for one in document["unseen"]]
    lines += [f"> {safe.markdown(line[:1].upper() + line[1:])}" for line in filter_lines(document)]
    if document["nodes"]:
        would = document["dryRun"]
        heads = " | ".join(cell.head(would=would) for cell in _CELLS)
        lines += ["", f"| {heads} |", f"|{'---|' * len(_CELLS)}"]
        lines += [_row(node, would=would) for node in document["nodes"]]
        for node in document["nodes"]:
            lines += _reasons(node)
    elif is_quiet(document):
        lines.append("No node has an event; none cordoned or draining by us.")
    lines += [f"- {safe.markdown(line)}" for line in outcome_lines(document)]
    # Nothing that makes text safe changes a moment.
    zone = zone_of(document)
    return "\n".join(in_zone(line, zone) for line in lines).rstrip() + "\n"


def _row(node: Document, *, would: bool) -> str:
    return "| " + " | ".join(safe.markdown(cell.of(node, would=would)) for cell in _CELLS) + " |"


def _reasons(node: Document) -> list[str]:
    points = [
        point
        for column in FOR_PEOPLE
        if column.points is not None
        for point in column.points(node[column.key])
    ]
    return ["", f"## {safe.markdown(node['name'])}", "", *map(_point, points)] if points else []


def _point(point: Point) -> str:
    code = f" (`{point.code}`)" if point.code else ""
    return f"- {safe.markdown(point.text)}{code}"
