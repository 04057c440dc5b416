"""vCenter without an answer: each server harms its own zones only, and no message has a password."""

from __future__ import annotations

import socket
import sys
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.features.esx.client import PATIENCE, VCenterClient
from reconciler.features.esx.power_client import KEPT, PAUSE, PowerClient
from reconciler.features.esx.settings import EsxSource, VCenter, VCenters
from reconciler.features.esx.source import HostState
from reconciler.features.esx.vm import Named
from reconciler.model.content import Secret
from reconciler.model.values import replace
from tests.support.fakes.threads import Once, refused

PASSWORD = "correct horse battery"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def server(zone: str | None = None, password: str = PASSWORD, port: int | None = None) -> VCenter:
    return VCenter(
        url=f"http://127.0.0.1:{port or free_port()}",
        zone=zone,
        username=Secret("reader"),
        password=Secret(password),
    )


def client(*servers: VCenter) -> VCenterClient:
    return VCenterClient(section(*servers))


def section(*servers: VCenter) -> VCenters:
    return EsxSource(enabled=True, vcenters=servers).polled


def test_a_server_that_does_not_answer_is_a_problem_of_its_zones() -> None:
    there = server("a")
    found = client(there).ask(["a", "b", ""])

    assert [one.scope for one in found] == ["a", "b", ""]
    assert found[0].problem.startswith(f"{there.url} can't be asked: ")
    assert "Connection refused" in found[0].problem
    assert found[1].problem == "sources.esx.vcenters has none for zone b"
    assert found[2].problem == "sources.esx.vcenters has none for zone (none)"


@pytest.mark.parametrize(
    ("zone", "host"),
    [
        pytest.param("eu-de-1b", "whole-zone", id="the whole zone comes first"),
        pytest.param("eu-de-2b", "last-character", id="the last character, as in maintenance-controller"),
        pytest.param("b", "last-character", id="a zone of one character"),
        pytest.param("eu-de-1c", "vc-c", id="the template of all other zones"),
        pytest.param("eu-de-1D", "vc-D", id="as it is written"),
        pytest.param("eu-de-1/", "", id="no letter or digit"),
        pytest.param("eu-de-1ä", "", id="a letter of no host name"),
        pytest.param("", "", id="no zone"),
    ],
)
def test_the_zone_or_its_last_character_chooses_the_vcenter(
    monkeypatch: pytest.MonkeyPatch, zone: str, host: str
) -> None:
    asked = []

    def session(server: VCenter, _: float) -> Any:
        asked.append((server.url, server.password))
        raise TimeoutError

    monkeypatch.setattr("reconciler.features.esx.client.VCenterSession", session)
    named = {None: "vc-$AZ", "b": "last-character", "eu-de-1b": "whole-zone"}
    servers = [
        VCenter(url=f"https://{name}.example.com", zone=of, username=Secret("u"), password=Secret(PASSWORD))
        for of, name in named.items()
    ]
    (found,) = client(*servers).ask([zone])

    assert asked == ([(f"https://{host}.example.com", Secret(PASSWORD))] if host else [])
    assert f"{host}.example.com can't be asked" in found.problem if host else "has none for" in found.problem


@pytest.mark.parametrize(
    ("password", "said"),
    [
        pytest.param("${NOT_SET_ANYWHERE}", "the environment has no NOT_SET_ANYWHERE", id="environment"),
        pytest.param("${file:/nowhere/password}", "/nowhere/password can't be read", id="file"),
    ],
)
def test_a_secret_that_is_missing_is_a_problem(password: str, said: str) -> None:
    (found,) = client(server(password=password)).ask([""])

    assert said in found.problem


def test_without_the_package_the_problem_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyVmomi", None)
    (found,) = client(server()).ask([""])

    assert "install node-maintenance-reconciler[esx]" in found.problem


def test_without_the_package_no_vm_is_read_and_the_problem_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyVmomi", None)
    found = PowerClient(section(server())).vms([Named("n", "a")])

    assert "install node-maintenance-reconciler[esx]" in found["n"].problem


def test_where_no_thread_can_start_vcenter_is_asked_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyVmomi", None)
    with refused(Once("vcenter")):
        assert PowerClient(section(server())).vms([Named("n", "a")])["n"].problem


def test_after_its_patience_a_pass_asks_no_more_servers() -> None:
    times = iter([0.0, PATIENCE - 1, PATIENCE])
    there = VCenterClient(section(server("a"), server("b")), clock=lambda: next(times))
    first, second = there.ask(["a", "b"])

    assert first.asked
    assert not second.asked
    assert second.problem


class Collector:
    """A property collector with three hosts and their tasks, one to a page, and two alarms."""

    def __init__(self, *tasks: Any) -> None:
        from pyVmomi import vim

        memory, network = vim.alarm.Alarm("alarm-1"), vim.alarm.Alarm("alarm-2")
        triggered = [SimpleNamespace(alarm=memory), SimpleNamespace(alarm=network)]
        self._hosts = [
            found(
                "h-1", {"name": "ESX-1", "runtime.inMaintenanceMode": False, "triggeredAlarmState": triggered}
            ),
            found(
                "h-2",
                {
                    "name": "esx-2",
                    "runtime.inMaintenanceMode": False,
                    "triggeredAlarmState": [],
                    "recentTask": [one.obj for one in tasks],
                },
            ),
            found("h-3", {"name": "esx-3", "triggeredAlarmState": triggered}),
            *tasks,
        ]
        self._alarms = [
            found("alarm-1", {"info.name": "Host memory usage"}),
            found("alarm-2", {"info.name": "Network redundancy"}),
        ]

    def RetrievePropertiesEx(self, specs: Any, options: Any) -> Any:  # noqa: N802 - vCenter's name
        (spec,) = specs
        if spec.propSet[0].type.__name__ == "vim.alarm.Alarm":
            return SimpleNamespace(objects=self._alarms, token="")
        return self.ContinueRetrievePropertiesEx("0")

    def ContinueRetrievePropertiesEx(self, token: str) -> Any:  # noqa: N802 - vCenter's name
        number = int(token)
        following = str(number + 1) if number + 1 < len(self._hosts) else ""
        return SimpleNamespace(objects=[self._hosts[number]], token=following)


def found(identity: str, values: dict[str, Any]) -> Any:
    properties = [SimpleNamespace(name=name, val=value) for name, value in values.items()]
    return SimpleNamespace(obj=SimpleNamespace(_moId=identity), propSet=properties)


def content_of(collector: Any) -> Any:
    """Return the content of a vCenter with this property collector."""
    from pyVmomi import vim

    views = SimpleNamespace(CreateContainerView=lambda *_: vim.view.ContainerView("view-1"))
    return SimpleNamespace(propertyCollector=collector, viewManager=views, rootFolder=None)


def serve(monkeypatch: pytest.MonkeyPatch, collector: Collector) -> None:
    """Let the client reach a vCenter with this property collector, without a network."""
    there = content_of(collector)
    monkeypatch.setattr("reconciler.features.esx.client.VCenterSession", lambda *_: nullcontext(there))


@pytest.fixture
def content(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vCenter that can be reached without a network."""
    serve(monkeypatch, Collector())


def task(number: int, state: str, name: str = "EnterMaintenanceMode_Task", **more: str) -> Any:
    """Return a task as pyvmomi reads it: its name is a method."""
    from pyVmomi.VmomiSupport import GetWsdlMethod

    values = {"info.name": GetWsdlMethod("urn:vim25", name), "info.state": state}
    return found(f"task-{number}", values | {f"info.{key}": value for key, value in more.items()})


@pytest.mark.parametrize(
    ("state", "name", "described", "enters"),
    [
        pytest.param("running", "EnterMaintenanceMode_Task", "", True, id="by its name"),
        pytest.param(
            "running", "RebootHost_Task", "HostSystem.enterMaintenanceMode", True, id="by its description"
        ),
        pytest.param("queued", "EnterMaintenanceMode_Task", "", False, id="queued"),
        pytest.param("success", "EnterMaintenanceMode_Task", "", False, id="ended"),
        pytest.param("error", "EnterMaintenanceMode_Task", "", False, id="cancelled"),
        pytest.param("running", "ExitMaintenanceMode_Task", "HostSystem.x", False, id="another task"),
    ],
)
def test_a_host_whose_task_of_entering_maintenance_runs_is_named(
    monkeypatch: pytest.MonkeyPatch, state: str, name: str, described: str, enters: bool
) -> None:
    tasks = [task(1, "success"), task(2, state, name, descriptionId=described)]
    serve(monkeypatch, Collector(*tasks))
    (one,) = VCenterClient(section(server())).ask([""])

    assert one.seen == {"esx-1", "esx-2"}
    assert one.found == ((("esx-2", HostState(entering=True)),) if enters else ())


@pytest.mark.usefixtures("content")
def test_only_the_alarms_of_the_settings_count() -> None:
    chosen = replace(section(server()), alarms=("Host memory usage", "Another"))
    (one,) = VCenterClient(chosen).ask([""])

    assert one.found == (("esx-1", HostState(alarms=("Host memory usage",))),)
    (none,) = VCenterClient(section(server())).ask([""])
    assert none.found == ()


@pytest.mark.usefixtures("content")
def test_a_host_whose_mode_is_not_known_is_not_seen() -> None:
    (one,) = VCenterClient(section(server())).ask([""])

    assert one.seen == {"esx-1", "esx-2"}


@pytest.mark.usefixtures("content")
def test_more_objects_than_a_vcenter_can_have_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.features.esx.client.MOST_HOSTS", 2)
    (one,) = VCenterClient(section(server())).ask([""])

    assert one.problem.endswith("it lists more than 2 objects")
    assert one.seen == frozenset()


class Counting:
    """Counts how often a vCenter without VMs is asked, which answers, or is away."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.asked, self.away = 0.0, 0, False
        self._content = content_of(SimpleNamespace(RetrievePropertiesEx=lambda *_: None))
        self._client = PowerClient(section(server()), clock=lambda: self.now)
        monkeypatch.setattr("reconciler.features.esx.client.VCenterSession", self._session)

    def _session(self, *_: object) -> Any:
        self.asked += 1
        if self.away:
            raise TimeoutError
        return nullcontext(self._content)

    def at(self, now: float, *names: str) -> int:
        """Read these nodes, and return how often vCenter was asked."""
        self.now = now
        self._client.vms([Named(name, name) for name in names or ("a",)])
        return self.asked


def test_an_answer_about_vms_counts_for_some_seconds_and_for_its_nodes_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = Counting(monkeypatch)
    assert there.at(0) == 1
    assert there.at(KEPT - 0.1) == 1
    assert there.at(KEPT) == 2
    assert there.at(KEPT + 1, "a", "b") == 3
    assert there.at(KEPT + 2, "b") == 3


def test_a_vcenter_that_is_away_is_left_alone_for_a_minute_whatever_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = Counting(monkeypatch)
    there.away = True
    assert there.at(0) == 1
    assert there.at(PAUSE - 1, "a", "b") == 1
    there.away = False
    assert there.at(PAUSE) == 2
    assert there.at(PAUSE + 1) == 2
