"""The nodes of the cluster as a watch and our own writes show them, for passes that need not list them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from msgspec import Struct

from reconciler.kubernetes.connection import NODES, Connection
from reconciler.kubernetes.scale.glances import Glance, NodeForm
from reconciler.kubernetes.scale.pages import list_streamed
from reconciler.kubernetes.watching import AT_ONCE, Known, Watched, Watching, is_later, later
from reconciler.kubernetes.wire import protobuf
from reconciler.model.errors import Rejected
from reconciler.model.keys import keys_of
from reconciler.model.node import Node, Wanted
from reconciler.model.ports import Look
from reconciler.model.values import replace

FRESH = 30.0
"""Seconds after the last sign of life of the watch for which a pass need not list the nodes.

A watch whose connection hangs says nothing. In a cluster of some ten nodes, kubelets write more often.
"""

FIRST_LIST = 120.0
"""Seconds for which a pass waits for the first list of the watch."""

COUNT_EVERY = 60.0
"""Seconds between two comparisons of the number of nodes with that of the API server."""

RELIST_EVERY = 60.0
"""Seconds between two lists of the nodes, of a thousand or fewer; with more, the period grows."""

READY = "Ready"


class NodeChange(Struct, frozen=True):
    """A node that has changed, by name, and whether it reports an event: then seconds can count.

    Urgent is a change of a condition besides Ready, of an annotation that announces or requests events, or of
    one in which a person says something about the drain.
    """

    name: str
    urgent: bool = False


class Update(Struct, frozen=True):
    """A version of a node from a watch: what a glance shows, and how to read the rest while it is there."""

    glance: Glance
    read: Callable[[], Node]


class NodeStore(Known[Any, NodeChange]):
    """The newest version of each node that a watch or an answer to a write has shown; safe for threads.

    Versions are compared as numbers, so what comes doubled, late or out of order changes nothing (KEP-5504:
    the resourceVersions of a kind are comparable). Versions that are no numbers count as new.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start empty; `clock` is in seconds."""
        self._clock = clock
        self._lock = threading.Condition()
        self._nodes: dict[str, Node] = {}
        self._wanted: Wanted | None = None
        self._heard_at: float | None = None
        self._changed: set[str] | None = None
        self._shown: dict[str, Node] = {}
        self._marks: dict[str, int] = {}
        self._written: set[str] = set()
        self._form: NodeForm | None = None
        self._first = False
        self._counted: tuple[float, int] = (0.0, 0)
        self._went_back_at: float | None = None
        self.stale = False

    def begin(self, wanted: Wanted) -> NodeForm:
        """Forget everything: from now on, a watch shows these parts of nodes, as the result reads them."""
        form = NodeForm(wanted)
        with self._lock:
            self._wanted, self._form = wanted, form
            self._forget()
        return form

    def forget(self) -> None:
        """Forget all nodes. No pass sees one before the next list, and then it looks at all."""
        with self._lock:
            self._went_back_at = self._clock()
            self._forget()

    def went_back(self) -> float | None:
        """Return the seconds since the versions of the API server went back, None if they never did."""
        at = self._went_back_at
        return None if at is None else self._clock() - at

    def _forget(self) -> None:
        self._nodes, self._heard_at, self._first, self.version = {}, None, True, ""
        self._changed, self._shown, self._marks, self._written = None, {}, {}, set()
        self._published: dict[str, float] = {}

    def followed(self, wanted: Wanted) -> Look | None:
        """Return the nodes as the watch and our own writes show them, and which have changed.

        None if the watch can't list, or after `FRESH` silent seconds.

        It waits for the first list of the watch: with thousands of nodes, two lists need twice the memory.
        """
        with self._lock:
            self._lock.wait_for(lambda: not self._first, FIRST_LIST)
            if wanted != self._wanted or self._heard_at is None or self._clock() - self._heard_at > FRESH:
                return None
            changed, self._changed = self._changed, set()
            if changed is None or changed:
                self._shown = dict(self._nodes)
            return Look(self._shown, None if changed is None else frozenset(changed))

    def newest(self) -> Mapping[str, Node]:
        """Return all nodes that are known, by name."""
        with self._lock:
            return dict(self._nodes)

    def published(self, seconds: float) -> frozenset[str]:
        """Return the nodes whose agent has published other events within so many seconds."""
        with self._lock:
            since = self._clock() - seconds
            self._published = {name: at for name, at in self._published.items() if at >= since}
            return frozenset(self._published)

    def count_is_due(self) -> bool:
        """Whether `counted` should get the number of nodes; at most once in `COUNT_EVERY` seconds."""
        with self._lock:
            now = self._clock()
            due = self._heard_at is not None and now - self._counted[0] >= COUNT_EVERY
            if due:
                self._counted = now, self._counted[1]
            return due

    def counted(self, count: int) -> None:
        """Compare the number of nodes that the API server has; the second difference makes a new list."""
        with self._lock:
            differs = self._counted[1] + 1 if count != len(self._nodes) else 0
            self._counted = self._counted[0], differs
            if differs > 1:
                self.stale = True
                self._lose()

    def read(self, encoded: bytes | memoryview) -> Node:
        """Return an item of a list: the node as it is known, if that is the same."""
        assert self._form is not None
        if not self._marks:
            return self._form.node(encoded)
        glance = self._form.glance(encoded)
        with self._lock:
            return self._known(glance) or self._form.node(encoded)

    def _known(self, glance: Glance) -> Node | None:
        """Return the node without a read: it is this version, or all but its heartbeats is as it was."""
        before = self._nodes.get(glance.name)
        if before is None or before.uid != glance.uid:
            return None
        if before.resource_version == glance.resource_version:
            return before
        return glance.renewed(before) if self._marks.get(glance.name) == glance.mark else None

    def wrote(self, answer: bytes) -> None:
        """Note the answer to a write of a node: a pass reads what it wrote before the watch shows it."""
        if (form := self._form) is not None:
            # The watch shows what can't be read here, or can't read it either.
            with suppress(Rejected):
                self.note_written(form.node(protobuf.unwrapped(answer)))

    def note_written(self, node: Node) -> None:
        """Note a node as an answer to a write shows it."""
        with self._lock:
            self.version = later(self.version, node.resource_version)
            before = self._nodes.get(node.name)
            # A node that is gone must not come back.
            if before is not None and before.uid == node.uid and _is_newer(node, before):
                self._put(node)
                self._marks.pop(node.name, None)
                self._written.add(node.name)

    def listed(self, values: Iterable[Node], version: str) -> Iterator[NodeChange]:
        with self._lock:
            nodes = {node.name: node for node in values}
            first = self._heard_at is None and not self._nodes
            changes = [] if first else [self._remove(node) for node in self._missing(nodes, version)]
            for node in nodes.values():
                change = self._see(node, self._nodes.get(node.name))
                if change is not None and not first:
                    changes.append(change)
            self._heard_at, self._first, self.stale = self._clock(), False, False
            self._lock.notify_all()
        yield from changes

    def saw(self, value: Update, *, gone: bool) -> NodeChange | None:
        """Return the change. Versions and heartbeats are none, and do not make a Node of what came."""
        glance = value.glance
        with self._lock:
            before = self._nodes.get(glance.name)
            if gone:
                return self._remove(before) if before is not None and before.uid == glance.uid else None
            known = self._known(glance)
            if before is None or known is None:
                change = self._see(value.read(), before)
                if self._nodes[glance.name].resource_version == glance.resource_version:
                    self._marks[glance.name] = glance.mark
                return change
            self._marks[glance.name] = glance.mark
            if is_later(glance.resource_version, before.resource_version):
                self._put(known)
            return self._echo(known)

    @property
    def relist_every(self) -> float:
        """The seconds until the next list. Passes list no nodes, so a lost event has to show soon."""
        return RELIST_EVERY

    def heard(self) -> None:
        self._heard_at = self._clock() if self._heard_at is not None else None

    def lost(self) -> None:
        """Note that an object can't be read: until the next list, passes list the nodes."""
        with self._lock:
            self._lose()

    def _lose(self) -> None:
        self._heard_at, self._first = None, False
        self._lock.notify_all()

    def _see(self, node: Node, before: Node | None) -> NodeChange | None:
        if before is not None and not _is_newer(node, before):
            return self._echo(before) if node.resource_version == before.resource_version else None
        self._written.discard(node.name)
        self._marks.pop(node.name, None)
        self._put(node)
        if before is None or before.uid != node.uid:
            return NodeChange(node.name, urgent=self._events(node) != self._events(Node(node.name, "", "")))
        if _without_heartbeats(before) == _without_heartbeats(node):
            return None
        assert self._wanted is not None
        of_agent = keys_of(self._wanted.annotation_prefix).of_agent
        if any(node.annotations.get(key) not in (None, before.annotations.get(key)) for key in of_agent):
            self._published[node.name] = self._clock()
        return NodeChange(node.name, urgent=self._events(node) != self._events(before))

    def _echo(self, node: Node) -> NodeChange | None:
        """Return the change if the watch shows what this process wrote: another pass may follow from it."""
        if node.name not in self._written:
            return None
        self._written.discard(node.name)
        return NodeChange(node.name)

    def _put(self, node: Node) -> None:
        self._nodes[node.name] = node
        self._note(node.name)

    def _remove(self, node: Node) -> NodeChange:
        del self._nodes[node.name]
        self._marks.pop(node.name, None)
        self._written.discard(node.name)
        self._note(node.name)
        return NodeChange(node.name)

    def _note(self, name: str) -> None:
        if self._changed is not None:
            self._changed.add(name)

    def _missing(self, listed: Mapping[str, Node], version: str) -> list[Node]:
        """Return the nodes that are gone; one that is newer than the list is not."""
        missing = [node for name, node in self._nodes.items() if name not in listed]
        return [node for node in missing if not is_later(node.resource_version, version)]

    def _events(self, node: Node) -> tuple[object, ...]:
        """Return what a node says of events: its conditions but Ready, and our annotations."""
        assert self._wanted is not None
        keys = keys_of(self._wanted.annotation_prefix)
        conditions = {
            condition.type: (condition.status, condition.reason, condition.message)
            for condition in node.conditions
            if condition.type != READY
        }
        written = keys.of_passes
        said = {key: text for key, text in node.annotations.items() if keys.owns(key) and key not in written}
        return conditions, said


class _Nodes(Watched[Any]):
    """All nodes: as Nodes from a list, and at a glance from an event."""

    def __init__(self, connection: Connection, form: NodeForm, store: NodeStore) -> None:
        self._node_form = form
        super().__init__(connection, NODES, replace(form.format, read=store.read), lambda node: node.uid)

    def list(self) -> tuple[list[Any], str]:
        listed = list_streamed(self._connection, self.path, self._form, patience=AT_ONCE)
        return listed.items, listed.resource_version

    def read(self, encoded: bytes) -> Update:
        node = protobuf.unwrapped(encoded)
        return Update(self._node_form.glance(node), partial(self._node_form.node, node))

    def version(self, value: Update) -> str:
        return value.glance.resource_version


@contextmanager
def follow_nodes(connection: Connection, wanted: Wanted, store: NodeStore) -> Iterator[Iterator[NodeChange]]:
    """Yield an iterator over the nodes that appear, disappear, or change in the `wanted` fields.

    The store has each change before it is yielded. The first item has no name: from then on the watch misses
    nothing. The iterator ends when any thread leaves the context; it reconnects by itself, and raises
    Forbidden and Unauthorized.
    """
    form = store.begin(wanted)
    try:
        with Watching(connection, _Nodes(connection, form, store), store) as changes:
            yield _after_the_first_list(changes)
    finally:
        store.lost()


def _after_the_first_list(changes: Iterator[NodeChange | None]) -> Iterator[NodeChange]:
    listed = False
    for change in changes:
        if change is not None:
            yield change
        elif not listed:
            listed = True
            yield NodeChange("")


def _is_newer(node: Node, before: Node) -> bool:
    if node.resource_version == before.resource_version:
        return node.uid != before.uid
    return not is_later(before.resource_version, node.resource_version)


def _without_heartbeats(node: Node) -> Node:
    """Return the node without its version and heartbeats."""
    return replace(
        node,
        resource_version="",
        conditions=tuple(replace(condition, heartbeat=None) for condition in node.conditions),
    )
