"""Reads the hosts of vCenter servers: which are in maintenance mode or enter it, and which have alarms.

pyvmomi is the extra `esx`. The first query imports it. Nothing sleeps: a later pass queries a vCenter again
that failed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from reconciler.http.guard import Guard
from reconciler.model import limits
from reconciler.model.errors import CloudError
from reconciler.model.machine import HostState
from reconciler.model.polling import Listing
from reconciler.model.problems import internal
from reconciler.model.secret import MASKED
from reconciler.settings.schema import Settings
from reconciler.settings.sections.sources import AZ, VCenter, VCenters
from reconciler.sources.esx.session import VCenterSession, is_expected, resolved

log = logging.getLogger(__name__)

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


def for_source(settings: Settings, guard: Guard | None) -> VCenterClient:
    """Return the client of the source `vcenter`; it only reads."""
    del guard
    return VCenterClient(settings.sources.esx.polled)


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
            server = self._server_of(zone)
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
            found, seen, problem = answers[server.url]
            done.append(Listing(zone, tuple(sorted(found.items(), key=_by_name)), seen, problem))
        return tuple(done)

    def _server_of(self, zone: str) -> VCenter | None:
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
        """Return the hosts that are in maintenance or have alarms, the names of all, and the problem."""
        try:
            return (*self._hosts(server, left), "")
        except Exception as error:  # noqa: BLE001 - one vCenter harms itself only
            if not is_expected(error):
                internal(f"the answer of {server.url} can't be read", error)
            words = _words(error, server)
            log.warning("vCenter can't be asked: url=%s error=%s", server.url, words)
            return {}, frozenset(), f"{server.url} can't be asked: {words}"

    def _hosts(self, server: VCenter, left: float) -> tuple[dict[str, HostState], frozenset[str]]:
        with VCenterSession(server, left) as content:
            found = {}
            entering = set()
            for each in self._properties(content, _view(content)):
                if "info.state" not in each:
                    found[_name(each.get("name"))] = each
                elif _enters(each):
                    entering.add(each["id"])
            # Without its mode, nothing is known about a host.
            known = {name: each for name, each in found.items() if "runtime.inMaintenanceMode" in each}
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
        busy = {name: one for name, one in states.items() if one.maintenance or one.entering or one.alarms}
        return busy, frozenset(states)

    def _alarms(self, content: Any, hosts: dict[str, dict[str, Any]]) -> dict[str, tuple[str, ...]]:
        """Return the triggered alarms of each host that the settings name."""
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
            for each in self._properties(content, tuple(distinct.values())):
                names[each["id"]] = str(each.get("info.name", ""))
        wanted = set(self._section.alarms)
        return {
            name: tuple(sorted({names.get(alarm._moId, "") for alarm in each} & wanted))
            for name, each in triggered.items()
        }

    def _properties(self, content: Any, of: Any) -> Iterator[dict[str, Any]]:
        """Yield the properties of each object by their paths, and its ID as `id`."""
        from pyVmomi import vim, vmodl

        query = vmodl.query.PropertyCollector
        if isinstance(of, tuple):
            objects = [query.ObjectSpec(obj=one, skip=False) for one in of]
            wanted = [query.PropertySpec(type=vim.alarm.Alarm, pathSet=["info.name"])]
        else:
            # One query for hosts and tasks: a query that names a task which is just gone fails as a whole.
            tasks = query.TraversalSpec(name="tasks", type=vim.HostSystem, path="recentTask", skip=False)
            through = query.TraversalSpec(
                name="all", type=vim.view.ContainerView, path="view", skip=False, selectSet=[tasks]
            )
            objects = [query.ObjectSpec(obj=of, skip=True, selectSet=[through])]
            wanted = [
                query.PropertySpec(type=vim.HostSystem, pathSet=list(_PROPERTIES)),
                query.PropertySpec(type=vim.Task, pathSet=list(_TASK_PROPERTIES)),
            ]
        spec = query.FilterSpec(objectSet=objects, propSet=wanted)
        collector = content.propertyCollector
        page = collector.RetrievePropertiesEx([spec], query.RetrieveOptions(maxObjects=PAGE))
        count = 0
        while page is not None:
            count += len(page.objects)
            if count > MOST_HOSTS:
                raise CloudError(f"it lists more than {MOST_HOSTS} objects")
            for one in page.objects:
                yield {"id": one.obj._moId, **{each.name: each.val for each in one.propSet}}
            if not page.token:
                return
            page = collector.ContinueRetrievePropertiesEx(page.token)


def _view(content: Any) -> Any:
    from pyVmomi import vim

    return content.viewManager.CreateContainerView(content.rootFolder, [vim.HostSystem], True)


def _enters(task: dict[str, Any]) -> bool:
    """Whether a task that runs brings its host into maintenance mode.

    vCenter waits in it until the host has no VM that is powered on, and only then sets the mode. A queued
    task may be refused, and an ended one stays in the list for a while.
    """
    if str(task["info.state"]) != "running":
        return False
    # pyvmomi makes a method of the name.
    name = getattr(getattr(task.get("info.name"), "info", None), "wsdlName", "")
    return name == _ENTER or task.get("info.descriptionId") == _ENTER_ID


def _by_name(pair: tuple[str, HostState]) -> str:
    return pair[0]


def _name(value: object) -> str:
    return limits.text(str(value or ""), limits.NAME).casefold()


def _words(error: Exception, server: VCenter) -> str:
    """Return the error in one line, without the password."""
    words = str(getattr(error, "msg", "") or error) or type(error).__name__
    try:
        password = resolved(server.password)
        words = words.replace(password, MASKED) if password else words
    except CloudError:
        pass
    return " ".join(words.split())[:_LONGEST_PROBLEM]
