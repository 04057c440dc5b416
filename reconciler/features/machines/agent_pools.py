"""Scales an AKS agent pool up by one machine, and deletes one of its machines.

The API is `Microsoft.ContainerService/managedClusters/agentPools`: deleteMachines, the list of a pool's
machines (https://learn.microsoft.com/rest/api/aks/machines/list), and ETags with If-Match
(https://learn.microsoft.com/azure/aks/use-etags). The requests go through azure-core, which comes with
azure-mgmt-compute: AKS's own client would be one more package for four requests.

A node names its pool in a label, and a kubelet may write its own labels. So a pool is changed for a node only
if the pool's own list of machines has the node's VM, by its resource ID, under the node's name.

deleteMachines neither cordons nor drains (github.com/Azure/AKS/issues/3520), and it lowers the pool's count
by what it deletes: AKS's documentation of upgrades names it as the way to make a pool smaller, and
cluster-autoscaler scales pools of single VMs in by it alone (cloudprovider/azure/azure_vms_pool.go). So a
pool without an autoscaler creates no new machine by itself; it must be scaled up before.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from msgspec import Struct

from reconciler import USER_AGENT
from reconciler.http.azure import (
    CONNECT_TIMEOUT,
    READ_TIMEOUT,
    cloud_setting,
    credential,
    plain,
    status_of,
    transport,
    wish,
)
from reconciler.http.retrying import Guard, read_only
from reconciler.model import limits
from reconciler.model.errors import CloudError, Conflict
from reconciler.model.machine import Machine, MachineRef, Pool, Remove, ScaleUp, Vm, vm_of

if TYPE_CHECKING:
    from azure.core.rest import HttpRequest, HttpResponse
    from azure.mgmt.core import ARMPipelineClient

    Client = ARMPipelineClient[HttpRequest, HttpResponse]

log = logging.getLogger(__name__)

API_VERSION = "2026-08-01"
"""Of every request: the newest GA version (azure-mgmt-containerservice 41.8).

AKS refuses values that a version does not know, such as an osSKU that came later.
"""

_LONGEST_NAME = 63

# No operation is running. Failed and Canceled say how the last one ended; the next one may repair that.
_IDLE = frozenset({"Succeeded", "Failed", "Canceled"})
# Immutable fields with a default in the API. They are sent if the pool has another value, so that the default
# can't be mistaken for a change.
_DEFAULTS = {"osType": "Linux", "scaleSetPriority": "Regular"}

# The name of an agent pool, as the API defines it: a label with another value names none.
_POOL_NAME = re.compile(r"[a-z][a-z0-9]{0,11}")

PAGES = 50
"""Of one list of machines. A pool has 1,000 nodes at most."""

Pipeline = Callable[[], "Client"]
"""Creates the client when it is first needed."""


def connect(cloud: str = "Public") -> Pipeline:
    """Return a factory of the client for one of Azure's clouds (Public, China, USGovernment)."""
    made: list[Client] = []

    def client() -> Client:
        from azure.mgmt.core.policies import ARMChallengeAuthenticationPolicy
        from azure.mgmt.core.tools import get_arm_endpoints

        if not made:
            endpoints = get_arm_endpoints(cloud_setting(cloud))
            login = ARMChallengeAuthenticationPolicy(credential(cloud), *endpoints["credential_scopes"])
            made.append(client_at(endpoints["resource_manager"], login))
        return made[0]

    return client


def client_at(endpoint: str, login: Any) -> Client:
    """Return a client for ARM at an address, with the policy that adds the token."""
    from azure.core.pipeline.policies import RequestIdPolicy, UserAgentPolicy
    from azure.mgmt.core import ARMPipelineClient

    # Not the standard policies: those register resource providers and retry.
    return ARMPipelineClient(
        endpoint,
        policies=[RequestIdPolicy(), UserAgentPolicy(user_agent=USER_AGENT), login],
        transport=transport(),
    )


class _Seen(Struct, frozen=True):
    """An agent pool as one answer showed it: the whole document, and the fields that we read."""

    document: Mapping[str, Any]
    pool: Pool


class _Listed(Struct, frozen=True):
    """A machine in the list of its pool: its name, which is its node's, and the resource ID of its VM."""

    name: str
    resource_id: str


_Machines = Mapping[Vm, _Listed]
"""The machines of a pool, by their VMs."""


class AgentPools:
    """AKS's agent pools, as MachineReader and MachineWriter; no request is retried."""

    def __init__(
        self,
        cluster: str,
        pipeline: Pipeline,
        *,
        guard: Guard | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Use the managed cluster's resource id, what makes the client, and what raises LockLost.

        The id is `/subscriptions/S/resourceGroups/G/providers/Microsoft.ContainerService/managedClusters/N`.
        Without a guard, writes raise RuntimeError. `wall` (Unix time) is for a Retry-After that is a date.
        """
        self._cluster = "/" + cluster.strip("/")
        self._pipeline = pipeline
        self._guard = guard or read_only
        self._wall = wall

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Return each machine with its pool as it is now, in order; each pool and its list are read once.

        A machine that is not in the list of the pool that its node names has a problem. AKS does not say
        whether a machine is being deleted, nor how many of a pool are Ready: `ready` is the pool's count once
        the last operation has succeeded, else None. After an answer that the next pool would get too (a
        throttle, no login, no answer at all) nothing more is read.
        """
        known: dict[str, tuple[Pool, _Machines] | str] = {}
        stopped = ""
        for ref in refs:
            if ref.pool in known:
                continue
            if stopped:
                known[ref.pool] = stopped
                continue
            try:
                known[ref.pool] = self._get(ref.pool).pool, self._list(ref.pool)
            except CloudError as error:
                log.warning("AKS was asked in vain: pool=%s error=%s", ref.pool, error)
                known[ref.pool] = str(error)
                if error.status in (0, 401, 429) or error.retry_after is not None:
                    stopped = str(error)
        return tuple(_machine(ref, known[ref.pool]) for ref in refs)

    def forget(self) -> None:
        """Forget nothing: each pass reads all of it."""

    def scale_up(self, action: ScaleUp) -> None:
        """Scale the pool to `wanted`; nothing where its count is as high.

        The pool and its list of machines are read again. Only the count is sent, on the condition that nobody
        changes the pool meanwhile. Raises Conflict where the pool does not have this machine, its count is
        not as it was seen, an autoscaler manages it now, or it has no ETag, CloudError where it is refused or
        another operation is running.
        """
        self._guard()
        name = action.machine.ref.pool
        seen = self._get(name)
        now, before = seen.pool, action.machine.pool
        if now.wanted is not None and now.wanted >= action.wanted:
            return
        if before is None or not now.scales or now.wanted != before.wanted:
            raise Conflict(f"agent pool {name} is not as it was seen: {_difference(before, now)}", status=409)
        _refuse_busy(now)
        if not self._has(action.machine):
            raise Conflict(f"{_not_in(action.machine)}, so the pool is not scaled up", status=409)
        if not now.revision:
            raise Conflict(
                f"agent pool {name} has no eTag, so another change could be overwritten", status=412
            )
        body = _with_count(seen.document, action.wanted)
        try:
            self._send("PUT", name, self._url(name), body=body, headers={"If-Match": now.revision})
        except CloudError as error:
            if error.status == 412:
                raise Conflict(f"agent pool {name} was changed meanwhile: {error}", status=412) from error
            raise

    def remove(self, action: Remove) -> None:
        """Delete the machine, which lowers its pool's count; nothing where it is gone.

        It is gone where the pool's list had it before and no longer does. With `lower`, nothing either where
        the count is as low already: the machine is gone or being deleted. Raises Conflict where the list
        never had it, CloudError where it is refused or another operation is running.
        """
        self._guard()
        machine = action.machine
        name = machine.ref.pool
        if not machine.uid:
            raise Conflict(f"{_not_in(machine)}, so nothing is deleted", status=409)
        if action.lower is not None:
            now = self._get(name).pool
            if now.wanted is not None and now.wanted <= action.lower:
                return
            _refuse_busy(now)
        if not self._has(machine):
            return
        try:
            self._send(
                "POST", name, self._url(name, "/deleteMachines"), body={"machineNames": [machine.name]}
            )
        except CloudError as error:
            # AKS answers 400 for a machine that is not there; a 404 means a pool or a cluster is missing
            # (karpenter-provider-azure, IsAKSMachineOrMachinesPoolNotFound). Only the list says which it is.
            if error.status not in (400, 404) or self._has(machine):
                raise

    def _get(self, pool: str) -> _Seen:
        """Return the pool as it is now; raises CloudError if it can't be read."""
        document, header = self._send("GET", pool, self._url(pool))
        try:
            return _seen(pool, document, header)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # This error has a status, because there was an answer: the next pool is read.
            raise CloudError(f"agent pool {pool}: its answer can't be read: {error}", status=200) from error

    def _list(self, pool: str) -> _Machines:
        """Return the machines of the pool as they are now; raises CloudError where they can't be read."""
        url = first = self._url(pool, "/machines")
        found: dict[Vm, _Listed] = {}
        for _ in range(PAGES):
            document, _ = self._send("GET", pool, url)
            try:
                found.update(_listed(document))
                more = document.get("nextLink")
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                why = limits.why_unreadable(error)
                message = f"agent pool {pool}: its list of machines can't be read: {why}"
                raise CloudError(message, status=200) from error
            if not more:
                return found
            try:
                # ARM writes the port 443 into some links.
                same_server = _server(str(more)) == _server(first)
            except ValueError:
                # A port that is no number.
                same_server = False
            # Our token goes to no other address.
            if not same_server:
                raise CloudError(f"agent pool {pool}: its list goes on at another address", status=200)
            url = str(more)
        raise CloudError(f"agent pool {pool}: its list has more than {PAGES} pages", status=200)

    def _has(self, machine: Machine) -> bool:
        """Whether the pool's list has this machine now; raises CloudError where it can't be read."""
        return _own(self._list(machine.ref.pool), machine.ref) is not None

    def _url(self, pool: str, part: str = "") -> str:
        """Return the address of a pool, or of a part of it.

        Raises CloudError where no pool can have that name, or without an identity.
        """
        if not _POOL_NAME.fullmatch(pool):
            # With a status, because the next pool is read.
            raise CloudError(f"there can be no agent pool {pool[:_LONGEST_NAME]!r}", status=404)
        path = f"{self._cluster}/agentPools/{quote(pool, safe='')}{part}?api-version={API_VERSION}"
        return self._client(pool).format_url(path)

    def _client(self, pool: str) -> Client:
        from azure.core.exceptions import AzureError

        try:
            return self._pipeline()
        except (AzureError, ValueError) as error:
            raise CloudError(f"agent pool {pool}: {plain(error)}", status=status_of(error)) from error

    def _send(
        self,
        method: str,
        pool: str,
        url: str,
        *,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[Any, str]:
        """Return the answer's document (None where it has none) and its ETag; raises CloudError."""
        from azure.core.exceptions import AzureError, HttpResponseError
        from azure.core.rest import HttpRequest
        from azure.mgmt.core.exceptions import ARMErrorFormat

        request = HttpRequest(
            method, url, headers={"Accept": "application/json", **(headers or {})}, json=body
        )
        try:
            response = self._client(pool).send_request(
                request, connection_timeout=CONNECT_TIMEOUT, read_timeout=READ_TIMEOUT
            )
            if response.status_code >= 300:
                raise HttpResponseError(response=response, error_format=ARMErrorFormat)
            text = response.text()
            return (response.json() if text.strip() else None), response.headers.get("ETag", "")
        except (AzureError, ValueError) as error:
            status = status_of(error)
            busy = " is busy with another operation" if status == 409 else ""
            raise CloudError(
                f"agent pool {pool}{busy}: {plain(error)}", status=status, retry_after=wish(error, self._wall)
            ) from error


def _server(url: str) -> tuple[str, str, int | None, bool]:
    """Return scheme, host, port, and whether there is a user; ValueError if the port can't be read."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname or "", port, parts.username is not None


def _machine(ref: MachineRef, known: tuple[Pool, _Machines] | str) -> Machine:
    if isinstance(known, str):
        return Machine(ref, problem=known)
    pool, machines = known
    listed = _own(machines, ref)
    if listed is None:
        problem = (
            f"{pool}, which the node's label names, has no machine of its name with the VM of its providerID"
        )
        return Machine(ref, problem=problem)
    return Machine(ref, name=listed.name, uid=listed.resource_id, pool=pool)


def _own(machines: _Machines, ref: MachineRef) -> _Listed | None:
    """Return the node's machine in the list of its pool, None if the list has no such VM of that name."""
    vm = vm_of(ref.provider_id)
    listed = machines.get(vm) if vm is not None else None
    # A host name may be in capitals, a node's name never is.
    return listed if listed is not None and listed.name.casefold() == ref.name.casefold() else None


def _not_in(machine: Machine) -> str:
    return f"node {machine.ref.node} is no machine of agent pool {machine.ref.pool[:_LONGEST_NAME]}"


def _listed(document: Mapping[str, Any]) -> dict[Vm, _Listed]:
    """Return the machines of one page; one that is being made may have no VM yet."""
    listed = {}
    for machine in document["value"]:
        resource_id = str(machine["properties"].get("resourceId") or "")
        if (vm := vm_of(f"azure://{resource_id}")) is not None:
            listed[vm] = _Listed(str(machine["name"]), resource_id.casefold())
    return listed


def _seen(name: str, document: Mapping[str, Any], header: str) -> _Seen:
    properties = document["properties"]
    state = str(properties.get("provisioningState") or "Succeeded")
    power = str((properties.get("powerState") or {}).get("code") or "Running")
    busy = f"agent pool {name} is {state}" if state not in _IDLE else ""
    if not busy and power != "Running":
        busy = f"agent pool {name} is {power}"
    wanted = _wanted(properties)
    # An autoscaler may set the count; a pool of single VMs says so in its profile.
    profile = properties.get("virtualMachinesProfile") or {}
    autoscaled = properties.get("enableAutoScaling") or (profile.get("scale") or {}).get("autoscale")
    pool = Pool(
        kind="agent pool",
        name=name,
        wanted=wanted,
        ready=wanted if state == "Succeeded" and power == "Running" else None,
        revision=str(properties.get("eTag") or header),
        scales=wanted is not None and not autoscaled,
        busy=busy,
        lowered_by_deletion=True,
    )
    return _Seen(document, pool)


def _wanted(found: Mapping[str, Any]) -> int | None:
    """Return the pool's count, None if it has several: no machine shows which one includes it."""
    if found.get("type") == "VirtualMachines":
        manual = found["virtualMachinesProfile"]["scale"].get("manual") or []
        return _number(manual[0]["count"]) if len(manual) == 1 else None
    return _number(found["count"])


def _number(count: object) -> int:
    if not isinstance(count, int) or isinstance(count, bool):
        raise ValueError(f"a count is {count!r}")
    return count


def _with_count(document: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Return the body that changes the pool's count, and nothing else.

    AKS keeps what an update leaves out (github.com/Azure/azure-rest-api-specs/pull/7746), and
    cluster-autoscaler sends only the type, the mode and the profile (cloudprovider/azure/azure_vms_pool.go).
    A field that is sent back could be one that this version of the API does not know, one that AKS no longer
    accepts, or one that needs another permission, such as the subnet.
    """
    found = document["properties"]
    sent = {key: found[key] for key in ("type", "mode") if found.get(key)}
    sent |= {key: found[key] for key, default in _DEFAULTS.items() if found.get(key) not in (None, default)}
    if found.get("type") == "VirtualMachines":
        profile = found["virtualMachinesProfile"]
        manual = [{**profile["scale"]["manual"][0], "count": count}]
        sent["virtualMachinesProfile"] = {**profile, "scale": {**profile["scale"], "manual": manual}}
    else:
        sent["count"] = count
    return {"properties": sent}


def _refuse_busy(pool: Pool) -> None:
    """Raise CloudError for a busy pool: AKS runs one operation on a pool at a time and would refuse."""
    if pool.busy:
        raise CloudError(pool.busy, status=409)


def _difference(before: Pool | None, now: Pool) -> str:
    if not now.scales:
        return "its number is not ours to raise any more"
    return f"its count is {now.wanted}, it was {before.wanted if before else 'not seen'}"
