"""Whose the cordon of a node is: `metadata.managedFields` names the client that set `spec.unschedulable`."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from reconciler import USER_AGENT
from reconciler.kubernetes.connection import Connection, Request
from reconciler.kubernetes.paths import NODES
from reconciler.kubernetes.wire import shapes
from reconciler.model.errors import ClusterError
from reconciler.model.node import Node

PASSES = USER_AGENT.partition("/")[0]
"""The field manager of what passes write: the API server takes it from the User-Agent."""

BY_HAND = f"{PASSES}-by-hand"
"""The field manager of drains by hand. Passes do not undo what a person began."""

AT_ONCE = 20
"""Nodes that one pass asks about, each by one request."""

KNOWN_FOR = 300.0
"""Seconds for which an answer counts."""

_ONLY_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


class _Fields(shapes.Shape):
    """metav1.FieldsV1 of a node, as far as the fields of its spec."""

    spec: dict[str, Any] | None = msgspec.field(name="f:spec", default=None)


class _Entry(shapes.Shape):
    """metav1.ManagedFieldsEntry."""

    manager: str = ""
    fieldsV1: _Fields | None = None  # noqa: N815 - the API's spelling


class _Metadata(shapes.Shape):
    """metav1.ObjectMeta, as far as who wrote what."""

    uid: str = ""
    managedFields: list[_Entry] | None = None  # noqa: N815 - the API's spelling


class _Object(shapes.Shape):
    """metav1.PartialObjectMetadata."""

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
        for node in random.sample(unknown, min(AT_ONCE, len(unknown))):
            self._known[node.uid] = self._is_ours(node), now
        return frozenset(node.name for node in nodes if self._known.get(node.uid, (False, now))[0])

    def _is_ours(self, node: Node) -> bool:
        try:
            answer = self._connection.send(Request("GET", NODES / node.name, accept=_ONLY_METADATA))
            found = shapes.decode(_Object, answer).metadata
        except ClusterError:
            return False
        return found.uid == node.uid and any(
            entry.manager == PASSES
            and entry.fieldsV1 is not None
            and "f:unschedulable" in (entry.fieldsV1.spec or {})
            for entry in found.managedFields or ()
        )
