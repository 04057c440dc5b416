"""Lists: requested in pages, which are read as a whole, one after the other.

They are consistent reads (no resourceVersion=0): decisions need the current list, not an old one of a cache.
Pages limit what the server encodes at once, and what we hold. Their size is chosen by the bytes of the
objects seen so far: a Node may have 1 KB or 60.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from reconciler.http.retrying import PATIENCE, patiently
from reconciler.kubernetes.connection import GONE, JSON, PODS, ApiPath, Connection, Request, Stream, on_node
from reconciler.kubernetes.wire import shapes
from reconciler.kubernetes.wire.formats import Format, pod_format
from reconciler.model.errors import ClusterError, Rejected, TooLarge, Unreachable
from reconciler.model.pod import Pod

PAGE = 100
"""Objects of the first page, when nothing is known of their size."""

PAGE_BYTES = 4 << 20
"""Bytes of the pages after it. The API server weighs a list by its bytes; bigger pages were no faster."""

MOST = 5000
"""Objects of one page."""

GROWTH = 4
"""How many times as many objects as the page before a page has at most: later objects may be larger."""

METADATA_OF_LIST = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""What asks for a list of names, labels and annotations, in either format."""

ONLY_METADATA = f"{JSON};{METADATA_OF_LIST}"

RESTARTS = 3

LONGEST = 300.0
"""Seconds for all pages of a list."""

Value = TypeVar("Value")


class ListResult(Struct, Generic[Value]):
    """The objects of a list, and the resourceVersion from which a watch continues."""

    items: list[Value]
    resource_version: str


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
    Raises Unreachable if the server does not answer, Rejected for an answer in another format, and TooLarge
    for one object that is larger than an answer may be.
    """

    def read() -> ListResult[Value]:
        result, token, size = ListResult[Value]([], ""), "", page
        ends = time.monotonic() + LONGEST
        while True:
            request = page_request(path, form, fields=fields, labels=labels, size=size, token=token)
            ask = partial(_page, connection, request, form)
            try:
                meta, items, length = patiently(ask, patience=patience, sleep=connection.sleep)
            except TooLarge:
                # Large objects come in smaller pages.
                if size <= 1:
                    raise
                size //= 2
                continue
            result.items += items
            # Every page has the same one: that of the snapshot from which all pages are cut.
            result.resource_version = meta.resourceVersion
            if not meta.next:
                return result
            check_goes_on(path, token, meta.next, ends)
            token = meta.next
            # Held as a whole, so with room below the limit of an answer.
            size = fitting(len(items), 2 * length) if items else size

    return from_one_snapshot(path, read)


def _page(
    connection: Connection, request: Request, form: Format[Value]
) -> tuple[shapes.ListMeta, list[Value], int]:
    """Return the metadata of a page, its objects, and its bytes."""
    with connection.stream(request) as stream:
        check_format(stream, form)
        body = stream.read_all()
    return *form.page(body), len(body)


def from_one_snapshot(path: ApiPath, read: Callable[[], Value]) -> Value:
    """Return what `read` returns: all pages of a list. If the rest of it went stale, read it from the start.

    A list that was begun minutes ago may be compacted away. Raises Unreachable if that happens again and
    again.
    """
    for _ in range(RESTARTS):
        try:
            return read()
        except ClusterError as error:
            if error.status != GONE:
                raise
    raise Unreachable(f"GET {path}: the list went stale {RESTARTS} times while it was read")


def page_request(
    path: ApiPath, form: Format[Value], *, fields: str, labels: str, size: int, token: str
) -> Request:
    """Return the request for a page of so many objects; `token` is the `continue` of the page before it."""
    query = {"fieldSelector": fields, "labelSelector": labels, "limit": str(size or ""), "continue": token}
    query = {key: value for key, value in query.items() if value}
    return Request("GET", path, query=query, accept=form.accept)


def check_goes_on(path: ApiPath, token: str, following: str, ends: float) -> None:
    """Raise Unreachable for a list that repeats itself, or takes longer than it may (monotonic seconds)."""
    if following == token or time.monotonic() > ends:
        raise Unreachable(f"GET {path}: the list has no end")


def check_format(stream: Stream, form: Format[Value]) -> None:
    """Raise Rejected if the answer is in another format than was requested."""
    if stream.content_type != form.accept.partition(";")[0]:
        raise Rejected(
            f"asked for {form.accept}, the answer is {stream.content_type or 'of no type'};"
            " is there a proxy before the API server?"
        )


def fitting(objects: int, size: int) -> int:
    """Return how many objects the next page may have, after a page of so many objects and bytes."""
    return max(1, min(MOST, GROWTH * objects, PAGE_BYTES * objects // max(size, 1)))


def list_pods(connection: Connection, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
    """Return the pods of one node, or of all, sorted by namespace and name."""
    fields = on_node(node) if node else ""
    return in_order(list_all(connection, PODS, pod_format(placement=placement), fields=fields).items)


def in_order(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return the pods sorted by namespace and name."""
    return tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name)))


def newest(connection: Connection, path: ApiPath, *, fields: str = "") -> str:
    """Return the resourceVersion that a list has now, at the price of one object; raises ClusterError."""
    query = {"limit": "1", **({"fieldSelector": fields} if fields else {})}
    answer = connection.send(Request("GET", path, query=query, accept=ONLY_METADATA))
    return shapes.decode(shapes.Page[msgspec.Raw], answer).metadata.resourceVersion
