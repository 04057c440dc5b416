"""Machines in memory behind the ports of a pass, whose pools do what real ones do, one step at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from reconciler.errors import Conflict, Unreachable
from reconciler.machines import aks, karpenter, openshift
from reconciler.machines.registry import machine_of
from reconciler.model.machine import Machine, MachineRef, Pool, Remove, ScaleUp
from reconciler.model.node import Node
from tests.support import builders
from tests.support.builders import NOW
from tests.support.fakes.cluster import FakeCluster, Write


@dataclass(slots=True)
class FakePool:
    """A MachineSet, or an agent pool: how many machines it is to have, and the nodes of those it has."""

    name: str
    wanted: int
    members: list[str]
    provider: str = openshift.NAME
    scales: bool = True
    busy: str = ""
    made: int = 0


@dataclass(slots=True)
class FakeMachines:
    """The machines of a FakeCluster's nodes. `out_of_order` is what anybody who asks is told.

    Where they are `slow`, no new machine comes in the step in which an old one goes.
    """

    cluster: FakeCluster
    pools: list[FakePool] = field(default_factory=list)
    deleting: list[str] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    control_plane: set[str] = field(default_factory=set)
    asked: list[ScaleUp | Remove] = field(default_factory=list)
    out_of_order: str = ""
    refuse: bool = False
    slow: bool = False

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Each as it is now."""
        return tuple(self._machine(ref) for ref in refs)

    def scale_up(self, action: ScaleUp) -> None:
        """Have one machine more."""
        self._write("raise pool", action)
        pool = self._pool_of(action.node)
        assert pool is not None
        if action.machine.pool is None or str(pool.wanted) != action.machine.pool.revision:
            raise Conflict("the object has been modified", status=409)
        pool.wanted = max(pool.wanted, action.wanted)
        self._done("raise pool", action)

    def remove(self, action: Remove) -> None:
        """Have the machine deleted, at once or by lowering its pool."""
        self._write("replace machine", action)
        pool = self._pool_of(action.node)
        if pool is not None and action.node not in self.deleting:
            if action.lower is None:
                self.deleting.append(action.node)
                pool.wanted -= pool.provider == aks.NAME
            else:
                self.marked.append(action.node)
                pool.wanted = min(pool.wanted, action.lower)
        self._done("replace machine", action)

    def step(self, ready: bool = True) -> None:
        """What the providers do in a while: machines go with their nodes, missing ones come."""
        for pool in self.pools:
            surplus = len(pool.members) - len(self._going(pool)) - pool.wanted
            for name in [one for one in pool.members if one in self.marked][: max(0, surplus)]:
                self.deleting.append(name)
            going = self._going(pool)
            for name in going:
                pool.members.remove(name)
                self.deleting.remove(name)
                self.cluster.objects.pop(name, None)
                self.cluster.pods_on.pop(name, None)
            while len(pool.members) < pool.wanted and not (self.slow and going):
                pool.made += 1
                name = f"{pool.name}-new-{pool.made}"
                made = node_of(pool, name, uid=f"uid-{name}-{self.cluster.revision}", ready=ready)
                self.cluster.put(made)
                pool.members.append(name)

    def _going(self, pool: FakePool) -> list[str]:
        return [name for name in pool.members if name in self.deleting]

    def _machine(self, ref: MachineRef) -> Machine:
        if self.out_of_order:
            return Machine(ref, problem=self.out_of_order)
        pool = self._pool_of(ref.node)
        return Machine(
            ref,
            name=f"machine-{ref.node}",
            uid=f"machine-{ref.uid}",
            pool=self._shown(pool) if pool is not None else None,
            deleting=ref.node in self.deleting,
            control_plane=ref.node in self.control_plane,
        )

    def _shown(self, pool: FakePool) -> Pool:
        ready = sum(1 for name in pool.members if self.cluster.objects[name].ready)
        kind = "agent pool" if pool.provider == aks.NAME else "MachineSet"
        revision = str(pool.wanted)
        return Pool(
            kind,
            pool.name,
            "machines",
            pool.wanted,
            ready,
            revision,
            pool.scales,
            pool.busy,
            lowered_by_deletion=pool.provider == aks.NAME,
        )

    def _pool_of(self, node: str) -> FakePool | None:
        return next((pool for pool in self.pools if node in pool.members), None)

    def _write(self, verb: str, action: ScaleUp | Remove) -> None:
        if self.refuse:
            raise Unreachable("nobody answers")
        self.cluster.before(Write(verb, action.node, action))

    def _done(self, verb: str, action: ScaleUp | Remove) -> None:
        self.asked.append(action)
        write = Write(verb, action.node, action)
        self.cluster.writes.append(write)
        self.cluster.after(write)


def node_of(pool: FakePool, name: str, **more: object) -> Node:
    """A node of the pool that says whose it is, as its provider has it say."""
    more.setdefault("ready_since", NOW)
    made = builders.node(name, pool=pool.name, **more)  # type: ignore[arg-type]  # any keyword of builders.node
    if pool.provider == aks.NAME:
        place = "subscriptions/s/resourceGroups/mc_shop/providers/Microsoft.Compute"
        return replace(made, provider_id=f"azure:///{place}/virtualMachines/{name}")
    if pool.provider == karpenter.NAME:
        return replace(made, labels={**made.labels, "karpenter.sh/nodepool": pool.name})
    annotations = {**made.annotations, "machine.openshift.io/machine": f"machines/machine-{name}"}
    found = replace(made, annotations=annotations)
    assert machine_of(found) is not None
    return found


def in_pool(
    cluster: FakeCluster,
    *names: str,
    change: Callable[[FakePool], None] = lambda pool: None,
    name: str = "np",
) -> tuple[FakeMachines, FakePool]:
    """Put nodes of one pool into the cluster, and return who has their machines."""
    pool = FakePool(name, len(names), list(names))
    change(pool)
    cluster.put(*(node_of(pool, one, ready_since=builders.LONG_AGO) for one in names))
    return FakeMachines(cluster, [pool]), pool
