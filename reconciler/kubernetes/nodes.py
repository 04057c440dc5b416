"""One node as it is now, and who cordoned it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from reconciler import USER_AGENT
from reconciler.http.retrying import CHANCE, patiently
from reconciler.kubernetes.connection import NODES, PROTOBUF, Connection, Request
from reconciler.kubernetes.wire import protobuf, shapes
from reconciler.kubernetes.wire.formats import node_format
from reconciler.model import limits
from reconciler.model.errors import ClusterError
from reconciler.model.node import Node, Wanted


def read_node(connection: Connection, name: str, wanted: Wanted) -> Node:
    """Read one node, with the wanted parts; NotFound if it is gone."""
    return node_of(read_encoded(connection, name), wanted)


def read_encoded(connection: Connection, name: str) -> bytes:
    """Read one node in protobuf, for `node_of`; NotFound if it is gone."""
    request = Request("GET", NODES / name, accept=PROTOBUF)
    return patiently(lambda: connection.send(request), sleep=connection.sleep)


def node_of(answer: bytes, wanted: Wanted) -> Node:
    """Return the wanted parts of the node in an answer; Rejected if it is broken."""
    return node_format(wanted).read(protobuf.unwrapped(answer))


PASSES = USER_AGENT.partition("/")[0]
"""The field manager of what passes write: the API server takes it from the User-Agent."""

BY_HAND = f"{PASSES}-by-hand"
"""The field manager of drains by hand. Passes do not undo what a person began."""

AT_ONCE = 20
"""Nodes that one pass asks about, each by one request."""

KNOWN_FOR = 300.0
"""Seconds for which an answer counts."""

_ONLY_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


class _Fields(msgspec.Struct):
    spec: dict[str, Any] | None = msgspec.field(name="f:spec", default=None)


class _Entry(msgspec.Struct):
    manager: str = ""
    fieldsV1: _Fields | None = None  # noqa: N815 - the API's spelling


class _Metadata(msgspec.Struct):
    uid: str = ""
    managedFields: list[_Entry] | None = None  # noqa: N815 - the API's spelling


class _Object(msgspec.Struct):
    metadata: _Metadata


class CordonOwner:
    """Knows which cordons passes have set. It asks about cordoned nodes without a record only."""

    def __init__(self, connection: Connection, clock: Callable[[], float] = time.monotonic) -> None:
        """Use this connection; `clock` is in seconds."""
        self._connection, self._clock = connection, clock
        self._known: dict[str, tuple[bool, float]] = {}

    def ours(self, nodes: Sequence[Node]) -> frozenset[str]:
        """Return the names of those whose cordon a pass has set. What can't be read is not ours."""
        now = self._clock()
        uids = {node.uid for node in nodes}
        self._known = {
            uid: found for uid, found in self._known.items() if uid in uids and now - found[1] < KNOWN_FOR
        }
        unknown = [node for node in nodes if node.uid not in self._known]
        # Each pass of a process that asks about other nodes comes to all of them in the end.
        for node in CHANCE.sample(unknown, min(AT_ONCE, len(unknown))):
            self._known[node.uid] = self._is_ours(node), now
        return frozenset(node.name for node in nodes if self._known.get(node.uid, (False, now))[0])

    def uncordoned_by(self, node: Node) -> str:
        """Return the field manager that set `spec.unschedulable` to false, empty if that is not known.

        Only who applies the field owns it then. An uncordon by a patch, such as that of kubectl, removes the
        field, and the API server keeps no owner of what is gone.
        """
        return next(self._managers(node), "")

    def _is_ours(self, node: Node) -> bool:
        return PASSES in self._managers(node)

    def _managers(self, node: Node) -> Iterator[str]:
        """Yield the managers of `spec.unschedulable`, none if they can't be read."""
        try:
            answer = self._connection.send(Request("GET", NODES / node.name, accept=_ONLY_METADATA))
            found = shapes.decode(_Object, answer).metadata
        except ClusterError:
            return
        if found.uid != node.uid:
            return
        for entry in found.managedFields or ():
            if entry.fieldsV1 is not None and "f:unschedulable" in (entry.fieldsV1.spec or {}):
                yield limits.text(entry.manager)
