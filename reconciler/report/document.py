"""The report as a document for machines. Its keys only grow; `docs/output.md` has a heading for each."""

from __future__ import annotations

import json
from collections.abc import Iterable

from reconciler import __version__
from reconciler.model.holds import HoldCode
from reconciler.model.moments import to_text
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Hold, NodePlan, Plan
from reconciler.model.problems import internal
from reconciler.report import safe
from reconciler.report.columns import COLUMNS
from reconciler.report.values import Document, moment_value, settings_value, unseen_value


def to_document(plan: Plan, outcomes: Iterable[Outcome] = (), *, rehearsed: bool) -> Document:
    """Return the report of one pass; `rehearsed` says that nothing was written."""
    return {
        "version": "v1",
        "program": __version__,
        "at": to_text(plan.now),
        "mode": plan.mode,
        "settings": settings_value(plan.settings, plan.now),
        "timeZone": plan.time_zone,
        "dryRun": rehearsed,
        "lookedAfter": plan.managed,
        "budget": {
            "places": plan.budget.limit,
            "taken": len(plan.budget.holders),
            "holders": [{"node": node, "because": because} for node, because in plan.budget.holders],
        },
        "notes": list(plan.notes),
        "unseen": [unseen_value(one) for one in plan.unseen],
        "nextChange": moment_value(plan.next_change),
        "filter": None,
        "nodes": [node_document(node) for node in plan.nodes],
        "outcomes": outcome_values(outcomes),
    }


def outcome_values(outcomes: Iterable[Outcome]) -> list[Document]:
    """Return the results of actions, in order."""
    return [
        {"node": one.node, "action": one.action, "result": one.result.value, "detail": one.detail}
        for one in outcomes
    ]


def node_document(node: NodePlan) -> Document:
    """Return a node's values; one that can't be shown has only its name, its state, and the hold."""
    try:
        return _values(node)
    except Exception as error:  # noqa: BLE001 - one node's data harms that node's row only
        problem = internal(f"node {node.node} can't be reported", error)
        reason = f"an error in this program, see its log; the rest of the node can't be shown: {problem}"
        hold = Hold(node.node, HoldCode.INTERNAL, reason)
        return _values(NodePlan(node.node, "", "", node.before, node.after, holds=(hold,)))


def _values(node: NodePlan) -> Document:
    return {column.key: column.value(node) for column in COLUMNS}


def as_json(document: Document) -> str:
    """Return the document as indented JSON with a line's end."""
    return safe.json_text(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"
