"""Machines that are objects of the cluster, on a real API server: seen, raised for, marked and deleted."""

from collections.abc import Iterator
from typing import Any

import pytest

from jobs.runtime.machines import MachineProviders
from reconciler.kubernetes.connection import Connection
from reconciler.model.errors import Conflict, LockLost
from reconciler.model.machine import (
    CLUSTER_API,
    KARPENTER,
    OPENSHIFT,
    Machine,
    MachineRef,
    Pool,
    Remove,
    ScaleUp,
)
from reconciler.model.values import replace
from tests.features.machines.all_providers import all_machines
from tests.support.controlplane.machines import NAMESPACE, MachineWorld, machine_name
from tests.support.controlplane.server import ControlPlane

pytestmark = pytest.mark.slow

Object = dict[str, Any]

SETS = (CLUSTER_API, OPENSHIFT)
ALL = (KARPENTER, *SETS)
ANOTHER = "00000000-0000-0000-0000-000000000000"
NODES = ("a", "b", "c")


@pytest.fixture(scope="module")
def kinds(controlplane: ControlPlane) -> ControlPlane:
    """Nothing that earlier tests left; the kinds stay from test to test, as they take long to go."""
    controlplane.start_apiserver()
    controlplane.clean()
    return controlplane


@pytest.fixture
def world(kinds: ControlPlane) -> MachineWorld:
    """No machines yet, but all kinds of them."""
    made = MachineWorld(kinds.api)
    made.clear()
    return made


@pytest.fixture
def connection(controlplane: ControlPlane) -> Iterator[Connection]:
    """To the control plane, as admin, whatever is there."""
    made = Connection(str(controlplane.kubeconfig))
    yield made
    made.close()


@pytest.fixture
def machines(connection: Connection) -> MachineProviders:
    """Reads, and writes without a lock."""
    return all_machines(connection, guard=lambda: None)


def ref(node: str, provider: str = CLUSTER_API) -> MachineRef:
    vm = f"test:///{node}"
    if provider is KARPENTER:
        return MachineRef(node, f"uid-of-{node}", provider, node, provider_id=vm)
    return MachineRef(node, f"uid-of-{node}", provider, machine_name(node), NAMESPACE, provider_id=vm)


def seen(machines: MachineProviders, node: str, provider: str = CLUSTER_API) -> Machine:
    """The machine as a pass observes it."""
    (found,) = machines.machines([ref(node, provider)])
    assert found.problem == ""
    return found


def pool_of(machine: Machine) -> Pool:
    assert machine.pool is not None
    return machine.pool


def nodes(cluster: ControlPlane) -> set[str]:
    return {one["metadata"]["name"] for one in cluster.api.list("nodes")}


def marks(world: MachineWorld, node: str, provider: str) -> Object:
    found = world.machine(machine_name(node), provider)
    assert found is not None
    return dict(found["metadata"].get("annotations", {}))


def writes(cluster: ControlPlane) -> list[tuple[str, str]]:
    """What we have written since the server was started, as verb and resource."""
    entries = cluster.audit_entries("node-maintenance-reconciler", {"patch", "delete", "create", "update"})
    return [(one.verb, one.resource) for one in entries]


# What is seen.


@pytest.mark.parametrize(
    ("provider", "deployment", "kind"),
    [
        pytest.param(CLUSTER_API, True, "MachineDeployment", id="Cluster API"),
        pytest.param(CLUSTER_API, False, "MachineSet", id="Cluster API, a MachineSet of its own"),
        pytest.param(OPENSHIFT, True, "MachineSet", id="OpenShift"),
    ],
)
def test_a_machine_is_read_with_the_topmost_owner_that_keeps_a_number(
    world: MachineWorld, machines: MachineProviders, provider: str, deployment: bool, kind: str
) -> None:
    world.make(NODES, provider=provider, deployment=deployment)

    found = seen(machines, "b", provider)

    shown = world.machine(machine_name("b"), provider)
    assert shown is not None
    assert (found.name, found.uid) == (machine_name("b"), shown["metadata"]["uid"])
    pool = pool_of(found)
    assert pool == Pool(kind, "workers", NAMESPACE, 3, 3, pool.revision, scales=True)
    assert pool.revision == world.all_of(provider, f"{kind.lower()}s")[0]["metadata"]["uid"]


def test_missing_kinds_are_reported(cluster: ControlPlane, machines: MachineProviders) -> None:
    found = machines.machines([ref("a", provider) for provider in (KARPENTER, *SETS)])

    assert all("this cluster has no such API" in one.problem for one in found)


# Asking for one more.


@pytest.mark.parametrize(
    ("provider", "deployment"), [(CLUSTER_API, True), (CLUSTER_API, False), (OPENSHIFT, True)]
)
def test_a_pool_is_raised_once_and_its_owner_makes_another_machine(
    kinds: ControlPlane, world: MachineWorld, machines: MachineProviders, provider: str, deployment: bool
) -> None:
    world.make(NODES, provider=provider, deployment=deployment)
    action = ScaleUp("a", seen(machines, "a", provider), 4)
    machines.scale_up(action)
    before = writes(kinds)

    machines.scale_up(ScaleUp("a", seen(machines, "a", provider), 4))
    assert writes(kinds) == before
    machines.scale_up(action)
    world.settle()

    assert world.wanted(provider=provider) == 4
    assert len(nodes(kinds)) == 4
    assert pool_of(seen(machines, "a", provider)).ready == 4


@pytest.mark.parametrize("number", [2, 7])
def test_a_number_that_another_client_changed_is_a_conflict_or_done(
    world: MachineWorld, machines: MachineProviders, number: int
) -> None:
    world.make(NODES)
    action = ScaleUp("a", seen(machines, "a"), 4)
    world.raise_to(number)

    if number >= 4:
        machines.scale_up(action)
    else:
        with pytest.raises(Conflict, match="workers is not as it was seen: it wants 2 machines, not 3"):
            machines.scale_up(action)

    assert world.wanted() == number


def test_the_number_alone_is_written_also_after_a_new_status(
    kinds: ControlPlane, world: MachineWorld, machines: MachineProviders
) -> None:
    world.make(NODES)
    (before,) = world.all_of(CLUSTER_API, "machinedeployments")
    action = ScaleUp("a", seen(machines, "a"), 4)
    world.patch(CLUSTER_API, "machinedeployments", "workers", {"status": {"readyReplicas": 2}}, "status")
    patches = len(writes(kinds))

    machines.scale_up(action)

    assert len(writes(kinds)) == patches + 1

    (after,) = world.all_of(CLUSTER_API, "machinedeployments")
    assert after["spec"] == {**before["spec"], "replicas": 4}
    assert after["metadata"].get("annotations") == before["metadata"].get("annotations")


# Having one deleted.


@pytest.mark.parametrize("provider", ALL)
def test_a_machine_is_deleted_and_its_node_goes_with_it(
    kinds: ControlPlane, world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    world.make(NODES, provider=provider)

    machines.remove(Remove("b", seen(machines, "b", provider)))
    world.settle()

    left = nodes(kinds)
    assert "b" not in left
    # Its owner brings a new one by itself; Karpenter only once a pod asks for it.
    assert len(left) == (2 if provider is KARPENTER else 3)


@pytest.mark.parametrize("provider", SETS)
def test_a_pool_that_was_raised_is_lowered_after_the_machine_that_is_meant_is_marked(
    kinds: ControlPlane, world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    world.make(NODES, provider=provider)
    machines.scale_up(ScaleUp("b", seen(machines, "b", provider), 4))
    world.settle()
    (new,) = nodes(kinds) - set(NODES)
    before = len(writes(kinds))

    machines.remove(Remove("b", seen(machines, "b", provider), lower=3))
    plural = "machinedeployments" if provider is CLUSTER_API else "machinesets"
    assert writes(kinds)[before:] == [("patch", "machines"), ("patch", plural)]
    key, value = {
        CLUSTER_API: ("cluster.x-k8s.io/delete-machine", "yes"),
        OPENSHIFT: ("machine.openshift.io/delete-machine", "true"),
    }[provider]
    assert marks(world, "b", provider)[key] == value
    world.settle()

    assert world.wanted(provider=provider) == 3
    assert nodes(kinds) == {*NODES, new} - {"b"}


@pytest.mark.parametrize("provider", ALL)
def test_what_goes_or_has_gone_is_left_alone(
    kinds: ControlPlane, world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    world.make(NODES, provider=provider)
    machine = seen(machines, "c", provider)
    world.delete(provider, machine.name)
    going = seen(machines, "c", provider)
    before = writes(kinds)
    for lower in (None, 2):
        machines.remove(Remove("c", going, lower))
    assert writes(kinds) == before
    world.settle()

    for lower in (None, 2):
        machines.remove(Remove("c", machine, lower))

    if provider is not KARPENTER:
        assert world.wanted(provider=provider) == 3
    assert len(world.machines(provider)) == (2 if provider is KARPENTER else 3)


@pytest.mark.parametrize("provider", ALL)
def test_another_machine_of_its_name_is_left_alone(
    kinds: ControlPlane, world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    world.make(NODES, provider=provider)
    machine = replace(seen(machines, "c", provider), uid=ANOTHER)

    with pytest.raises(Conflict):
        machines.remove(Remove("c", machine))
    if provider is not KARPENTER:
        with pytest.raises(Conflict, match="created again"):
            machines.remove(Remove("c", machine, lower=2))
        assert world.wanted(provider=provider) == 3
    world.settle()

    assert nodes(kinds) == set(NODES)


# Who asks.


def test_a_lost_lock_writes_nothing(
    kinds: ControlPlane, world: MachineWorld, machines: MachineProviders, connection: Connection
) -> None:
    def lost() -> None:
        raise LockLost("gone")

    world.make(NODES)
    machine = seen(machines, "a")
    before = writes(kinds)

    for refuses, error in (
        (all_machines(connection, guard=lost), LockLost),
        (all_machines(connection), RuntimeError),
    ):
        with pytest.raises(error):
            refuses.scale_up(ScaleUp("a", machine, 4))
        for lower in (None, 2):
            with pytest.raises(error):
                refuses.remove(Remove("a", machine, lower))
    assert writes(kinds) == before
