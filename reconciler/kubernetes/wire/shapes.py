"""Parts of the API's objects as JSON gives them: only the fields that we read, so the decoder skips the rest.

`null` and absent mean the same: Go writes `null` for an empty list or map.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from reconciler.http.failures import decode_json
from reconciler.model.errors import Rejected

# The attributes have the names of the API, so that no table of names is needed.
# ruff: noqa: N815

Item = TypeVar("Item")


class ListMeta(msgspec.Struct):
    """metav1.ListMeta; `next` is its `continue`."""

    resourceVersion: str = ""
    next: str = msgspec.field(name="continue", default="")


class OwnerReference(msgspec.Struct):
    """metav1.OwnerReference."""

    kind: str = ""
    name: str = ""
    apiVersion: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(msgspec.Struct):
    """metav1.ObjectMeta."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""
    creationTimestamp: str | None = None
    deletionTimestamp: str | None = None
    deletionGracePeriodSeconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    ownerReferences: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class Expression(msgspec.Struct):
    """core/v1 NodeSelectorRequirement and metav1 LabelSelectorRequirement."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class Term(msgspec.Struct):
    """core/v1 NodeSelectorTerm."""

    matchExpressions: list[Expression] | None = None
    matchFields: list[Expression] | None = None


class Terms(msgspec.Struct):
    """core/v1 NodeSelector."""

    nodeSelectorTerms: list[Term] | None = None


class Selector(msgspec.Struct):
    """metav1.LabelSelector."""

    matchLabels: dict[str, str] | None = None
    matchExpressions: list[Expression] | None = None


class Page(msgspec.Struct, Generic[Item]):
    """A list, or one page of it."""

    kind: str = ""
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[Item] | None = None


Kind = TypeVar("Kind")


def decode(kind: type[Kind], body: bytes) -> Kind:
    """Decode JSON into a Struct; Rejected if it is not JSON or has another shape."""
    try:
        return decode_json(kind, body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected(f"the server's JSON can't be read: {error}") from error
