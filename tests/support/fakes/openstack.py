"""Keystone and Nova on loopback: tokens, a catalog, and servers that linger while they are deleted."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from reconciler.kubernetes.cloud_provider import Access
from tests.support.fakes.loopback import JsonAnswer, JsonLoopback

Object = dict[str, Any]

PASSWORD, PROJECT, REGION = "correct-horse", "project-1", "eu-de-1"
CONF = """\
[Global]
auth-url="{url}"
domain-name="kubernikus"
tenant-id="project-1"
username="user-1"
password="correct-horse"
region="eu-de-1"
"""


@dataclass(slots=True)
class FakeServer:
    """A server of Nova."""

    id: str
    name: str
    status: str = "ACTIVE"
    task: str | None = None
    locked: bool = False

    @property
    def provider_id(self) -> str:
        """As the cloud controller writes it on the Node."""
        return f"openstack:///{self.id}"


def identity(number: int) -> str:
    """The ID of a server."""
    return str(UUID(int=number))


@dataclass(slots=True)
class Refusal:
    """An answer that is no success; `delay` comes before it, in seconds."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0


class FakeOpenStack(JsonLoopback):
    """`refuse` has answers for the next requests by the beginning of their paths, the first one first.

    Without `filters`, a list has servers of all names.
    """

    def __init__(self) -> None:
        super().__init__(self._respond)
        self.servers: dict[str, FakeServer] = {}
        self.asked: list[str] = []
        self.refuse: dict[str, list[Refusal]] = {}
        self.tokens: list[str] = []
        self.password = PASSWORD
        self.compute = f"{self.address}/compute/v2.1"
        self.filters = True

    @property
    def access(self) -> Access:
        """What cloudprovider.conf has."""
        return Access(f"{self.address}/v3", "user-1", PASSWORD, "kubernikus", PROJECT, REGION)

    def add(self, name: str, number: int = 1) -> FakeServer:
        """Create a server."""
        made = self.servers[identity(number)] = FakeServer(identity(number), name)
        return made

    def expire(self) -> None:
        """Let every token end."""
        self.tokens.clear()

    def step(self) -> list[str]:
        """Remove the servers that are being deleted; return their names."""
        gone = [server for server in self.servers.values() if server.task == "deleting"]
        for server in gone:
            del self.servers[server.id]
        return [server.name for server in gone]

    def deletions(self) -> list[str]:
        """The requests for deletions so far."""
        return [asked for asked in self.asked if asked.startswith("DELETE")]

    def _respond(self, method: str, target: str, headers: dict[str, str], body: bytes) -> JsonAnswer:
        parts = urlsplit(target)
        self.asked.append(f"{method} {parts.path}")
        for begin, answers in self.refuse.items():
            if answers and parts.path.startswith(begin):
                answer = answers.pop(0)
                self.stopping.wait(answer.delay) if answer.delay else None
                return answer.status, {"error": {"code": answer.status}}, answer.headers
        if parts.path == "/v3/auth/tokens" and method == "POST":
            return self._token(json.loads(body)["auth"])
        if headers.get("x-auth-token", "") not in self.tokens:
            return 401, {"error": {"code": 401, "title": "Unauthorized"}}, {}
        if not parts.path.startswith("/compute/v2.1/servers"):
            return 404, {"itemNotFound": {"code": 404}}, {}
        rest = parts.path.removeprefix("/compute/v2.1/servers").strip("/")
        if rest == "detail":
            return 200, {"servers": self._listed(parse_qs(parts.query))}, {}
        return self._of(method, self.servers.get(rest))

    def _token(self, auth: Object) -> JsonAnswer:
        user = auth["identity"]["password"]["user"]
        right = (user["name"], user["password"], user["domain"]["name"]) == (
            "user-1",
            self.password,
            "kubernikus",
        )
        if not right or auth["scope"] != {"project": {"id": PROJECT}}:
            return 401, {"error": {"code": 401, "title": "Unauthorized"}}, {}
        token = f"token-{len(self.asked)}"
        self.tokens.append(token)
        endpoint = {
            "interface": "public",
            "region": REGION,
            "region_id": REGION,
            "url": self.compute,
            "id": "e",
        }
        ends = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() + 3600))
        said = {
            "methods": ["password"],
            "user": {"id": "u", "name": "user-1", "domain": {"id": "d", "name": "kubernikus"}},
            "project": {"id": PROJECT, "name": "p", "domain": {"id": "d", "name": "kubernikus"}},
            "catalog": [{"type": "compute", "name": "nova", "id": "s", "endpoints": [endpoint]}],
            "expires_at": ends,
            "issued_at": "2026-01-01T00:00:00.000000Z",
        }
        return 201, {"token": said}, {"X-Subject-Token": token}

    def _listed(self, query: dict[str, list[str]]) -> list[Object]:
        pattern = re.compile(query.get("name", [""])[0] if self.filters else "")
        return [_shown(server) for server in self.servers.values() if pattern.search(server.name)]

    def _of(self, method: str, server: FakeServer | None) -> JsonAnswer:
        if server is None:
            return 404, {"itemNotFound": {"code": 404, "message": "Instance could not be found."}}, {}
        if method != "DELETE":
            return 200, {"server": _shown(server)}, {}
        if server.locked:
            return 409, {"conflictingRequest": {"code": 409, "message": "Instance is locked"}}, {}
        server.task = "deleting"
        return 204, None, {}


def _shown(server: FakeServer) -> Object:
    return {
        "id": server.id,
        "name": server.name,
        "status": server.status,
        "OS-EXT-STS:task_state": server.task,
        "tenant_id": PROJECT,
    }
