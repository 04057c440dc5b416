"""Reads planned maintenance from Azure Resource Manager, and starts it if that is allowed.

The first request imports Azure's packages. The import takes a quarter of a second and sixty megabytes, so it
must not happen while ARM is switched off. A request is never repeated here, and nothing sleeps: the pass
remembers when to ask again.

Azure China and Azure Government get new versions of the API later. A refusal lists the versions that Azure
knows there, in one of these forms (`InvalidApiVersionParameter`, `NoRegisteredProviderFound`,
`InvalidResourceType`), and an older one is used:

    The api-version '2024-07-01' is invalid. The supported versions are '2024-03-01,2023-09-01'.
    No registered resource provider found for location 'x' and API version '2024-07-01' for type
    'virtualMachines'. The supported api-versions are '2024-03-01, 2023-09-01'.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from reconciler import USER_AGENT
from reconciler.http.azure import ONCE, cloud_setting, credential, plain, status_of, transport, wish
from reconciler.http.retrying import Guard, read_only
from reconciler.model.errors import CloudError
from reconciler.model.machine import Scope, Vm
from reconciler.model.polling import Listing
from reconciler.model.problems import internal
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from reconciler.sources.arm import source as arm
from reconciler.sources.arm.source import SECTION, PerformMaintenance, Planned

Value = TypeVar("Value")

log = logging.getLogger(__name__)

_REFUSALS = frozenset({"InvalidApiVersionParameter", "NoRegisteredProviderFound", "InvalidResourceType"})
_LIST = re.compile(r"supported (?:api-)?versions are '([^']*)'")
_GENERAL = re.compile(r"\d{4}-\d{2}-\d{2}")
_LONGEST = 20_000
"""Characters of a refusal that are read."""

FALLBACKS = 2
"""Older versions that are tried for one request. The first list may be of all of Azure, the second of the
resource provider.
"""


class Versions:
    """The versions in use. A version that was refused is not tried again while the process runs."""

    def __init__(self, pinned: Mapping[str, str], oldest: str) -> None:
        """Start with the pinned version of each request; no version before `oldest` is ever used."""
        self._pinned, self._oldest = pinned, oldest
        self._used = dict(pinned)

    @property
    def note(self) -> str:
        """What people should know about the versions in use, empty if they are the pinned ones."""
        older = sorted(
            {(self._pinned[one], used) for one, used in self._used.items() if used != self._pinned[one]}
        )
        return "; ".join(f"Azure refuses API version {pinned}, so {used} is used" for pinned, used in older)

    def send(self, request: str, work: Callable[[str], Value]) -> Value:
        """Return the result of `work`, which sends the request with the version that it is given.

        If Azure refuses the version and names an older one, the request is sent again with that version.
        Raises the errors of `work`.
        """
        from azure.core.exceptions import HttpResponseError

        version, left = self._used[request], FALLBACKS
        while True:
            try:
                found = work(version)
            except HttpResponseError as error:
                older = older_version(error, version, self._oldest)
                if older is None or not left:
                    raise
                log.warning("Azure refuses API version %s of %s: %s is tried", version, request, older)
                version, left = older, left - 1
            else:
                self._used[request] = version
                return found


def older_version(error: Exception, version: str, oldest: str) -> str | None:
    """Return the newest version before `version` that Azure names in this refusal of `version`.

    None if the error is another one, or names no general version from `oldest` on.
    """
    inner = getattr(error, "error", None)
    if getattr(inner, "code", None) not in _REFUSALS:
        return None
    found = _LIST.search(str(getattr(inner, "message", ""))[:_LONGEST])
    known = [one.strip() for one in found[1].split(",")] if found is not None else []
    if version in known:
        # Something else is wrong, such as the location.
        return None
    usable = (one for one in known if _GENERAL.fullmatch(one) and oldest <= one < version)
    return max(usable, default=None)


if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential
    from azure.mgmt.compute import ComputeManagementClient

PATIENCE = 90.0
"""Seconds for all lists of one pass. A later pass queries the rest."""

CLIENTS = 16
"""Kept at most, one for each subscription; nodes name their subscriptions."""

API_VERSIONS: Mapping[str, str] = {
    "list_instances": "2024-07-01",
    "list_all": "2024-07-01",
    "instance_view": "2024-07-01",
    "get": "2024-07-01",
    "perform_maintenance": "2024-07-01",
}
"""The version of Microsoft.Compute for each request.

Without it, a newer azure-mgmt-compute sends a newer version, which Azure China and Azure Government may not
have yet. This one has every field that is read here. The SDK ignores the version of its client. Where Azure
refuses it, an older one is used.
"""

OLDEST = "2022-08-01"
"""The oldest version to use. It has `statusOnly` and the instance view."""

ALONE = 64
"""VMs that are queried alone in one pass; Azure allows 8,000 a minute for a subscription."""

ALONE_PATIENCE = 15.0
"""Seconds for VMs that are queried alone in one pass. The rest follows a minute later."""

RESERVE = 10
"""With so few calls left of any limit, no more are made. Other clients of the subscription need them."""

Compute = Callable[[str], "ComputeManagementClient"]
"""Creates the client of a subscription."""


def connect(cloud: str = "Public") -> Compute:
    """Return a factory of clients for one of Azure's clouds (Public, China, USGovernment)."""
    made: dict[str, ComputeManagementClient] = {}
    known: list[TokenCredential] = []

    def compute(subscription: str) -> ComputeManagementClient:
        from azure.mgmt.compute import ComputeManagementClient

        if not known:
            known.append(credential(cloud))
        if subscription not in made:
            if len(made) >= CLIENTS:
                made.clear()
            made[subscription] = ComputeManagementClient(
                known[0],
                subscription,
                cloud_setting=cloud_setting(cloud),
                user_agent=USER_AGENT,
                transport=transport(),
                **ONCE,
            )
        return made[subscription]

    return compute


def for_source(settings: Settings, guard: Guard | None) -> Arm:
    """Return the client of the source `arm`."""
    return Arm(connect(SECTION.of(settings).cloud), guard=guard)


class Arm:
    """ARM as a SourceClient and PlatformWriter."""

    def __init__(
        self,
        compute: Compute,
        *,
        guard: Guard | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Use this factory of clients and this guard of writes; without a guard it only reads.

        `clock` (seconds) is for ages and patience, `wall` (Unix time) for a Retry-After that is a date.
        """
        self._compute = compute
        self._guard = guard or read_only
        self._versions = Versions(API_VERSIONS, OLDEST)
        self._clock = clock
        self._wall = wall

    def ask(self, scopes: Sequence[Scope]) -> tuple[Listing[Scope, Planned], ...]:
        """Query each scope once; a failure is reported in its listing.

        Of single VMs at most ALONE are queried; the others are reported as not asked.
        """
        started = self._clock()
        ends, single = started + PATIENCE, 0
        done: list[Listing[Scope, Planned]] = []
        throttled: list[Listing[Scope, Planned]] = []
        stopped: Listing[Scope, Planned] | None = None
        # A node can name a subscription of another tenant, where our login fails: others may still work.
        nobody: dict[str, str] = {}
        for scope in scopes:
            if stopped is None and self._clock() >= ends:
                stopped = Listing(scope, problem=f"ARM took more than {PATIENCE:g} s for the lists before")
            if stopped is not None:
                done.append(Listing(scope, problem=stopped.problem, asked=False))
                continue
            if before := next((one for one in throttled if one.scope.limits(scope)), None):
                done.append(Listing(scope, problem=before.problem, asked=False))
                continue
            if scope.subscription in nobody:
                done.append(Listing(scope, problem=nobody[scope.subscription], asked=False))
                continue
            if scope.vm:
                single += 1
                if single > ALONE or self._clock() >= started + ALONE_PATIENCE:
                    done.append(Listing(scope, asked=False))
                    continue
            listing, status, ends_all = self._ask(scope, ends)
            done.append(listing)
            if status == 401:
                nobody[scope.subscription] = listing.problem
            if status == 429:
                throttled.append(listing)
            if ends_all:
                stopped = listing
        return tuple(done)

    def perform(self, request: PerformMaintenance, /) -> None:
        """Start the maintenance of one VM, or of one instance of a scale set, without waiting for its end.

        A node names its VM itself, so the VM is read first. Raises CloudError where the VM has another name
        than the node, or where Azure refuses.
        """
        from azure.core.exceptions import AzureError

        self._guard()
        scope, name = request.vm.scope, request.vm.name
        try:
            client = self._compute(scope.subscription)
            vm = self._versions.send("get", partial(_vm, client, request.vm))
            host = str(getattr(vm.os_profile, "computer_name", None) or "")
            if host.casefold() != request.node.casefold():
                why = f"the VM of its providerID is the host {host or '(none)'}, not node {request.node}"
                raise CloudError(f"maintenance of {scope}, {name}: {why}", status=409)
            self._versions.send("perform_maintenance", partial(_start, client, request.vm))
        except (AzureError, ValueError) as error:
            raise CloudError(
                f"maintenance of {scope}, {name}: {plain(error)}",
                status=status_of(error),
                retry_after=wish(error, self._wall),
            ) from error

    def _ask(self, scope: Scope, ends: float) -> tuple[Listing[Scope, Planned], int, bool]:
        """Return the answer for one scope, an HTTP status, and whether no other scope can have an answer.

        The status is that of a failure, and 429 if the next request would be one too many.
        """
        from azure.core.exceptions import AzureError, ClientAuthenticationError, ServiceRequestError
        from azure.identity import CredentialUnavailableError

        # How many calls are left of each limit that an answer reports.
        spare: list[int] = []

        def note(response: Any) -> None:
            for name, text in response.http_response.headers.items():
                if name.casefold().startswith("x-ms-ratelimit-remaining"):
                    # 'Microsoft.Compute/HighCostGet3Min;159,Microsoft.Compute/HighCostGet30Min;799', or just
                    # '11999'.
                    counts = [part.rpartition(";")[2].strip() for part in text.split(",")]
                    spare.extend(int(count) for count in counts if count.isdecimal())

        try:
            client = self._compute(scope.subscription)
            if scope.vm:
                view = self._versions.send("instance_view", partial(_view, client, scope, note))
                listing = arm.one_vm(scope, view)
            else:
                listing = self._list(client, scope, note, ends)
            listing = replace(listing, note=self._versions.note)
        except (AzureError, TimeoutError, ValueError, TypeError, KeyError, AttributeError) as error:
            log.warning("ARM was asked in vain: scope=%s error=%s", scope, plain(error))
            status, wait = status_of(error), wish(error, self._wall)
            problem = f"ARM has no answer for the {scope}: {plain(error)}"
            no_login = isinstance(error, CredentialUnavailableError)
            if isinstance(error, ClientAuthenticationError) and not no_login:
                # Our login failed for this subscription, which may belong to another tenant.
                status = 401
            # No other scope can have an answer without a connection, a login or time. A scale set that is
            # deleted or forbidden, or whose answer is too large or cut off, says nothing about the others.
            for_all = no_login or isinstance(error, ServiceRequestError | TimeoutError)
            # A 429 without Retry-After means a minute.
            pause = 60.0 if wait is None and status == 429 else wait
            return Listing(scope, problem=problem, wait=pause), status if wait is None else 429, for_all
        except Exception as error:  # noqa: BLE001 - an answer that breaks the program harms its scope only
            words = internal(f"ARM's answer for the {scope} can't be read", error)
            return Listing(scope, problem=f"ARM's answer for the {scope} can't be read: {words}"), 0, False
        if min(spare, default=RESERVE + 1) <= RESERVE:
            # Not a problem: a later pass queries the rest.
            return listing, 429, False
        return listing, 0, False

    def _list(
        self, client: ComputeManagementClient, scope: Scope, note: Callable[[Any], None], ends: float
    ) -> Listing[Scope, Planned]:
        def read(version: str) -> Listing[Scope, Planned]:
            return arm.listing(scope, self._documents(self._pages(client, scope, note, version), ends))

        return self._versions.send("list_instances" if scope.scale_set else "list_all", read)

    @staticmethod
    def _pages(
        client: ComputeManagementClient, scope: Scope, note: Callable[[Any], None], version: str
    ) -> Iterator[Iterator[Any]]:
        if scope.scale_set:
            return client.virtual_machine_scale_set_vms.list(
                scope.group,
                scope.scale_set,
                expand="instanceView",
                raw_response_hook=note,
                api_version=version,
                **ONCE,
            ).by_page()
        # Flexible scale sets, pools of VirtualMachines, node auto-provisioning and single VMs in one list.
        return client.virtual_machines.list_all(
            status_only="true", raw_response_hook=note, api_version=version, **ONCE
        ).by_page()

    def _documents(self, pages: Iterator[Iterator[Any]], ends: float) -> Iterator[Mapping[str, object]]:
        for page in pages:
            yield from page
            if self._clock() >= ends:
                raise TimeoutError(f"its list was not over within {PATIENCE:g} s")


def _vm(client: ComputeManagementClient, vm: Vm, version: str) -> Any:
    scope, name = vm.scope, vm.name
    if scope.scale_set:
        instances = client.virtual_machine_scale_set_vms
        return instances.get(scope.group, scope.scale_set, name, api_version=version, **ONCE)
    group, _, single = name.partition("/")
    return client.virtual_machines.get(group, single, api_version=version, **ONCE)


def _start(client: ComputeManagementClient, vm: Vm, version: str) -> None:
    scope, name = vm.scope, vm.name
    if scope.scale_set:
        client.virtual_machine_scale_set_vms.begin_perform_maintenance(
            scope.group, scope.scale_set, name, polling=False, api_version=version, **ONCE
        )
    else:
        group, _, single = name.partition("/")
        client.virtual_machines.begin_perform_maintenance(
            group, single, polling=False, api_version=version, **ONCE
        )


def _view(
    client: ComputeManagementClient, scope: Scope, note: Callable[[Any], None], version: str
) -> Mapping[str, object]:
    view: Any = client.virtual_machines.instance_view(
        scope.group, scope.vm, raw_response_hook=note, api_version=version, **ONCE
    )
    if not isinstance(view, Mapping):
        raise TypeError(f"the instance view is {type(view).__name__}")
    return view
