"""Machines of simulated nodes, in pools that act like a MachineSet or an agent pool, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct, field

from reconciler.model import machine
from reconciler.model.errors import Conflict, Unreachable
from reconciler.model.machine import Machine, MachineRef, Pool, Remove, ScaleUp
from reconciler.model.node import KARPENTER_LABEL, Condition, Node
from reconciler.model.values import replace
from reconciler.simulation.api import Call, SimulatedApi
from reconciler.simulation.clock import Actor


class MachinePool(Struct):
    """The number of machines that a pool should have, and the nodes of those that it has."""

    name: str
    wanted: int
    members: list[str]
    provider: str = machine.OPENSHIFT
    scales: bool = True
    busy: str = ""
    made: int = 0

    def node(self, name: str, *, ready: bool = True, since: datetime | None = None) -> Node:
        """Return a node with the labels and annotations that name its machine; `since` is aware, UTC."""
        bare = Node(
            name,
            uid="",
            resource_version="",
            labels={"agentpool": self.name},
            conditions=(Condition("Ready", "True" if ready else "False", transition=since),),
        )
        match self.provider:
            case machine.AKS:
                group = "subscriptions/s/resourceGroups/mc_shop/providers/Microsoft.Compute"
                return replace(bare, provider_id=f"azure:///{group}/virtualMachines/{name}")
            case machine.KARPENTER:
                return replace(bare, labels={**bare.labels, KARPENTER_LABEL: self.name})
            case _:
                return replace(bare, annotations={machine.OPENSHIFT_MACHINE: f"machines/machine-{name}"})


class SimulatedMachines(Struct):
    """MachineReader and MachineWriter over the nodes of a simulated cluster.

    Writes call what stands before and after those of the API, as writes of nodes do. `out_of_order` is the
    problem that every read reports. With `refuse`, writes get no answer. If the pools are `slow`, a deleted
    machine is not replaced in the same step.
    """

    api: SimulatedApi
    pools: list[MachinePool] = field(default_factory=list)
    deleting: list[str] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    control_plane: set[str] = field(default_factory=set)
    asked: list[ScaleUp | Remove] = field(default_factory=list)
    out_of_order: str = ""
    refuse: bool = False
    slow: bool = False

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Return each machine as it is now, in order."""
        nodes = self.api.cluster.nodes
        machines = []
        for ref in refs:
            if self.out_of_order:
                machines.append(Machine(ref, problem=self.out_of_order))
                continue
            shown, pool = None, self._pool_of(ref.node)
            if pool is not None:
                of_aks = pool.provider == machine.AKS
                shown = Pool(
                    "agent pool" if of_aks else "MachineSet",
                    pool.name,
                    "machines",
                    pool.wanted,
                    sum(name in nodes and nodes[name].ready for name in pool.members),
                    str(pool.wanted),
                    pool.scales,
                    pool.busy,
                    lowered_by_deletion=of_aks,
                )
            machines.append(
                Machine(
                    ref,
                    name=f"machine-{ref.node}",
                    uid=f"machine-{ref.uid}",
                    pool=shown,
                    deleting=ref.node in self.deleting,
                    control_plane=ref.node in self.control_plane,
                )
            )
        return tuple(machines)

    def scale_up(self, action: ScaleUp) -> None:
        """Ask the machine's pool for one more machine."""
        call = self._before("raise pool", action)
        pool = self._pool_of(action.node)
        if pool is None or action.machine.pool is None or str(pool.wanted) != action.machine.pool.revision:
            raise Conflict("the object has been modified", status=409)
        pool.wanted = max(pool.wanted, action.wanted)
        self._done(call, action)

    def remove(self, action: Remove) -> None:
        """Delete the machine, at once or by scaling its pool down."""
        call = self._before("replace machine", action)
        pool = self._pool_of(action.node)
        if pool is not None and action.node not in self.deleting:
            if action.lower is None:
                self.deleting.append(action.node)
                pool.wanted -= pool.provider == machine.AKS
            else:
                self.marked.append(action.node)
                pool.wanted = min(pool.wanted, action.lower)
        self._done(call, action)

    def step(self, *, ready: bool = True) -> None:
        """Do what providers do over time: remove deleted machines with their nodes, and add missing ones."""
        cluster = self.api.cluster
        for pool in self.pools:
            surplus = len(pool.members) - len(self._going(pool)) - pool.wanted
            self.deleting += [name for name in pool.members if name in self.marked][: max(0, surplus)]
            going = self._going(pool)
            for name in going:
                pool.members.remove(name)
                self.deleting.remove(name)
                if name in cluster.nodes:
                    cluster.delete_node(name, Actor.PLATFORM)
            while len(pool.members) < pool.wanted and not (self.slow and going):
                pool.made += 1
                name = f"{pool.name}-new-{pool.made}"
                cluster.add_node(pool.node(name, ready=ready, since=cluster.clock.now()))
                pool.members.append(name)

    def _going(self, pool: MachinePool) -> list[str]:
        return [name for name in pool.members if name in self.deleting]

    def _pool_of(self, node: str) -> MachinePool | None:
        return next((pool for pool in self.pools if node in pool.members), None)

    def _before(self, what: str, action: ScaleUp | Remove) -> Call:
        if self.refuse:
            raise Unreachable("nobody answers")
        return self.api.begin_write(what, action.node, content=action)

    def _done(self, call: Call, action: ScaleUp | Remove) -> None:
        self.asked.append(action)
        self.api.cluster.note(Actor.US, call.what, action.node)
        self.api.end_write(call)
