"""The big lists, nodes and pods: asked for in pages, read in whichever format the server speaks.

Consistent reads (no resourceVersion=0): a list that decides must not be a cache's old one. Pages bound what
the server encodes and, where it answers JSON, what we hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from reconciler.clients.kubernetes.answers import GONE, JSON, PROTOBUF
from reconciler.clients.kubernetes.connection import Connection, Request, Stream
from reconciler.clients.kubernetes.wire import jsonlists, protobuf
from reconciler.clients.kubernetes.wire.reducing import node_reader, pod_reader
from reconciler.clients.retrying import PATIENCE, patiently
from reconciler.errors import ClusterError, Rejected, Unreachable
from reconciler.model.node import Node, Wanted
from reconciler.model.pod import Pod

PAGE = 500
"""Objects a page, kubectl's own; bigger pages were no faster."""

ACCEPT = f"{PROTOBUF},{JSON}"
RESTARTS = 3

Value = TypeVar("Value", Node, Pod)


@dataclass(frozen=True, slots=True)
class Format(Generic[Value]):
    """How one kind of object is read: its list's kind, an item of protobuf, an object and a list of JSON."""

    kind: str
    from_protobuf: Callable[[bytes | memoryview], Value]
    from_json: Callable[[bytes], Value]
    list_from_json: Callable[[bytes], tuple[str, jsonlists.ListMeta, list[Value]]]


@dataclass(frozen=True, slots=True)
class Asking:
    """How a list is asked for: selectors and page, the formats, and patience in seconds for each page."""

    query: dict[str, str]
    accept: str
    patience: float


@dataclass(slots=True)
class ListResult(Generic[Value]):
    """What a list gave, and the resourceVersion from which a watch goes on."""

    items: list[Value]
    resource_version: str


def node_format(wanted: Wanted) -> Format[Node]:
    """Return how nodes are read, with the parts that are wanted."""

    def whole(body: bytes) -> tuple[str, jsonlists.ListMeta, list[Node]]:
        found = jsonlists.decode(jsonlists.NodeList, body)
        return found.kind, found.metadata, [jsonlists.to_node(one, wanted) for one in found.items or ()]

    return Format(
        "NodeList",
        node_reader(wanted),
        lambda body: jsonlists.to_node(jsonlists.decode(jsonlists.NodeObject, body), wanted),
        whole,
    )


def pod_format(*, placement: bool = False) -> Format[Pod]:
    """Return how pods are read, with their placement where that is asked for."""

    def whole(body: bytes) -> tuple[str, jsonlists.ListMeta, list[Pod]]:
        found = jsonlists.decode(jsonlists.PodList, body)
        pods = [jsonlists.to_pod(one, placement=placement) for one in found.items or ()]
        return found.kind, found.metadata, pods

    return Format(
        "PodList",
        pod_reader(placement=placement),
        lambda body: jsonlists.to_pod(jsonlists.decode(jsonlists.PodObject, body), placement=placement),
        whole,
    )


def list_all(
    connection: Connection,
    path: str,
    form: Format[Value],
    *,
    fields: str = "",
    labels: str = "",
    page: int = PAGE,
    accept: str = ACCEPT,
    patience: float = PATIENCE,
) -> ListResult[Value]:
    """Return every object under the path that both selectors admit, from one consistent read.

    Raises Unreachable when the server is away for long, Rejected for an answer in another format.
    """
    selectors = {"fieldSelector": fields, "labelSelector": labels, "limit": str(page) if page else ""}
    query = {key: value for key, value in selectors.items() if value}
    for _ in range(RESTARTS):
        try:
            return _pages(connection, path, form, Asking(query, accept, patience))
        except ClusterError as error:
            # The rest of a list that was begun minutes ago may be compacted away: begin anew.
            if error.status != GONE:
                raise
    raise Unreachable(f"GET {path}: the list went stale {RESTARTS} times while it was read")


def _pages(connection: Connection, path: str, form: Format[Value], asking: Asking) -> ListResult[Value]:
    result: ListResult[Value] = ListResult([], "")
    token = ""
    while True:
        more = {"continue": token} if token else {}
        request = Request("GET", path, query={**asking.query, **more}, accept=asking.accept)

        def ask(request: Request) -> tuple[list[Value], str, str]:
            with connection.stream(request) as stream:
                return _one_page(stream, form)

        items, resource_version, token = patiently(
            partial(ask, request), patience=asking.patience, sleep=connection.sleep
        )
        result.items.extend(items)
        # Every page tells the same one: that of the snapshot from which all of them are cut.
        result.resource_version = resource_version
        if not token:
            return result


def _one_page(stream: Stream, form: Format[Value]) -> tuple[list[Value], str, str]:
    """Return the page's items, its resourceVersion, and the token for the next, empty at the end."""
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
