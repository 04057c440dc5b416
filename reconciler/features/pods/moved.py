"""A pod that was moved, and the fields of its line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from reconciler.model.drains import MOST_REFUSERS, DrainOrder, Eviction, Refused
from reconciler.model.values import Name, Written, decoded, encoded


class MovedPod(Struct, frozen=True):
    """A pod that was evicted, or `deleted`, by a drain at a moment (UTC).

    `pod` is `namespace/name`, `owner` such as `ReplicaSet/web-7d4`, empty without one. `case` is the start of
    the case of the node with this UID, None if a person drained by hand. `why` says for what, in words for
    the owners of pods. `refused` is what had refused it before, as far as the process knew.
    """

    at: datetime
    pod: Name
    uid: Name
    node: Name
    node_uid: Name
    owner: Written[Name] = ""
    case: datetime | None = None
    why: Written[str] = ""
    deleted: Written[bool] = False
    refused: Written[Annotated[tuple[Refused, ...], Meta(max_length=MOST_REFUSERS)]] = ()

    @property
    def namespace(self) -> str:
        """The namespace of the pod."""
        return self.pod.partition("/")[0]


def moved(order: DrainOrder, eviction: Eviction, at: datetime) -> MovedPod:
    """Return what an eviction at a moment (aware, UTC) has done."""
    pod, owner = eviction.pod, eviction.pod.owner
    return MovedPod(
        at=at,
        pod=pod.key,
        uid=pod.uid,
        node=order.node,
        node_uid=order.uid,
        owner=f"{owner.kind}/{owner.name}" if owner is not None else "",
        case=order.case,
        why=order.why,
        deleted=eviction.deleted,
        refused=eviction.refused,
    )


def to_fields(pod: MovedPod) -> dict[str, Any]:
    """Return the fields of its line; moments are RFC 3339 in UTC."""
    return encoded(pod)


def from_fields(fields: Mapping[str, Any]) -> MovedPod:
    """Return what the fields of a line say; others are ignored. Raises ValueError, which names the field."""
    return decoded(MovedPod, fields)
