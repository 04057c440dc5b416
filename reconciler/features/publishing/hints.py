"""Scheduling hints: a taint and a label from the announcement of an event to its end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from reconciler.features.publishing.settings import EnabledSigns
from reconciler.model.keys import keys_of
from reconciler.model.node import PREFERENCE, Node, Taint
from reconciler.model.plan import JudgedEvent
from reconciler.model.writes import TaintWrite
from reconciler.passes.decision import CaseDecision, NodeSigns

ANY_MOMENT = "0"
"""The value of the label without a deadline: the node may have to be empty at any moment."""


def signs(node: Node, decision: CaseDecision, showing: EnabledSigns) -> NodeSigns:
    """Return the changes of the hints.

    A node has them while its case has an event that requires a drain. If only an unreadable source may
    still report one, they stay as they are.
    """
    hints, prefix = showing.hints, showing.prefix
    asking = [one for one in decision.view.present if one.asks] if decision.open else []
    if not asking:
        off = removed_hints(node, prefix)
        hidden = decision.open and bool(decision.view.unknown)
        return NodeSigns(
            labels={} if hidden and hints.label else off.labels,
            writes=() if hidden and hints.taint else off.writes,
        )
    key, wanted = keys_of(prefix).deadline, deadline_of(asking) if hints.label else None
    return NodeSigns(
        labels={key: wanted} if node.labels.get(key) != wanted else {},
        writes=_taint(node, prefix, wanted=hints.taint),
    )


def bears_hints(node: Node, prefix: str) -> bool:
    """Whether the node has a hint of the installation with this prefix."""
    return keys_of(prefix).deadline in node.labels or _has(node, taint_of(prefix))


def removed_hints(node: Node, prefix: str) -> NodeSigns:
    """Return the changes that remove the hints of the installation with this prefix."""
    key = keys_of(prefix).deadline
    return NodeSigns(
        labels={key: None} if key in node.labels else {}, writes=_taint(node, prefix, wanted=False)
    )


@lru_cache(maxsize=16)
def taint_of(prefix: str) -> Taint:
    """Return the taint of the installation with this prefix."""
    return Taint(keys_of(prefix).maintenance, effect=PREFERENCE)


def deadline_of(asking: Sequence[JudgedEvent]) -> str:
    """Return the earliest deadline in seconds since 1970, `0` if an event has none."""
    if any(one.deadline is None for one in asking):
        return ANY_MOMENT
    return str(min(int(one.deadline.timestamp()) for one in asking if one.deadline is not None))


def _taint(node: Node, prefix: str, *, wanted: bool) -> tuple[TaintWrite, ...]:
    taint = taint_of(prefix)
    if _has(node, taint) is wanted:
        return ()
    return (TaintWrite(node.name, node.uid, taint, wanted),)


def _has(node: Node, taint: Taint) -> bool:
    # Another effect under our key is another taint, which we did not write.
    return any((one.key, one.effect) == (taint.key, taint.effect) for one in node.taints)
