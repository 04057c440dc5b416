"""The client of workflows: Hypervisors, the Leases by which nodes take turns, Prometheus and Kubernikus."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from reconciler.features.workflows.kubernikus import Kubernikus
from reconciler.features.workflows.prometheus import Prometheus
from reconciler.features.workflows.services import SPEC, STATUS, Hypervisor, HypervisorWrite, Value
from reconciler.http.failures import decode_json
from reconciler.http.retrying import Guard
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import MERGE_PATCH, ApiPath, Connection, Request
from reconciler.kubernetes.turns import Turns
from reconciler.kubernetes.wire.formats import json_format
from reconciler.kubernetes.wire.lists import list_all
from reconciler.kubernetes.wire.shapes import ObjectMeta
from reconciler.model import limits
from reconciler.model.errors import Conflict, Forbidden, NotFound, Rejected

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


class Client(Turns):
    """Services for the API server; safe for threads."""

    def __init__(self, connection: Connection, guard: Guard | None) -> None:
        """Use this connection, and call the guard before each try of a write; without one it only reads."""
        super().__init__(connection, guard)
        self.prometheus, self.kubernikus = Prometheus(), Kubernikus(connection)

    def hypervisors(self) -> tuple[Hypervisor, ...] | None:
        """Return all Hypervisors, None if the cluster does not have the kind; raises ClusterError.

        Every field is decoded alone: what is broken there harms the checks and triggers that use the field.
        """
        try:
            listed = list_all(self._connection, PATH, json_format(_Object, _hypervisor), patience=PATIENCE)
        except NotFound:
            return None
        return tuple(listed.items)

    def write_hypervisor(self, write: HypervisorWrite) -> None:
        """Set the fields. All other fields stay as they are.

        Setting them again, because an answer was lost, changes nothing. Raises Conflict if another Hypervisor
        has the name by now, NotFound if it is gone, Forbidden with what is missing, and LockLost.
        """
        fields = {
            key: list(value) if isinstance(value, tuple) else value for key, value in write.fields.items()
        }
        # Without a resourceVersion: other controllers write the status at any time.
        body = {"metadata": {"uid": write.uid}, "spec": fields}
        # The API server would drop a field that its version of the kind does not have.
        strict = {"fieldValidation": "Strict"}
        request = Request("PATCH", PATH / write.name, query=strict, body=body, content_type=MERGE_PATCH)
        try:
            objects.send(self._connection, self._guard, request, patience=PATIENCE)
        except Forbidden as error:
            why = f"needs {error.needs} (k8s/hypervisors has it)" if error.needs else str(error)
            raise Forbidden(why, status=error.status, reason=error.reason, needs=error.needs) from error
        except Rejected as error:
            # A wrong UID is a 422 for objects of a definition.
            if "metadata.uid" not in str(error):
                raise
            raise Conflict(
                f"the Hypervisor {write.name} was deleted and created again", status=409
            ) from error


def _hypervisor(read: _Object) -> Hypervisor:
    spec, status = _parts(read.spec), _parts(read.status)
    return Hypervisor(
        read.metadata.name,
        read.metadata.uid,
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
            names = (item.name if isinstance(item, _Named) else item for item in items)
            return tuple(limits.text(name) for name in names)
        value = decode_json(type(kind), body)
    except _BROKEN:
        return None
    return limits.text(value) if isinstance(value, str) else value


def _conditions(parts: _Parts | None) -> dict[str, str] | None:
    if parts is None:
        return None
    try:
        conditions = decode_json(list[_Condition], parts.get("conditions", msgspec.Raw(b"[]")))
    except _BROKEN:
        return None
    return {
        limits.text(condition.type): limits.text(condition.status, limits.NAME)
        for condition in conditions[: limits.ENTRIES]
    }
