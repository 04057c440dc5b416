"""The Leases by which nodes take turns, for the check `stagger`. maintenance-controller has the same ones."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import msgspec

from reconciler.http.guard import Guard
from reconciler.http.retrying import patiently
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import MERGE_PATCH, Connection, Request
from reconciler.kubernetes.paths import ApiPath, api
from reconciler.kubernetes.wire.shapes import ObjectMeta
from reconciler.model import limits
from reconciler.model.errors import Conflict, NotFound, Rejected
from reconciler.model.moments import from_text, to_micro_text
from reconciler.model.workflow import LeaseRef, LeaseSeen, LeaseTake

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


def read(connection: Connection, ref: LeaseRef) -> LeaseSeen | None:
    """Return a Lease, None if it does not exist.

    Raises Rejected if its times are outside of our limits, and the other errors of ClusterError.
    """
    try:
        found = objects.get(connection, _place(ref) / ref.name, Turn)
    except NotFound:
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


def take(connection: Connection, guard: Guard, wanted: LeaseTake) -> None:
    """Take the Lease as it was read, or create it; calls `guard` before each try.

    After a 409 it is read again: if it is taken as wanted, an answer was lost, and the write has happened.
    Raises Conflict if it has changed since, NotFound if its namespace does not exist.
    """

    def write() -> None:
        guard()
        connection.send(_request(wanted))

    try:
        patiently(write, sleep=connection.sleep)
    except Conflict:
        found = read(connection, wanted.ref)
        if found is None or (found.holder, found.renewed) != (wanted.holder, wanted.at):
            raise
    except NotFound as error:
        message = f"the Lease {wanted.ref} can't be written: {error}; the namespace must exist"
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
    # The Lease may have labels of other tools, so only our fields are written.
    metadata = {"uid": seen.uid, "resourceVersion": seen.resource_version}
    return Request(
        "PATCH",
        _place(wanted.ref) / wanted.ref.name,
        body={"metadata": metadata, "spec": spec},
        content_type=MERGE_PATCH,
    )


def _place(ref: LeaseRef) -> ApiPath:
    return api("coordination.k8s.io", "v1", ref.namespace) / "leases"
