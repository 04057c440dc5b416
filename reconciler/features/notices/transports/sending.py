"""What transports have in common: what they send, why they can't, and one bounded HTTP request.

A request follows no redirect, shows no secret in errors, and goes to no metadata service.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import tenacity
import urllib3
from msgspec import Struct, field

from reconciler.features.notices.deliveries import Delivery
from reconciler.features.notices.settings import MOST
from reconciler.http.bounded import BoundedClient, Bounds
from reconciler.http.failures import in_words
from reconciler.http.plain import SecretMissing, from_environment, from_file, retry_after
from reconciler.model.content import MASKED, Secret
from reconciler.settings.fields import check_url

LARGEST_SECRET = 64 << 10
"""Bytes of a file with a secret."""

_SHORTEST_MASKED = 4
"""Shorter values are not searched for in texts: they would be found everywhere."""


class NotSent(Exception):
    """A delivery was not sent.

    `refused` means that the same request would be refused again. `retry_after` is in seconds. The message has
    no secret in it.
    """

    def __init__(self, message: str, *, refused: bool = False, retry_after: float | None = None) -> None:
        """Create it with the reason."""
        super().__init__(message)
        self.refused = refused
        self.retry_after = retry_after


class Transport(Protocol):
    """Sends to one entry of `notify`, or to one notification of workflows."""

    def send(self, delivery: Delivery) -> str:
        """Send it, and return the thread of a chat that it began or continued, else an empty text.

        Takes a bounded time. Raises NotSent.
        """


def resolved(secret: Secret) -> str:
    """Return the text of a secret; NotSent if a name or a file is missing."""
    try:
        return secret.resolved(from_environment, _file)
    except SecretMissing as error:
        raise NotSent(str(error), refused=True) from error


def masked(text: str, *secrets: str) -> str:
    """Return the text without these secrets."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_MASKED:
            text = text.replace(secret, MASKED)
    return text


def tls_failure(error: BaseException) -> str:
    """Return why there is no TLS connection, with the remedy for a certificate that is not trusted."""
    cause: object = error
    while isinstance(cause, BaseException):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return (
                f"no TLS connection, because its certificate is not accepted ({cause.verify_message}); "
                "SSL_CERT_FILE can name a file with its certificate authority"
            )
        cause = cause.args[0] if cause.args else None
    return "no TLS connection"


def _file(path: str) -> str:
    data = from_file(path, LARGEST_SECRET + 1)
    if len(data) > LARGEST_SECRET:
        raise SecretMissing(f"{path} is larger than {LARGEST_SECRET} bytes")
    return data.decode("utf-8", "replace").strip()


TOTAL = 10.0
"""Seconds for one request with its answer."""

_CONNECT = 5.0
_TRIES = 3
_LARGEST = 64 << 10
_SHOWN = 100
_SHORTEST_SEGMENT = 6
"""Shorter segments of a path are no secrets, but words such as `hook`."""

_AGAIN = frozenset({408, 425, 429})
"""Statuses below 500 after which the same request may succeed."""


class Post(Struct, frozen=True):
    """A request: `headers` besides the usual ones, and the body as JSON (None: no body).

    No error shows the path, the query, the values of `headers`, or one of `secrets`.
    """

    url: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    method: str = "POST"
    secrets: tuple[str, ...] = ()
    largest: int = _LARGEST

    def hidden(self) -> tuple[str, ...]:
        """Return what no error may show, the longest first."""
        parts = urlsplit(self.url)
        words = [word for value in self.headers.values() for word in (value, *value.split())]
        path = [segment for segment in parts.path.split("/") if len(segment) >= _SHORTEST_SEGMENT]
        return tuple(sorted({*self.secrets, parts.query, *words, *path}, key=len, reverse=True))


class Reply(Struct, frozen=True):
    """The answer to a request that was not refused."""

    status: int
    body: bytes

    def document(self) -> Any:
        """Return the body as JSON; NotSent if it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise NotSent("the answer is not JSON") from error


class Http:
    """Sends requests; safe for threads. After a failure that may pass, it tries again twice."""

    def __init__(self, total: float = TOTAL) -> None:
        """`total` is the seconds for one request with its answer."""
        self._total = total
        self._direct = BoundedClient("others/notices", each=MOST)
        self._proxies: dict[str, BoundedClient] = {}
        self._lock = threading.Lock()

    def send(self, post: Post) -> Reply:
        """Send the request, and return the answer; raises NotSent."""
        try:
            check_url(post.url)
        except ValueError as error:
            raise NotSent(f"the URL {error}", refused=True) from None
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_may_pass),
            wait=tenacity.wait_exponential_jitter(multiplier=0.2, max=2, jitter=0.2),
            stop=tenacity.stop_after_attempt(_TRIES) | tenacity.stop_after_delay(self._total),
            reraise=True,
        )
        return retrying(self._once, post)

    def close(self) -> None:
        """Close idle connections."""
        for client in (self._direct, *self._proxies.values()):
            client.close()

    def _client_for(self, url: str) -> BoundedClient:
        """Return the connections for a URL: through the proxy of the environment, if it names one for it."""
        parts, proxies = urlsplit(url), getproxies()
        proxy = proxies.get(parts.scheme) or proxies.get("all")
        if not proxy or proxy_bypass(parts.netloc.rpartition("@")[2]):
            return self._direct
        with self._lock:
            if proxy not in self._proxies:
                try:
                    # Its URL may have a user and a password.
                    parsed = urllib3.util.parse_url(proxy if "://" in proxy else f"http://{proxy}")
                    headers = (
                        urllib3.make_headers(proxy_basic_auth=unquote(parsed.auth)) if parsed.auth else None
                    )
                    pool = urllib3.ProxyManager(
                        f"{parsed.scheme}://{parsed.netloc}", num_pools=4, maxsize=MOST, proxy_headers=headers
                    )
                except (ValueError, urllib3.exceptions.HTTPError):
                    why = "the environment names a proxy that is no URL such as http://proxy.example.com:3128"
                    raise NotSent(why, refused=True) from None
                self._proxies[proxy] = BoundedClient("others/notices", pool=pool)
            return self._proxies[proxy]

    def _once(self, post: Post) -> Reply:
        headers = {**post.headers}
        body = None
        if post.body is not None:
            body = json.dumps(post.body, ensure_ascii=True).encode()
            headers["Content-Type"] = post.content_type
        host, client = urlsplit(post.url).hostname, self._client_for(post.url)
        try:
            bounds = Bounds(self._total, post.largest)
            answer = client.send(post.method, post.url, bounds, body=body, headers=headers, connect=_CONNECT)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise NotSent(f"{host}: {_plain(error)}") from None
        if answer.status < 300:
            return Reply(answer.status, answer.data)
        refused = answer.status < 500 and answer.status not in _AGAIN
        said = masked(answer.data.decode("utf-8", "replace"), *post.hidden()).strip()[:_SHOWN]
        message = f"{host} answered {answer.status}" + (f": {said}" if said else "")
        raise NotSent(message, refused=refused, retry_after=retry_after(answer.headers.get("Retry-After")))


def _may_pass(error: BaseException) -> bool:
    """Whether to try again at once; a server that asks for patience gets it from the queue."""
    return isinstance(error, NotSent) and not error.refused and error.retry_after is None


def _plain(error: Exception) -> str:
    if isinstance(error, urllib3.exceptions.SSLError):
        return tls_failure(error)
    if isinstance(error, urllib3.exceptions.ProxyError):
        return "no connection to the proxy, or it refuses this server"
    return in_words(error)
