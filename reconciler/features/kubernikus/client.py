"""The servers of nodes in OpenStack: each is found by its ID and its name, and deleted.

keystoneauth1 is the extra `openstack`; the first request imports it, in a quarter of openstacksdk's time. It
gets a token, and another one once if Nova refuses that. A service that is slow or broken costs a pass a few
seconds at most, and is then left alone for a while.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from jobs.runtime.machines import MachineClient, NotSetUp
from reconciler import USER_AGENT
from reconciler.http.bounded import Bounds, within_bounds
from reconciler.http.failures import cause_of, decode_json
from reconciler.http.retrying import Guard, read_only
from reconciler.kubernetes.cloud_provider import Access, Place, access_at, checked_url
from reconciler.model import limits
from reconciler.model.errors import CloudError
from reconciler.model.machine import Machine, MachineRef, Pool, Remove, ScaleUp
from reconciler.model.problems import internal

if TYPE_CHECKING:
    from keystoneauth1.session import Session

    from reconciler.kubernetes.connection import Connection

ANSWER = 5.0
"""Seconds for one answer."""

PATIENCE = 15.0
"""Seconds for all answers of one pass. A server after that is not known in this pass."""

PAUSE = 30.0
"""Seconds for which OpenStack is left alone after it refused or failed; it may ask for more."""

LONGEST_PAUSE = 600.0

SIZE = 1 << 20
"""Bytes of one answer."""

EXTRA = "needs keystoneauth1, the extra `openstack`: pip install 'node-maintenance-reconciler[openstack]'"

_SERVER = re.compile(r"openstack://([^/]*)/([0-9a-fA-F-]{32,36})")
_GONE = ("DELETED", "SOFT_DELETED")
_DELETING = ("deleting", "soft-deleting")

Value = TypeVar("Value")


class _Server(msgspec.Struct):
    id: str
    name: str
    status: str = ""
    task: str | None = msgspec.field(name="OS-EXT-STS:task_state", default=None)


class _One(msgspec.Struct):
    server: _Server


class _Listed(msgspec.Struct):
    servers: list[_Server]


class _Connected(Struct, frozen=True):
    """A session with the address of Nova in its catalog."""

    session: Session
    compute: str
    access: Access


def at_place(place: Place, connection: Connection, guard: Guard | None) -> MachineClient:
    """Return the client for these credentials; without the extra, one whose every machine has the problem."""
    if find_spec("keystoneauth1") is None:
        return NotSetUp(EXTRA)
    return Servers(lambda: access_at(place, connection), guard or read_only)


class Servers:
    """MachineReader and MachineWriter over Nova. Safe for one thread."""

    def __init__(
        self,
        access: Callable[[], Access],
        guard: Guard,
        *,
        clock: Callable[[], float] = time.monotonic,
        answer: float = ANSWER,
    ) -> None:
        """Read the credentials when they are needed, and again after a refusal; `clock` is in seconds."""
        self._access, self._guard, self._clock, self._answer = access, guard, clock, answer
        self._connected: _Connected | None = None
        self._rests = 0.0
        self._problem = ""
        self._ends = 0.0

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Return each server as it is now; a problem where it can't be known, or is not the node's."""
        self._ends = self._clock() + PATIENCE
        return tuple(self._machine(ref) for ref in refs)

    def scale_up(self, action: ScaleUp) -> None:
        """Raise ValueError: Kubernikus creates a server by itself."""
        raise ValueError(f"{action.node}: nobody scales the pools of Kubernikus")

    def remove(self, action: Remove) -> None:
        """Delete the server; nothing where it has gone. Raises LockLost and CloudError."""
        self._guard()
        self._ends = self._clock() + PATIENCE
        try:
            self._ask("DELETE", f"servers/{action.machine.uid}")
        except CloudError as error:
            if error.status != 404:
                raise

    def forget(self) -> None:
        """Forget nothing: each pass reads all of it."""

    def _machine(self, ref: MachineRef) -> Machine:
        try:
            server = self._server(ref)
        except CloudError as error:
            return Machine(ref, problem=f"OpenStack: {error}")
        except ValueError as error:
            return Machine(ref, problem=str(error))
        except Exception as error:  # noqa: BLE001 - what a service says harms its own machines only
            return Machine(ref, problem=internal(f"the server of {ref.node} is not known", error))
        pool = Pool("Kubernikus pool", ref.pool or "of the node")
        if server is None or server.status in _GONE:
            if ref.asked:
                # The Node goes a while after its server.
                return Machine(ref, name=ref.name, pool=pool, deleting=True)
            sought = f"no server {ref.provider_id or ref.name}"
            return Machine(ref, problem=f"OpenStack has {sought}: it is gone already, or in another project")
        deleting = server.task in _DELETING
        return Machine(ref, name=server.name, uid=server.id, pool=pool, deleting=deleting)

    def _server(self, ref: MachineRef) -> _Server | None:
        """Return the server of a node, None if there is none; ValueError if that is not certain."""
        if not ref.provider_id:
            return self._named(ref.name)
        said = _SERVER.fullmatch(ref.provider_id)
        if said is None:
            raise ValueError(f"the providerID {limits.excerpt(ref.provider_id)} names no server of OpenStack")
        region, identity = said[1], said[2].lower()
        if region and region != (ours := self._connection().access.region):
            raise ValueError(f"the server is in the region {region}, and the credentials are for {ours}")
        try:
            server = self._read(_One, f"servers/{identity}").server
        except CloudError as error:
            if error.status == 404:
                return None
            raise
        if server.id.replace("-", "").lower() != identity.replace("-", ""):
            raise ValueError(f"OpenStack answered with another server than {identity}: {server.id[:64]}")
        if server.name.casefold() != ref.name.casefold():
            other = limits.excerpt(server.name)
            raise ValueError(f"server {server.id} has the name {other}, and its node the name {ref.name}")
        return server

    def _named(self, name: str) -> _Server | None:
        """Return the only server of this name. The filter of the list is a regular expression."""
        if not limits.is_object_name(name):
            raise ValueError(f"{limits.excerpt(name)} is no name of a server")
        pattern = "^" + name.replace(".", "\\.") + "$"
        listed = self._read(_Listed, "servers/detail", {"name": pattern}).servers
        same = [server for server in listed if server.name.casefold() == name.casefold()]
        if len(same) > 1:
            ids = limits.first_of([server.id for server in same])
            raise ValueError(f"OpenStack has {len(same)} servers with the name {name}: {ids}")
        return same[0] if same else None

    def _read(self, kind: type[Value], path: str, query: dict[str, str] | None = None) -> Value:
        answer = self._ask("GET", path, query)
        try:
            return decode_json(kind, answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CloudError("Nova's answer can't be read") from error

    def _ask(self, method: str, path: str, query: dict[str, str] | None = None) -> bytes:
        """Return the body of Nova's answer; CloudError for every other status than 2xx."""
        connected = self._connection()
        url = f"{connected.compute}/{path}"

        def send() -> bytes:
            answer = connected.session.request(
                url,
                method,
                params=query or {},
                redirect=False,
                log=False,
                headers={"Accept": "application/json"},
            )
            if answer.status_code >= 300:
                raise CloudError(f"HTTP {answer.status_code}", status=answer.status_code)
            return answer.content

        return self._guarded(send)

    def _connection(self) -> _Connected:
        if self._connected is None:
            access = self._access()
            self._connected = self._guarded(lambda: _connected(access, self._answer))
        return self._connected

    def _guarded(self, send: Callable[[], Value]) -> Value:
        """Return what `send` returns in the time that is left; CloudError, then with a pause, if it fails."""
        from keystoneauth1 import exceptions as failures
        from requests import RequestException

        now = self._clock()
        if now < self._rests:
            raise CloudError(f"{self._problem}; it is asked again in {int(self._rests - now) + 1}s")
        seconds = min(self._answer, self._ends - now)
        if seconds <= 0:
            raise CloudError("it took all of the time of this pass")
        try:
            with within_bounds(Bounds(seconds, SIZE)):
                return send()
        except failures.HttpError as error:
            raise self._refused(error.http_status, _retry_after(error)) from error
        except (failures.ClientException, RequestException, OSError) as error:
            raise self._rest(f"no answer: {cause_of(error)}", PAUSE) from error

    def _refused(self, status: int, retry_after: float) -> CloudError:
        said = f"HTTP {status}"
        if status in (404, 409):
            # About this server only: it is gone, or is locked or busy.
            return CloudError(
                f"{said}: the server is locked or busy" if status == 409 else said, status=status
            )
        if status in (401, 403):
            # The credentials may have changed.
            self._connected = None
            said = f"{said}: the credentials are refused"
        return self._rest(said, retry_after, status)

    def _rest(self, problem: str, pause: float, status: int = 0) -> CloudError:
        self._problem = problem
        self._rests = self._clock() + min(max(pause, PAUSE), LONGEST_PAUSE)
        return CloudError(problem, status=status)


def _retry_after(error: Any) -> float:
    headers = getattr(error.response, "headers", None) or {}
    try:
        return float(headers.get("Retry-After", PAUSE))
    except ValueError:
        return PAUSE


def _connected(access: Access, answer: float) -> _Connected:
    """Return a session with a token; ValueError if its catalog has no address of Nova to use.

    Nothing is sent through a proxy, and nothing that a .netrc says.
    """
    import requests
    from keystoneauth1.identity.v3 import Password
    from keystoneauth1.session import Session

    from reconciler.http.sdk_adapter import BoundedAdapter

    http = requests.Session()
    http.trust_env = False
    for scheme in ("https://", "http://"):
        http.mount(scheme, BoundedAdapter("openstack"))
    auth = Password(
        access.identity,
        access.password,
        username=access.user,
        user_domain_name=access.domain,
        project_id=access.project,
    )
    session = Session(
        auth,
        http,
        verify=ssl.get_default_verify_paths().cafile or True,
        timeout=answer,
        user_agent=USER_AGENT,
        redirect=False,
    )
    endpoint = session.get_endpoint(
        service_type="compute", interface="public", region_name=access.region, skip_discovery=True
    )
    if not endpoint:
        raise ValueError(f"the catalog of OpenStack has no public address of Nova in {access.region}")
    return _Connected(session, checked_url(endpoint, "the address of Nova").rstrip("/"), access)
