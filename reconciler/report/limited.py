"""A report with the rows of some nodes only; everything else in it stays that of the whole fleet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from reconciler.model.drains import Phase
from reconciler.model.errors import NotFound
from reconciler.model.holds import HoldCode
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.record import State
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from reconciler.report.values import Document


class Only(StrEnum):
    """Which nodes a report is limited to, by what happens to them."""

    HELD = "held"
    PLANNED = "planned"
    """An event requires a drain, and no drain has begun."""

    DRAINING = "draining"


class Limit(Struct, frozen=True):
    """Which rows of a report to show: those of these nodes (none: of all), and only those of this kind.

    `selector` chooses nodes by their labels, and `selected` are the names of those that have them.
    """

    names: tuple[str, ...] = ()
    only: Only | None = None
    selector: LabelSelector | None = None
    selected: frozenset[str] = frozenset()

    def on(self, nodes: Iterable[Node]) -> Limit:
        """Return the limit with the names of the nodes that it selects; NotFound if there are none."""
        if self.selector is None:
            return self
        selected = frozenset(node.name for node in nodes if self.selector.matches(node.labels))
        if not selected:
            raise NotFound(f"no node matches {self.selector}", status=404)
        return replace(self, selected=selected)


def limited(document: Document, plan: Plan, limit: Limit) -> Document:
    """Return the plan's document with these rows only; its `filter` says which, and how many there are.

    A node of the limit that has no row in the plan has nothing to report.
    """
    if limit == Limit():
        return document
    names = tuple(dict.fromkeys(limit.names))
    known = {node.node for node in plan.nodes}
    shown = {node.node for node in plan.nodes if _is_shown(node, limit)}
    rows = [row for row in document["nodes"] if row["name"] in shown]
    chosen = {
        "nodes": list(names),
        "selector": str(limit.selector) if limit.selector else None,
        "only": limit.only.value if limit.only else None,
        "shown": len(rows),
        "of": len(document["nodes"]),
        "quiet": [name for name in names if name not in known],
    }
    return {**document, "filter": chosen, "nodes": rows}


def filter_lines(document: Document) -> list[str]:
    """Return the lines about the filter: which rows are shown, and which named nodes have none."""
    chosen = document["filter"]
    if chosen is None:
        return []
    parts = [f"only {chosen['only']}"] if chosen["only"] else []
    parts += [_some(chosen["nodes"])] if chosen["nodes"] else []
    parts += [f"nodes with {chosen['selector']}"] if chosen["selector"] else []
    lines = [f"rows: {chosen['shown']} of {chosen['of']} shown ({'; '.join(parts)})"]
    if chosen["quiet"]:
        lines.append(f"nothing to report: {_some(chosen['quiet'])}")
    return lines


_NAMED = 5


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _is_shown(node: NodePlan, limit: Limit) -> bool:
    names: Collection[str] = limit.names
    if names and node.node not in names:
        return False
    if limit.selector is not None and node.node not in limit.selected:
        return False
    match limit.only:
        case Only.HELD:
            return bool(node.holds)
        case Only.PLANNED:
            return node.urgency is not None and node.before is not State.IN_MAINTENANCE
        case Only.DRAINING:
            return _is_draining(node)
    return True


def _is_draining(node: NodePlan) -> bool:
    progress = node.draining.progress
    if progress is not None and progress.phase is Phase.RUNNING:
        return True
    if any(hold.code == HoldCode.NOT_CLAIMED for hold in node.holds):
        return True
    drain = node.record.drain if node.record is not None else None
    return node.before is State.IN_MAINTENANCE and drain is not None and drain.done is None
