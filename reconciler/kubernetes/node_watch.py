"""Reports changes in the node fields that we read, and ignores heartbeats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from reconciler.kubernetes.answers import PROTOBUF
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.paths import NODES
from reconciler.kubernetes.watching import AT_ONCE, Watched, Watching
from reconciler.kubernetes.wire import protobuf
from reconciler.kubernetes.wire.lists import ACCEPT, Format, list_all, node_format
from reconciler.model.keys import OwnKeys, keys_of
from reconciler.model.node import Node, Wanted
from reconciler.model.values import replace

READY = "Ready"


class NodeChange(Struct, frozen=True):
    """A node that has changed, by name, and whether it reports an event: then seconds can count.

    Urgent is a change of a condition besides Ready, of an annotation that announces or requests events, or of
    one in which a person holds, defers or approves the drain.
    """

    name: str
    urgent: bool = False


@contextmanager
def watch_nodes(connection: Connection, wanted: Wanted) -> Iterator[Iterator[NodeChange]]:
    """Yield an iterator over the nodes that appear, disappear, or change in the `wanted` fields.

    Its first item has no name: from then on the watch misses nothing. Versions and heartbeats are no
    change, so each of 5,000 kubelets costs one decoding in five minutes, and wakes nothing. The iterator ends
    when any thread leaves the context; it reconnects by itself, and raises Forbidden and Unauthorized.
    """
    with Watching(connection, _Nodes(connection, wanted)) as changes:
        yield _changes(changes, keys_of(wanted.annotation_prefix))


class _Nodes(Watched[Node]):
    path = NODES
    accept = ACCEPT

    def __init__(self, connection: Connection, wanted: Wanted) -> None:
        self._connection = connection
        self._form: Format[Node] = node_format(wanted)
        self.query: dict[str, str] = {}

    def list(self) -> tuple[list[Node], str]:
        listed = list_all(self._connection, self.path, self._form, patience=AT_ONCE)
        return listed.items, listed.resource_version

    def read(self, content_type: str, encoded: bytes) -> Node:
        if content_type == PROTOBUF:
            return self._form.from_protobuf(protobuf.unwrapped(encoded))
        return self._form.from_json(encoded)

    def uid(self, value: Node) -> str:
        return value.uid

    def version(self, value: Node) -> str:
        return value.resource_version


def _changes(changes: Iterator[tuple[bool, Node] | None], keys: OwnKeys) -> Iterator[NodeChange]:
    """Yield each node that has changed, apart from heartbeats."""
    seen: dict[str, Node] = {}
    listed_all = False
    for change in changes:
        if change is None:
            if not listed_all:
                listed_all = True
                yield NodeChange("")
            continue
        there, node = change
        steady = _without_heartbeats(node)
        before = seen.get(node.uid)
        if there and before == steady:
            continue
        if there:
            seen[node.uid] = steady
        else:
            seen.pop(node.uid, None)
        if listed_all:
            before_events = _reported_events(before, keys) if before is not None else None
            yield NodeChange(node.name, there and _reported_events(steady, keys) != before_events)


def _reported_events(node: Node, keys: OwnKeys) -> tuple[object, ...]:
    """Return what the node reports about events, and what people say about it."""
    conditions = {
        one.type: (one.status, one.reason, one.message) for one in node.conditions if one.type != READY
    }
    said = (keys.imds, keys.request, *keys.instructions)
    return conditions, tuple(node.annotations.get(key) for key in said)


def _without_heartbeats(node: Node) -> Node:
    """Return the node without the fields that change all the time."""
    return replace(
        node,
        resource_version="",
        conditions=tuple(replace(condition, heartbeat=None) for condition in node.conditions),
    )
