"""The report as plain text for a terminal or a log: what happens, why, and what holds the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from textwrap import wrap
from zoneinfo import ZoneInfo

from reconciler.calendar.values import format_duration, in_zone
from reconciler.model.outcome import ActionName
from reconciler.model.record import State
from reconciler.report import safe
from reconciler.report.columns import FOR_PEOPLE, action_row, state_line
from reconciler.report.limited import filter_lines
from reconciler.report.values import Document, unseen_line

_TEXT_AT = 12
"""The column at which the text of a row begins, after its label."""

_NARROWEST = 40
"""Columns below which a line is not made shorter."""


def as_text(document: Document, width: int | None = None) -> str:
    """Return the document as text; every hold and every unknown is in it.

    A line that is longer than `width` columns goes on below its own text; None: lines have no limit.
    """
    return _as_text(document, width, wide=False)


def as_wide_text(document: Document, width: int | None = None) -> str:
    """Return the document as text, also with what a drain would do to each pod."""
    return _as_text(document, width, wide=True)


def _as_text(document: Document, width: int | None, *, wide: bool) -> str:
    lines = [headline(document), *settings_lines(document), budget_line(document)]
    lines += [f"note: {note}" for note in document["notes"]]
    lines += [f"could not see: {unseen_line(one)}" for one in document["unseen"]]
    lines += filter_lines(document)
    lines += _rows(document, wide=wide)
    if is_quiet(document):
        lines += ["", "no node has an event; none cordoned or draining by us"]
    failed = outcome_lines(document)
    if failed:
        lines += ["", *failed]
    return shown(lines, zone_of(document), width)


def rows_as_text(document: Document, width: int | None = None) -> str:
    """Return the rows of the nodes as text, without what is above them."""
    return shown(_rows(document, wide=False), zone_of(document), width)


def _rows(document: Document, *, wide: bool) -> list[str]:
    lines = []
    for node in document["nodes"]:
        if not _only_unknown(node):
            lines += ["", *_node(node, _undone(document, node), would=document["dryRun"])]
            lines += [row(label, text) for label, text in _details(node)] if wide else []
    return lines + _unknowns([node for node in document["nodes"] if _only_unknown(node)])


def shown(lines: Iterable[str], zone: ZoneInfo, width: int | None) -> str:
    """Return the lines as people read them: without control characters, with moments in `zone`, folded."""
    safe_lines = (safe.line(in_zone(line, zone)) for line in lines)
    return "".join(f"{line}\n" for each in safe_lines for line in _folded(each, width))


def is_quiet(document: Document) -> bool:
    """Whether the plan has no row, also none that a filter hides."""
    hidden = document["filter"]["of"] if document["filter"] else 0
    return not document["nodes"] and not hidden


def _folded(line: str, width: int | None) -> list[str]:
    """Return the line in lines of at most `width` columns; a word that is longer stays whole."""
    if width is None or len(line) <= width:
        return [line]
    indent = " " * (_TEXT_AT if line.startswith("  ") else 2)
    return wrap(
        line, max(width, _NARROWEST), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def zone_of(document: Document) -> ZoneInfo:
    """Return the zone in which people read the moments of the document."""
    return ZoneInfo(document["timeZone"])


def headline(document: Document) -> str:
    """Return the first line: when, in which mode, how many nodes."""
    mode = f"mode {document['mode']}"
    if document["dryRun"]:
        mode += ", dry run: nothing is written"
    return f"{document['at']} · {document['lookedAfter']} nodes managed · {mode}"


def settings_lines(document: Document) -> list[str]:
    """Return the line that says which settings are in force, and since when; none if there is no file."""
    found = document["settings"]
    if found is None:
        return []
    age = found["ageSeconds"]
    loaded = "" if age is None else f", loaded {format_duration(timedelta(seconds=age))} ago"
    return [f"settings {found['hash']}{loaded}"]


def budget_line(document: Document) -> str:
    """Return which nodes are out of service, the first few by name."""
    budget = document["budget"]
    # What a dry run would start takes a place only if it were started.
    would = document["dryRun"] and any(map(_starts, document["nodes"]))
    begin = "would be out of service" if would else "out of service"
    line = f"{begin}: {budget['taken']} of at most {budget['places']}"
    named = [f"{one['node']} ({one['because']})" for one in budget["holders"]]
    if not named:
        return line
    more = f" and {len(named) - 5} more" if len(named) > 5 else ""
    return f"{line}: {', '.join(named[:5])}{more}"


def _starts(node: Document) -> bool:
    return bool(node["state"] == State.IN_MAINTENANCE != node["stateBefore"])


def _undone(document: Document, node: Document) -> list[str]:
    """Return the node's actions that this pass did not do, if any of its actions failed or was put off."""
    results = [one for one in document["outcomes"] if one["node"] == node["name"]]
    if not any(one["result"] in _WORDS for one in results):
        return []
    done = {one["action"] for one in results if one["result"] not in _WORDS}
    if done - set(ActionName):
        # The outcome of a change of the record has a more precise name.
        done.add(ActionName.RECORD)
    return [name for name in node["actions"] if name not in done]


_WORDS = {"failed": "FAILED", "later": "retried by the next pass"}


def outcome_lines(document: Document) -> list[str]:
    """Return one line for each action that failed or was postponed."""
    return [_outcome_line(one) for one in document["outcomes"] if one["result"] in _WORDS]


def _outcome_line(outcome: Document) -> str:
    word = _WORDS[outcome["result"]]
    where = f"{outcome['node']}: " if outcome["node"] else ""
    return f"{word}: {where}{outcome['action']}: {outcome['detail']}"


def _only_unknown(node: Document) -> bool:
    has_news = node["events"] or node["holds"] or node["actions"] or node["transitions"]
    return not has_news and node["state"] == "operational"


def _unknowns(nodes: list[Document]) -> list[str]:
    """Nodes with nothing but an unknown source share a line for each reason."""
    counted = Counter(reason for node in nodes for reason in node["unknown"])
    lines = [""] if counted else []
    for reason, count in sorted(counted.items()):
        names = [node["name"] for node in nodes if reason in node["unknown"]]
        more = f" and {count - 3} more" if count > 3 else ""
        lines.append(f"unknown: {reason}: {', '.join(names[:3])}{more}")
    return lines


def _node(node: Document, undone: list[str], *, would: bool) -> list[str]:
    node = {**node, "actions": [name for name in node["actions"] if name not in undone]}
    rows = [
        row(label, text)
        for column in FOR_PEOPLE
        if column.rows is not None
        for label, text in column.rows(node[column.key], would)
    ]
    rows += [row(label, text) for label, text in action_row("not done", undone)]
    return [node_heading(node, would=would or bool(undone)), *rows]


def _details(node: Document) -> Iterator[tuple[str, str]]:
    """Yield the rows that are for `wide` only."""
    for pod in (node["preview"] or {"pods": []})["pods"]:
        # A pod that is waited for has its row in each form.
        if pod["action"] != "wait":
            because = f": {'; '.join(pod['reasons'])}" if pod["reasons"] else ""
            yield "pod", f"{pod['pod']}: {pod['action']}{because}"


def node_heading(node: Document, *, would: bool) -> str:
    """Return the line above the rows of a node: its name, where it is, and its state."""
    parts = [column.heading(node[column.key]) for column in FOR_PEOPLE if column.heading is not None]
    place = ", ".join(part for part in parts if part)
    return f"{node['name']}{f' ({place})' if place else ''}: {state_line(node, would=would)}"


def row(label: str, text: str) -> str:
    """Return a row below the heading of a node: its label, and its text in a column of its own."""
    # What a cloud or a person wrote may have lines of its own; here one row is one line.
    return f"  {label:<{_TEXT_AT - 2}}{' '.join(text.split())}"
