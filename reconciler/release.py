"""Release: remove everything of ours from a node, on request of a person."""

from __future__ import annotations

from reconciler.errors import RecordUnreadable
from reconciler.model.keys import keys_of
from reconciler.model.node import Node
from reconciler.model.own import node_write
from reconciler.model.plan import NodeWrite
from reconciler.model.publication import Publication
from reconciler.model.record import Record
from reconciler.model.record_text import from_annotation
from reconciler.publishing.registry import removed_signs


def release(node: Node, prefix: str, *, reset: bool) -> NodeWrite | None:
    """Return the patch that removes our label, record, signs and cordon; None if there are none.

    A cordon that is not ours stays (law 2). Raises RecordUnreadable for a record that can't be read, unless
    `reset`: then it is removed too, and the cordon stays, because its owner is unknown.
    """
    keys = keys_of(prefix)
    text = node.annotations.get(keys.record)
    shown = removed_signs(node, prefix)
    signs = shown.annotations
    # A released node may receive pods again, so its events may no longer start early.
    signs = {**signs, keys.acknowledge: None} if keys.acknowledge in node.annotations else signs
    ours = {**shown.labels, **({keys.state: None} if keys.state in node.labels else {})}
    if text is None and not ours and not signs:
        return None
    record: Record | None = None
    if text is not None:
        try:
            record = from_annotation(text, node.uid)
        except RecordUnreadable:
            if not reset:
                raise
    undo = record is not None and record.cordon is not None and record.cordon.whose.may_be_undone
    return node_write(
        node,
        prefix,
        unschedulable=False if undo and node.unschedulable else None,
        labels=ours,
        annotations={**signs, **({keys.record: None} if text is not None else {})},
    )


def publications_off(node: Node, prefix: str) -> tuple[Publication, ...]:
    """Return the writes that remove our signs outside of the node's own patch."""
    return removed_signs(node, prefix).writes
