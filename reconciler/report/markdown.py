"""The report as Markdown, for a ticket or a chat."""

from __future__ import annotations

from reconciler.report.document import Document, writable
from reconciler.report.text import budget_line, event_line, headline, outcome_line


def as_markdown(document: Document) -> str:
    """Return the document as Markdown: a table of nodes, then each node's reasons."""
    lines = ["# Node maintenance", "", headline(document), "", budget_line(document), ""]
    lines += [f"> {_safe(note)}" for note in document["notes"]]
    if document["nodes"]:
        lines += ["", "| node | zone | state | event | what happens |", "|---|---|---|---|---|"]
        lines += [_row(node) for node in document["nodes"]]
        for node in document["nodes"]:
            lines += _reasons(node)
    else:
        lines.append("No node has an event, and none is in our hands.")
    lines += [f"- {_safe(outcome_line(one))}" for one in document["outcomes"] if one["result"] != "done"]
    return writable("\n".join(lines).rstrip() + "\n")


def _row(node: Document) -> str:
    events = "; ".join(event_line(event) for event in node["events"])
    happens = ", ".join(node["actions"]) or ("held" if node["holds"] else "")
    cells = (node["name"], node["zone"], node["state"], events, happens)
    return "| " + " | ".join(_safe(cell) for cell in cells) + " |"


def _reasons(node: Document) -> list[str]:
    lines = [f"because: {step['because']}" for step in node["transitions"] if step["because"]]
    lines += [f"held: {hold['reason']} (`{hold['check']}`)" for hold in node["holds"]]
    lines += [f"unknown: {text}" for text in node["unknown"]]
    lines += [f"kept: {pod['pod']}: {pod['because']}" for pod in node["kept"]]
    if node["preview"]:
        lines += [f"blocked: {one['pod']}: {one['because']}" for one in node["preview"]["blockers"]]
        lines += [f"room: {text}" for text in node["preview"]["room"]]
    return ["", f"## {_safe(node['name'])}", "", *(f"- {_safe(line)}" for line in lines)] if lines else []


def _safe(text: str) -> str:
    """Keep what a cluster says from becoming Markdown of its own."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
