"""One report of several passes, for a command that runs more than one."""

from __future__ import annotations

from typing import Any

from reconciler.report.values import Document


def summed(before: Document, last: Document) -> Document:
    """Return the report of the last pass, with what earlier passes did.

    A node has its actions and transitions of all passes, in order and each once, and the state before the
    first of them. A node that only an earlier pass acted on stays in the report; what held it then no longer
    counts. Outcomes are not summed here: the command passes those of all passes to the last report.
    """
    earlier = {node["name"]: node for node in before["nodes"]}
    now = {node["name"] for node in last["nodes"]}
    nodes = [
        _joined(earlier[node["name"]], node) if node["name"] in earlier else node for node in last["nodes"]
    ]
    past = [_past(node) for name, node in earlier.items() if name not in now and _happened(node)]
    return {**last, "nodes": [*nodes, *past]}


def _happened(node: Document) -> bool:
    return bool(node["actions"] or node["transitions"])


def _joined(before: Document, last: Document) -> Document:
    if not _happened(before):
        return last
    return {
        **last,
        "stateBefore": before["stateBefore"],
        # A case that an earlier pass closed keeps what became of it.
        "outcome": last["outcome"] or before["outcome"],
        "facts": last["facts"] or before["facts"],
        "actions": _each_once(before["actions"], last["actions"]),
        "transitions": _each_once(before["transitions"], last["transitions"]),
    }


def _past(node: Document) -> Document:
    return {**node, "holds": [], "unknown": [], "checks": []}


def _each_once(before: list[Any], last: list[Any]) -> list[Any]:
    return [*before, *(one for one in last if one not in before)]
