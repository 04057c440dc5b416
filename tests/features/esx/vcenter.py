"""A vCenter in the simulated world: a host, whose maintenance waits for its VMs, which are nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reconciler.features.esx.feature import OFF_WITH_HOST
from reconciler.features.esx.settings import INITIATED
from reconciler.features.esx.source import HOST, REBOOT_OK, HostState
from reconciler.features.esx.vm import OFF, ON, POWER_OFF, POWER_ON, Named, NodeVm, Switch, Vm, identify
from reconciler.model.errors import CloudError
from reconciler.model.outcome import ActionKind
from reconciler.model.polling import Listing
from reconciler.model.record import Record, record_of
from reconciler.model.values import replace
from reconciler.run import run_pass
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from reconciler.simulation.api import ProcessKilled
from reconciler.simulation.world import World
from tests.laws.histories import small_world

POWER = "node-maintenance.dev/power"
BASE = """
mode: Enforce
esx: {enabled: true}
sources:
  nodeConditions: {enabled: false}
  imds: {enabled: false}
  esx:
    enabled: true
    rebootOk: true
    every: 10s
    vcenters: [{url: "https://vc.example.com", username: a, password: b}]
uncordon: {settle: 0s}
budget: {maxUnavailable: 3}
"""


def chosen(*, budget: str = "3") -> Settings:
    """Return settings with the feature on."""
    return parse_settings(BASE.replace("maxUnavailable: 3", f"maxUnavailable: {budget}"), "f")


def uuid(number: int) -> str:
    return f"4203aaaa-bbbb-cccc-dddd-00000000000{number}"


@dataclass(slots=True)
class FakeVCenter:
    """A client of the source, with one host under all nodes. A guest shuts down in `takes`.

    `die` kills the process before or after the call of this number; `requests` are those that arrived.
    """

    world: World
    vms_by_name: dict[str, Vm] = field(default_factory=dict)
    host: HostState = HostState(version="8.0.1")
    takes: timedelta | None = timedelta(seconds=10)
    requests: list[tuple[str, ActionKind]] = field(default_factory=list)
    problem: str = ""
    die: tuple[str, int] = ("", 0)
    calls: int = 0
    log: list[str] = field(default_factory=list)

    def ask(self, scopes: Sequence[str], /) -> tuple[Listing[str, HostState], ...]:
        if self.host.entering and all(vm.state == OFF for vm in self.vms_by_name.values()):
            self.host = replace(self.host, entering=False, maintenance=True)
        found = (("h", self.host),)
        return tuple(
            Listing(scope, problem=self.problem) if self.problem else Listing(scope, found, frozenset({"h"}))
            for scope in scopes
        )

    def vms(self, nodes: Sequence[Named]) -> Mapping[str, NodeVm]:
        if self.problem:
            return {node.node: NodeVm(problem=self.problem) for node in nodes}
        return {node.node: identify(node, self.vms_by_name.values()) for node in nodes}

    def perform(self, request: Switch, /) -> None:
        self.calls += 1
        if self.problem:
            raise CloudError(self.problem)
        if self.die == ("before", self.calls):
            raise ProcessKilled
        vm = next(vm for vm in self.vms_by_name.values() if vm.id == request.vm)
        self.requests.append((request.node, request.action))
        node = self.world.cluster.nodes[request.node]
        if request.action is POWER_ON:
            assert not self.host.maintenance
            self.switch(vm.name, ON)
        else:
            assert node.unschedulable
            assert self.world.cluster.pods_on(request.node) == ()
            assert node.annotations[INITIATED] == "true"
            asked = record_of(node, "node-maintenance.dev")
            assert isinstance(asked, Record)
            assert asked.case("default").asked_by(OFF_WITH_HOST.name) is not None
            if request.action is POWER_OFF:
                self.switch(vm.name, OFF)
            elif self.takes is not None:
                self.world.clock.after(self.takes, lambda: self.switch(vm.name, OFF))
        if self.die == ("after", self.calls):
            raise ProcessKilled

    def switch(self, name: str, state: str) -> None:
        """Switch a VM, whoever does it; its node follows."""
        if self.vms_by_name[name].state == state:
            return
        self.vms_by_name[name] = replace(self.vms_by_name[name], state=state)
        self.log.append(f"{name} {state}")
        if state == ON:
            self.world.cluster.node_up(name, booted=False)
        else:
            self.world.cluster.node_down(name)


def esx_world(*, willing: bool = True, tools: bool = True) -> tuple[World, FakeVCenter]:
    """Three nodes on one host."""
    world = small_world()
    there = FakeVCenter(world)
    for number in range(3):
        name = f"n{number}"
        world.cluster.label(name, HOST, "H")
        world.cluster.label(name, REBOOT_OK, "true" if willing else None)
        world.cluster.put_node(replace(world.cluster.nodes[name], system_uuid=uuid(number)))
        there.vms_by_name[name] = Vm(f"vm-{number}", name, uuid(number), "", ON, tools)
    world.clients["vcenter"] = there
    return world, there


def run(
    world: World,
    settings: Settings,
    until: Callable[[], bool] | None = None,
    *,
    most: timedelta = timedelta(minutes=20),
) -> None:
    """Run a pass each 5 s until something is so; a killed process starts again."""
    ends: datetime = world.now + most
    while world.now < ends:
        try:
            run_pass(world.outside, settings, world.now)
            if until is not None and until():
                return
            world.advance(timedelta(seconds=5))
        except ProcessKilled:
            world.restart()
    assert until is None, "it did not come to that"
