"""The report as Markdown, for a ticket or a chat."""

from __future__ import annotations

from reconciler.report.columns import FOR_PEOPLE
from reconciler.report.document import writable
from reconciler.report.text import budget_line, headline, outcome_line
from reconciler.report.values import Document

_CELLS = tuple(column.cell for column in FOR_PEOPLE if column.cell is not None)


def as_markdown(document: Document) -> str:
    """Return the document as Markdown: a table of nodes, then each node's reasons."""
    lines = ["# Node maintenance", "", headline(document), "", budget_line(document), ""]
    lines += [f"> {_safe(note)}" for note in document["notes"]]
    if document["nodes"]:
        lines += ["", f"| {' | '.join(cell.header for cell in _CELLS)} |", f"|{'---|' * len(_CELLS)}"]
        lines += [_row(node) for node in document["nodes"]]
        for node in document["nodes"]:
            lines += _reasons(node)
    else:
        lines.append("No node has an event; none cordoned or draining by us.")
    lines += [f"- {_safe(outcome_line(one))}" for one in document["outcomes"] if one["result"] != "done"]
    return writable("\n".join(lines).rstrip() + "\n")


def _row(node: Document) -> str:
    return "| " + " | ".join(_safe(cell.text(node)) for cell in _CELLS) + " |"


def _reasons(node: Document) -> list[str]:
    lines = [
        point
        for column in FOR_PEOPLE
        if column.points is not None
        for point in column.points(node[column.key])
    ]
    return ["", f"## {_safe(node['name'])}", "", *(f"- {_safe(line)}" for line in lines)] if lines else []


def _safe(text: str) -> str:
    """Keep what a cluster says from becoming Markdown of its own."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
