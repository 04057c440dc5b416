"""The report as plain text for a terminal or a log: what happens, why, and what holds the rest."""

from __future__ import annotations

from collections import Counter
from typing import Any

from reconciler.model.actions import ActionName
from reconciler.report.document import Document, writable

_ACTIONS = {
    ActionName.CORDON: "cordon",
    ActionName.UNCORDON: "uncordon",
    ActionName.DRAIN: "drain",
    ActionName.STOP_DRAIN: "stop the drain",
    ActionName.RECORD: "write down",
    ActionName.PERFORM_MAINTENANCE: "have Azure do its maintenance now",
    ActionName.RAISE_POOL: "ask its pool for one machine more",
    ActionName.REPLACE_MACHINE: "delete its machine, so that a new one comes",
    ActionName.PUBLISH: "change what others are shown",
    ActionName.CONDITIONS: "change its lifecycle conditions",
}


def as_text(document: Document) -> str:
    """Return the document as text; every hold and every unknown is in it."""
    lines = [headline(document), budget_line(document)]
    lines += [f"note: {note}" for note in document["notes"]]
    told = [node for node in document["nodes"] if not _only_unknown(node)]
    for node in told:
        lines += ["", *_node(node, would=document["dryRun"])]
    lines += _unknowns([node for node in document["nodes"] if _only_unknown(node)])
    if not document["nodes"]:
        lines += ["", "no node has an event, and none is in our hands"]
    failed = [one for one in document["outcomes"] if one["result"] != "done"]
    if failed:
        lines += ["", *(outcome_line(one) for one in failed)]
    return writable("\n".join(lines) + "\n")


def headline(document: Document) -> str:
    """Return the first line: when, in which mode, how many nodes."""
    mode = f"mode {document['mode']}"
    if document["dryRun"]:
        mode += ", dry run: nothing is written"
    return f"{document['at']} · {document['lookedAfter']} nodes looked after · {mode}"


def budget_line(document: Document) -> str:
    """Return who is out of service, the first few by name."""
    budget = document["budget"]
    line = f"out of service: {budget['taken']} of at most {budget['places']}"
    named = [f"{one['node']} ({one['because']})" for one in budget["holders"]]
    if not named:
        return line
    more = f" and {len(named) - 5} more" if len(named) > 5 else ""
    return f"{line}: {', '.join(named[:5])}{more}"


def outcome_line(outcome: Document) -> str:
    """Return what did not go well, in a line."""
    word = {"failed": "FAILED", "later": "left to the next pass"}[outcome["result"]]
    where = f"{outcome['node']}: " if outcome["node"] else ""
    return f"{word}: {where}{outcome['action']}: {outcome['detail']}"


def event_line(event: Document) -> str:
    """Return an event in a line: what, when, how long, who says so."""
    parts = [f"{event['condition'] or event['kind']} {event['status'].lower()}"]
    if event["notBefore"]:
        parts.append(f"not before {event['notBefore']}")
    if event["durationSeconds"] is not None:
        parts.append(f"for {event['durationSeconds']:g}s")
    if event["startedBy"] == "User":
        parts.append("started by a user")
    told = ", ".join(event["sources"])
    return f"{', '.join(parts)} ({told})"


def _only_unknown(node: Document) -> bool:
    told = node["events"] or node["holds"] or node["actions"] or node["transitions"]
    return not told and node["state"] == "operational"


def _unknowns(nodes: list[Document]) -> list[str]:
    """Nodes of which nothing but a silent source is told share a line per reason."""
    counted = Counter(reason for node in nodes for reason in node["unknown"])
    lines = [""] if counted else []
    for reason, count in sorted(counted.items()):
        names = [node["name"] for node in nodes if reason in node["unknown"]]
        more = f" and {count - 3} more" if count > 3 else ""
        lines.append(f"unknown: {reason}: {', '.join(names[:3])}{more}")
    return lines


def _node(node: Document, *, would: bool) -> list[str]:
    place = ", ".join(
        part
        for part in (
            node["zone"] and f"zone {node['zone']}",
            node["pool"] and f"pool {node['pool']}",
            node["cordoned"] and "cordoned",
        )
        if part
    )
    lines = [f"{node['name']}{f' ({place})' if place else ''}: {_state(node)}"]
    for event in node["events"]:
        lines.append(_row("event", event_line(event)))
        if event["description"]:
            lines.append(_row("", f"“{event['description']}”"))
        lines.extend(_row("", f"sources differ: {text}") for text in event["disagreements"])
        if not event["asksForDrain"]:
            lines.append(_row("", event["because"]))
        elif event["overruled"]:
            lines.append(_row("overruled", f"{event['overruled']}; {event['timing']}"))
    if node["actions"]:
        words = ", ".join(_ACTIONS[action] for action in node["actions"])
        lines.append(_row("would" if would else "does", words))
    lines += [_row("because", step["because"]) for step in node["transitions"] if step["because"]]
    for hold in node["holds"]:
        until = f" (until {hold['until']})" if hold["until"] and hold["until"] not in hold["reason"] else ""
        lines.append(_row("held", f"{hold['reason']}{until}  [{hold['check']}]"))
    lines += [_row("unknown", text) for text in node["unknown"]]
    lines += _drain(node)
    return lines


def _state(node: Document) -> str:
    if node["stateBefore"] == node["state"]:
        return str(node["state"])
    return f"{node['stateBefore']} → {node['state']}"


def _drain(node: Document) -> list[str]:
    lines = []
    if node["drain"]:
        drain = node["drain"]
        lines.append(_row("drain", f"{drain['phase']}: {drain['gone']} of {drain['total']} pods gone"))
        lines += [_row("", text) for text in drain["warnings"]]
        lines += [_row("escalated", text) for text in drain["escalations"]]
    lines += [_row("kept", f"{pod['pod']}: {pod['because']}") for pod in node["kept"]]
    if node["preview"]:
        lines += _preview(node["preview"])
    return lines


def _preview(preview: Document) -> list[str]:
    counted = Counter(pod["action"] for pod in preview["pods"])
    pods = ", ".join(f"{count} {action}" for action, count in sorted(counted.items()))
    lines = [_row("pods", pods or "none")]
    waits = [pod for pod in preview["pods"] if pod["action"] == "wait"]
    lines += [_row("wait", f"{pod['pod']}: {'; '.join(pod['reasons'])}") for pod in waits]
    lines += [_row("blocked", f"{one['pod']}: {one['because']}") for one in preview["blockers"]]
    lines += [_row("room", text) for text in preview["room"]]
    return lines


def _row(label: str, text: Any) -> str:
    # What a cloud or a person wrote may have lines of its own; here one row is one line.
    return f"  {label:<10}{' '.join(str(text).split())}"
