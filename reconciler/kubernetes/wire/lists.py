"""Lists: requested in pages, read in the format that the server answers in.

They are consistent reads (no resourceVersion=0): decisions need the current list, not an old one of a cache.
Pages limit what the server encodes at once and, if it answers in JSON, what we hold.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from msgspec import Struct

from reconciler.http.retrying import PATIENCE, patiently
from reconciler.kubernetes.answers import GONE, JSON, PROTOBUF
from reconciler.kubernetes.connection import Connection, Request, Stream
from reconciler.kubernetes.paths import ApiPath
from reconciler.kubernetes.wire import protobuf, shapes
from reconciler.kubernetes.wire.reducing import FROM_JSON, FROM_MESSAGES, budget_of, node_reducer, pod_reducer
from reconciler.model.errors import ClusterError, Rejected, TooLarge, Unreachable
from reconciler.model.node import Node, Wanted
from reconciler.model.pod import Pod, PodDisruptionBudget

PAGE = 500
"""Objects per page, as kubectl has it; bigger pages were no faster."""

ACCEPT = f"{PROTOBUF},{JSON}"
RESTARTS = 3

LONGEST = 300.0
"""Seconds for all pages of a list."""

Value = TypeVar("Value")
Json = TypeVar("Json")


class Format(Struct, Generic[Value], frozen=True):
    """How one kind of object is read.

    `kind` is the list's. `from_protobuf` reads an encoded message, `from_json` an object, `list_from_json` a
    page: its kind, its metadata and its items. They raise Rejected for what is broken.
    """

    kind: str
    from_protobuf: Callable[[bytes | memoryview], Value]
    from_json: Callable[[bytes], Value]
    list_from_json: Callable[[bytes], tuple[str, shapes.ListMeta, list[Value]]]


class Asking(Struct, frozen=True):
    """How a list is requested: selectors, objects per page, formats, and the seconds for retries."""

    query: dict[str, str]
    page: int
    accept: str
    patience: float


class ListResult(Struct, Generic[Value]):
    """The objects of a list, and the resourceVersion from which a watch continues."""

    items: list[Value]
    resource_version: str


def node_format(wanted: Wanted) -> Format[Node]:
    """Return how nodes are read, with the parts that are wanted."""
    from_message, from_json = node_reducer(wanted, FROM_MESSAGES), node_reducer(wanted, FROM_JSON)
    of_messages = _of_messages(protobuf.Node, from_message)
    return _format("NodeList", of_messages, shapes.NodeObject, shapes.Page[shapes.NodeObject], from_json)


def pod_format(*, placement: bool = False) -> Format[Pod]:
    """Return how pods are read, with their placement if `placement` asks for it."""
    from_json = pod_reducer(FROM_JSON, placement=placement)
    of_messages = _of_messages(protobuf.Pod, pod_reducer(FROM_MESSAGES, placement=placement))
    return _format("PodList", of_messages, shapes.PodObject, shapes.Page[shapes.PodObject], from_json)


def budget_format() -> Format[PodDisruptionBudget]:
    """Return how PodDisruptionBudgets are read."""
    of_messages = _of_messages(protobuf.PodDisruptionBudget, budget_of)
    page = shapes.Page[shapes.BudgetObject]
    return _format("PodDisruptionBudgetList", of_messages, shapes.BudgetObject, page, budget_of)


def _of_messages(message: Any, reduce: Callable[[Any], Value]) -> Callable[[bytes | memoryview], Value]:
    def read(encoded: bytes | memoryview) -> Value:
        try:
            return reduce(protobuf.parse(message, encoded))
        except UnicodeDecodeError as error:
            # The key of a label or an annotation; the API server accepts only ASCII there.
            raise Rejected(f"the protobuf is broken: {error}") from error

    return read


def _format(
    kind: str,
    from_protobuf: Callable[[bytes | memoryview], Value],
    one: type[Json],
    page: type[shapes.Page[Json]],
    reduce: Callable[[Json], Value],
) -> Format[Value]:
    """Return how objects are read that are also served as protobuf; `one` and `page` are their JSON."""

    def whole(body: bytes) -> tuple[str, shapes.ListMeta, list[Value]]:
        found = shapes.decode(page, body)
        return found.kind, found.metadata, [reduce(each) for each in found.items or ()]

    return Format(kind, from_protobuf, lambda body: reduce(shapes.decode(one, body)), whole)


def json_format(kind: type[Json], reduce: Callable[[Json], Value]) -> Format[Value]:
    """Return how objects that are read in JSON alone are read: as this class, whatever their list's kind.

    `reduce` returns what is kept of an object.
    """

    def whole(body: bytes) -> tuple[str, shapes.ListMeta, list[Value]]:
        page = shapes.decode(shapes.Page[kind], body)  # type: ignore[valid-type]  # the class is an argument
        return "", page.metadata, [reduce(each) for each in page.items or ()]

    def never(_: object) -> Value:
        raise Rejected("asked for JSON, the answer is protobuf")

    return Format("", never, lambda body: reduce(shapes.decode(kind, body)), whole)


def list_all(
    connection: Connection,
    path: ApiPath,
    form: Format[Value],
    *,
    fields: str = "",
    labels: str = "",
    page: int = PAGE,
    accept: str = ACCEPT,
    patience: float = PATIENCE,
) -> ListResult[Value]:
    """Return every object under the path that matches both selectors, from one consistent read.

    `page` is the number of objects per request, `patience` the seconds that retries of a page may take.
    Raises Unreachable if the server does not answer, Rejected for an answer in another format.
    """
    selectors = {"fieldSelector": fields, "labelSelector": labels}
    query = {key: value for key, value in selectors.items() if value}
    for _ in range(RESTARTS):
        try:
            return _pages(connection, path, form, Asking(query, page, accept, patience))
        except ClusterError as error:
            # The rest of a list that was begun minutes ago may be compacted away: start again.
            if error.status != GONE:
                raise
    raise Unreachable(f"GET {path}: the list went stale {RESTARTS} times while it was read")


def _pages(connection: Connection, path: ApiPath, form: Format[Value], asking: Asking) -> ListResult[Value]:
    result: ListResult[Value] = ListResult([], "")
    token = ""
    size = asking.page
    ends = time.monotonic() + LONGEST
    while True:
        more = {"limit": str(size)} if size else {}
        more |= {"continue": token} if token else {}
        request = Request("GET", path, query={**asking.query, **more}, accept=asking.accept)

        def ask(request: Request) -> tuple[list[Value], str, str]:
            with connection.stream(request) as stream:
                return _one_page(stream, form)

        try:
            items, resource_version, following = patiently(
                partial(ask, request), patience=asking.patience, sleep=connection.sleep
            )
        except TooLarge:
            # A page of JSON is held as a whole. Large objects come in smaller pages.
            if size <= 1:
                raise
            size //= 2
            continue
        if following and (following == token or time.monotonic() > ends):
            raise Unreachable(f"GET {path}: the list has no end")
        token = following
        result.items.extend(items)
        # Every page has the same one: that of the snapshot from which all pages are cut.
        result.resource_version = resource_version
        if not token:
            return result


def _one_page(stream: Stream, form: Format[Value]) -> tuple[list[Value], str, str]:
    """Return the page's items, its resourceVersion, and the token of the next page, empty at the end."""
    if stream.content_type == PROTOBUF:
        metas: list[Any] = []
        read = form.from_protobuf
        items = [read(item) for item in protobuf.items(stream.read, form.kind, metas.append)]
        if not metas:
            raise Rejected(f"the {form.kind} has no metadata")
        return items, metas[0].resourceVersion, getattr(metas[0], "continue")
    if stream.content_type == JSON:
        kind, meta, items = form.list_from_json(stream.read_all())
        if kind != form.kind:
            raise Rejected(f"asked for a {form.kind}, the answer is a {kind or 'thing without a kind'}")
        return items, meta.resourceVersion, meta.next
    raise Rejected(
        f"asked for Kubernetes' protobuf or JSON, the answer is {stream.content_type or 'of no type'};"
        " is there a proxy before the API server?"
    )
