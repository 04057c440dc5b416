"""ARM on loopback: lists of VMs in pages and maintenance that can be started, as moody as a test wants it."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from azure.core.credentials import AccessToken
from azure.core.exceptions import ServiceRequestError
from azure.core.pipeline import PipelineRequest
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.mgmt.compute import ComputeManagementClient

from reconciler.http.azure import transport
from tests.support.controlplane.fill import RESOURCE_GROUP, Pool
from tests.support.fakes.loopback import JsonAnswer, JsonLoopback

Object = dict[str, Any]

# As the nodes of tests/support/controlplane have them, in ARM's own spelling.
SUBSCRIPTION = "8ECADFC9-D1A3-4EA4-B844-0D9F87E4D7C8"
GROUP = RESOURCE_GROUP.replace("mc_", "MC_")
SCALE_SET = Pool("np").scale_set
TOKEN = "a-token-of-the-tests"
PAGE = 100


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is no success. `delay` comes before it, in seconds, or the end of the fake."""

    status: int
    code: str = "TooManyRequests"
    message: str = "The request is being throttled."
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0


THROTTLED = Refusal(429, headers={"Retry-After": "240"})
FORBIDDEN = Refusal(403, "AuthorizationFailed", "The client does not have authorization to perform action.")
NO_TOKEN = Refusal(401, "InvalidAuthenticationToken", "The access token is invalid.")
BROKEN = Refusal(500, "InternalServerError", "Encountered internal server error.")


def no_provider(version: str, *known: str) -> Refusal:
    """The refusal of a version that Microsoft.Compute does not know there."""
    words = f"No registered resource provider found for location 'chinaeast2' and API version '{version}' for"
    listed = f"The supported api-versions are '{', '.join(known)}'"
    where = "The supported locations are 'chinaeast2, chinanorth2'."
    return Refusal(400, "NoRegisteredProviderFound", f"{words} type 'virtualMachines'. {listed}. {where}")


def invalid_version(version: str, *known: str) -> Refusal:
    """The refusal of a version that nothing in Azure knows there."""
    words = f"The api-version '{version}' is invalid. The supported versions are '{','.join(known)}'."
    return Refusal(400, "InvalidApiVersionParameter", words)


def moment(when: datetime) -> str:
    """A moment as ARM writes it: seven digits of a second, and an offset."""
    return f"{when:%Y-%m-%dT%H:%M:%S}.1234567+00:00"


def status(
    *,
    offered: bool = False,
    offer: tuple[datetime, datetime] | None = None,
    window: tuple[datetime, datetime] | None = None,
    result: str = "None",
) -> Object:
    """A `maintenanceRedeployStatus`."""
    found: Object = {"isCustomerInitiatedMaintenanceAllowed": offered, "lastOperationResultCode": result}
    if offer:
        found["preMaintenanceWindowStartTime"] = moment(offer[0])
        found["preMaintenanceWindowEndTime"] = moment(offer[1])
    if window:
        found["maintenanceWindowStartTime"] = moment(window[0])
        found["maintenanceWindowEndTime"] = moment(window[1])
    return found


def _host(vm: FakeVm) -> str:
    """The computer name of a VM: for an instance from its number, else the VM's name; in capitals."""
    if not vm.instance:
        return vm.name.rpartition("/")[2].upper()
    pool = vm.name.split("-")[1]
    return Pool(pool).node_name(int(vm.instance)).upper()


@dataclass(slots=True)
class FakeVm:
    """A VM; `instance` is empty for one that belongs to no uniform scale set."""

    name: str
    instance: str = ""
    maintenance: Object | None = None
    silent: bool = False


class FakeArm(JsonLoopback):
    """Serves the VMs it is given.

    `lists` counts lists begun, `pages` their pages, `views` the VMs whose instance view was read alone,
    `performed` what was started, by its path; `versions` are the api-versions of all requests. `complete` is
    whether the list of the subscription has each VM's maintenance.
    With `known` versions, Azure refuses all others, as Azure China and Azure Government do.
    `violations` is what Azure would have refused or we promised not to do: every test should find it empty.
    """

    def __init__(self, *, page: int = PAGE) -> None:
        self.lists: list[str] = []
        self.views: list[str] = []
        self.complete = True
        self.versions: set[str] = set()
        self.known: tuple[str, ...] = ()
        self.pages = 0
        self.performed: list[str] = []
        self.violations: list[str] = []
        self.user_agents: set[str] = set()
        self.headers: dict[str, str] = {}
        self.refusals: dict[str, list[Refusal]] = {}
        self.scale_sets: dict[str, dict[str, FakeVm]] = {}
        self.singles: dict[str, FakeVm] = {}
        self._page = page
        self._lock = threading.Lock()
        super().__init__(self._respond)

    # What the tests say.

    def uniform(self, *instances: int, scale_set: str = SCALE_SET) -> None:
        """Let a uniform scale set have these instances."""
        made = self.scale_sets.setdefault(scale_set.casefold(), {})
        made.update({str(one): FakeVm(f"{scale_set}_{one}", str(one)) for one in instances})

    def single(self, name: str, group: str = GROUP) -> None:
        """Let there be a VM of its own, or of a flexible scale set: the list shows no difference."""
        self.singles[f"{group}/{name}".casefold()] = FakeVm(f"{group}/{name}")

    def plan(self, vm: int | str, maintenance: Object | None, scale_set: str = SCALE_SET) -> None:
        """From now on this is the VM's status."""
        with self._lock:
            self._vm(vm, scale_set).maintenance = maintenance

    def silence(self, vm: int | str, scale_set: str = SCALE_SET) -> None:
        """Let a VM be listed without its instance view."""
        self._vm(vm, scale_set).silent = True

    def delete(self, scale_set: str) -> None:
        """Delete a scale set."""
        with self._lock:
            del self.scale_sets[scale_set.casefold()]

    def refuse(self, refusal: Refusal, part: str = "/", times: int = 1) -> None:
        """Refuse the next requests whose path has this part."""
        with self._lock:
            self.refusals.setdefault(part.casefold(), []).extend([refusal] * times)

    def forget(self) -> None:
        """Reset the counts."""
        self.lists, self.views, self.pages, self.performed = [], [], 0, []

    def _vm(self, vm: int | str, scale_set: str) -> FakeVm:
        if isinstance(vm, int):
            return self.scale_sets[scale_set.casefold()][str(vm)]
        return self.singles[f"{GROUP}/{vm}".casefold()]

    # What is served.

    def _respond(self, method: str, target: str, headers: dict[str, str], _: bytes) -> JsonAnswer:
        with self._lock:
            return self._answer(method, target, headers)

    def _answer(self, method: str, target: str, headers: dict[str, str]) -> JsonAnswer:
        url = urlsplit(target)
        path, query = (
            url.path.casefold(),
            {key.casefold(): one[0] for key, one in parse_qs(url.query).items()},
        )
        self.user_agents.add(headers.get("user-agent", ""))
        if headers.get("authorization") != f"Bearer {TOKEN}" or "api-version" not in query:
            self.violations.append(f"{method} {target}: no token, or no api-version")
        version = query.get("api-version", "")
        self.versions.add(version)
        if self.known and version not in self.known:
            refused = no_provider(version, *self.known)
            return refused.status, {"error": {"code": refused.code, "message": refused.message}}, {}
        for part, waiting in self.refusals.items():
            if part in path and waiting:
                refused = waiting.pop(0)
                self.stopping.wait(refused.delay)
                body = {"error": {"code": refused.code, "message": refused.message}}
                return refused.status, body, refused.headers
        begin = f"/subscriptions/{SUBSCRIPTION}".casefold()
        inside = f"{begin}/resourcegroups/{GROUP}/providers/microsoft.compute".casefold()
        if method == "GET":
            whole = re.fullmatch(rf"{inside}/virtualmachinescalesets/([^/]+)/virtualmachines", path)
            if whole:
                if query.get("$expand", "").casefold() != "instanceview":
                    self.violations.append(f"{target}: a list without the instance view")
                return self.list_page(
                    target, whole[1], self.scale_sets.get(whole[1]), int(query.get("skip", 0))
                )
            if path == f"{begin}/providers/microsoft.compute/virtualmachines":
                if query.get("statusonly") != "true":
                    self.violations.append(f"{target}: a list without status")
                return self.list_page(target, "single VMs", self.singles, int(query.get("skip", 0)))
            view = re.fullmatch(
                r"/subscriptions/[^/]+/resourcegroups/([^/]+)/providers/microsoft.compute"
                r"/virtualmachines/([^/]+)/instanceview",
                path,
            )
            if view:
                self.views.append(view[2])
                vm = self.singles.get(f"{view[1]}/{view[2]}") if path.startswith(begin) else None
                if vm is not None:
                    return 200, self._view(vm), self.headers
                return 404, {"error": {"code": "ResourceNotFound", "message": path}}, {}
            one = re.fullmatch(
                rf"{inside}/(?:virtualmachinescalesets/([^/]+)/)?virtualmachines/([^/]+)", path
            )
            if one:
                vms = self.scale_sets.get(one[1], {}) if one[1] else self.singles
                vm = vms.get(one[2] if one[1] else f"{GROUP}/{one[2]}".casefold())
                if vm is not None:
                    return 200, self._document(vm, one[1] or ""), {}
                return 404, {"error": {"code": "ResourceNotFound", "message": path}}, {}
            self.violations.append(f"{method} {target}: an unknown request")
        if method == "POST" and path.endswith("/performmaintenance"):
            return self._perform(path, inside)
        return 404, {"error": {"code": "NotFound", "message": target}}, {}

    def list_page(self, target: str, name: str, found: dict[str, FakeVm] | None, skip: int) -> JsonAnswer:
        """Answer one page of a list of VMs."""
        if not skip:
            self.lists.append(name)
        self.pages += 1
        if found is None:
            message = f"The Resource '{name}' under resource group '{GROUP}' was not found."
            return 404, {"error": {"code": "ResourceNotFound", "message": message}}, {}
        vms = list(found.values())
        body: Object = {"value": [self._document(vm, name) for vm in vms[skip : skip + self._page]]}
        if skip + self._page < len(vms):
            rest = re.sub(r"[&?]skip=\d+", "", target)
            body["nextLink"] = f"{self.address}{rest}&skip={skip + self._page}"
        return 200, body, self.headers

    def _document(self, vm: FakeVm, scale_set: str) -> Object:
        view = self._view(vm)
        if not vm.instance and not self.complete:
            view.pop("maintenanceRedeployStatus", None)
        properties: Object = {"provisioningState": "Succeeded", "osProfile": {"computerName": _host(vm)}}
        if not vm.silent:
            properties["instanceView"] = view
        place = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP.upper()}/providers/Microsoft.Compute"
        document: Object = {"location": "westeurope", "properties": properties}
        if vm.instance:
            inside = f"{place}/virtualMachineScaleSets/{scale_set}/virtualMachines/{vm.instance}"
            return document | {"id": inside, "name": vm.name, "instanceId": vm.instance}
        group, _, single = vm.name.partition("/")
        inside = f"{place}/virtualMachines/{single}".replace(GROUP.upper(), group.upper())
        return document | {"id": inside, "name": single}

    def _view(self, vm: FakeVm) -> Object:
        view: Object = {"statuses": [{"code": "PowerState/running", "displayStatus": "VM running"}]}
        if vm.maintenance is not None:
            view["maintenanceRedeployStatus"] = vm.maintenance
        return view

    def _perform(self, path: str, inside: str) -> JsonAnswer:
        uniform = re.fullmatch(
            rf"{inside}/virtualmachinescalesets/([^/]+)/virtualmachines/([^/]+)/performmaintenance", path
        )
        single = re.fullmatch(rf"{inside}/virtualmachines/([^/]+)/performmaintenance", path)
        if uniform:
            vm = self.scale_sets.get(uniform[1], {}).get(uniform[2])
        else:
            vm = self.singles.get(f"{GROUP}/{single[1]}".casefold()) if single else None
        if vm is None:
            return 404, {"error": {"code": "ResourceNotFound", "message": path}}, {}
        allowed = (vm.maintenance or {}).get("isCustomerInitiatedMaintenanceAllowed")
        if not allowed:
            self.violations.append(f"{path}: started though it is not allowed")
            return 409, {"error": {"code": "OperationNotAllowed", "message": "Not allowed."}}, {}
        self.performed.append(vm.name)
        return 202, {}, {"Location": f"{self.address}/operations/1?api-version=1"}


class _Credential:
    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        del scopes
        return AccessToken(TOKEN, int(time.time()) + 3600)


class _Authentication(SansIOHTTPPolicy[Any, Any]):
    """The SDK's own refuses to give a token to whom it can't trust, without TLS that is."""

    def on_request(self, request: PipelineRequest[Any]) -> None:
        request.http_request.headers["Authorization"] = f"Bearer {TOKEN}"


def compute(fake: FakeArm) -> Callable[[str], ComputeManagementClient]:
    """The real SDK's clients, talking to the fake."""

    def make(subscription: str) -> ComputeManagementClient:
        return ComputeManagementClient(
            _Credential(),
            subscription,
            base_url=fake.address,
            authentication_policy=_Authentication(),
            credential_scopes=["https://management.azure.com/.default"],
            transport=transport(),
        )

    return make


class RecordedArm:
    """A client of Azure's public cloud that answers from documents; `requests` are the addresses so far.

    A document has an address, or the end of the path of one.
    """

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self._documents = documents
        self.requests: list[str] = []

    def __call__(self) -> Any:
        """Return the client itself: it is also what makes one."""
        return self

    def format_url(self, path: str) -> str:
        """Return the address of a path, as the real client does."""
        return f"https://management.azure.com{path}"

    def send_request(self, request: Any, **_: Any) -> Any:
        """Answer with the document of the longest path that fits."""
        self.requests.append(request.url)
        path = urlsplit(request.url).path
        fitting = [each for each in self._documents if each == request.url or path.endswith(each)]
        text = json.dumps(self._documents[max(fitting, key=len)])
        return SimpleNamespace(status_code=200, headers={}, text=lambda: text, json=lambda: json.loads(text))


class NoAzure:
    """An identity and a transport in one, which notes `scopes` and `addresses` and gets no answer."""

    def __init__(self) -> None:
        self.scopes: list[str] = []
        self.addresses: list[str] = []

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        """Give a token."""
        self.scopes += scopes
        return AccessToken(TOKEN, int(time.time()) + 3600)

    def send(self, request: Any, **_: Any) -> Any:
        """Fail, as without a network."""
        self.addresses.append(request.url)
        raise ServiceRequestError("no network")

    def __enter__(self) -> NoAzure:
        return self

    def __exit__(self, *_: object) -> None:
        """Close nothing."""


def provider_id(vm: int | str, scale_set: str = SCALE_SET) -> str:
    """A node's providerID, with the resource group in lower case, as in AKS."""
    place = f"azure:///subscriptions/{SUBSCRIPTION.lower()}/resourceGroups/{GROUP.lower()}/providers"
    if isinstance(vm, int):
        return f"{place}/Microsoft.Compute/virtualMachineScaleSets/{scale_set}/virtualMachines/{vm}"
    return f"{place}/Microsoft.Compute/virtualMachines/{vm}"
