"""The simulated machines: pools that grow, shrink and replace as their providers do."""

from __future__ import annotations

import pytest

from reconciler.model.errors import Conflict, Unreachable
from reconciler.model.machine import AKS, OPENSHIFT, Machine, MachineRef, Remove, ScaleUp
from reconciler.simulation.machines import MachinePool, SimulatedMachines
from reconciler.simulation.world import World
from tests.simulation.building import START


def pool_of_two(provider: str = OPENSHIFT) -> tuple[World, SimulatedMachines]:
    """A world with one pool of two nodes, and who has their machines."""
    there = World(START)
    pool = MachinePool("np", 2, ["a", "b"], provider)
    for name in pool.members:
        there.cluster.add_node(pool.node(name))
    return there, SimulatedMachines(there.api, [pool])


def machine(machines: SimulatedMachines, name: str = "a") -> Machine:
    """The machine of a node, as its provider shows it."""
    node = machines.api.cluster.nodes[name]
    (shown,) = machines.machines([MachineRef(name, node.uid, machines.pools[0].provider, name)])
    return shown


def test_a_deleted_machine_goes_with_its_node_and_a_new_one_comes() -> None:
    there, machines = pool_of_two()
    machines.remove(Remove("a", machine(machines)))
    assert machine(machines).deleting
    machines.step()

    assert sorted(there.cluster.nodes) == ["b", "np-new-1"]
    assert [call.what for call in there.api.done] == ["replace machine"]


def test_a_pool_of_aks_shrinks_with_a_deleted_machine() -> None:
    there, machines = pool_of_two(AKS)
    machines.remove(Remove("a", machine(machines)))
    machines.step()

    assert sorted(there.cluster.nodes) == ["b"]


def test_a_raised_pool_gets_one_more_and_loses_the_marked_one_when_it_is_lowered() -> None:
    there, machines = pool_of_two()
    machines.scale_up(ScaleUp("a", machine(machines), 3))
    machines.step()
    assert len(there.cluster.nodes) == 3

    machines.remove(Remove("a", machine(machines), lower=2))
    machines.step()
    assert sorted(there.cluster.nodes) == ["b", "np-new-1"]


def test_a_pool_that_was_changed_since_it_was_seen_is_not_raised() -> None:
    _, machines = pool_of_two()
    seen = machine(machines)
    machines.pools[0].wanted = 4

    with pytest.raises(Conflict):
        machines.scale_up(ScaleUp("a", seen, 3))


def test_without_an_answer_nothing_is_done() -> None:
    _, machines = pool_of_two()
    machines.refuse = True
    with pytest.raises(Unreachable):
        machines.remove(Remove("a", machine(machines)))

    assert machines.asked == []
    assert machines.deleting == []
