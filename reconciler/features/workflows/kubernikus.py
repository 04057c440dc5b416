"""Asks Kubernikus how many nodes a cluster should have, with a user of OpenStack.

A service that is slow or broken costs a pass a few seconds at most: each answer has a total time and a size,
a pass has a total time for all of them, and what failed has a pause. Nothing is sent to OpenStack twice.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote, urlsplit

import msgspec
import urllib3
from msgspec import Struct

from reconciler.features.workflows.services import KubernikusAnswer, KubernikusQuery
from reconciler.http.bounded import BoundedClient, Bounds
from reconciler.http.failures import cause_of, decode_json
from reconciler.kubernetes.cloud_provider import Access, Place, access_at, checked_url
from reconciler.kubernetes.connection import Connection
from reconciler.model import limits
from reconciler.model.problems import internal

ANSWER = 2.0
"""Seconds for one answer."""

PATIENCE = 4.0
"""Seconds for all answers of one pass. A cluster after that has no answer in this pass."""

KEPT = 60.0
"""Seconds for which an answer, or a failure, is used."""

SIZE = 1 << 20
"""Bytes of one answer."""

_TOKEN = re.compile(r"[!-~]{1,16384}")
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Pool(msgspec.Struct):
    size: int


class _Spec(msgspec.Struct):
    pools: list[_Pool] = msgspec.field(name="nodePools")


class _Cluster(msgspec.Struct):
    spec: _Spec


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
            place = Place(query.file, query.namespace, query.secret)
            access = access_at(place, self._connection)
            base = query.url or f"https://kubernikus.{access.region}.cloud.sap"
            token = self._token(access, ends)
            return KubernikusAnswer(self._size(base, query.cluster, token, ends))
        except ValueError as error:
            return KubernikusAnswer(problem=str(error))
        except Exception as error:  # noqa: BLE001 - what a service says harms the checks that ask it
            return KubernikusAnswer(problem=internal("Kubernikus can't be asked", error))

    def _token(self, access: Access, ends: float) -> str:
        user = {"name": access.user, "password": access.password, "domain": {"name": access.domain}}
        identity = {"methods": ["password"], "password": {"user": user}}
        body = {"auth": {"identity": identity, "scope": {"project": {"id": access.project}}}}
        answer = self._send("POST", f"{access.identity}/auth/tokens", ends, body=msgspec.json.encode(body))
        token = answer.headers.get("X-Subject-Token", "")
        if answer.status not in (200, 201) or not _TOKEN.fullmatch(token):
            raise ValueError(f"OpenStack gives no token: HTTP {answer.status}")
        return token

    def _size(self, base: str, cluster: str, token: str, ends: float) -> int:
        if cluster in (".", ".."):
            raise ValueError(f"{cluster} is no name of a cluster")
        url = f"{checked_url(base, 'url').rstrip('/')}/api/v1/clusters/{quote(cluster, safe='')}"
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
