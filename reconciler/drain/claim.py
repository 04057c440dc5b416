"""Claim: claim a node for a drain by hand, so that the passes hold it."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from reconciler.model.instructions import PersonHold
from reconciler.model.keys import keys_of
from reconciler.model.node import Node
from reconciler.model.record import (
    Claim,
    ClaimKind,
    Cordon,
    DrainRecord,
    Record,
    Unreadable,
    record_of,
    shown_labels,
    to_annotation,
)
from reconciler.model.writes import NodeWrite, node_write


class ClaimRefused(Struct, frozen=True):
    """Why a node can't be drained by hand now, and what to do about it."""

    because: str


def claim(
    node: Node, prefix: str, who: str, now: datetime, hold: PersonHold | None = None
) -> NodeWrite | ClaimRefused | None:
    """Return the patch that cordons and claims the node, None where that is done already, or a refusal.

    The person claims the node's cordon and drain. Refused while another person claims them, while a pass has
    the node in maintenance, or while `hold` applies to it. Such a hold stops a drain that this person began
    only if it says so. The claim of a person whose cordon was removed has ended.
    """
    undo = f"reconciler release {node.name} removes it"
    keys = keys_of(prefix)
    before = record_of(node, prefix)
    if isinstance(before, Unreadable):
        return ClaimRefused(f"its record is not changed: {before.because}; {undo} with --reset")
    record = (before or Record(node.uid)).in_force(cordoned=node.unschedulable)
    if record.claimed_by and record.claimed_by != who:
        return ClaimRefused(f"{record.claimed_by} is draining it by hand; {undo}")
    if not record.claimed_by and record.in_maintenance:
        return ClaimRefused(f"a pass is draining it; {undo}")
    if hold is not None and (hold.stops or not record.claimed_by):
        return ClaimRefused(f"{hold.words(node.name)}; --ignore-holds drains it all the same")
    if record.claimed_by:
        return None
    person = Claim(ClaimKind.PERSON, who)
    record = record.cordoned(_whose(node, record), person, now)
    record = record.drained(DrainRecord(now.replace(microsecond=0)), person)
    return node_write(
        node,
        prefix,
        unschedulable=None if node.unschedulable else True,
        labels=shown_labels(record, keys),
        annotations={keys.record: to_annotation(record)},
    )


def _whose(node: Node, record: Record) -> Cordon:
    """Return whose the cordon is once the node is claimed: one that was there before stays after us."""
    if not node.unschedulable:
        return Cordon.OURS
    return record.cordon.whose if record.cordon is not None else Cordon.FOREIGN
