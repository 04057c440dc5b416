"""The objects that only workflows use: Hypervisors, and the Leases by which nodes take turns.

maintenance-controller has the same Leases, for the check `stagger`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from reconciler.http.failures import decode_json
from reconciler.http.retrying import Guard
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import MERGE_PATCH, ApiPath, Connection, Request, api
from reconciler.kubernetes.wire.formats import json_format
from reconciler.kubernetes.wire.lists import list_all
from reconciler.kubernetes.wire.shapes import ObjectMeta
from reconciler.model import limits
from reconciler.model.errors import Conflict, Forbidden, NotFound, Rejected
from reconciler.model.moments import from_text, to_micro_text
from reconciler.model.workflow import (
    SPEC,
    STATUS,
    Hypervisor,
    HypervisorWrite,
    LeaseRef,
    LeaseSeen,
    LeaseTake,
    Value,
)

PATH = ApiPath("apis", "kvm.cloud.sap", "v1", "hypervisors")
PATIENCE = 2.0
"""Seconds for retries. Only workflows with Hypervisors wait for them; the next pass tries again."""

_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_Parts = dict[str, msgspec.Raw]


class _Object(msgspec.Struct):
    metadata: ObjectMeta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Named(msgspec.Struct):
    name: str


def read_hypervisors(connection: Connection) -> tuple[Hypervisor, ...] | None:
    """Return all Hypervisors, None if the cluster does not have the kind; raises the errors of ClusterError.

    Every field is decoded alone: what is broken there harms the checks and triggers that use the field.
    """
    try:
        listed = list_all(connection, PATH, json_format(_Object, _hypervisor), patience=PATIENCE)
    except NotFound:
        return None
    return tuple(listed.items)


def write_hypervisor(connection: Connection, guard: Guard, wanted: HypervisorWrite) -> None:
    """Set the fields; calls `guard` before each try. All other fields stay as they are.

    Setting them again, because an answer was lost, changes nothing. Raises Conflict if another Hypervisor has
    the name by now, NotFound if it is gone, Forbidden with what is missing.
    """
    fields = {key: list(value) if isinstance(value, tuple) else value for key, value in wanted.fields.items()}
    # Without a resourceVersion: other controllers write the status at any time.
    body = {"metadata": {"uid": wanted.uid}, "spec": fields}
    # The API server would drop a field that its version of the kind does not have.
    request = Request(
        "PATCH", PATH / wanted.name, query={"fieldValidation": "Strict"}, body=body, content_type=MERGE_PATCH
    )

    try:
        objects.send(connection, guard, request, patience=PATIENCE)
    except Forbidden as error:
        why = f"needs {error.needs} (k8s/hypervisors has it)" if error.needs else str(error)
        raise Forbidden(why, status=error.status, reason=error.reason, needs=error.needs) from error
    except Rejected as error:
        # A wrong UID is a 422 for objects of a definition.
        if "metadata.uid" not in str(error):
            raise
        raise Conflict(f"the Hypervisor {wanted.name} was deleted and created again", status=409) from error


def _hypervisor(found: _Object) -> Hypervisor:
    spec, status = _parts(found.spec), _parts(found.status)
    return Hypervisor(
        found.metadata.name,
        found.metadata.uid,
        _values(spec, SPEC),
        _values(status, STATUS),
        _conditions(status),
    )


def _parts(body: msgspec.Raw) -> _Parts | None:
    try:
        return decode_json(_Parts, body)
    except _BROKEN:
        return None


def _values(parts: _Parts | None, fields: Mapping[str, Value]) -> dict[str, Value | None]:
    if parts is None:
        return dict.fromkeys(fields)
    given = {key: parts[key] for key in fields if key in parts and bytes(parts[key]) != b"null"}
    return {key: _value(given[key], kind) if key in given else kind for key, kind in fields.items()}


def _value(body: msgspec.Raw, kind: Value) -> Value | None:
    try:
        if isinstance(kind, tuple):
            # Some versions of the operator have objects with a name in these lists.
            items = decode_json(list[str | _Named], body)[: limits.EVENTS + 1]
            names = (one.name if isinstance(one, _Named) else one for one in items)
            return tuple(limits.text(name) for name in names)
        value = decode_json(type(kind), body)
    except _BROKEN:
        return None
    return limits.text(value) if isinstance(value, str) else value


def _conditions(parts: _Parts | None) -> dict[str, str] | None:
    if parts is None:
        return None
    try:
        found = decode_json(list[_Condition], parts.get("conditions", msgspec.Raw(b"[]")))
    except _BROKEN:
        return None
    return {limits.text(one.type): limits.text(one.status, limits.NAME) for one in found[: limits.ENTRIES]}


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


def read_lease(connection: Connection, ref: LeaseRef) -> LeaseSeen | None:
    """Return a Lease, None if it does not exist.

    Raises Rejected if its times are outside of our limits, and the other errors of ClusterError.
    """
    found = objects.find(connection, _place(ref) / ref.name, Turn)
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


def take_lease(connection: Connection, guard: Guard, wanted: LeaseTake) -> None:
    """Take the Lease as it was read, or create it; calls `guard` before each try.

    After a 409 it is read again: if it is taken as wanted, an answer was lost, and the write has happened.
    Raises Conflict if it has changed since, NotFound if its namespace does not exist.
    """

    try:
        objects.send(connection, guard, _request(wanted))
    except Conflict:
        found = read_lease(connection, wanted.ref)
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
