"""One API server over HTTP: each request has a deadline, each refusal becomes one of our errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import urlencode

import msgspec
import urllib3

from reconciler import USER_AGENT
from reconciler.clients.kubernetes.answers import media_type, to_error
from reconciler.clients.kubernetes.credentials import Credentials, within
from reconciler.clients.kubernetes.loading import load_access
from reconciler.clients.kubernetes.paths import ApiPath
from reconciler.errors import ClusterError, Unauthorized, Unreachable

CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 30.0
LOAD_LIMIT = 60.0
"""Seconds for loading the credentials, including a credential plugin of the kubeconfig."""

RELOAD_EVERY = 60.0
"""Seconds between two reloads of the credentials after a 401."""

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `body` is encoded as JSON; `read_timeout` is seconds between two bytes of the answer."""

    method: str
    path: ApiPath
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    content_type: str = "application/json"
    accept: str = "application/json"
    connect_timeout: float = CONNECT_TIMEOUT
    read_timeout: float = READ_TIMEOUT

    def __post_init__(self) -> None:
        """Raise Rejected for a path that was not built from names, whatever the type checker was told."""
        if not isinstance(self.path, ApiPath):
            object.__setattr__(self, "path", ApiPath(*str(self.path).split("/")[1:]))


class Stream:
    """The body of one answer while it arrives."""

    def __init__(self, response: urllib3.BaseHTTPResponse, name: str) -> None:
        """Take the response, and the name of the request for messages."""
        self._response = response
        self._name = name
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
        """Return the rest of the body; Unreachable if the stream is cut."""
        with _as_unreachable(self._name):
            return self._response.read()

    def interrupt(self) -> None:
        """Wake a thread that is reading: for it the stream ends. May be called from any thread."""
        try:
            self._response.shutdown()
        except (ValueError, RuntimeError, OSError, urllib3.exceptions.HTTPError):
            # The stream has ended by itself in the meantime.
            return


class Connection:
    """One API server, one identity, many threads."""

    def __init__(
        self,
        kubeconfig: str | None = None,
        context: str | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Load the credentials; Unauthorized with what to change if there are no usable ones.

        `clock` (seconds) is for ages, `wall` (Unix time) only for the skew, `sleep` for the wait before a
        request is sent again. `kubeconfig` and `context` None: see load_access.
        """
        self._kubeconfig = kubeconfig
        self._context = context
        self._clock = clock
        self._wall = wall
        self.sleep = sleep
        self._reload_lock = threading.Lock()
        self._skew: timedelta | None = None
        self._load()

    def close(self) -> None:
        """Close all idle connections."""
        self._pool.clear()

    @property
    def skew(self) -> timedelta | None:
        """Our clock minus the `Date` of the latest answer (to half a second), None before the first."""
        return self._skew

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
        loaded = self._loaded
        try:
            response = self._open(request, name)
        except Unauthorized:
            if not self._reload(loaded):
                raise
            response = self._open(request, name)
        try:
            yield Stream(response, name)
        finally:
            if not response.closed:
                response.close()
            response.release_conn()

    def _open(self, request: Request, name: str) -> urllib3.BaseHTTPResponse:
        headers = {"User-Agent": USER_AGENT, "Accept": request.accept}
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
        with _as_unreachable(name):
            response = self._pool.request(
                request.method,
                url,
                body=body,
                headers=headers,
                timeout=urllib3.Timeout(connect=request.connect_timeout, read=request.read_timeout),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            self._note_date(response.headers.get("Date"))
            if response.status < 300:
                return response
            try:
                content = response.read()
            finally:
                response.release_conn()
        raise to_error(request.method, request.path, response.status, response.headers, content)

    def _load(self) -> None:
        self._loaded = self._clock()
        access = within(LOAD_LIMIT, lambda: load_access(self._kubeconfig, self._context))
        self._credentials = Credentials(access.authorization, clock=self._clock)
        self._host, self._pool = access.host, access.pool

    def _reload(self, loaded: float) -> bool:
        """Load the credentials again after a 401; return whether to send the request again.

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

    def _note_date(self, date: str | None) -> None:
        if date is None:
            return
        try:
            told = parsedate_to_datetime(date).timestamp()
        except (ValueError, TypeError, OverflowError):
            return
        # The header is cut to whole seconds: on average it is half a second late.
        self._skew = timedelta(seconds=self._wall() - told - 0.5)


@contextmanager
def _as_unreachable(name: str) -> Iterator[None]:
    """Turn what the transport raises into Unreachable."""
    try:
        yield
    except ClusterError:
        raise
    except urllib3.exceptions.SSLError as error:
        raise Unreachable(f"{name}: no TLS with the server: {error}") from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Unreachable(f"{name}: {_plain(error)}") from error


def _plain(error: Exception) -> str:
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return f"no connection: {str(error).rpartition(': ')[2]}"
    if isinstance(error, urllib3.exceptions.TimeoutError):
        return "no answer in time"
    return f"the connection was cut: {error}"
