"""vCenter as govmomi simulates it, on a free port of loopback: three hosts in a cluster, and one alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reconciler.features.esx.power_client import all_vms, states
from reconciler.features.esx.vm import OFF
from tests.support.controlplane.processes import wait_for
from tests.support.tools.running import Running


class RunningVCenter(Running):
    """Runs inside the context. It accepts every name and password that is not empty."""

    name = "vcsim"

    def __init__(self, program: Path, folder: Path, *, entering: str = "0s", machines: int = 2) -> None:
        """Use this program, and this folder for its log.

        A host with VMs that run takes so long to enter maintenance mode. The host alone, `DC0_H0`, has so
        many VMs, whose guest tools run.
        """
        super().__init__(program, folder / "vcsim.log")
        self._machines = machines
        self._alarms = ["alarm-11", "alarm-12"]
        self._entering = entering

    def arguments(self) -> list[str]:
        """Return its arguments."""
        machines = ["-machines", str(self._machines), "-tools"]
        return ["-listen", self.address, "-entering", self._entering, *machines]

    def serves(self) -> bool:
        """Whether it has printed its address."""
        return "GOVC_URL=" in self._log.read_text(encoding="utf-8")

    def maintenance(self, host: str, *, on: bool = True) -> None:
        """Put a host into maintenance mode, or take it out."""
        with self._content() as content:
            found, _ = _hosts(content)[host]
            _ = found.EnterMaintenanceMode_Task(0) if on else found.ExitMaintenanceMode_Task(0)
            wait_for("its mode", lambda: _hosts(content)[host][1] is on)

    @contextmanager
    def enters_maintenance(self, host: str) -> Iterator[None]:
        """Begin to put a host into maintenance mode, which takes `entering`; the end cancels that."""
        with self._content() as content:
            task = _hosts(content)[host][0].EnterMaintenanceMode_Task(0)
            yield
            task.CancelTask()

    def enter(self, host: str) -> None:
        """Begin to put a host into maintenance mode."""
        with self._content() as content:
            _hosts(content)[host][0].EnterMaintenanceMode_Task(0)

    def is_in_maintenance(self, host: str) -> bool:
        """Whether a host is in maintenance mode."""
        with self._content() as content:
            return _hosts(content)[host][1]

    def rename(self, vm: str, name: str) -> str:
        """Give a VM a name; return its UUID."""
        from pyVmomi import vim

        with self._content() as content:
            (found,) = (each for each in all_vms(content) if each.name == vm)
            vim.VirtualMachine(found.id, content.propertyCollector._GetStub()).Rename_Task(name)
            return found.uuid

    def power(self) -> dict[str, str]:
        """Return the power state of each VM by its name."""
        with self._content() as content:
            ids = [each.id for each in all_vms(content)]
            return {each.name: each.state for each in states(content, ids)}

    def power_off(self, vm: str) -> None:
        """Power a VM off, as somebody does."""
        from pyVmomi import vim

        with self._content() as content:
            (found,) = (each for each in all_vms(content) if each.name == vm)
            vim.VirtualMachine(found.id, content.propertyCollector._GetStub()).PowerOffVM_Task()
        wait_for("its end", lambda: self.power()[vm] == OFF)

    def define_alarm(self, name: str) -> None:
        """Define an alarm of hosts, which events of its own trigger and clear.

        It takes the place of an alarm that the simulator has: pyvmomi can't read its answer to `CreateAlarm`.
        """
        from pyVmomi import vim

        expression = vim.alarm.OrAlarmExpression(
            expression=[
                vim.alarm.EventAlarmExpression(
                    eventType=vim.event.EventEx,
                    eventTypeId=f"{name} {status}",
                    objectType=vim.HostSystem,
                    status=status,
                )
                for status in ("red", "green")
            ]
        )
        spec = vim.alarm.AlarmSpec(name=name, description="", enabled=True, expression=expression)
        with self._content() as content:
            vim.alarm.Alarm(self._alarms.pop(), content.alarmManager._GetStub()).ReconfigureAlarm(spec)

    def alarm(self, host: str, name: str, *, on: bool = True) -> None:
        """Trigger a defined alarm for a host, or clear it."""
        from pyVmomi import vim

        with self._content() as content:
            found, _ = _hosts(content)[host]
            event = vim.event.EventEx(
                key=0,
                chainId=0,
                createdTime=datetime.now(UTC),
                userName="a",
                eventTypeId=f"{name} {'red' if on else 'green'}",
                objectType=vim.HostSystem,
                objectId=found._moId,
            )
            content.eventManager.PostEvent(event)

    @contextmanager
    def _content(self) -> Iterator[Any]:
        from pyVim.connect import Disconnect, SmartConnect

        host, _, port = self.address.partition(":")
        instance = SmartConnect(protocol="http", host=host, port=int(port), user="a", pwd="b")
        try:
            yield instance.RetrieveContent()
        finally:
            Disconnect(instance)


def _hosts(content: Any) -> dict[str, tuple[Any, bool]]:
    """Return each host by its name, and whether it is in maintenance mode."""
    from pyVmomi import vim, vmodl

    # Not by attributes of the hosts: pyvmomi can't read what this simulator answers to those.
    query = vmodl.query.PropertyCollector
    view = content.viewManager.CreateContainerView(content.rootFolder, [vim.HostSystem], True)
    through = query.TraversalSpec(name="all", type=vim.view.ContainerView, path="view", skip=False)
    wanted = query.PropertySpec(type=vim.HostSystem, pathSet=["name", "runtime.inMaintenanceMode"])
    start = query.ObjectSpec(obj=view, skip=True, selectSet=[through])
    spec = query.FilterSpec(objectSet=[start], propSet=[wanted])
    page = content.propertyCollector.RetrievePropertiesEx([spec], query.RetrieveOptions())
    found = [(one.obj, {each.name: each.val for each in one.propSet}) for one in page.objects]
    return {each["name"]: (host, each["runtime.inMaintenanceMode"]) for host, each in found}
