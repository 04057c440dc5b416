"""Asks AKS for another machine in an agent pool, and has one of its machines deleted.

The API is `Microsoft.ContainerService/managedClusters/agentPools` of 2025-05-01, a GA version with all that
is used here: deleteMachines (in GA since 2024-07-01), and ETags with If-Match
(https://learn.microsoft.com/azure/aks/use-etags). It is spoken through azure-core, which comes with
azure-mgmt-compute: a client of AKS's own would be one more package for three requests.

deleteMachines neither cordons nor drains (github.com/Azure/AKS/issues/3520), and it lowers the pool's count
by what it deletes: AKS's documentation of upgrades names it as the way to make a pool smaller, and
cluster-autoscaler scales pools of single VMs in by it and nothing else (cloudprovider/azure/
azure_vms_pool.go). So a pool that nobody scales brings no new machine by itself; it has to be raised before.
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
from reconciler.model.machine import Machine, MachineRef, Pool, Raise, Remove

if TYPE_CHECKING:
    from azure.core.rest import HttpRequest, HttpResponse
    from azure.mgmt.core import ARMPipelineClient

    Client = ARMPipelineClient[HttpRequest, HttpResponse]

log = logging.getLogger(__name__)

API_VERSION = "2025-05-01"

# What no operation is under way in; Failed and Canceled are how the last one ended, and the next may mend it.
_IDLE = frozenset({"Succeeded", "Failed", "Canceled"})
# Marked as read-only by the API; what is not sent can't be refused.
_READ_ONLY = frozenset({"eTag", "provisioningState", "currentOrchestratorVersion", "nodeImageVersion"})

Pipeline = Callable[[], "Client"]
"""Makes the client, when it is needed first."""


def connect(cloud: str = "Public") -> Pipeline:
    """Return what makes the client for one of Azure's clouds (Public, China, USGovernment), as ourselves."""
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
    """An agent pool as one answer showed it: whole, and what we read of it."""

    document: Mapping[str, Any]
    pool: Pool
    etag: str


class AgentPools:
    """AKS's agent pools as MachineReader and MachineWriter want them; nothing is tried twice."""

    def __init__(
        self,
        cluster: str,
        pipeline: Pipeline,
        *,
        guard: Guard | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Take the managed cluster's resource id, what makes the client, and what raises LockLost.

        The id is `/subscriptions/S/resourceGroups/G/providers/Microsoft.ContainerService/managedClusters/N`.
        Without a guard only reads are possible. `wall` (Unix time) is for a Retry-After that is a date.
        """
        self._cluster = "/" + cluster.strip("/")
        self._pipeline = pipeline
        self._guard = guard or read_only
        self._wall = wall

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Return each with its pool as it is now, in order; each pool is asked for once.

        Whether a machine is on its way out can't be told, nor how many of a pool are Ready: its `ready` is
        its count once the last operation has succeeded, else None. After an answer that the next pool would
        get as well (a throttle, no login, no answer at all) nothing more is asked for.
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

    def raise_pool(self, action: Raise) -> None:
        """Raise the pool's count to `wanted`; where it is as high, nothing.

        The pool is read anew, and sent back as it is but for the count, on the condition that nobody changes
        it meanwhile. Raises Conflict where its count is not as it was seen, or an autoscaler has taken it
        over, CloudError where it is refused or another operation is under way.
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
            self._send("PUT", name, body=_raised(seen.document, action.wanted), headers=headers)
        except CloudError as error:
            if error.status == 412:
                raise Conflict(f"agent pool {name} was changed meanwhile: {error}", status=412) from error
            raise

    def remove(self, action: Remove) -> None:
        """Have the machine deleted, its pool's count lowered with it; where it is gone, nothing.

        With `lower`, nothing either where the count is as low already: the machine is gone or going. Raises
        CloudError where it is refused or another operation is under way.
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
            # A 400, by which AKS answers for a machine that is not there; a 404 is a pool's or a cluster's
            # (karpenter-provider-azure, IsAKSMachineOrMachinesPoolNotFound).
            if "cannot find any valid machines" not in str(error).casefold():
                raise

    def _get(self, pool: str) -> _Seen:
        """Return the pool as it is now; CloudError where it can't be told."""
        document, header = self._send("GET", pool)
        try:
            return _seen(pool, document, header)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # With a status: the answer came, so that the next pool is asked for.
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
        """Return the answer's document, None where it is none, and its ETag; CloudError for a refusal."""
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
    )
    return _Seen(document, pool, etag)


def _wanted(found: Mapping[str, Any]) -> int | None:
    """Return the pool's count, None where it keeps several, of which we can't tell whose machine is whose."""
    if found.get("type") == "VirtualMachines":
        manual = found["virtualMachinesProfile"]["scale"].get("manual") or []
        return _number(manual[0]["count"]) if len(manual) == 1 else None
    return _number(found["count"])


def _number(count: object) -> int:
    if not isinstance(count, int) or isinstance(count, bool):
        raise ValueError(f"a count is {count!r}")
    return count


def _raised(document: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Return the pool to be sent: as it was read but for the count, and for what is only shown."""
    found = {key: value for key, value in document["properties"].items() if key not in _READ_ONLY}
    if found.get("type") == "VirtualMachines":
        profile = found["virtualMachinesProfile"]
        manual = [{**profile["scale"]["manual"][0], "count": count}]
        found["virtualMachinesProfile"] = {**profile, "scale": {**profile["scale"], "manual": manual}}
    else:
        found["count"] = count
    return {"properties": found}


def _refuse_busy(pool: Pool) -> None:
    """Don't send what would only be refused: AKS does one operation on a pool at a time."""
    if pool.busy:
        raise CloudError(pool.busy, status=409)


def _difference(before: Pool | None, now: Pool) -> str:
    if not now.scales:
        return "its number is not ours to raise any more"
    return f"its count is {now.wanted}, it was {before.wanted if before else 'not seen'}"
