"""Asks Kubernikus how many nodes a cluster should have, with a user of OpenStack.

A service that is slow or broken costs a pass a few seconds at most: each answer has a total time and a size,
a pass has a total time for all of them, and what failed has a pause. Nothing is sent to OpenStack twice.
"""

from __future__ import annotations

import base64
import binascii
import configparser
import os
import re
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote, urlsplit

import msgspec
import urllib3
from msgspec import Struct

from reconciler.http.bounded import BoundedClient, Bounds
from reconciler.http.failures import cause_of, decode_json
from reconciler.http.retrying import patiently
from reconciler.kubernetes.connection import Connection, Request, core
from reconciler.kubernetes.wire.shapes import decode
from reconciler.model import limits
from reconciler.model.errors import ClusterError, NotFound
from reconciler.model.problems import internal
from reconciler.model.workflow import KubernikusAnswer, KubernikusQuery

ANSWER = 2.0
"""Seconds for one answer."""

PATIENCE = 4.0
"""Seconds for all answers of one pass. A cluster after that has no answer in this pass."""

KEPT = 60.0
"""Seconds for which an answer, or a failure, is used."""

SIZE = 1 << 20
"""Bytes of one answer."""

KEY = "cloudprovider.conf"
"""The key of the Secret."""

_LARGEST = 64 * 1024
_REGION = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_TOKEN = re.compile(r"[!-~]{1,16384}")
_LOCAL = ("127.0.0.1", "::1", "localhost")
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Secret(msgspec.Struct):
    data: dict[str, str] | None = None


class _Pool(msgspec.Struct):
    size: int


class _Spec(msgspec.Struct):
    pools: list[_Pool] = msgspec.field(name="nodePools")


class _Cluster(msgspec.Struct):
    spec: _Spec


class _Access(Struct, frozen=True):
    """The section `Global` of a cloudprovider.conf. Nothing shows it, because it has a password."""

    auth_url: str
    user: str
    password: str
    domain: str
    project: str
    region: str

    def __repr__(self) -> str:
        return f"the access of {self.user}"


class _Kept(Struct, frozen=True):
    until: float
    answer: KubernikusAnswer


class Kubernikus:
    """Asks for the sizes of node pools. Safe for one thread."""

    def __init__(
        self, connection: Connection, *, clock: Callable[[], float] = time.monotonic, answer: float = ANSWER
    ) -> None:
        """Use this connection for Secrets, and this clock in seconds. An answer may take `answer` seconds."""
        self._connection = connection
        self._clock = clock
        self._answer = answer
        self._client = BoundedClient("openstack")
        self._kept: dict[KubernikusQuery, _Kept] = {}

    def ask(self, queries: Sequence[KubernikusQuery], /) -> Mapping[KubernikusQuery, KubernikusAnswer]:
        """Return the answer for each cluster; a failure is its `problem`. Raises nothing."""
        now = self._clock()
        ends = now + PATIENCE
        self._kept = {query: one for query, one in self._kept.items() if now < one.until}
        found: dict[KubernikusQuery, KubernikusAnswer] = {}
        for query in dict.fromkeys(queries):
            if query in self._kept:
                found[query] = self._kept[query].answer
                continue
            if self._clock() >= ends:
                found[query] = KubernikusAnswer(problem="other clusters took all of the time of this pass")
                continue
            found[query] = self._one(query, ends)
            self._kept[query] = _Kept(self._clock() + KEPT, found[query])
        return found

    def _one(self, query: KubernikusQuery, ends: float) -> KubernikusAnswer:
        try:
            access = _parsed(self._text(query))
            base = query.url or f"https://kubernikus.{access.region}.cloud.sap"
            token = self._token(access, ends)
            return KubernikusAnswer(self._size(base, query.cluster, token, ends))
        except NotFound:
            return KubernikusAnswer(problem=f"there is no Secret {query.namespace}/{query.secret}")
        except ClusterError as error:
            return KubernikusAnswer(problem=f"needs {error.needs}" if error.needs else str(error))
        except OSError as error:
            return KubernikusAnswer(problem=f"{query.file}: {error.strerror or type(error).__name__}")
        except ValueError as error:
            return KubernikusAnswer(problem=str(error))
        except Exception as error:  # noqa: BLE001 - what a service says harms the checks that ask it
            return KubernikusAnswer(problem=internal("Kubernikus can't be asked", error))

    def _text(self, query: KubernikusQuery) -> str:
        """Return the content of the cloudprovider.conf; ValueError if it can't be used."""
        if not query.secret:
            # A pipe would wait for its writer.
            if not stat.S_ISREG(os.stat(query.file).st_mode):
                raise ValueError(f"{query.file} is not a regular file")
            with open(query.file, "rb") as file:
                content = file.read(_LARGEST + 1)
        else:
            path = core(query.namespace) / "secrets" / query.secret
            request = Request("GET", path, total=ANSWER)
            answer = patiently(
                lambda: self._connection.send(request), patience=ANSWER, sleep=self._connection.sleep
            )
            held = (decode(_Secret, answer).data or {}).get(KEY)
            if held is None:
                raise ValueError(f"the Secret {query.namespace}/{query.secret} has no key {KEY}")
            try:
                content = base64.b64decode(held, validate=True)
            except binascii.Error as error:
                raise ValueError(f"{KEY} is not base64") from error
        if len(content) > _LARGEST:
            raise ValueError(f"{KEY} is larger than {_LARGEST} bytes")
        return content.decode("utf-8", "replace")

    def _token(self, access: _Access, ends: float) -> str:
        user = {"name": access.user, "password": access.password, "domain": {"name": access.domain}}
        identity = {"methods": ["password"], "password": {"user": user}}
        body = {"auth": {"identity": identity, "scope": {"project": {"id": access.project}}}}
        base = access.auth_url.rstrip("/")
        base = base if base.endswith("/v3") else f"{base}/v3"
        answer = self._send("POST", f"{base}/auth/tokens", ends, body=msgspec.json.encode(body))
        token = answer.headers.get("X-Subject-Token", "")
        if answer.status not in (200, 201) or not _TOKEN.fullmatch(token):
            raise ValueError(f"OpenStack gives no token: HTTP {answer.status}")
        return token

    def _size(self, base: str, cluster: str, token: str, ends: float) -> int:
        if cluster in (".", ".."):
            raise ValueError(f"{cluster} is no name of a cluster")
        url = f"{_checked(base, 'url').rstrip('/')}/api/v1/clusters/{quote(cluster, safe='')}"
        answer = self._send("GET", url, ends, token=token)
        # maintenance-controller reads an error as a cluster without pools, and passes.
        if answer.status != 200:
            raise ValueError(f"Kubernikus says nothing about {cluster}: HTTP {answer.status}")
        try:
            return sum(limits.count(pool.size) for pool in decode_json(_Cluster, answer.data).spec.pools)
        except (*_BROKEN, ValueError) as error:
            raise ValueError(f"the node pools of {cluster} can't be read") from error

    def _send(
        self, method: str, url: str, ends: float, *, body: bytes | None = None, token: str = ""
    ) -> urllib3.BaseHTTPResponse:
        seconds = min(self._answer, ends - self._clock())
        if seconds <= 0:
            raise ValueError("OpenStack took all of the time of this pass")
        headers = {"Accept": "application/json"}
        headers |= {"X-Auth-Token": token} if token else {"Content-Type": "application/json"}
        try:
            return self._client.send(method, url, Bounds(seconds, SIZE), body=body, headers=headers)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ValueError(f"no answer from {urlsplit(url).hostname}: {cause_of(error)}") from error


def _parsed(text: str) -> _Access:
    """Return what a cloudprovider.conf says. No message of its parser is shown: it repeats the line."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
        section = parser["Global"]
    except (configparser.Error, KeyError):
        raise ValueError(f"{KEY} has no section [Global] that can be read") from None
    keys = ("auth-url", "username", "password", "domain-name", "tenant-id", "region")
    values = [(section.get(key) or "").strip().strip('"') for key in keys]
    missing = [key for key, value in zip(keys, values, strict=True) if not value]
    if missing:
        raise ValueError(f"{KEY} has no {', '.join(missing)}")
    if not _REGION.fullmatch(values[5]):
        raise ValueError(f"the region in {KEY} is no name of a region")
    return _Access(_checked(values[0], "auth-url"), *values[1:])


def _checked(url: str, what: str) -> str:
    """Return the URL; ValueError unless a password may be sent to it."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise ValueError(f"{what} is not a URL") from None
    if not host or parts.username is not None or parts.query or parts.fragment:
        raise ValueError(f"{what} is not a URL of a server")
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOCAL):
        raise ValueError(f"{what} does not begin with https://")
    return url
