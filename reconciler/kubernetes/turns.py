"""Leases by which nodes, and messages to a thread, take turns. maintenance-controller has the same ones."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import msgspec

from reconciler.http.retrying import Guard, read_only
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import MERGE_PATCH, ApiPath, Connection, Request, api
from reconciler.kubernetes.wire.shapes import ObjectMeta
from reconciler.model import limits
from reconciler.model.errors import Conflict, NotFound, Rejected
from reconciler.model.leases import LeaseRef, LeaseSeen, LeaseTake
from reconciler.model.moments import from_text, to_micro_text

# The attributes have the names of the API, so that no table of names is needed.
# ruff: noqa: N815


class TurnSpec(msgspec.Struct):
    """coordination.k8s.io/v1 LeaseSpec."""

    holderIdentity: str | None = None
    leaseDurationSeconds: int | None = None
    leaseTransitions: int | None = None
    renewTime: str | None = None


class Turn(msgspec.Struct):
    """coordination.k8s.io/v1 Lease."""

    metadata: ObjectMeta
    spec: TurnSpec = msgspec.field(default_factory=TurnSpec)


class Turns:
    """Reads and takes Leases; safe for threads."""

    def __init__(self, connection: Connection, guard: Guard | None) -> None:
        """Use this connection, and call the guard before each try of a write; without one it only reads."""
        self._connection, self._guard = connection, guard or read_only

    def lease(self, ref: LeaseRef) -> LeaseSeen | None:
        """Return a Lease, None if it does not exist.

        Raises Rejected if its times are outside of our limits, and the other errors of ClusterError.
        """
        found = objects.find(self._connection, _place(ref) / ref.name, Turn)
        if found is None:
            return None
        spec = found.spec
        duration = limits.duration(spec.leaseDurationSeconds or 0)
        try:
            renewed = from_text(spec.renewTime) if spec.renewTime else None
        except ValueError as error:
            raise Rejected(f"the Lease {ref}: its renewTime can't be read: {error}; delete it") from error
        if duration is None:
            raise Rejected(f"the Lease {ref}: its leaseDurationSeconds are more than a year; delete it")
        return LeaseSeen(
            limits.text(spec.holderIdentity or "", limits.NAME),
            renewed,
            duration,
            found.metadata.resourceVersion,
            found.metadata.uid,
            spec.leaseTransitions or 0,
        )

    def take_lease(self, take: LeaseTake) -> None:
        """Take the Lease as it was read, or create it.

        After a 409 it is read again: if it is taken as wanted, an answer was lost, and this is done.
        Raises Conflict if it has changed since, NotFound if its namespace does not exist, and LockLost.
        """
        try:
            objects.send(self._connection, self._guard, _request(take))
        except Conflict:
            found = self.lease(take.ref)
            if found is None or (found.holder, found.renewed) != (take.holder, take.at):
                raise
        except NotFound as error:
            message = f"the Lease {take.ref} can't be written: {error}; the namespace must exist"
            raise NotFound(message, status=404) from error


def _request(wanted: LeaseTake) -> Request:
    seen = wanted.seen
    spec: dict[str, Any] = {
        "holderIdentity": wanted.holder,
        # The API takes whole seconds from 1 on.
        "leaseDurationSeconds": max(1, math.ceil(wanted.duration / timedelta(seconds=1))),
        "acquireTime": to_micro_text(wanted.at),
        "renewTime": to_micro_text(wanted.at),
        "leaseTransitions": min(seen.transitions + 1, limits.COUNT) if seen is not None else 0,
    }
    if seen is None:
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": wanted.ref.name},
            "spec": spec,
        }
        return Request("POST", _place(wanted.ref), body=body)
    # The Lease may have labels of other tools, so only our fields are written. It is the whole version that
    # counts: whoever has changed the Lease may have taken it.
    metadata = {"uid": seen.uid, "resourceVersion": seen.resource_version}
    return Request(
        "PATCH",
        _place(wanted.ref) / wanted.ref.name,
        body={"metadata": metadata, "spec": spec},
        content_type=MERGE_PATCH,
    )


def _place(ref: LeaseRef) -> ApiPath:
    return api("coordination.k8s.io", "v1", ref.namespace) / "leases"
