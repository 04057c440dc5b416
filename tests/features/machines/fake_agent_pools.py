"""AKS's agent pools on loopback: counts that are raised, machines deleted, one operation at a time.

The list of machines is as https://learn.microsoft.com/rest/api/aks/machines/list shows it: the name is that
of the host, and `resourceId` is that of the VM. A machine that is being deleted stays in the list until the
operation has ended.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

from azure.core.pipeline.policies import HeadersPolicy

from reconciler.features.machines.agent_pools import API_VERSION, Pipeline, client_at
from tests.support.controlplane.fill import Pool
from tests.support.fakes.arm import SUBSCRIPTION, TOKEN, Refusal
from tests.support.fakes.loopback import JsonAnswer, JsonLoopback

Object = dict[str, Any]

CLUSTER = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-shop"
    "/providers/Microsoft.ContainerService/managedClusters/shop"
)
PAGE = 100
MACHINE_GONE = "Cannot find any valid machines to delete. Please check your input machine names."
BUSY = "Operation is not allowed because there's an in progress operation on the agent pool."


def vm_id(node: str, pool: str, *, single: bool = False) -> str:
    """The resource ID of a machine's VM; `single` for a pool of type VirtualMachines."""
    found = Pool(pool).provider_id(int(node[-6:], 36)).removeprefix("azure://")
    return found.partition("/virtualMachineScaleSets/")[0] + f"/virtualMachines/{node}" if single else found


@dataclass(slots=True)
class FakePool:
    """An agent pool; `names` are its machines, `busy` the reads for which it is still Updating.

    `leaving` are the machines that are being deleted, which the list still has.
    """

    name: str
    names: list[str]
    properties: Object
    number: int
    etag: int = 1
    busy: int = 0
    written: list[Object] = field(default_factory=list)
    leaving: list[str] = field(default_factory=list)


class FakeAgentPools(JsonLoopback):
    """Serves the pools it is given.

    `takes` is for how many reads an operation lasts. `page` is the length of a page of machines, `elsewhere`
    the address at which the next one is, by default its own. `etags` is whether pools have ETags. `added` and
    `deleted` are called with a machine's name, outside of any lock, once AKS has it or has it no more: there
    a test makes or deletes the node.
    `requests` are the methods and paths so far. `violations` is what Azure would have refused or we promised
    not to do: every test should find it empty.
    """

    def __init__(self, *, takes: int = 0) -> None:
        self.takes = takes
        self.page = PAGE
        self.etags = True
        self.elsewhere = ""
        self.added: Callable[[str], None] = lambda _: None
        self.deleted: Callable[[str], None] = lambda _: None
        self.requests: list[str] = []
        self.violations: list[str] = []
        self.user_agents: set[str] = set()
        self.pools: dict[str, FakePool] = {}
        self._refusals: dict[str, list[Refusal]] = {}
        self._lock = threading.Lock()
        super().__init__(self._respond)

    # What the tests say.

    def pool(self, name: str = "np", machines: int = 3, **properties: Any) -> list[str]:
        """Let there be a pool with so many machines; their names, which are their nodes'.

        `properties` are its own as ARM has them. One of type VirtualMachines has a profile of one size.
        """
        names = [Pool(name).node_name(number) for number in range(machines)]
        made: Object = {
            "count": machines,
            "vmSize": "Standard_D8s_v5",
            "mode": "User",
            "type": "VirtualMachineScaleSets",
            "enableAutoScaling": False,
            "orchestratorVersion": "1.33.5",
            "currentOrchestratorVersion": "1.33.5",
            "nodeImageVersion": "AKSUbuntu-2204gen2containerd-202510.19.0",
            "provisioningState": "Succeeded",
            "powerState": {"code": "Running"},
            "nodeLabels": {"team": "shop"},
        }
        if properties.get("type") == "VirtualMachines":
            del made["count"], made["vmSize"]
            size = {"size": "Standard_D8s_v5", "count": machines}
            made["virtualMachinesProfile"] = {"scale": {"manual": [size]}}
        self.pools[name] = FakePool(name, names, made | properties, machines)
        return names

    def change(self, name: str = "np", **properties: Any) -> None:
        """Change a pool, as another client does."""
        with self._lock:
            pool = self.pools[name]
            pool.properties.update(properties)
            pool.etag += 1

    def refuse(self, refusal: Refusal, part: str = "/", times: int = 1) -> None:
        """Refuse the next requests of which `GET /…/agentPools/np` has this part."""
        with self._lock:
            self._refusals.setdefault(part.casefold(), []).extend([refusal] * times)

    def settle(self) -> None:
        """Let every operation have ended."""
        with self._lock:
            for pool in self.pools.values():
                self._end(pool)

    def count(self, name: str = "np") -> int:
        """How many machines the pool is to have."""
        return _count(self.pools[name].properties)

    @property
    def writes(self) -> list[str]:
        """The requests that were no reads."""
        return [one for one in self.requests if not one.startswith("GET ")]

    def pipeline(self) -> Pipeline:
        """What makes the real client, talking to this."""
        # The SDK's own policy gives no token to whom it can't trust, without TLS that is.
        made = client_at(self.address, HeadersPolicy({"Authorization": f"Bearer {TOKEN}"}))
        return lambda: made

    # What is served.

    def _respond(self, method: str, target: str, headers: dict[str, str], content: bytes) -> JsonAnswer:
        with self._lock:
            answer, reported = self._answer(method, target, headers, json.loads(content) if content else {})
        for tell in reported:
            tell()
        return answer

    def _answer(
        self, method: str, target: str, headers: dict[str, str], body: Object
    ) -> tuple[JsonAnswer, list[Callable[[], None]]]:
        url = urlsplit(target)
        self.requests.append(f"{method} {url.path.rpartition('/agentPools/')[2]}")
        self.user_agents.add(headers.get("user-agent", ""))
        if headers.get("authorization") != f"Bearer {TOKEN}":
            self.violations.append(f"{method} {target}: no token")
        if parse_qs(url.query).get("api-version") != [API_VERSION]:
            self.violations.append(f"{method} {target}: no api-version, or another")
        for part, waiting in self._refusals.items():
            if part in f"{method} {url.path}".casefold() and waiting:
                refused = waiting.pop(0)
                self.stopping.wait(refused.delay)
                return _refused(refused.status, refused.code, refused.message, refused.headers), []
        found = re.fullmatch(
            rf"{re.escape(CLUSTER)}/agentPools/([^/]+)(/deleteMachines|/machines)?", url.path
        )
        pool = self.pools.get(found[1]) if found else None
        if found is None or pool is None:
            return _refused(404, "NotFound", f"Could not find the agent pool: {url.path}"), []
        if method == "GET" and not found[2]:
            return self.read(pool), []
        if method == "GET" and found[2] == "/machines":
            return self._machines(pool, parse_qs(url.query)), []
        if method == "PUT" and not found[2]:
            return self._put(pool, headers, body)
        if method == "POST" and found[2] == "/deleteMachines":
            return self.delete(pool, body)
        self.violations.append(f"{method} {target}: no such operation")
        return _refused(405, "MethodNotAllowed", method), []

    def read(self, pool: FakePool) -> JsonAnswer:
        """Answer a read of the pool."""
        answer = 200, self._document(pool), {"ETag": f'"{pool.etag}"'} if self.etags else {}
        if pool.busy:
            pool.busy -= 1
            if not pool.busy:
                self._end(pool)
        return answer

    def _machines(self, pool: FakePool, query: dict[str, list[str]]) -> JsonAnswer:
        place = f"{CLUSTER}/agentPools/{pool.name}/machines"
        single = pool.properties.get("type") == "VirtualMachines"
        skip = int(query.get("$skipToken", ["0"])[0])
        names = [*pool.names, *pool.leaving]
        value = [
            {
                "id": f"{place}/{name}",
                "name": name,
                "type": "Microsoft.ContainerService/managedClusters/agentPools/machines",
                "properties": {
                    "network": {"ipAddresses": [{"family": "IPv4", "ip": "10.224.0.8"}]},
                    "resourceId": vm_id(name, pool.name, single=single),
                },
            }
            for name in names[skip : skip + self.page]
        ]
        body: Object = {"value": value}
        if skip + self.page < len(names):
            at = self.elsewhere or self.address
            body["nextLink"] = f"{at}{place}?api-version={API_VERSION}&$skipToken={skip + self.page}"
        return 200, body, {}

    def _put(
        self, pool: FakePool, headers: dict[str, str], body: Object
    ) -> tuple[JsonAnswer, list[Callable[[], None]]]:
        if pool.busy:
            return _refused(409, "OperationNotAllowed", BUSY), []
        if "if-match" not in headers:
            self.violations.append(f"PUT {pool.name}: without If-Match")
        if headers.get("if-match") not in (str(pool.etag), None):
            return _refused(412, "PreconditionFailed", "The eTag does not match."), []
        sent = body.get("properties", {})
        if more := set(sent) - {
            "type",
            "mode",
            "osType",
            "scaleSetPriority",
            "count",
            "virtualMachinesProfile",
        }:
            self.violations.append(f"PUT {pool.name}: sends back what it does not change, {sorted(more)}")
        pool.written.append(body)
        # What is left out stays as it is.
        pool.properties.update(sent)
        self._begin(pool, "Scaling")
        reported: list[Callable[[], None]] = []
        while len(pool.names) < _count(pool.properties):
            name = Pool(pool.name).node_name(pool.number)
            pool.number += 1
            pool.names.append(name)
            reported.append(partial(self.added, name))
        return (200, self._document(pool), {}), reported

    def delete(self, pool: FakePool, body: Object) -> tuple[JsonAnswer, list[Callable[[], None]]]:
        """Delete the machines that a request names; return the answer, and what is called after it."""
        if pool.busy:
            return _refused(409, "OperationNotAllowed", BUSY), []
        going = [name for name in body.get("machineNames", []) if name in pool.names]
        if not going:
            return _refused(400, "InvalidParameter", MACHINE_GONE), []
        for name in going:
            pool.names.remove(name)
            if self.takes:
                pool.leaving.append(name)
        _set_count(pool.properties, _count(pool.properties) - len(going))
        self._begin(pool, "Deleting")
        place = {"Location": f"{self.address}/operations/1?api-version={API_VERSION}"}
        return (202, None, place), [partial(self.deleted, name) for name in going]

    def _begin(self, pool: FakePool, state: str) -> None:
        pool.etag += 1
        pool.busy = self.takes
        if pool.busy:
            pool.properties["provisioningState"] = state

    def _end(self, pool: FakePool) -> None:
        pool.busy = 0
        pool.leaving.clear()
        pool.properties["provisioningState"] = "Succeeded"

    def _document(self, pool: FakePool) -> Object:
        place = f"{CLUSTER}/agentPools/{pool.name}"
        properties = {**pool.properties, **({"eTag": str(pool.etag)} if self.etags else {})}
        return {"id": place, "name": pool.name, "type": "agentPools", "properties": properties}


def _refused(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> JsonAnswer:
    return status, {"error": {"code": code, "message": message}}, headers or {}


def _count(properties: Object) -> int:
    if "count" in properties:
        return int(properties["count"])
    return sum(int(one["count"]) for one in properties["virtualMachinesProfile"]["scale"]["manual"])


def _set_count(properties: Object, count: int) -> None:
    if "count" in properties:
        properties["count"] = count
    else:
        properties["virtualMachinesProfile"]["scale"]["manual"][0]["count"] = count
