"""Release: remove what is ours from a node, on request of a person, and name what stays."""

from __future__ import annotations

from collections.abc import Collection

from reconciler.model.errors import RecordUnreadable
from reconciler.model.instructions import Ended, before_text
from reconciler.model.keys import Writer, keys_of
from reconciler.model.node import PREFERENCE, Node
from reconciler.model.record import Record, from_annotation
from reconciler.model.writes import NodeWrite, node_write
from reconciler.passes.decision import NodeSigns

_NO_SIGNS = NodeSigns()


def release(
    node: Node,
    prefix: str,
    signs: NodeSigns = _NO_SIGNS,
    *,
    reset: bool,
    writers: Collection[Writer] = (),
    by: Ended | None = None,
) -> NodeWrite | None:
    """Return the patch that removes our cordon, what belongs to a case, and the keys of these writers.

    `signs` are the changes that remove those of features. `by` is who releases the node: a node with a record
    says it until the next pass, which keeps it. None: nothing of ours is to be left.

    None if there is nothing of that. A cordon that is not ours stays (law 2). Raises RecordUnreadable for a
    record that can't be read, unless `reset`: then it is removed too, and the cordon stays, because its owner
    is unknown.
    """
    keys = keys_of(prefix)
    text = node.annotations.get(keys.record)
    gone = keys.released(writers)
    labels = {**signs.labels, **{key: None for key in node.labels if key in gone}}
    annotations = {**signs.annotations, **{key: None for key in node.annotations if key in gone}}
    says = by is not None and text is not None
    if says or not keys.bound.isdisjoint({*node.labels, *node.annotations} - gone):
        # The name of the node stays with what it is about, and goes with the last of it.
        annotations.pop(keys.uid, None)
    if not (labels or annotations or node.copied):
        return None
    record: Record | None = None
    if text is not None:
        try:
            record = from_annotation(text, node.uid)
        except RecordUnreadable:
            if not reset:
                raise
    if by is not None and text is not None:
        annotations[keys.said_before] = before_text((by,))
    undo = record is not None and record.cordon is not None and record.cordon.whose.may_be_undone
    return node_write(
        node,
        prefix,
        unschedulable=False if undo and node.unschedulable else None,
        labels=labels,
        annotations=annotations,
    )


def ours_on(node: Node, prefix: str) -> tuple[str, ...]:
    """Return all keys of ours that are on the node: of labels, annotations and taints."""
    found = (*node.labels, *node.annotations, *(taint.key for taint in node.taints))
    return tuple(sorted(set(filter(keys_of(prefix).owns, found))))


def left_on(
    node: Node, prefix: str, writers: Collection[Writer] = (), signs: NodeSigns = _NO_SIGNS
) -> tuple[str, ...]:
    """Return the keys of ours that are on the node after such a release, sorted.

    Another effect under the key of our taint is a taint that we did not write.
    """
    keys = keys_of(prefix)
    gone = {*keys.released(writers), *signs.annotations, *signs.labels}
    found = tuple(key for key in ours_on(node, prefix) if key not in gone)
    theirs = any(taint.key == keys.maintenance and taint.effect != PREFERENCE for taint in node.taints)
    return tuple(sorted({*found, keys.maintenance})) if theirs else found


def why_left(key: str, prefix: str) -> str:
    """Return in words why a key of ours stays on nodes, and how a person removes it."""
    known = keys_of(prefix).on_nodes.get(key)
    if known is None:
        return "written by hand, by a trigger of the settings, or by another version; remove it with kubectl"
    if known.ends:
        return f"{known.ends} removes it"
    if known.writer is Writer.AGENT:
        return "the node agent writes it; delete its DaemonSet, and run this again"
    return "written by hand; remove it with kubectl" if known.writer is Writer.HAND else "not released"
