"""Asks AKS for one more machine in an agent pool, and deletes one of its machines.

The API is `Microsoft.ContainerService/managedClusters/agentPools` of 2025-05-01, a GA version with all that
is used here: deleteMachines (in GA since 2024-07-01), and ETags with If-Match
(https://learn.microsoft.com/azure/aks/use-etags). The requests go through azure-core, which comes with
azure-mgmt-compute: AKS's own client would be one more package for three requests.

deleteMachines neither cordons nor drains (github.com/Azure/AKS/issues/3520), and it lowers the pool's count
by what it deletes: AKS's documentation of upgrades names it as the way to make a pool smaller, and
cluster-autoscaler scales pools of single VMs in by it alone (cloudprovider/azure/azure_vms_pool.go). So a
pool without an autoscaler brings no new machine by itself; it has to be scaled up before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from reconciler import USER_AGENT
from reconciler.clients.azure.access import (
    CONNECT_TIMEOUT,
    READ_TIMEOUT,
    cloud_setting,
    credential,
    plain,
    status_of,
    wish,
)
from reconciler.clients.guard import Guard, read_only
from reconciler.errors import CloudError, Conflict
from reconciler.model.machine import Machine, MachineRef, Pool, Remove, ScaleUp

if TYPE_CHECKING:
    from azure.core.rest import HttpRequest, HttpResponse
    from azure.mgmt.core import ARMPipelineClient

    Client = ARMPipelineClient[HttpRequest, HttpResponse]

log = logging.getLogger(__name__)

API_VERSION = "2025-05-01"

# No operation is running. Failed and Canceled say how the last one ended; the next one may repair that.
_IDLE = frozenset({"Succeeded", "Failed", "Canceled"})
# Read-only in the API: a request without them can't be refused because of them.
_READ_ONLY = frozenset({"eTag", "provisioningState", "currentOrchestratorVersion", "nodeImageVersion"})

Pipeline = Callable[[], "Client"]
"""Makes the client when it is first needed."""


def connect(cloud: str = "Public") -> Pipeline:
    """Return what makes the client for one of Azure's clouds (Public, China, USGovernment)."""
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
    """Return a client for ARM at an address, with the policy that puts the token in."""
    from azure.core.pipeline.policies import RequestIdPolicy, UserAgentPolicy
    from azure.mgmt.core import ARMPipelineClient

    # Not the standard ones: those register resource providers, and try again.
    return ARMPipelineClient(
        endpoint, policies=[RequestIdPolicy(), UserAgentPolicy(user_agent=USER_AGENT), login]
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    """An agent pool as one answer showed it: the whole document, and what we read in it."""

    document: Mapping[str, Any]
    pool: Pool
    etag: str


class AgentPools:
    """AKS's agent pools, as MachineReader and MachineWriter; no request is tried twice."""

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
        Without a guard only reads are possible. `wall` (Unix time) is for a Retry-After that is a date.
        """
        self._cluster = "/" + cluster.strip("/")
        self._pipeline = pipeline
        self._guard = guard or read_only
        self._wall = wall

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Return each machine with its pool as it is now, in order; each pool is read once.

        AKS does not say whether a machine is being deleted, nor how many of a pool are Ready: `ready` is the
        pool's count once the last operation has succeeded, else None. After an answer that the next pool
        would get too (a throttle, no login, no answer at all) nothing more is read.
        """
        known: dict[str, Pool | str] = {}
        stopped = ""
        for ref in refs:
            if ref.pool in known:
                continue
            if stopped:
                known[ref.pool] = stopped
                continue
            try:
                known[ref.pool] = self._get(ref.pool).pool
            except CloudError as error:
                log.warning("AKS was asked in vain: pool=%s error=%s", ref.pool, error)
                known[ref.pool] = str(error)
                if error.status in (0, 401, 429) or error.retry_after is not None:
                    stopped = str(error)
        return tuple(_machine(ref, known[ref.pool]) for ref in refs)

    def scale_up(self, action: ScaleUp) -> None:
        """Scale the pool to `wanted`; nothing where its count is as high.

        The pool is read again, and sent back with another count and nothing else changed, on the condition
        that nobody changes it meanwhile. Raises Conflict where its count is not as it was seen or an
        autoscaler manages it now, CloudError where it is refused or another operation is running.
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
        headers = {"If-Match": seen.etag} if seen.etag else {}
        try:
            self._send("PUT", name, body=_with_count(seen.document, action.wanted), headers=headers)
        except CloudError as error:
            if error.status == 412:
                raise Conflict(f"agent pool {name} was changed meanwhile: {error}", status=412) from error
            raise

    def remove(self, action: Remove) -> None:
        """Delete the machine, which lowers its pool's count; nothing where it is gone.

        With `lower`, nothing either where the count is as low already: the machine is gone or being deleted.
        Raises CloudError where it is refused or another operation is running.
        """
        self._guard()
        machine = action.machine
        name = machine.ref.pool
        if action.lower is not None:
            now = self._get(name).pool
            if now.wanted is not None and now.wanted <= action.lower:
                return
            _refuse_busy(now)
        body = {"machineNames": [machine.name or machine.ref.name]}
        try:
            self._send("POST", name, "/deleteMachines", body=body)
        except CloudError as error:
            # AKS answers 400 for a machine that is not there; a 404 means a pool or a cluster is missing
            # (karpenter-provider-azure, IsAKSMachineOrMachinesPoolNotFound).
            if "cannot find any valid machines" not in str(error).casefold():
                raise

    def _get(self, pool: str) -> _Seen:
        """Return the pool as it is now; raises CloudError where it can't be read."""
        document, header = self._send("GET", pool)
        try:
            return _seen(pool, document, header)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # With a status, because an answer came: the next pool is read.
            raise CloudError(f"agent pool {pool}: its answer can't be read: {error}", status=200) from error

    def _send(
        self,
        method: str,
        pool: str,
        deed: str = "",
        *,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[Any, str]:
        """Return the answer's document (None where it has none) and its ETag; raises CloudError."""
        from azure.core.exceptions import AzureError, HttpResponseError
        from azure.core.rest import HttpRequest
        from azure.mgmt.core.exceptions import ARMErrorFormat

        request = HttpRequest(
            method,
            f"{self._cluster}/agentPools/{quote(pool, safe='')}{deed}?api-version={API_VERSION}",
            headers={"Accept": "application/json", **(headers or {})},
            json=body,
        )
        try:
            client = self._pipeline()
            request.url = client.format_url(request.url)
            response = client.send_request(
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
                f"agent pool {pool}{busy}: {plain(error)}",
                status=status,
                retry_after=wish(error, self._wall),
            ) from error


def _machine(ref: MachineRef, known: Pool | str) -> Machine:
    if isinstance(known, str):
        return Machine(ref, problem=known)
    return Machine(ref, name=ref.name, pool=known)


def _seen(name: str, document: Mapping[str, Any], header: str) -> _Seen:
    found = document["properties"]
    state = str(found.get("provisioningState") or "Succeeded")
    power = str((found.get("powerState") or {}).get("code") or "Running")
    busy = f"agent pool {name} is {state}" if state not in _IDLE else ""
    if not busy and power != "Running":
        busy = f"agent pool {name} is {power}"
    wanted = _wanted(found)
    etag = str(found.get("eTag") or header)
    pool = Pool(
        kind="agent pool",
        name=name,
        wanted=wanted,
        ready=wanted if state == "Succeeded" and power == "Running" else None,
        revision=etag,
        scales=wanted is not None and not found.get("enableAutoScaling"),
        busy=busy,
        lowered_by_deletion=True,
    )
    return _Seen(document, pool, etag)


def _wanted(found: Mapping[str, Any]) -> int | None:
    """Return the pool's count; None where it keeps several, because no machine says which one counts it."""
    if found.get("type") == "VirtualMachines":
        manual = found["virtualMachinesProfile"]["scale"].get("manual") or []
        return _number(manual[0]["count"]) if len(manual) == 1 else None
    return _number(found["count"])


def _number(count: object) -> int:
    if not isinstance(count, int) or isinstance(count, bool):
        raise ValueError(f"a count is {count!r}")
    return count


def _with_count(document: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Return the pool to send: as it was read, with another count and without what is read-only."""
    found = {key: value for key, value in document["properties"].items() if key not in _READ_ONLY}
    if found.get("type") == "VirtualMachines":
        profile = found["virtualMachinesProfile"]
        manual = [{**profile["scale"]["manual"][0], "count": count}]
        found["virtualMachinesProfile"] = {**profile, "scale": {**profile["scale"], "manual": manual}}
    else:
        found["count"] = count
    return {"properties": found}


def _refuse_busy(pool: Pool) -> None:
    """Raise CloudError for a busy pool: AKS runs one operation on a pool at a time and would refuse."""
    if pool.busy:
        raise CloudError(pool.busy, status=409)


def _difference(before: Pool | None, now: Pool) -> str:
    if not now.scales:
        return "its number is not ours to raise any more"
    return f"its count is {now.wanted}, it was {before.wanted if before else 'not seen'}"
