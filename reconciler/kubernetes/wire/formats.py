"""How each kind of object is read: in protobuf, or in JSON where the API has nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from reconciler.kubernetes.connection import JSON, PROTOBUF
from reconciler.kubernetes.wire import protobuf, shapes
from reconciler.kubernetes.wire.reducing import budget_of, node_reducer, pod_reducer
from reconciler.model.errors import Rejected
from reconciler.model.node import Node, Wanted
from reconciler.model.pod import Pod, PodDisruptionBudget

Value = TypeVar("Value")
Json = TypeVar("Json")


class Format(Struct, Generic[Value], frozen=True):
    """How one kind of object is read.

    `read` reads one object: an item of a list, or what a watch or an answer has. `kind` is the kind of the
    list in protobuf. `json_page` reads a page of JSON, None for protobuf. They raise Rejected for what is
    broken. `accept` is what is requested.
    """

    kind: str
    read: Callable[[bytes | memoryview], Value]
    json_page: Callable[[bytes], tuple[shapes.ListMeta, list[Value]]] | None = None
    accept: str = PROTOBUF

    def page(self, body: bytes) -> tuple[shapes.ListMeta, list[Value]]:
        """Return the metadata and the objects of a list, or of a page of it; Rejected if it is broken."""
        if self.json_page is not None:
            return self.json_page(body)
        meta, items = protobuf.read_list(body, self.kind)
        return shapes.ListMeta(meta.resourceVersion, getattr(meta, "continue")), [*map(self.read, items)]


def node_format(wanted: Wanted) -> Format[Node]:
    """Return how nodes are read, with the parts that are wanted."""
    return _format("NodeList", protobuf.Node, node_reducer(wanted))


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
        listed = shapes.decode(shapes.Page[kind], body)  # type: ignore[valid-type]  # the class is an argument
        return listed.metadata, [reduce(each) for each in listed.items or ()]

    return Format("", lambda body: reduce(shapes.decode(kind, bytes(body))), page, JSON)
