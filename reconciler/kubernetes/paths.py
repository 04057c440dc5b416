"""Paths of the API, built from checked segments, so that no text from an object can lead to another object.

A client that puts `..` or `a/b` into a path sends its request to another object than the one that it means,
with all its rights. So a path is a type of its own, and every segment of it is a name as Kubernetes has them.
"""

from __future__ import annotations

from typing import Self

from reconciler.model.errors import Rejected
from reconciler.model.limits import is_object_name, quoted


def checked(name: str) -> str:
    """Return the name; Rejected, without a request, if no object can have it."""
    if not is_object_name(name):
        raise Rejected(f"{quoted(name)} is no name of a Kubernetes object, so nothing was requested")
    return name


class ApiPath(str):
    """The path of an object or a list, such as `/api/v1/nodes`; `path / name` is a path below it."""

    __slots__ = ()

    def __new__(cls, *segments: str) -> Self:
        """Return the path of these segments; Rejected if there are none, or one is no name."""
        if not segments:
            raise Rejected("a path without a name in it, so nothing was requested")
        return super().__new__(cls, "".join(f"/{checked(segment)}" for segment in segments))

    def __truediv__(self, segment: str) -> ApiPath:
        """Return the path with one more segment; Rejected if it is no name."""
        return ApiPath(*self.segments, segment)

    @property
    def segments(self) -> tuple[str, ...]:
        """The segments, from the first one."""
        return tuple(self.split("/")[1:])


CORE = ApiPath("api", "v1")
NODES = CORE / "nodes"
PODS = CORE / "pods"
VERSION = ApiPath("version")
VOLUMES = CORE / "persistentvolumes"

LEDGER = "node-maintenance-ledger"
"""The name of the ConfigMap that keeps what passes remember."""


def api(group: str, version: str, namespace: str = "") -> ApiPath:
    """Return the path of an API group's objects, in a namespace if there is one; Rejected for a bad name."""
    place = ApiPath("apis", group, version)
    return place / "namespaces" / namespace if namespace else place


def core(namespace: str) -> ApiPath:
    """Return the path of a namespace's objects of core/v1; Rejected if it is no name."""
    return CORE / "namespaces" / namespace


def on_node(node: str) -> str:
    """Return the field selector for the pods of a node; Rejected if it is no name."""
    return f"spec.nodeName={checked(node)}"


def budgets_in(namespace: str) -> ApiPath:
    """Return the path of a namespace's PodDisruptionBudgets, of all with ""; Rejected for a bad name."""
    return api("policy", "v1", namespace) / "poddisruptionbudgets"


BUDGETS = budgets_in("")
