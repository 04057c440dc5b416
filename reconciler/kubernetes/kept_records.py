"""Records that their node can't hold, in our ConfigMap.

The API server limits the annotations of an object to 256 KiB, and a policy may deny the annotation of the
record. The ConfigMap then has the record, and a label of the node names the text that counts. The label is in
the same patch as the cordon, so a pass that is killed between the two writes leaves the node as it was.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Protocol

from msgspec import Struct

from reconciler.kubernetes.objects import is_denied
from reconciler.model import limits
from reconciler.model.errors import Forbidden, NotKept, Rejected
from reconciler.model.keys import keys_of
from reconciler.model.node import Node
from reconciler.model.values import replace
from reconciler.model.writes import NodeWrite, WriteAnswer

log = logging.getLogger(__name__)

KEPT = "keptRecords"
"""The key of our ConfigMap."""

MOST = 20
MOST_CHARACTERS = 128 << 10
"""What is kept at most. The ConfigMap has 1 MiB for everything."""

# k8s.io/apimachinery: ValidateAnnotationsSize.
_NO_ROOM = re.compile(r"annotations: Too long")


class Kept(Struct, frozen=True):
    """The texts of the record of the node with this UID: that which counts, and the one to be written."""

    uid: str
    texts: tuple[str, ...]

    def named(self, label: str | None) -> str | None:
        """Return the text that the label of the node names, None without one."""
        return next((text for text in self.texts if sign(text) == label), None)


class Send(Protocol):
    """A patch of a node; see node_writing.patch_node."""

    def __call__(self, write: NodeWrite, *, dry_run: bool = False) -> WriteAnswer:
        """Send it; a dry run changes nothing, and raises what the patch would raise."""


Change = Callable[[Mapping[str, Kept]], Mapping[str, Kept]]


def sign(text: str) -> str:
    """Return the value of the label that names this text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def load(text: str | None) -> dict[str, Kept]:
    """Return the records by node. A text that can't be read results in none."""
    try:
        found = limits.loads(text, limits.LEDGER) if text else {}
        return {
            node: Kept(str(kept["uid"]), tuple(map(str, kept["texts"])))
            for node, kept in list(found.items())[:MOST]
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        log.warning("the kept records can't be read: error=%r", error)
        return {}


def dump(kept: Mapping[str, Kept]) -> str:
    """Return them as text, empty for none; raises Rejected if they are too many."""
    data = {node: {"uid": entry.uid, "texts": entry.texts} for node, entry in kept.items()}
    text = json.dumps(data, sort_keys=True, separators=(",", ":")) if data else ""
    if len(data) > MOST or len(text) > MOST_CHARACTERS:
        raise Rejected(f"our ConfigMap has room for the records of {MOST} nodes, and it is used up")
    return text


def is_marked(node: Node, prefix: str) -> bool:
    """Whether the record of the node is in our ConfigMap."""
    keys = keys_of(prefix)
    return keys.record_kept in node.labels and keys.record not in node.annotations


def with_record(node: Node, prefix: str, kept: Mapping[str, Kept]) -> Node:
    """Return the node with its kept record as the annotation, as if it had it."""
    keys, entry = keys_of(prefix), kept.get(node.name)
    if entry is None or entry.uid != node.uid or not is_marked(node, prefix):
        return node
    text = entry.named(node.labels[keys.record_kept])
    return node if text is None else replace(node, annotations={**node.annotations, keys.record: text})


def unreadable(node: Node, prefix: str) -> Node:
    """Return the node with a record that can't be read, if our ConfigMap has its record."""
    if not is_marked(node, prefix):
        return node
    return replace(node, annotations={**node.annotations, keys_of(prefix).record: ""})


def patch_node(
    send: Send, change: Callable[[Change], None], write: NodeWrite, nodes: Collection[str]
) -> WriteAnswer:
    """Patch the node; a record that it can't hold goes to our ConfigMap first, by `change`.

    From then on the ConfigMap has the record until it ends, or until its node is not among `nodes`, which are
    empty if they are not known. For the errors, see `send`. If the patch without the record is refused, too,
    the first refusal is raised, and the node is as before.
    """
    keys = write.keys
    text = write.annotations.get(keys.record)
    if f"label:{keys.record_kept}" in write.seen_own:
        if text:
            change(partial(_with_text, write, text, nodes))
            return send(_without_record(write))
        answer = send(_without_record(write))
        if keys.record in write.annotations:
            change(lambda kept: {name: entry for name, entry in kept.items() if name != write.node})
        return answer
    try:
        return send(write)
    except (Forbidden, Rejected) as error:
        # Whether the same write without the record may be taken; what RBAC refuses is not.
        if isinstance(error, NotKept):
            may_be_kept = error.lost == {f"annotation:{keys.record}"}
        else:
            may_be_kept = is_denied(error) or _NO_ROOM.search(str(error)) is not None
        if not text or not may_be_kept:
            raise
        try:
            # A policy that denies the cordon denies it here, before anything is kept.
            send(_without_record(write), dry_run=True)
            change(partial(_with_text, write, text, nodes))
            answer = send(_without_record(write))
        except (Forbidden, Rejected):
            raise error from None
        said = f"our ConfigMap keeps the record of the node: {error}"
        log.warning("node %s: %s", write.node, said)
        return replace(answer, said="; ".join(filter(None, (said, answer.said))))


def _without_record(write: NodeWrite) -> NodeWrite:
    """Return the write of a node whose record our ConfigMap has: its label names the text instead."""
    keys = write.keys
    seen = dict(write.seen_own)
    if f"label:{keys.record_kept}" in seen:
        # `with_record` has put it there.
        seen.pop(f"annotation:{keys.record}", None)
    if keys.record not in write.annotations:
        return replace(write, seen_own=seen)
    text = write.annotations[keys.record]
    return replace(
        write,
        seen_own=seen,
        labels={**write.labels, keys.record_kept: sign(text) if text else None},
        annotations={**write.annotations, keys.record: None},
    )


def _with_text(
    write: NodeWrite, text: str, nodes: Collection[str], kept: Mapping[str, Kept]
) -> Mapping[str, Kept]:
    label = write.seen_own.get(f"label:{write.keys.record_kept}")
    before = kept.get(write.node)
    counts = before.named(label) if before is not None and before.uid == write.uid else None
    texts = (text,) if counts is None or counts == text else (counts, text)
    others = {node: entry for node, entry in kept.items() if not nodes or node in nodes}
    return {**others, write.node: Kept(write.uid, texts)}
