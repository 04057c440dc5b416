"""Reads and writes NodeMaintenance objects. Nothing depends on them."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

import msgspec

from reconciler.features.publishing.objects import Maintenance, MaintenanceWrite
from reconciler.http.retrying import Guard, read_only
from reconciler.kubernetes.connection import MERGE_PATCH, ApiPath, Connection, Request
from reconciler.kubernetes.objects import get_list, send
from reconciler.kubernetes.wire.shapes import ObjectMeta
from reconciler.model import limits
from reconciler.model.errors import Conflict, NotFound
from reconciler.model.event import Kind
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.moments import from_text, to_text
from reconciler.model.node import Condition
from reconciler.model.record import KnownEvent

# Attributes have the names of the API, so no table of names is needed.
# ruff: noqa: N815

API_VERSION = "node-maintenance.dev/v1alpha1"
KIND = "NodeMaintenance"
PATH = ApiPath("apis", *API_VERSION.split("/"), "nodemaintenances")
INSTALLATION = f"{DEFAULT_PREFIX}/keys-prefix"
"""The label that names the prefix of the installation. It is the same for every prefix."""

PATIENCE = 2.0
"""Seconds. Nothing waits for these objects; the next pass tries again."""

_LONGEST_VALUE = 63


class _Spec(msgspec.Struct):
    nodeName: str = ""
    nodeUID: str = ""
    kind: str = ""
    ids: list[str] | None = None
    sources: list[str] | None = None
    condition: str | None = None
    notBefore: str | None = None
    durationSeconds: int | None = None
    description: str | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    lastTransitionTime: str | None = None


class _Status(msgspec.Struct):
    state: str = ""
    due: str | None = None
    reason: str | None = None
    message: str | None = None
    conditions: list[_Condition] | None = None
    finishedAt: str | None = None


class _Object(msgspec.Struct):
    metadata: ObjectMeta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class Client:
    """Maintenances on the API server; safe for threads."""

    def __init__(self, connection: Connection, guard: Guard | None = None) -> None:
        """Use this connection, and call the guard before each write; without a guard it only reads."""
        self._connection = connection
        self._guard = guard or read_only

    def read(self, prefix: str) -> tuple[Maintenance, ...] | None:
        """Return the objects of the installation with this prefix; None if the CRD is not installed."""
        labels = f"{INSTALLATION}={_installation(prefix)}"
        try:
            items, _ = get_list(self._connection, PATH, _Object, labels=labels, patience=PATIENCE)
        except NotFound:
            return None
        return tuple(map(_from_object, items))

    def write(self, write: MaintenanceWrite) -> None:
        """Create, change or delete an object; deleting one that is gone succeeds.

        Raises Conflict where another client changes it at the same time.
        """
        path = PATH / write.name
        if write.wanted is None:
            request = Request("DELETE", path)
        else:
            body = _to_object(write.wanted, write.prefix)
            if write.exists:
                request = Request("PATCH", path, body=body, content_type=MERGE_PATCH)
            else:
                # In a patch null removes a field, but in a new object it is a value.
                body = {
                    key: {name: value for name, value in part.items() if value is not None}
                    if isinstance(part, dict)
                    else part
                    for key, part in body.items()
                }
                request = Request("POST", PATH, body=body)
        try:
            send(self._connection, self._guard, request, patience=PATIENCE)
        except NotFound:
            if write.wanted is not None:
                raise
        except Conflict:
            # An earlier try created it, and its answer was lost: the next pass compares.
            if write.exists:
                raise


def _installation(prefix: str) -> str:
    if len(prefix) <= _LONGEST_VALUE:
        return prefix
    return hashlib.sha256(prefix.encode()).hexdigest()[:40]


def _to_object(one: Maintenance, prefix: str) -> dict[str, Any]:
    event = one.event
    spec = {
        "nodeName": one.node,
        "nodeUID": one.uid,
        "kind": event.kind.value,
        "ids": list(event.ids),
        "sources": list(event.sources),
        "condition": event.condition or None,
        "notBefore": _text(event.not_before),
        "durationSeconds": int(one.duration.total_seconds()) if one.duration is not None else None,
        "description": one.description or None,
    }
    status = {
        "state": one.state,
        "due": _text(one.due),
        "reason": one.reason or None,
        "message": one.message or None,
        "conditions": [
            {
                "type": condition.type,
                "status": condition.status,
                "lastTransitionTime": _text(condition.transition),
            }
            for condition in one.conditions
        ],
        "finishedAt": _text(one.finished),
    }
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": one.name, "labels": {INSTALLATION: _installation(prefix)}},
        "spec": spec,
        "status": status,
    }


def _from_object(found: _Object) -> Maintenance:
    spec, status = found.spec, found.status
    try:
        kind = Kind(spec.kind)
    except ValueError:
        # A newer version or a person wrote it. It then differs from what we show, so it is written again.
        kind = Kind.UNKNOWN
    seconds = spec.durationSeconds
    return Maintenance(
        name=found.metadata.name,
        node=spec.nodeName,
        uid=spec.nodeUID,
        event=KnownEvent(
            kind,
            _moment(spec.notBefore),
            tuple(spec.ids or ()),
            tuple(spec.sources or ()),
            spec.condition or "",
        ),
        state=status.state,
        duration=limits.duration(seconds) if seconds is not None else None,
        description=spec.description or "",
        due=_moment(status.due),
        reason=status.reason or "",
        message=status.message or "",
        conditions=tuple(
            Condition(one.type, one.status, transition=_moment(one.lastTransitionTime))
            for one in status.conditions or ()
        ),
        finished=_moment(status.finishedAt),
    )


def _text(moment: datetime | None) -> str | None:
    return to_text(moment) if moment is not None else None


def _moment(text: str | None) -> datetime | None:
    try:
        return from_text(text) if text else None
    except ValueError:
        # A person wrote it. It then differs from what we show, so it is written again.
        return None
