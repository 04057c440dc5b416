"""What an update of a node changes, before it becomes a Node of ours: most updates are heartbeats.

A watch of nodes gets each node again and again, with new heartbeats and a new resourceVersion. A glance
decodes only these, and takes a fingerprint of the parts that are read, most of which stay encoded.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Struct

from reconciler.kubernetes.wire import protobuf
from reconciler.kubernetes.wire.formats import node_format
from reconciler.kubernetes.wire.reducing import moment_of
from reconciler.model import limits
from reconciler.model.node import Condition, Node, Wanted
from reconciler.model.values import replace

_TYPE = b"\n"
_encode = msgspec.msgpack.encode


class Glance(Struct, frozen=True):
    """One version of a node: its identity, a fingerprint of what is read of it, and its heartbeats.

    Where two glances of one `NodeForm` have the same `mark`, their Nodes differ in `resource_version` and the
    heartbeats of conditions alone. Where the marks differ, the Nodes may still be equal, because something
    changed that a Node does not have, such as a label: `renewed` and `==` say so. A mark is valid in this
    process only. `beats` are the heartbeats, UTC, in the order of the conditions of the Node.
    """

    name: str
    uid: str
    resource_version: str
    mark: int
    beats: tuple[datetime | None, ...]

    def renewed(self, node: Node) -> Node:
        """Return an earlier version of the Node with the resourceVersion and heartbeats of this one.

        With the same mark, it is what `NodeForm.node` returns. With another one, it is equal to that if
        nothing else of the Node has changed.
        """
        conditions = node.conditions
        if len(conditions) == len(self.beats):
            conditions = tuple(map(_with_heartbeat, conditions, self.beats))
        return replace(node, resource_version=self.resource_version, conditions=conditions)


class NodeForm:
    """How nodes are read, with the parts that are wanted: at a glance, or as a Node."""

    def __init__(self, wanted: Wanted) -> None:
        """Read these parts."""
        self.format = node_format(wanted)
        self._capacity = wanted.capacity
        self._conditions = wanted.conditions
        self._heads = tuple(
            protobuf.NodeCondition(type=kind).SerializeToString() for kind in sorted(wanted.conditions)
        )

    def node(self, encoded: bytes | memoryview) -> Node:
        """Return an encoded node (without its envelope) as a Node; Rejected if it is broken."""
        return self.format.read(encoded)

    def glance(self, encoded: bytes | memoryview) -> Glance:
        """Return the identity of an encoded node, its mark and its heartbeats; Rejected if it is broken.

        It costs half of what `node` does. What stays encoded is not checked: `node` may still refuse it.
        """
        found = protobuf.parse(protobuf.GlancedNode, encoded)
        meta, status = found.metadata, found.status
        name, uid = meta.name, meta.uid
        conditions, beats = self._seen(status.conditions)
        read = (
            name,
            uid,
            [*meta.labels],
            [*meta.annotations],
            [*meta.finalizers],
            found.spec,
            status.nodeInfo,
            [*status.allocatable] if self._capacity else (),
            conditions,
        )
        # Keyed at random for each process: nobody can make two nodes with one mark.
        return Glance(_text(name), _text(uid), _text(meta.resourceVersion), hash(_encode(read)), beats)

    def _seen(self, conditions: list[bytes]) -> tuple[list[bytes], tuple[datetime | None, ...]]:
        """Return the conditions that are read, encoded without their heartbeats, and the heartbeats."""
        parts: list[bytes] = []
        beats: list[datetime | None] = []
        for encoded in conditions:
            # The type comes first, so others are not decoded.
            if encoded.startswith(_TYPE) and not encoded.startswith(self._heads):
                continue
            condition = protobuf.parse(protobuf.NodeCondition, encoded)
            if condition.type in self._conditions:
                beats.append(moment_of(condition.lastHeartbeatTime))
                condition.ClearField("lastHeartbeatTime")
                parts.append(condition.SerializeToString())
        return parts, tuple(beats)


def _with_heartbeat(condition: Condition, beat: datetime | None) -> Condition:
    return Condition(
        condition.type,
        condition.status,
        condition.reason,
        condition.message,
        beat,
        # A Condition takes a time that can't be read, and keeps a mark in its place.
        limits.UNREADABLE if "transition" in condition.unreadable else condition.transition,
    )


def _text(encoded: bytes) -> str:
    return encoded.decode("utf-8", "replace")
