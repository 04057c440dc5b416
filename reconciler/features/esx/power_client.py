"""Reads the VMs of nodes at vCenter servers, and switches them.

A VM is found once by its name or UUID among all VMs of its vCenter. After that, only the VMs of nodes are
read. Before each switch, the VM is read again in the same session and compared with the node.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from reconciler.features.esx.client import VCenterClient, objects, properties, through, vcenter
from reconciler.features.esx.settings import SECTION, VCenter, VCenters
from reconciler.features.esx.vm import (
    OFF,
    ON,
    POWER_OFF,
    POWER_ON,
    SHUT_DOWN,
    Named,
    NodeVm,
    Switch,
    Vm,
    identify,
)
from reconciler.http.retrying import Guard
from reconciler.model import limits
from reconciler.model.errors import CloudError
from reconciler.settings.schema import Settings
from reconciler.threads import begin_read

log = logging.getLogger(__name__)

PATIENCE = 20.0
"""Seconds for all answers of one vCenter. All are asked at the same time."""

KEPT = 5.0
"""Seconds for which an answer about VMs counts."""

PAUSE = 60.0
"""Seconds after a failure in which a vCenter is not asked again."""

MOST = 100_000
"""VMs of one vCenter, which supports 40,000."""

INDEX = 600.0
"""Seconds for which the names and UUIDs of all VMs count, if each node has a VM among them."""

_IDENTITY = ("name", "config.uuid", "config.instanceUuid")
_STATE = (*_IDENTITY, "runtime.powerState", "guest.toolsRunningStatus")
_TOOLS = "guestToolsRunning"


def for_source(settings: Settings, guard: Guard | None) -> PowerClient:
    """Return the client of the source `vcenter`; without a guard it only reads."""
    return PowerClient(SECTION.of(settings).polled, guard)


class _Known(Struct):
    """What was read of one vCenter, by the clock: all VMs, and those of nodes; or the problem."""

    at: float
    index_at: float = 0.0
    index: tuple[Vm, ...] = ()
    nodes: Mapping[Named, NodeVm] = {}
    problem: str = ""


class PowerClient(VCenterClient):
    """vCenter servers as a SourceClient and a PlatformWriter, which also reads the VMs of nodes."""

    def __init__(
        self, section: VCenters, guard: Guard | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Use these servers; `guard` raises LockLost if the lock is not ours. `clock` is in seconds."""
        super().__init__(section, clock=clock)
        self._guard = guard
        self._known: dict[str, _Known] = {}

    def vms(self, nodes: Sequence[Named]) -> Mapping[str, NodeVm]:
        """Return the VM of each node by the node's name. Raises nothing; one vCenter waits for no other."""
        found: dict[str, NodeVm] = {}
        asked: dict[str, tuple[VCenter, list[Named]]] = {}
        for node in nodes:
            server = self.server_of(node.zone)
            if server is None:
                problem = f"sources.esx.vcenters has none for zone {node.zone or '(none)'}"
                found[node.node] = NodeVm(problem=problem)
            else:
                asked.setdefault(server.url, (server, []))[1].append(node)
        reads = [begin_read("vcenter", partial(self._of_server, *each)) for each in asked.values()]
        for read in reads:
            found.update(read.result())
        return found

    def _of_server(self, server: VCenter, nodes: Sequence[Named]) -> dict[str, NodeVm]:
        now, known = self._clock(), self._known.get(server.url)
        kept = PAUSE if known is not None and known.problem else KEPT
        whole = known is not None and (known.problem or all(node in known.nodes for node in nodes))
        if known is None or not whole or now >= known.at + kept:
            known = self._known[server.url] = self._asked(server, nodes, known)
        if known.problem:
            return {node.node: NodeVm(problem=known.problem) for node in nodes}
        return {node.node: known.nodes[node] for node in nodes}

    def _asked(self, server: VCenter, nodes: Sequence[Named], before: _Known | None) -> _Known:
        try:
            with vcenter(server, PATIENCE) as content:
                index, at = (before.index, before.index_at) if before is not None else ((), 0.0)
                complete = all(any(map(node.may_be, index)) for node in nodes)
                if not complete or self._clock() >= at + INDEX:
                    index, at = all_vms(content), self._clock()
                found = states(content, [vm.id for vm in index if any(node.may_be(vm) for node in nodes)])
                vms = {node: identify(node, found) for node in nodes}
            return _Known(self._clock(), at, index, vms)
        except CloudError as error:
            log.warning("VMs can't be read: url=%s error=%s", server.url, error)
            return _Known(self._clock(), problem=f"{server.url} can't be asked: {error}")

    def perform(self, request: Switch, /) -> None:
        """Switch the VM of a node, or do nothing if it is in that state; waits for no end.

        Raises CloudError where the VM is not the node's, or where vCenter refuses.
        """
        server = self.server_of(request.named.zone)
        if self._guard is None or server is None:
            raise CloudError(f"the VM of {request.node} is not switched by this process")
        self._guard()
        # What was read before does not count any more.
        self._known.pop(server.url, None)
        try:
            with vcenter(server, PATIENCE) as content:
                from pyVmomi import vim

                read = identify(request.named, states(content, [request.vm]))
                if read.vm is None:
                    raise CloudError(f"it is not switched: {read.problem}", status=409)
                if read.vm.state == (ON if request.action is POWER_ON else OFF):
                    return
                vm = vim.VirtualMachine(request.vm, content.propertyCollector._stub)
                self._guard()
                if request.action is SHUT_DOWN:
                    vm.ShutdownGuest()
                elif request.action is POWER_OFF:
                    vm.PowerOffVM_Task()
                elif request.action is POWER_ON:
                    vm.PowerOnVM_Task(None)
        except CloudError as error:
            raise CloudError(f"the VM of {request.node}: {error}", status=error.status) from error


def all_vms(content: Any) -> tuple[Vm, ...]:
    """Return all VMs by their names and UUIDs."""
    from pyVmomi import vim, vmodl

    view = content.viewManager.CreateContainerView(content.rootFolder, [vim.VirtualMachine], True)
    wanted = vmodl.query.PropertyCollector.PropertySpec(type=vim.VirtualMachine, pathSet=list(_IDENTITY))
    return tuple(map(_vm, properties(content, through(view, [wanted]), MOST)))


def states(content: Any, ids: Sequence[str]) -> tuple[Vm, ...]:
    """Return these VMs as they are now."""
    from pyVmomi import vim

    if not ids:
        return ()
    vms = [vim.VirtualMachine(each, None) for each in ids]
    return tuple(map(_vm, properties(content, objects(vim.VirtualMachine, _STATE, vms))))


def _vm(found: Mapping[str, Any]) -> Vm:
    def text(key: str) -> str:
        return limits.text(str(found.get(key) or ""), limits.NAME)

    return Vm(
        text("id"),
        text("name"),
        text("config.uuid"),
        text("config.instanceUuid"),
        text("runtime.powerState"),
        text("guest.toolsRunningStatus") == _TOOLS,
    )
