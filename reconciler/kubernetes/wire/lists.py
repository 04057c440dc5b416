"""Lists: requested in pages, in protobuf where the API has it, else in JSON.

They are consistent reads (no resourceVersion=0): decisions need the current list, not an old one of a cache.
Pages limit what the server encodes at once and, in JSON, what we hold. Their size is chosen by the bytes of
the objects seen so far: a Node may have 1 KB or 60.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, closing, contextmanager
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from reconciler.http.retrying import PATIENCE, patiently
from reconciler.kubernetes.connection import (
    GONE,
    JSON,
    PODS,
    PROTOBUF,
    ApiPath,
    Connection,
    Request,
    Stream,
    on_node,
)
from reconciler.kubernetes.wire import protobuf, shapes
from reconciler.kubernetes.wire.reducing import budget_of, node_reducer, pod_reducer
from reconciler.model.errors import ClusterError, Rejected, TooLarge, Unreachable
from reconciler.model.node import Node, Wanted
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.values import replace
from reconciler.threads import begin_read

PAGE = 100
"""Objects of the first page, when nothing is known of their size."""

PAGE_BYTES = 4 << 20
"""Bytes of the pages after it. The API server weighs a list by its bytes; bigger pages were no faster."""

MOST = 5000
"""Objects of one page."""

GROWTH = 4
"""How many times as many objects as the page before a page has at most: later objects may be larger."""

_METADATA = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

ONLY_METADATA = f"{JSON};{_METADATA}"
"""The format of a list of names, labels and annotations."""

RESTARTS = 3

LONGEST = 300.0
"""Seconds for all pages of a list."""

Value = TypeVar("Value")
Json = TypeVar("Json")


class Format(Struct, Generic[Value], frozen=True):
    """How one kind of object is read: in protobuf, or in JSON where the API has nothing else.

    `read` reads one object: an item of a list, or what a watch or an answer has. `kind` is the kind of the
    list in protobuf. `page` reads a page of JSON, None for protobuf. They raise Rejected for what is broken.
    `accept` is what is requested.
    """

    kind: str
    read: Callable[[bytes | memoryview], Value]
    page: Callable[[bytes], tuple[shapes.ListMeta, list[Value]]] | None = None
    accept: str = PROTOBUF


class Asking(Struct, frozen=True):
    """How a list is requested: selectors, objects of the first page, and the seconds for retries."""

    query: dict[str, str]
    page: int
    patience: float


class ListResult(Struct, Generic[Value]):
    """The objects of a list, and the resourceVersion from which a watch continues."""

    items: list[Value]
    resource_version: str


def node_format(wanted: Wanted) -> Format[Node]:
    """Return how nodes are read, with the parts that are wanted."""
    return _format("NodeList", protobuf.Node, node_reducer(wanted))


def node_metadata_format(wanted: Wanted) -> Format[Node]:
    """Return how nodes are read without spec and status, which are most of a node."""
    # In protobuf, such an object begins as the whole one does.
    form = node_format(wanted)
    return replace(form, kind="PartialObjectMetadataList", accept=f"{PROTOBUF};{_METADATA}")


def pod_format(*, placement: bool = False) -> Format[Pod]:
    """Return how pods are read, with their placement if `placement` asks for it."""
    return _format("PodList", protobuf.Pod, pod_reducer(placement=placement))


def budget_format() -> Format[PodDisruptionBudget]:
    """Return how PodDisruptionBudgets are read."""
    return _format("PodDisruptionBudgetList", protobuf.PodDisruptionBudget, budget_of)


def _format(kind: str, message: Any, reduce: Callable[[Any], Value]) -> Format[Value]:
    def read(encoded: bytes | memoryview) -> Value:
        try:
            return reduce(protobuf.parse(message, encoded))
        except UnicodeDecodeError as error:
            # The key of a label or an annotation; the API server accepts only ASCII there.
            raise Rejected(f"the protobuf is broken: {error}") from error

    return Format(kind, read)


def json_format(kind: type[Json], reduce: Callable[[Json], Value]) -> Format[Value]:
    """Return how objects are read that are served in JSON alone, or whose other fields matter, as this class.

    `reduce` returns what is kept of an object.
    """

    def page(body: bytes) -> tuple[shapes.ListMeta, list[Value]]:
        found = shapes.decode(shapes.Page[kind], body)  # type: ignore[valid-type]  # the class is an argument
        return found.metadata, [reduce(each) for each in found.items or ()]

    return Format("", lambda body: reduce(shapes.decode(kind, bytes(body))), page, JSON)


def list_all(
    connection: Connection,
    path: ApiPath,
    form: Format[Value],
    *,
    fields: str = "",
    labels: str = "",
    page: int = PAGE,
    patience: float = PATIENCE,
) -> ListResult[Value]:
    """Return every object under the path that matches both selectors, from one consistent read.

    `page` is the number of objects of the first page, `patience` the seconds that retries of a page may take.
    Raises Unreachable if the server does not answer, Rejected for an answer in another format.
    """
    selectors = {"fieldSelector": fields, "labelSelector": labels}
    query = {key: value for key, value in selectors.items() if value}
    for _ in range(RESTARTS):
        try:
            return _pages(connection, path, form, Asking(query, page, patience))
        except ClusterError as error:
            # The rest of a list that was begun minutes ago may be compacted away: start again.
            if error.status != GONE:
                raise
    raise Unreachable(f"GET {path}: the list went stale {RESTARTS} times while it was read")


def newest(connection: Connection, path: ApiPath, *, fields: str = "") -> str:
    """Return the resourceVersion that a list has now, at the price of one object; raises ClusterError."""
    query = {"limit": "1", **({"fieldSelector": fields} if fields else {})}
    answer = connection.send(Request("GET", path, query=query, accept=ONLY_METADATA))
    return shapes.decode(shapes.Page[msgspec.Raw], answer).metadata.resourceVersion


class _Counted(msgspec.Struct):
    remainingItemCount: int | None = None  # noqa: N815 - the API's spelling


class _CountedList(msgspec.Struct):
    metadata: _Counted
    items: list[msgspec.Raw] | None = None


def count_all(connection: Connection, path: ApiPath) -> int:
    """Return how many objects there are under the path, at the price of one; raises ClusterError."""
    answer = connection.send(Request("GET", path, query={"limit": "1"}, accept=ONLY_METADATA))
    found = shapes.decode(_CountedList, answer)
    return len(found.items or ()) + (found.metadata.remainingItemCount or 0)


def list_pods(
    connection: Connection, node: str | None = None, *, labels: str = "", placement: bool = False
) -> tuple[Pod, ...]:
    """Return the pods of one node, or of all, that match a label selector; sorted by namespace and name."""
    fields = on_node(node) if node else ""
    listed = list_all(connection, PODS, pod_format(placement=placement), fields=fields, labels=labels)
    return tuple(sorted(listed.items, key=lambda pod: (pod.namespace, pod.name)))


def _pages(connection: Connection, path: ApiPath, form: Format[Value], asking: Asking) -> ListResult[Value]:
    result: ListResult[Value] = ListResult([], "")
    size, ends = asking.page, time.monotonic() + LONGEST

    def request_for(token: str) -> Request:
        more = {"limit": str(size)} if size else {}
        more |= {"continue": token} if token else {}
        return Request("GET", path, query={**asking.query, **more}, accept=form.accept)

    with closing(_NextPage(connection)) as following:
        request = request_for("")

        def go_on(token: str) -> None:
            # Of the first page, nobody knows how large its objects are.
            if token and result.items:
                following.begin(request_for(token))

        def ask() -> _Page[Value]:
            with following.stream(request) as stream:
                return _one_page(stream, form, go_on)

        while True:
            try:
                page = patiently(ask, patience=asking.patience, sleep=connection.sleep)
            except TooLarge:
                # A page of JSON is held as a whole. Large objects come in smaller pages.
                if size <= 1:
                    raise
                size //= 2
                request = request_for(request.query.get("continue", ""))
                continue
            if page.next and (page.next == request.query.get("continue") or time.monotonic() > ends):
                raise Unreachable(f"GET {path}: the list has no end")
            result.items.extend(page.items)
            # Every page has the same one: that of the snapshot from which all pages are cut.
            result.resource_version = page.resource_version
            if not page.next:
                return result
            if page.items:
                size = _fitting(len(page.items), page.size)
            request = following.request or request_for(page.next)


class _NextPage:
    """The page after the one that is read: the API server works on it while we decode that one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._opened, self._stream = ExitStack(), Future[Stream]()
        self.request: Request | None = None
        """What is requested already."""

    def begin(self, request: Request) -> None:
        """Request it in a thread of its own."""
        self.close()
        opened = ExitStack()
        stream = begin_read("next page", lambda: opened.enter_context(self._connection.stream(request)))
        self.request, self._opened, self._stream = request, opened, stream

    @contextmanager
    def stream(self, request: Request) -> Iterator[Stream]:
        """Return the answer to a request, which was perhaps sent before."""
        if request is not self.request:
            with self._connection.stream(request) as stream:
                yield stream
            return
        self.request, answer = None, self._stream
        with self._opened:
            yield answer.result()

    def close(self) -> None:
        """Leave what nobody has asked for."""
        if self.request is not None:
            self.request = None
            wait([self._stream])
            self._opened.close()


def _fitting(objects: int, size: int) -> int:
    """Return how many objects the next page may have, after a page of so many objects and bytes."""
    return max(1, min(MOST, GROWTH * objects, PAGE_BYTES * objects // max(size, 1)))


class _Page(Struct, Generic[Value]):
    """A page: its objects, its resourceVersion, the token of the next page or "", and its size in bytes."""

    items: list[Value]
    resource_version: str
    next: str
    size: int


def _one_page(stream: Stream, form: Format[Value], go_on: Callable[[str], None]) -> _Page[Value]:
    if stream.content_type != form.accept.partition(";")[0]:
        raise Rejected(
            f"asked for {form.accept}, the answer is {stream.content_type or 'of no type'};"
            " is there a proxy before the API server?"
        )
    if form.page is not None:
        body = stream.read_all()
        meta, items = form.page(body)
        # Held as a whole, so with room below the limit of an answer.
        return _Page(items, meta.resourceVersion, meta.next, 2 * len(body))
    metas: list[Any] = []
    items, size = [], 0

    def begin(meta: Any) -> None:
        metas.append(meta)
        go_on(getattr(meta, "continue"))

    for item in protobuf.items(stream.read, form.kind, begin):
        size += len(item)
        items.append(form.read(item))
    if not metas:
        raise Rejected(f"the {form.kind} has no metadata")
    return _Page(items, metas[0].resourceVersion, getattr(metas[0], "continue"), size)
