"""Claim: take a node for a drain by hand, so that the passes hold it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.errors import RecordUnreadable
from reconciler.model.keys import OwnKeys
from reconciler.model.node import Node
from reconciler.model.own import node_write
from reconciler.model.plan import NodeWrite
from reconciler.model.record import Cordon, Record, State, from_annotation, to_annotation

_PROFILE = "default"


@dataclass(frozen=True, slots=True)
class ClaimRefused:
    """Why a node can't be drained by hand now, and what to do about it."""

    because: str


def claim(node: Node, prefix: str, who: str, now: datetime) -> NodeWrite | ClaimRefused | None:
    """Return the patch that cordons and claims the node, None where that is done already, or a refusal.

    A node that a pass has taken, or somebody else's hand, is theirs until it is released.
    """
    undo = f"reconciler release {node.name} takes it away"
    keys = OwnKeys(prefix)
    text = node.annotations.get(keys.record)
    try:
        before = from_annotation(text, node.uid) if text else None
    except RecordUnreadable as error:
        return ClaimRefused(f"its record is left alone: {error}; {undo} with --reset")
    if before is not None and before.claimed_by and before.claimed_by != who:
        return ClaimRefused(f"{before.claimed_by} drains it by hand; {undo}")
    if before is not None and not before.claimed_by and before.state(_PROFILE) is State.IN_MAINTENANCE:
        return ClaimRefused(f"a pass has taken it and drains it itself; {undo}")
    if before is not None and before.claimed_by and node.unschedulable:
        return None
    # A cordon that was there before ours stays after us; what an earlier claim knew of it is kept.
    cordon = Cordon.FOREIGN if node.unschedulable else Cordon.OURS
    record = replace(before or Record(node.uid), claimed_by=who, cordon=cordon, drain=None)
    record = record.moved(_PROFILE, State.IN_MAINTENANCE, now.replace(microsecond=0))
    return node_write(
        node,
        prefix,
        unschedulable=None if node.unschedulable else True,
        labels={keys.state: State.IN_MAINTENANCE.value},
        annotations={keys.record: to_annotation(record)},
    )
