"""The pods of many nodes from one watch and few lists of all pods, of which those of other nodes are dropped.

A watch for each node costs a connection with its buffers, about 1 MiB. So up to `ALONE` nodes have their own,
and more share one. A node's pods are listed once its part of the shared watch has begun.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import AbstractContextManager
from functools import partial
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any

from msgspec import Struct

from reconciler.kubernetes.connection import PODS, Connection, on_node
from reconciler.kubernetes.scale.pages import count_all, list_streamed
from reconciler.kubernetes.scale.together import Together
from reconciler.kubernetes.watching import AT_ONCE, Known, Watched, Watching, is_later
from reconciler.kubernetes.wire import protobuf
from reconciler.kubernetes.wire.formats import Format, pod_format
from reconciler.kubernetes.wire.lists import ListResult, list_all
from reconciler.model.errors import ClusterError, ReconcilerError, Rejected, Unreachable
from reconciler.model.pod import Pod
from reconciler.model.ports import Listed, PodChange, PodGone
from reconciler.threads import start

ALONE = 10
"""Up to so many nodes have a watch of their pods each. For more, a watch of all pods is cheaper."""

REQUEST = 50
"""Pods of other nodes in a list that cost as much as one more request."""

COUNTED_FOR = 5.0
"""Seconds for which a number of all pods counts."""

RELIST_EVERY = 20.0
"""Seconds after which the pods of a node are listed again: a watch may lose an event.

A drain lists them after 30 s. This comes before, for all nodes that were listed together with one list again.
"""

ENDS_WITHIN = 5.0
"""Seconds for which the last of those that watch waits for the end of the shared watch."""

_log = logging.getLogger(__name__)


class _Elsewhere(Struct, frozen=True):
    """A pod of another node, or a bookmark."""

    resource_version: str


class _Event(Struct, frozen=True):
    """What the shared watch shows of a pod of a node that is watched."""

    pod: Pod
    gone: bool


class _List(Struct, frozen=True):
    """The shared watch misses nothing from now on: what was before is in a list.

    `again`: it has missed nothing, as far as is known.
    """

    again: bool = False


def _read(encoded: bytes | memoryview, form: Format[Pod], wanted: Callable[[str], bool]) -> Pod | _Elsewhere:
    glanced = protobuf.parse(protobuf.Pod, encoded)
    if wanted(glanced.spec.nodeName):
        return form.read(encoded)
    return _Elsewhere(glanced.metadata.resourceVersion)


class PodLists:
    """How the pods of nodes are listed: those of one, or those of several with one list of all pods."""

    def __init__(self, connection: Connection) -> None:
        """Use this connection."""
        self._connection = connection
        self._counting = threading.Lock()
        self._count, self._counted = 0, float("-inf")

    def alone(self, node: str) -> ListResult[Pod]:
        """Return the pods of one node; raises ClusterError."""
        return list_streamed(self._connection, PODS, pod_format(), fields=on_node(node), patience=AT_ONCE)

    def together(self, nodes: Set[str]) -> Mapping[str, ListResult[Pod]]:
        """Return the pods of these nodes, nothing if a pod can't be read; raises other ClusterErrors."""
        form = pod_format()
        chosen = Format(form.kind, lambda encoded: _read(encoded, form, nodes.__contains__))
        try:
            listed = list_streamed(self._connection, PODS, chosen, fields="spec.nodeName!=", patience=AT_ONCE)
        except Rejected:
            # It harms its own node only.
            return {}
        pods = {node: ListResult[Pod]([], listed.resource_version) for node in nodes}
        for pod in listed.items:
            if isinstance(pod, Pod):
                pods[pod.node].items.append(pod)
        return pods

    def gone(self) -> None:
        """Note that a pod of any node is gone."""
        with self._counting:
            self._count = max(0, self._count - 1)

    def enough(self) -> float:
        """Return for how many nodes a list of all pods is less work than one for each of them."""
        with self._counting:
            if time.monotonic() >= self._counted + COUNTED_FOR:
                try:
                    self._count = count_all(self._connection, PODS)
                except ClusterError:
                    return float("inf")
                self._counted = time.monotonic()
            return self._count / REQUEST


class SharedPods:
    """One watch of the pods of all nodes, while somebody watches those of one."""

    def __init__(
        self, connection: Connection, lists: Together[ListResult[Pod]], gone: Callable[[], None]
    ) -> None:
        """Use this connection and these lists, and call `gone` for each pod that is gone."""
        self.connection, self.lists, self.gone = connection, lists, gone
        self._lock = threading.Lock()
        self._nodes: dict[str, set[NodePods]] = {}
        self._watching: Watching[Any, None] | None = None
        self._follows = False
        self._thread: threading.Thread | None = None

    def wait(self) -> None:
        """Wait until the watch has ended, if nobody needs it any more, but not for ever."""
        with self._lock:
            thread = self._thread if self._watching is None else None
        if thread is not None:
            # A thread in the middle of the network's code may crash the interpreter at its end.
            thread.join(ENDS_WITHIN)

    def join(self, pods: NodePods) -> None:
        """Let the pods of a node be told from now on."""
        with self._lock:
            if self._watching is None:
                watching = Watching(self.connection, _AllPods(self.connection, self), _Told(self))
                # It may not start. Then the caller fails, and the next one tries again.
                self._thread = start("watch-pods", partial(self._follow, watching))
                self._watching = watching
            self._nodes.setdefault(pods.node, set()).add(pods)
            if self._follows:
                pods.queue.put(_List())

    def leave(self, pods: NodePods) -> None:
        """Tell nothing more. The watch ends with the last node."""
        with self._lock:
            watchers = self._nodes.get(pods.node, set())
            watchers.discard(pods)
            if not watchers:
                self._nodes.pop(pods.node, None)
            watching = self._watching if not self._nodes else None
            if watching is not None:
                self._watching, self._follows = None, False
        if watching is not None:
            watching.leave()

    def is_watched(self, node: str) -> bool:
        """Whether somebody watches the pods of a node."""
        return node in self._nodes

    def begin(self) -> None:
        """Let each node list its pods: the watch begins, or has missed something."""
        with self._lock:
            self._follows = True
            for watchers in self._nodes.values():
                for pods in watchers:
                    pods.queue.put(_List())

    def tell(self, event: _Event) -> None:
        """Tell an event of a pod to those who watch its node."""
        with self._lock:
            for pods in self._nodes.get(event.pod.node, ()):
                pods.queue.put(event)

    def _follow(self, watching: Watching[Any, None]) -> None:
        error: ReconcilerError = Unreachable("the watch of the pods of all nodes ended")
        try:
            with watching as changes:
                for _ in changes:
                    pass
        except ReconcilerError as failure:
            error = failure
        except Exception as failure:  # noqa: BLE001 - nobody would hear of it
            _log.exception("the watch of the pods of all nodes failed")
            error = Unreachable(f"{type(failure).__name__}: {failure}")
        with self._lock:
            if self._watching is not watching:
                return
            self._watching, self._follows = None, False
            for watchers in self._nodes.values():
                for pods in watchers:
                    pods.queue.put(error)


class _AllPods(Watched[Any]):
    """All pods that are on a node. Its list is empty, and says only from where the watch goes on."""

    def __init__(self, connection: Connection, shared: SharedPods) -> None:
        super().__init__(connection, PODS, pod_format(), lambda pod: "", fields="spec.nodeName!=")
        self._shared = shared

    def list(self) -> tuple[list[Any], str]:
        # The server has an index of this field.
        nowhere = list_all(self._connection, PODS, pod_format(), fields="spec.nodeName=-", patience=AT_ONCE)
        return [], nowhere.resource_version

    def read(self, encoded: bytes) -> Pod | _Elsewhere:
        return _read(protobuf.unwrapped(encoded), self._form, self._shared.is_watched)


class _Told(Known["Pod | _Elsewhere", None]):
    """Keeps nothing, and tells all."""

    def __init__(self, shared: SharedPods) -> None:
        self._shared = shared

    def listed(self, values: Iterable[Pod | _Elsewhere], version: str) -> Iterator[None]:
        del values, version
        self._shared.begin()
        yield from ()

    def saw(self, value: Pod | _Elsewhere, *, gone: bool) -> None:
        if gone:
            self._shared.gone()
        if isinstance(value, Pod):
            self._shared.tell(_Event(value, gone))


class NodePods(AbstractContextManager[Iterator[PodChange]]):
    """The pods of one node, as the shared watch shows them; see Evictor.watch_pods."""

    def __init__(self, shared: SharedPods, node: str) -> None:
        """Watch this node."""
        self.node = node
        self.queue: SimpleQueue[_Event | _List | ReconcilerError | None] = SimpleQueue()
        self._shared = shared
        self._known: set[str] = set()
        self._version = ""
        self._list_at = float("inf")

    def __enter__(self) -> Iterator[PodChange]:
        """Return the iterator."""
        self._shared.join(self)
        return self._changes()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the iterator, also if another thread waits in it."""
        self._shared.leave(self)
        self.queue.put(None)

    def _changes(self) -> Iterator[PodChange]:
        while (item := self._next()) is not None:
            match item:
                case _List(again):
                    yield from self._list(again=again)
                case _Event(pod, gone):
                    if is_later(pod.resource_version, self._version) is False:
                        # It came while the pods were listed.
                        continue
                    (self._known.discard if gone else self._known.add)(pod.uid)
                    yield PodGone(pod.uid) if gone else pod
                case _:
                    raise item
        self._shared.wait()

    def _next(self) -> _Event | _List | ReconcilerError | None:
        left = self._list_at - time.monotonic()
        try:
            return self.queue.get(timeout=max(0.0, left) if self._version else None)
        except Empty:
            return _List(again=True)

    def _list(self, *, again: bool) -> Iterator[PodChange]:
        self._list_at = time.monotonic() + RELIST_EVERY
        try:
            listed = self._shared.lists.of(self.node)
        except ClusterError:
            if not again:
                raise
            # The drain lists them itself when they are due, and says what is wrong.
            return
        self._version = listed.resource_version
        known, self._known = self._known, {pod.uid for pod in listed.items}
        yield from (PodGone(uid) for uid in sorted(known - self._known))
        yield from listed.items
        yield Listed()
