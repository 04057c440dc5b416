"""Evictions of many nodes that drain at the same time: they share reads and watches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from reconciler.http.retrying import Guard
from reconciler.kubernetes.attachments import attachments_on, left
from reconciler.kubernetes.connection import NODES, PROTOBUF, Connection, on_node
from reconciler.kubernetes.eviction import Evictions
from reconciler.kubernetes.scale.pages import list_streamed
from reconciler.kubernetes.scale.pod_watches import ALONE, NodePods, PodLists, SharedPods
from reconciler.kubernetes.scale.together import Together
from reconciler.kubernetes.wire.formats import node_format
from reconciler.kubernetes.wire.lists import METADATA_OF_LIST, in_order
from reconciler.model.node import Node
from reconciler.model.pod import Pod
from reconciler.model.ports import PodChange
from reconciler.model.values import replace

GATHER_LAST = 0.5
"""Seconds for which the last look of a drain waits for those of others. No pod waits for it."""


class SharedEvictions(Evictions):
    """Evictions whose drains read together what they all need, and share a watch of pods."""

    def __init__(
        self,
        connection: Connection,
        *,
        guard: Guard | None = None,
        prefix: str,
        first: Callable[[], object] = lambda: None,
    ) -> None:
        """Evict with this connection; `guard` raises LockLost if the lock is not ours.

        `first` is called before each read, and may wait for what goes before drains.
        """
        super().__init__(connection, guard=guard, prefix=prefix)
        self._first = first
        self._lock = threading.Lock()
        self._watched = 0
        pods, volumes = PodLists(connection), partial(attachments_on, connection)
        together = partial(Together, many=self._many, sleep=connection.sleep)
        self._listed: tuple[Mapping[str, Node], float] = {}, 0.0
        self._nodes = together(super().node, self.cordoned, lambda: 2, turns=1)
        lists = partial(together, pods.alone, pods.together, pods.enough)
        self._shared = SharedPods(connection, lists(), pods.gone)
        self._lists = lists(gather=GATHER_LAST)
        self._volumes = together(
            lambda node: volumes({node})[node], volumes, lambda: 2, turns=1, gather=GATHER_LAST
        )

    def node(self, name: str) -> Node | None:
        """Return one node as it is now, with its Ready condition and our annotations; None if it is gone."""
        self._first()
        return self._nodes.of(name)

    def listed(self, name: str) -> tuple[Node, float] | None:
        """Return a node as the last list of cordoned nodes has it, and the seconds since it was requested.

        None if that list does not have it.
        """
        nodes, read_at = self._listed
        node = nodes.get(name)
        return (node, time.monotonic() - read_at) if node is not None else None

    def cordoned(self, names: Set[str]) -> Mapping[str, Node]:
        """Return those of these nodes that are cordoned, by one list of all such; raises ClusterError."""
        began = time.monotonic()
        # Without spec and status, which are most of a node. In protobuf, such an object begins as the whole
        # one does.
        metadata = replace(
            node_format(self._wanted),
            kind="PartialObjectMetadataList",
            accept=f"{PROTOBUF};{METADATA_OF_LIST}",
        )
        listed = list_streamed(self._connection, NODES, metadata, fields="spec.unschedulable=true").items
        nodes = {node.name: replace(node, unschedulable=True) for node in listed}
        self._listed = nodes, began
        return {name: nodes[name] for name in names & nodes.keys()}

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """Return the pods of one node, or of all, sorted by namespace and name."""
        self._first()
        if node is None or placement:
            return super().pods(node, placement=placement)
        return in_order(self._lists.of(node).items)

    def watch_pods(self, node: str) -> AbstractContextManager[Iterator[PodChange]]:
        """List, then watch the pods of one node; see Evictor. Watches of many nodes share a connection."""
        # Here, so that a bad name raises before anybody waits.
        on_node(node)
        return self._pods_of(node)

    @contextmanager
    def _pods_of(self, node: str) -> Iterator[Iterator[PodChange]]:
        with self._lock:
            self._watched += 1
        try:
            # Of those that wait together, none has a watch of its own if they are too many.
            self._first()
            alone = self._watched <= ALONE
            with super().watch_pods(node) if alone else NodePods(self._shared, node) as changes:
                yield changes
        finally:
            with self._lock:
                self._watched -= 1

    def attachments(self, node: str, staying: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """Return the names of the VolumeAttachments that are still on the node; see Evictor."""
        self._first()
        return left(self._connection, self._volumes.of(node), staying)

    def _many(self) -> int:
        """Return of how many nodes much may be asked soon: more drain than have a watch of their own."""
        return self._watched if self._watched > ALONE else 0
