"""One API server over HTTP: each request has a deadline, each refusal becomes one of our errors.

Paths are built from checked segments, so that no text from an object can lead to another object.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self
from urllib.parse import urlencode

import msgspec
import urllib3
from msgspec import Struct, field
from msgspec.structs import force_setattr

from reconciler import USER_AGENT
from reconciler.http.bounded import Bounds, Live, bound, fingerprint, within_bounds
from reconciler.http.failures import decode_json
from reconciler.http.plain import retry_after
from reconciler.kubernetes.access import load_access
from reconciler.kubernetes.credentials import Credentials, no_answer, within
from reconciler.kubernetes.server_time import ServerTime
from reconciler.kubernetes.wire import protobuf
from reconciler.kubernetes.wire.protobuf import MAGIC
from reconciler.model.errors import (
    ClusterError,
    NoServer,
    NoThread,
    Rejected,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    error_for,
)
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
NOT_FOUND = 404
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
            return _body_of(protobuf.Status.FromString(protobuf.Unknown.FromString(body[len(MAGIC) :]).raw))
        if content_type == JSON:
            return _body_of(decode_json(_Status, body))
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


def _body_of(status: Any) -> StatusBody:
    details = status.details or _Details()
    return StatusBody(
        status.message or "",
        status.reason or "",
        status.code or 0,
        tuple((cause.reason or "", cause.message or "") for cause in details.causes or ()),
        float(details.retryAfterSeconds) if details.retryAfterSeconds else None,
    )


FIRST_CONNECT = 3.0
"""Seconds to connect for the first request of a command that a person waits for, with all addresses of the
server, and the answer of the name server.
"""

FIRST_ANSWER = 10.0
"""Seconds for the first byte of its answer. A busy server takes some seconds for a list."""

CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 30.0
TOTAL = 60.0
"""Seconds for one whole answer, whatever its size."""

LARGEST = 4 << 20
"""Bytes of an answer. etcd stores no object above 1.5 MiB; JSON writes some characters as six bytes."""

LARGEST_REFUSAL = 64 << 10
"""Bytes of the body of a refusal; more of it is not read."""

LOAD_LIMIT = 60.0
"""Seconds for loading the credentials, including a credential plugin of the kubeconfig."""

RELOAD_EVERY = 60.0
"""Seconds between two reloads of the credentials after a 401."""

CHUNK = 1 << 18
"""Bytes that are read at once."""

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class Request(Struct, frozen=True):
    """One request.

    `body` is encoded as JSON. `read_timeout` is seconds between two bytes of the answer, `total` seconds for
    all of it. `largest` is the number of bytes that `Stream.read_all` accepts.
    """

    method: str
    path: ApiPath
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    content_type: str = "application/json"
    accept: str = "application/json"
    connect_timeout: float = CONNECT_TIMEOUT
    read_timeout: float = READ_TIMEOUT
    total: float = TOTAL
    largest: int = LARGEST

    def __post_init__(self) -> None:
        """Raise Rejected for a path that was not built from names; a type checker can't find each one."""
        if not isinstance(self.path, ApiPath):
            force_setattr(self, "path", ApiPath(*str(self.path).split("/")[1:]))


class Stream:
    """The body of one answer while it arrives."""

    def __init__(self, response: urllib3.BaseHTTPResponse, name: str, largest: int = LARGEST) -> None:
        """Take the response, the name of the request for messages, and what `read_all` accepts in bytes."""
        self._response = response
        self._name = name
        self._largest = largest
        self.content_type = media_type(response.headers)

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer only at the end; Unreachable if the stream is cut."""
        # The server sends a list in HTTP chunks of a few KB; reading one by one costs as much as decoding.
        with _as_unreachable(self._name):
            return self._response.read(size)

    def read_some(self, size: int) -> bytes:
        """Return up to `size` bytes as they come, b"" at the end; Unreachable if the stream is cut."""
        with _as_unreachable(self._name):
            return self._response.read1(size)

    def read_all(self) -> bytes:
        """Return the rest of the body; Unreachable if the stream is cut, TooLarge for too many bytes."""
        chunks: list[bytes] = []
        left = self._largest
        # Only a read that returns nothing proves that the answer was not cut.
        while chunk := self.read(min(CHUNK, left + 1)):
            left -= len(chunk)
            if left < 0:
                raise TooLarge(f"{self._name}: the answer is larger than {self._largest} bytes")
            chunks.append(chunk)
        return b"".join(chunks)

    def interrupt(self) -> None:
        """Wake a thread that is reading: for it the stream ends. May be called from any thread."""
        try:
            self._response.shutdown()
        except (ValueError, RuntimeError, OSError, urllib3.exceptions.HTTPError):
            # The stream has ended by itself in the meantime.
            return


class ClusterName(Struct):
    """What the cluster is called by the settings and by its nodes, empty where they say nothing.

    `asks_again` is from when on (monotonic seconds) the nodes may be asked.
    """

    configured: str = ""
    of_nodes: str = ""
    asks_again: float = 0.0


class Connection:
    """One API server, one identity, many threads."""

    def __init__(
        self,
        kubeconfig: str | None = None,
        context: str | None = None,
        *,
        someone_waits: bool = False,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Load the credentials; Unauthorized with what to change if there are no usable ones.

        `someone_waits`: without an answer to the first request, NoServer is raised at once, and nothing is
        tried again.

        `clock` (seconds) is for ages, `wall` (Unix time) counts until the server has told its time, `sleep`
        is for the wait before a request is sent again. `kubeconfig` and `context` None: see load_access.
        """
        self._kubeconfig = kubeconfig
        self._context = context
        self._impatient = someone_waits
        self._clock = clock
        self.time = ServerTime(wall=wall)
        self.name = ClusterName()
        self.throttled = 0
        """How often the API server has asked for fewer requests."""
        self.sleep = sleep
        self._reload_lock = threading.Lock()
        self._live = Live()
        self._seen: tuple[int, ...] | None = None
        self._load()

    @property
    def insecure(self) -> str:
        """A warning for a person if the certificate of the server is not checked, else empty."""
        if not self.origin.insecure:
            return ""
        return (
            f"{self.origin} has insecure-skip-tls-verify: anybody on the way can read and change what is sent"
        )

    @property
    def place(self) -> str:
        """Which server it is, and how it was chosen, in words."""
        return f"{self._host} ({self.origin})"

    @property
    def cluster(self) -> str:
        """The name of the cluster, else the address of the API server."""
        return self.known_cluster or self._host.partition("://")[2]

    @property
    def known_cluster(self) -> str:
        """The name of the cluster, as far as `name_cluster` knows it, else empty."""
        return self.name.configured or self.origin.cluster or self.name.of_nodes

    def close(self) -> None:
        """Close all connections: a request that still waits for its answer ends with Unreachable."""
        self._pool.clear()
        self._live.cut()

    def send(self, request: Request) -> bytes:
        """Return the body of the answer; raises the errors of ClusterError."""
        with self.stream(request) as stream:
            return stream.read_all()

    @contextmanager
    def stream(self, request: Request) -> Iterator[Stream]:
        """Send the request and yield the body of its answer as it comes.

        Raises the errors of ClusterError. If the body was not read to its end, the connection is closed.
        """
        name = f"{request.method} {request.path}"
        now = fingerprint(self._authority)
        if now is not None and now != self._seen:
            # New connections read the authority's file, which has changed. The idle ones were verified by an
            # authority that may be trusted no more.
            self._seen = now
            self._pool.clear()
        loaded = self._loaded
        try:
            try:
                response = self._open(request, name)
            except (Unauthorized, _Untrusted):
                if not self._reload(loaded):
                    raise
                response = self._open(request, name)
        except Unreachable as error:
            if self._impatient and not error.status:
                raise NoServer(str(error)) from error
            raise
        try:
            yield Stream(response, name, request.largest)
        finally:
            if not response.closed:
                response.close()
            response.release_conn()

    def _open(self, request: Request, name: str) -> urllib3.BaseHTTPResponse:
        # A compressed answer can become a thousand times as large: none is requested, and none is read.
        headers = {"User-Agent": USER_AGENT, "Accept": request.accept, "Accept-Encoding": "identity"}
        authorization = self._credentials.header()
        if authorization:
            headers["Authorization"] = authorization
        body = None
        if request.body is not None:
            body = msgspec.json.encode(request.body)
            headers["Content-Type"] = request.content_type
        url = f"{self._host}{request.path}"
        if request.query:
            url += "?" + urlencode(request.query)
        sent = self.time.clock()
        connect, read = request.connect_timeout, request.read_timeout
        if self._impatient:
            connect, read = min(connect, self._first_connect(name)), min(read, FIRST_ANSWER)
        with _as_unreachable(name), within_bounds(Bounds(request.total, size=None)):
            response = self._pool.request(
                request.method,
                url,
                body=body,
                headers=headers,
                timeout=urllib3.Timeout(connect=connect, read=read),
                retries=False,
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
            self.time.note(response.headers.get("Date"), sent, self.time.clock())
            encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
            if response.status < 300 and encoding in ("", "identity"):
                self._impatient = False
                return response
            try:
                content = response.read(LARGEST_REFUSAL) if encoding in ("", "identity") else b""
            finally:
                response.close()
                response.release_conn()
        no_status = not read_status(media_type(response.headers), content).code
        if response.status == NOT_FOUND and request.path.startswith(CORE) and no_status:
            # A proxy, or another program: nothing is known of the object.
            raise Unreachable(f"{name}: what answers with 404 there is no Kubernetes API server")
        self._impatient = False
        if response.status < 300:
            raise Rejected(
                f"{name}: the answer is encoded as {encoding[:20]!r}, which was not requested;"
                " is there a proxy before the API server?"
            )
        error = to_error(request.method, request.path, response.status, response.headers, content)
        # The refusal of a budget names its cause.
        if isinstance(error, TooManyRequests) and not error.causes:
            self.throttled += 1
        raise error

    def _first_connect(self, name: str) -> float:
        """Return the seconds for each address of the server, so that all of them together take no longer.

        Raises Unreachable if the name of the server has no address, or no name server answers in time.
        """
        url = urllib3.util.parse_url(self._host)
        if self._pool.proxy is not None or url.host is None:
            return FIRST_CONNECT
        host, began = url.host.strip("[]"), time.monotonic()
        try:
            addresses = within(
                FIRST_CONNECT,
                lambda: socket.getaddrinfo(host, url.port, type=socket.SOCK_STREAM),
                Unreachable(f"{name}: no connection: no name server has answered for {host}"),
            )
        except NoThread:
            return FIRST_CONNECT
        except OSError as error:
            raise Unreachable(f"{name}: no connection: there is no address of {host}: {error}") from error
        left = FIRST_CONNECT - (time.monotonic() - began)
        return max(left, 0.1) / max(len(addresses), 1)

    def _load(self) -> None:
        self._loaded = self._clock()
        try:
            access = within(
                LOAD_LIMIT, lambda: load_access(self._kubeconfig, self._context), no_answer(LOAD_LIMIT)
            )
        except NoThread as error:
            raise Unreachable(str(error)) from error
        self._credentials = Credentials(access.authorization, clock=self._clock)
        self._host, self._pool, self.origin = access.host, access.pool, access.origin
        if self.origin.insecure:
            # It would come with every request. `insecure` says it once.
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        self._authority, self._seen = access.authority, fingerprint(access.authority)
        bound(self._pool, "kubernetes", self._live)

    def _reload(self, loaded: float) -> bool:
        """Load the credentials again after a 401 or without TLS; return whether to send the request again.

        A client certificate or a token that was renewed in the kubeconfig is read only here.
        """
        with self._reload_lock:
            if self._loaded != loaded:
                return True
            if self._clock() - loaded < RELOAD_EVERY:
                return False
            before = self._pool
            self._load()
            before.clear()
            return True


class _Untrusted(Unreachable):
    """The server's certificate, or ours, was refused: the kubeconfig may hold a new authority by now."""


@contextmanager
def _as_unreachable(name: str) -> Iterator[None]:
    try:
        yield
    except ClusterError:
        raise
    except urllib3.exceptions.SSLError as error:
        raise _Untrusted(f"{name}: no TLS with the server: {error}") from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Unreachable(f"{name}: {_plain(error)}") from error


def _plain(error: Exception) -> str:
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return f"no connection: {str(error).rpartition(': ')[2]}"
    if isinstance(error, urllib3.exceptions.TimeoutError):
        return "no answer in time"
    return f"the connection was cut: {error}"
