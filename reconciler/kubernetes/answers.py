"""What an answer of the API server means."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from reconciler.http.failures import decode_json
from reconciler.http.retry_after import retry_after
from reconciler.kubernetes.wire import protobuf
from reconciler.kubernetes.wire.protobuf import MAGIC
from reconciler.model.errors import ClusterError, Rejected, error_for

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def right(method: str, path: str) -> str:
    """Return the permission for a request, such as `get configmaps in kube-system`.

    It follows the attributes of the API server (k8s.io/apiserver, pkg/endpoints/request/requestinfo.go). A
    watch has the permission `watch`, which a path alone does not show: it is named `list`, because our
    watches list first. Empty for a path that is not of a resource.
    """
    match path.split("/")[1:]:
        case ["api", _, *rest]:
            group = ""
        case ["apis", group, _, *rest]:
            pass
        case _:
            return ""
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        _, namespace, *rest = rest
    if not rest:
        return ""
    resource, *names = rest
    kind = f"{resource}.{group}" if group else resource
    kind = "/".join((kind, *names[1:]))
    verb = _VERBS.get(method) or ("get" if names else "list")
    return f"{verb} {kind}{f' in {namespace}' if namespace else ''}"


PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON = "application/json"
FORBIDDEN = 403
GONE = 410

# Causes that are more specific than the reason of the Status (k8s.io/api: core/v1 and policy/v1).
_TELLING = ("NamespaceTerminating", "DisruptionBudget")


class _Cause(msgspec.Struct):
    reason: str | None = None
    message: str | None = None


class _Details(msgspec.Struct):
    causes: list[_Cause] | None = None
    retryAfterSeconds: int | None = None  # noqa: N815 - the API's spelling


class _Status(msgspec.Struct):
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: _Details | None = None


class StatusBody(Struct, frozen=True):
    """A Status body: message, reason, causes as (reason, message), and the wait in seconds it asks for."""

    message: str = ""
    reason: str = ""
    code: int = 0
    causes: tuple[tuple[str, str], ...] = ()
    retry_after: float | None = None


def media_type(headers: Mapping[str, str]) -> str:
    """Return the Content-Type without its parameters, in lower case."""
    return headers.get("Content-Type", "").partition(";")[0].strip().lower()


def read_status(content_type: str, body: bytes) -> StatusBody:
    """Read a Status in JSON or protobuf; any other body becomes the message, cut to 300 characters."""
    try:
        if content_type == PROTOBUF and body.startswith(MAGIC):
            return _from_protobuf(body)
        if content_type == JSON:
            return _from_json(body)
    except (msgspec.DecodeError, protobuf.DecodeError):
        pass
    return StatusBody(body[:300].decode(errors="replace").strip())


def to_error(method: str, path: str, status: int, headers: Mapping[str, str], body: bytes) -> ClusterError:
    """Return the error for an answer with status 300 or above; its message names the request."""
    refusal = read_status(media_type(headers), body)
    kind = _kind(method, status)
    reason = next((cause for cause, _ in refusal.causes if cause in _TELLING), refusal.reason)
    return kind(
        f"{method} {path}: {status} {refusal.message or refusal.reason}".strip(),
        status=status,
        retry_after=retry_after(headers.get("Retry-After")) or refusal.retry_after,
        reason=reason,
        causes=tuple(message for _, message in refusal.causes),
        needs=right(method, path) if status == FORBIDDEN else "",
    )


def _kind(method: str, status: int) -> type[ClusterError]:
    if status == 500 and method == "POST":
        # For a POST this is an answer, not an outage: an eviction under two budgets is refused with 500.
        return Rejected
    return error_for(status)


def _from_json(body: bytes) -> StatusBody:
    status = decode_json(_Status, body)
    details = status.details or _Details()
    return StatusBody(
        status.message or "",
        status.reason or "",
        status.code or 0,
        tuple((cause.reason or "", cause.message or "") for cause in details.causes or ()),
        float(details.retryAfterSeconds) if details.retryAfterSeconds else None,
    )


def _from_protobuf(body: bytes) -> StatusBody:
    status = protobuf.Status.FromString(protobuf.Unknown.FromString(body[len(MAGIC) :]).raw)
    return StatusBody(
        status.message,
        status.reason,
        status.code,
        tuple((cause.reason, cause.message) for cause in status.details.causes),
        float(status.details.retryAfterSeconds) if status.details.retryAfterSeconds else None,
    )
