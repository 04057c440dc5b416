"""Reads the hosts of vCenter servers: which are in maintenance mode or enter it, and which have alarms.

pyvmomi is the extra `esx`. The first query imports it. Nothing sleeps: a later pass queries a vCenter again
that failed. pyvmomi has a timeout only for each read, and none at all for its first request. So each login
has connections of our own, whose answers have a total time and a size; each request is reported.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from operator import itemgetter
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from reconciler.features.esx.settings import AZ, VCenter, VCenters
from reconciler.features.esx.source import HostState
from reconciler.http.bounded import LARGEST, Bounds, answers_within
from reconciler.http.failures import report
from reconciler.http.plain import SecretMissing, from_environment, from_file
from reconciler.model import limits
from reconciler.model.content import MASKED, Secret
from reconciler.model.errors import CloudError, LockLost
from reconciler.model.limits import count_of
from reconciler.model.polling import Listing
from reconciler.model.problems import internal

log = logging.getLogger(__name__)

TIMEOUT = 15.0
"""Seconds for a connection, and between two bytes of an answer."""

LOGOUT = 5.0
"""Seconds for the end of a session whose time is over."""

API = "vcenter"

_PATH = "/sdk"
_LONGEST_SECRET = 4096


class VCenterSession:
    """A login for one query. The server forgets it, and its views, at the end."""

    def __init__(self, server: VCenter, seconds: float) -> None:
        """Log in at this server, and take so many seconds for all answers."""
        self._server = server
        self._ends = time.monotonic() + seconds
        address = urlsplit(server.url)
        tls = address.scheme == "https"
        self._host, self._port = address.hostname or "", address.port or (443 if tls else 80)
        self._tls: ssl.SSLContext | None = None
        if tls:
            self._tls = ssl.create_default_context(cafile=server.ca_file)
            if server.insecure:
                self._tls.check_hostname = False
                self._tls.verify_mode = ssl.CERT_NONE
        self._stub: Any = None
        self._content: Any = None

    def __enter__(self) -> Any:
        """Log in; return the content of the service.

        Raises CloudError, OSError, HTTPException, or what the server refuses as a MethodFault.
        """
        try:
            from pyVmomi import SoapStubAdapter, vim
        except ImportError as error:
            raise CloudError(
                "pyvmomi is not installed: install node-maintenance-reconciler[esx], see docs/esx.md"
            ) from error
        user, password = resolved(self._server.username), resolved(self._server.password)
        # A negative port is one without TLS.
        port = self._port if self._tls else -self._port
        self._stub = SoapStubAdapter(self._host, port, path=_PATH, version=self._version())
        self._stub.scheme, self._stub.schemeArgs = self._connection, {}
        try:
            self._content = vim.ServiceInstance("ServiceInstance", self._stub).RetrieveContent()
            self._content.sessionManager.Login(user, password, None)
        except BaseException:
            self._stub.DropConnections()
            raise
        return self._content

    def __exit__(self, *_: object) -> None:
        """Log out. The server does so itself later if it does not answer now."""
        self._ends = max(self._ends, time.monotonic() + LOGOUT)
        try:
            self._content.sessionManager.Logout()
        except Exception as error:  # noqa: BLE001 - the answer is complete, and the session ends by itself
            log.debug("vCenter did not end the session: %s", error)
        finally:
            self._stub.DropConnections()

    def _version(self) -> str:
        from pyVmomi.VmomiSupport import GetServiceVersions, versionIdMap

        connection = self._connection(self._host, self._port)
        try:
            connection.request("GET", f"{_PATH}/vimServiceVersions.xml")
            answer = connection.getresponse()
            if answer.status != 200:
                raise CloudError(f"it answers HTTP {answer.status} to a request for its versions")
            served = {one.text for one in ElementTree.fromstring(answer.read()).iter("version") if one.text}
        except ElementTree.ParseError as error:
            raise CloudError("its answer is not that of a vCenter") from error
        finally:
            connection.close()
        known = GetServiceVersions("vim25")
        version = next((one for one in known if versionIdMap[one] in served), None)
        if version is None:
            raise CloudError("it has no version of the API that pyvmomi knows")
        return str(version)

    def _connection(self, host: str, port: int) -> _Connection:
        if self._tls is None:
            return _Connection(host, port, left=self._left)
        return _TlsConnection(host, port, left=self._left, context=self._tls)

    def _left(self) -> float:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("its answers take too long")
        return left


class _Connection(HTTPConnection):
    """A connection whose answers take no longer than what is left of the time."""

    def __init__(self, host: str, port: int, *, left: Callable[[], float], **named: Any) -> None:
        super().__init__(host, port, **named)
        self._time_left = left
        self._asked = ("", "", 0.0)

    def connect(self) -> None:
        # pyvmomi connects before it has a request, and http.client does so with the first one.
        if self._asked[0]:
            super().connect()

    def request(self, method: str, url: str, *arguments: Any, **named: Any) -> None:
        self._asked = method, url, time.monotonic()
        try:
            self.timeout = min(TIMEOUT, self._time_left())
            if self.sock is not None:
                self.sock.settimeout(self.timeout)
            super().request(method, url, *arguments, **named)
        except BaseException:
            self._report(None)
            raise

    def getresponse(self) -> HTTPResponse:
        status = None
        try:
            self.response_class = answers_within(Bounds(self._time_left(), LARGEST))
            response = super().getresponse()
            status = response.status
            return response
        finally:
            self._report(status)

    def _report(self, status: int | None) -> None:
        method, path, began = self._asked
        report(API, method, status, time.monotonic() - began, path)


class _TlsConnection(_Connection, HTTPSConnection):
    """The same with TLS."""


def resolved(secret: Secret) -> str:
    """Return the text with the values of its references; CloudError if one leads nowhere."""
    try:
        return secret.resolved(from_environment, _file)
    except SecretMissing as error:
        raise CloudError(str(error)) from None


def _file(path: str) -> str:
    try:
        return from_file(path, _LONGEST_SECRET).decode().strip()
    except UnicodeDecodeError:
        raise SecretMissing(f"{path} is not UTF-8") from None


@contextmanager
def vcenter(server: VCenter, seconds: float) -> Iterator[Any]:
    """Yield the content of the service, for a query; raises CloudError alone, and LockLost.

    The boundary around a vCenter: what its answer breaks is one that it did not give.
    """
    try:
        with VCenterSession(server, seconds) as content:
            yield content
    except LockLost:
        raise
    except Exception as error:
        if not isinstance(error, CloudError | OSError | HTTPException):
            from pyVmomi import vmodl

            if not isinstance(error, vmodl.MethodFault):
                internal(f"the answer of {server.url} can't be read", error)
        words = str(getattr(error, "msg", "") or error) or type(error).__name__
        with suppress(CloudError):
            # No password goes into a log.
            password = resolved(server.password)
            words = words.replace(password, MASKED) if password else words
        status = error.status if isinstance(error, CloudError) else 0
        raise CloudError(" ".join(words.split())[:_LONGEST_PROBLEM], status=status) from error


PATIENCE = 60.0
"""Seconds for all vCenters of one pass; a later pass asks the rest."""

PAGE = 500
MOST_HOSTS = 10_000
"""Hosts of one vCenter and their recent tasks. vCenter supports 2,500 hosts, and lists 200 ended tasks."""

MOST_ALARMS = 200
"""Different alarms that are looked up by name."""

_LONGEST_PROBLEM = 300
_PROPERTIES = (
    "name",
    "runtime.inMaintenanceMode",
    "config.product.version",
    "triggeredAlarmState",
    "recentTask",
)
_TASK_PROPERTIES = ("info.name", "info.descriptionId", "info.state")
_ENTER, _ENTER_ID = "EnterMaintenanceMode_Task", "HostSystem.enterMaintenanceMode"

Found = Listing[str, HostState]


class VCenterClient:
    """vCenter servers as a SourceClient. A scope is a zone."""

    def __init__(self, section: VCenters, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Query these servers; `clock` (seconds) is for patience."""
        self._section = section
        self._clock = clock

    def ask(self, scopes: Sequence[str]) -> tuple[Found, ...]:
        """Return the hosts of each zone; each vCenter is queried once. Raises nothing."""
        ends = self._clock() + PATIENCE
        answers: dict[str, tuple[dict[str, HostState], frozenset[str], str]] = {}
        done: list[Found] = []
        for zone in scopes:
            server = self.server_of(zone)
            if server is None:
                done.append(
                    Listing(zone, problem=f"sources.esx.vcenters has none for zone {zone or '(none)'}")
                )
                continue
            if server.url not in answers:
                left = ends - self._clock()
                if left <= 0:
                    problem = f"other vCenters took more than {PATIENCE:g} s"
                    done.append(Listing(zone, problem=problem, asked=False))
                    continue
                answers[server.url] = self._query(server, left)
            hosts, seen, problem = answers[server.url]
            done.append(Listing(zone, tuple(sorted(hosts.items(), key=itemgetter(0))), seen, problem))
        return tuple(done)

    def server_of(self, zone: str) -> VCenter | None:
        """Return the vCenter of a zone: that of its name, else of its last character, else of all zones."""
        last = zone[-1:]
        servers = {server.zone: server for server in reversed(self._section.servers)}
        named = [servers.get(name) for name in (zone, last) if name]
        server = next((one for one in (*named, servers.get(None)) if one is not None), None)
        if server is None or AZ not in server.url:
            return server
        # It becomes a part of an address.
        letter = last if last.isascii() and last.isalnum() else ""
        return server.model_copy(update={"url": server.url.replace(AZ, letter)}) if letter else None

    def _query(self, server: VCenter, left: float) -> tuple[dict[str, HostState], frozenset[str], str]:
        """Return what is known of the hosts, the names of all, and the problem."""
        try:
            with vcenter(server, left) as content:
                return (*self._hosts(content), "")
        except CloudError as error:
            log.warning("vCenter can't be asked: url=%s error=%s", server.url, error)
            return {}, frozenset(), f"{server.url} can't be asked: {error}"

    def _hosts(self, content: Any) -> tuple[dict[str, HostState], frozenset[str]]:
        from pyVmomi import vim, vmodl

        # The hosts and their tasks: a filter that names a task which is just gone fails as a whole.
        query = vmodl.query.PropertyCollector
        tasks = query.TraversalSpec(name="tasks", type=vim.HostSystem, path="recentTask", skip=False)
        wanted = [
            query.PropertySpec(type=vim.HostSystem, pathSet=list(_PROPERTIES)),
            query.PropertySpec(type=vim.Task, pathSet=list(_TASK_PROPERTIES)),
        ]
        view = content.viewManager.CreateContainerView(content.rootFolder, [vim.HostSystem], True)
        hosts = {}
        entering = set()
        for each in properties(content, through(view, wanted, [tasks])):
            if "info.state" not in each:
                hosts[limits.text(str(each.get("name") or ""), limits.NAME).casefold()] = each
                continue
            # vCenter waits in a running task until the host has no VM that is powered on, and then sets
            # the mode. A queued task may be refused, and an ended one stays in the list for a while.
            # pyvmomi makes a method of the name.
            name = getattr(getattr(each.get("info.name"), "info", None), "wsdlName", "")
            enters = name == _ENTER or each.get("info.descriptionId") == _ENTER_ID
            if enters and str(each["info.state"]) == "running":
                entering.add(each["id"])
        # Without its mode, nothing is known about a host.
        known = {name: each for name, each in hosts.items() if "runtime.inMaintenanceMode" in each}
        alarms = self._alarms(content, known)
        states = {
            name: HostState(
                each["runtime.inMaintenanceMode"] is True,
                alarms.get(name, ()),
                limits.text(str(each.get("config.product.version", "")), limits.NAME),
                entering=any(task._moId in entering for task in each.get("recentTask") or ()),
            )
            for name, each in known.items()
        }
        return {name: state for name, state in states.items() if state != HostState()}, frozenset(states)

    def _alarms(self, content: Any, hosts: dict[str, dict[str, Any]]) -> dict[str, tuple[str, ...]]:
        if not self._section.alarms:
            return {}
        triggered = {
            name: [state.alarm for state in each.get("triggeredAlarmState") or ()]
            for name, each in hosts.items()
        }
        distinct = {alarm._moId: alarm for each in triggered.values() for alarm in each}
        if len(distinct) > MOST_ALARMS:
            raise CloudError(f"more than {MOST_ALARMS} different alarms are triggered")
        names: dict[str, str] = {}
        if distinct:
            from pyVmomi import vim

            spec = objects(vim.alarm.Alarm, ["info.name"], tuple(distinct.values()))
            for each in properties(content, spec):
                names[each["id"]] = str(each.get("info.name", ""))
        wanted = set(self._section.alarms)
        return {
            name: tuple(sorted({names.get(alarm._moId, "") for alarm in each} & wanted))
            for name, each in triggered.items()
        }


def properties(content: Any, spec: Any, most: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the properties of each object that a filter names, by their paths, and its ID as `id`.

    Raises CloudError for more than `most` objects, by default as many as a vCenter has hosts and tasks.
    """
    from pyVmomi import vmodl

    query, collector, most = vmodl.query.PropertyCollector, content.propertyCollector, most or MOST_HOSTS
    page = collector.RetrievePropertiesEx([spec], query.RetrieveOptions(maxObjects=PAGE))
    count = 0
    while page is not None:
        count += len(page.objects)
        if count > most:
            raise CloudError(f"it lists more than {count_of(most, 'object')}")
        for one in page.objects:
            yield {"id": one.obj._moId, **{each.name: each.val for each in one.propSet}}
        if not page.token:
            return
        page = collector.ContinueRetrievePropertiesEx(page.token)


def objects(kind: Any, paths: Sequence[str], of: Sequence[Any]) -> Any:
    """Return the filter of these properties of these objects of one kind."""
    from pyVmomi import vmodl

    query = vmodl.query.PropertyCollector
    return query.FilterSpec(
        objectSet=[query.ObjectSpec(obj=one, skip=False) for one in of],
        propSet=[query.PropertySpec(type=kind, pathSet=list(paths))],
    )


def through(view: Any, wanted: Sequence[Any], further: Sequence[Any] = ()) -> Any:
    """Return the filter of these properties of what is in a view, and of what leads on from there."""
    from pyVmomi import vim, vmodl

    query = vmodl.query.PropertyCollector
    path = query.TraversalSpec(
        name="all", type=vim.view.ContainerView, path="view", skip=False, selectSet=list(further)
    )
    start = query.ObjectSpec(obj=view, skip=True, selectSet=[path])
    return query.FilterSpec(objectSet=[start], propSet=list(wanted))
