"""Simulated worlds for tests: pods that end at once, drains without delay, and whole passes over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary

from reconciler.model.machine import OPENSHIFT
from reconciler.model.node import Node
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.pod import Pod
from reconciler.passes.store import Store
from reconciler.run import PARTS, run_pass
from reconciler.settings.schema import Settings
from reconciler.simulation.clock import Actor
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.simulation.machines import MachinePool, SimulatedMachines
from reconciler.simulation.world import SteppedDrainer, World
from tests.support.builders import LONG_AGO, NOW


def world_of(nodes: Iterable[Node] = (), pods: Iterable[Pod] = (), *, start: datetime = NOW) -> World:
    """Return a world of these nodes and pods in which nothing takes time."""
    world = World(start, latency=timedelta())
    world.cluster.bare_pods_stop_after = timedelta()
    for node in nodes:
        world.cluster.add_node(node)
    for pod in pods:
        world.cluster.add_pod(pod)
    return world


def maintenances(cluster: SimulatedCluster) -> Mapping[str, Any]:
    """Return the NodeMaintenance objects by name; none without their CRD, or the feature."""
    return cluster.others.get("nodemaintenances", {})


def look(world: World, settings: Settings, now: datetime | None = None) -> tuple[Plan, tuple[Outcome, ...]]:
    """Run one whole pass; `now` (aware) is what the pass believes, the world's own time by default.

    The drains that it orders do nothing before the clock moves: see `carry_on`.
    """
    return run_pass(world.outside, settings, now or world.now, store_of(world))


_STORES: WeakKeyDictionary[SteppedDrainer, Store] = WeakKeyDictionary()


def store_of(world: World) -> Store:
    """Return the store of the world's running process. Another process has another drainer, too."""
    return _STORES.setdefault(world.drainer, Store(PARTS))


def carry_on(world: World) -> None:
    """Let everything happen that can happen at this moment."""
    world.clock.advance(world.now)


def starts_on_open_nodes(world: World) -> list[str]:
    """Return the nodes that were not cordoned when their drain was ordered."""
    return [one.node for one in world.log.of(Actor.US, "drain ordered") if one.detail != "cordoned"]


def in_pool(
    world: World, *names: str, provider: str = OPENSHIFT, scales: bool = True
) -> tuple[SimulatedMachines, MachinePool]:
    """Put nodes of one pool into the world, and have their machines asked for from now on."""
    pool = MachinePool("np", len(names), list(names), provider, scales)
    for name in names:
        world.cluster.add_node(pool.node(name, since=LONG_AGO))
    world.machines = SimulatedMachines(world.api, [pool])
    return world.machines, pool
