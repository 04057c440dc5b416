"""Machines that are objects of the cluster, on a real API server: seen, raised for, marked and deleted."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reconciler.features.machines import aks, cluster_api, karpenter, openshift
from reconciler.features.machines.providers import MachineProviders
from reconciler.http.retrying import TRIES
from reconciler.kubernetes.connection import Connection
from reconciler.model.errors import Conflict, Forbidden, LockLost, NotFound, Rejected
from reconciler.model.machine import Machine, MachineRef, Pool, Remove, ScaleUp
from reconciler.model.structs import replace
from tests.real.clients.conftest import StubMaker
from tests.support.controlplane.api import ApiError
from tests.support.controlplane.machines import NAMESPACE, MachineWorld, crd, install, machine_name
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.waiting import wait_for
from tests.support.replacing import all_machines
from tests.support.stub import Answer, Asked, json_answer, status

pytestmark = pytest.mark.slow

Object = dict[str, Any]

KARPENTER, CLUSTER_API, OPENSHIFT = (
    karpenter.NAME,
    cluster_api.NAME,
    openshift.NAME,
)
SETS = (CLUSTER_API, OPENSHIFT)
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


def ref(node: str, provider: str = CLUSTER_API, name: str | None = None) -> MachineRef:
    vm = f"test:///{node}"
    if provider is KARPENTER:
        return MachineRef(node, f"uid-of-{node}", provider, node, provider_id=vm)
    named = name or machine_name(node)
    return MachineRef(node, f"uid-of-{node}", provider, named, NAMESPACE, provider_id=vm)


def seen(machines: MachineProviders, node: str, provider: str = CLUSTER_API) -> Machine:
    """The machine as a pass observes it."""
    return of(machines, ref(node, provider))


def of(machines: MachineProviders, asked: MachineRef) -> Machine:
    (found,) = machines.machines([asked])
    assert found.problem == ""
    return found


def pool_of(machine: Machine) -> Pool:
    assert machine.pool is not None
    return machine.pool


def problem(machines: MachineProviders, asked: MachineRef) -> str:
    (found,) = machines.machines([asked])
    assert found == Machine(asked, problem=found.problem)
    assert "\n" not in found.problem
    return found.problem


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


def test_a_node_claim_is_found_by_its_node_and_its_pool_keeps_no_number(
    world: MachineWorld, machines: MachineProviders
) -> None:
    world.make(NODES, provider=KARPENTER, pool="default")

    found = seen(machines, "b", KARPENTER)

    assert (found.name, found.deleting, found.control_plane) == (machine_name("b"), False, False)
    assert found.pool == Pool("NodePool", "default")
    assert found.uid == (world.machine(found.name, KARPENTER) or {})["metadata"]["uid"]


def test_a_node_claim_of_no_pool_has_none(world: MachineWorld, machines: MachineProviders) -> None:
    world.make(["a"], provider=KARPENTER)
    labels = {"metadata": {"labels": {"karpenter.sh/nodepool": None}}}
    world.patch(KARPENTER, "nodeclaims", machine_name("a"), labels)

    assert seen(machines, "a", KARPENTER).pool is None


def test_claims_are_listed_once_for_all_nodes_and_not_at_all_for_none(
    world: MachineWorld, machines: MachineProviders, kinds: ControlPlane
) -> None:
    world.make(NODES, provider=KARPENTER)
    world.make(["d"])
    before = lists_of_claims(kinds)

    machines.machines([ref("d")])
    assert lists_of_claims(kinds) == before
    machines.machines([ref(node, KARPENTER) for node in NODES])
    assert lists_of_claims(kinds) == before + 1


def lists_of_claims(cluster: ControlPlane) -> int:
    entries = cluster.audit_entries("node-maintenance-reconciler", {"list"})
    return sum(one.resource == "nodeclaims" for one in entries)


@pytest.fixture
def older_karpenter(cluster: ControlPlane) -> Iterator[ControlPlane]:
    """A cluster whose Karpenter serves v1beta1 alone."""
    older = crd("nodeclaims.karpenter.sh")
    older["spec"]["versions"][0]["name"] = "v1beta1"
    cluster.api.create("customresourcedefinitions", older)
    wait_for("the kind", lambda: served(cluster, "apis/karpenter.sh/v1beta1/nodeclaims"))
    yield cluster
    cluster.clean()


def test_where_karpenter_serves_an_older_version_that_one_is_asked_for(
    older_karpenter: ControlPlane, machines: MachineProviders
) -> None:
    api, place = older_karpenter.api, "apis/karpenter.sh/v1beta1/nodeclaims"
    claim = {"apiVersion": "karpenter.sh/v1beta1", "kind": "NodeClaim", "metadata": {"name": "x"}}
    api.request("POST", place, claim)
    patch = {"Content-Type": "application/merge-patch+json"}
    api.request(
        "PATCH", f"{place}/x/status", {"status": {"nodeName": "a", "providerID": "test:///a"}}, headers=patch
    )

    found = seen(machines, "a", KARPENTER)
    machines.remove(Remove("a", found))

    assert found.name == "x"
    assert api.request("GET", place)["items"] == []


def served(cluster: ControlPlane, path: str) -> bool:
    try:
        return "items" in cluster.api.request("GET", path)
    except ApiError as error:
        if error.status not in (404, 429):
            raise
        return False


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
    assert pool.revision == world.all_of(provider, f"{kind.lower()}s")[0]["metadata"]["resourceVersion"]


@pytest.mark.parametrize("provider", SETS)
def test_only_nodes_that_are_ready_are_counted(
    world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    world.make(NODES, provider=provider)
    world.ready = False
    world.raise_to(4, provider)
    world.step()

    pool = pool_of(seen(machines, "a", provider))
    assert (pool.wanted, pool.ready) == (4, 3)

    (new,) = {one["status"]["nodeRef"]["name"] for one in world.machines(provider)} - set(NODES)
    world.get_ready(new)
    world.step()
    assert pool_of(seen(machines, "a", provider)).ready == 4


def test_a_pool_that_says_no_number_wants_one(world: MachineWorld, machines: MachineProviders) -> None:
    world.make(["a"])
    world.patch(CLUSTER_API, "machinedeployments", "workers", {"spec": {"replicas": None}, "status": None})
    world.patch(CLUSTER_API, "machinedeployments", "workers", {"status": {"readyReplicas": None}}, "status")

    pool = pool_of(seen(machines, "a"))

    assert (pool.wanted, pool.ready) == (1, 0)


@pytest.mark.parametrize("provider", SETS)
@pytest.mark.parametrize("bound", ["min", "max"])
def test_a_pool_of_an_autoscaler_is_not_scaled_up(
    world: MachineWorld, machines: MachineProviders, provider: str, bound: str
) -> None:
    world.make(["a"], provider=provider, autoscaled=True)
    plural = "machinedeployments" if provider is CLUSTER_API else "machinesets"
    group = "cluster.x-k8s.io" if provider is CLUSTER_API else "machine.openshift.io"
    other = {"min": "max", "max": "min"}[bound]
    gone = {f"{group}/cluster-api-autoscaler-node-group-{other}-size": None}
    world.patch(provider, plural, "workers", {"metadata": {"annotations": gone}})

    assert not pool_of(seen(machines, "a", provider)).scales


def test_what_a_cluster_class_says_is_not_ours_to_raise(
    world: MachineWorld, machines: MachineProviders
) -> None:
    world.make(["a"])
    owned = {"metadata": {"labels": {"topology.cluster.x-k8s.io/owned": ""}}}
    world.patch(CLUSTER_API, "machinedeployments", "workers", owned)

    assert not pool_of(seen(machines, "a")).scales


def test_a_set_whose_owner_we_don_t_know_is_not_ours_to_raise(
    world: MachineWorld, machines: MachineProviders
) -> None:
    world.make(["a"], deployment=False)
    owner = {"apiVersion": "example.com/v1", "kind": "Fleet", "name": "x", "uid": "u", "controller": True}
    world.patch(CLUSTER_API, "machinesets", "workers", {"metadata": {"ownerReferences": [owner]}})

    pool = pool_of(seen(machines, "a"))

    assert (str(pool), pool.scales) == ("MachineSet workers", False)


@pytest.mark.parametrize(
    ("plural", "name"),
    [("machines", "m-a"), ("machinesets", "workers-7c9f"), ("machinedeployments", "workers")],
)
def test_what_is_paused_anywhere_is_busy(
    world: MachineWorld, machines: MachineProviders, plural: str, name: str
) -> None:
    world.make(["a"])
    assert pool_of(seen(machines, "a")).busy == ""
    # The annotation counts with any value.
    world.patch(CLUSTER_API, plural, name, {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}})

    assert pool_of(seen(machines, "a")).busy == "MachineDeployment workers is paused"


@pytest.mark.parametrize("reported", ["updatedReplicas", "upToDateReplicas"])
def test_a_rollout_is_waited_for(world: MachineWorld, machines: MachineProviders, reported: str) -> None:
    world.make(NODES)
    numbers = {"updatedReplicas": None, "upToDateReplicas": None, reported: 2}
    world.patch(CLUSTER_API, "machinedeployments", "workers", {"status": numbers}, "status")

    assert "rolling out a change: 2 of 3" in pool_of(seen(machines, "a")).busy


@pytest.mark.parametrize(
    ("authority", "busy"), [("MachineAPI", False), ("ClusterAPI", True), ("Migrating", True)]
)
def test_an_openshift_machine_that_moves_over_to_cluster_api_is_busy(
    world: MachineWorld, machines: MachineProviders, authority: str, busy: bool
) -> None:
    world.make(["a"], provider=OPENSHIFT)
    world.patch(
        OPENSHIFT, "machines", machine_name("a"), {"status": {"authoritativeAPI": authority}}, "status"
    )

    reported = pool_of(seen(machines, "a", OPENSHIFT)).busy

    assert reported == (f"MachineSet workers is controlled by {authority}" if busy else "")


@pytest.mark.parametrize("provider", SETS)
def test_a_control_plane_is_recognized_by_its_owner(
    world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    world.make(["a"], provider=provider, control_plane=True)

    found = seen(machines, "a", provider)

    assert (found.control_plane, found.pool) == (True, None)


@pytest.mark.parametrize(
    ("provider", "label"),
    [
        (CLUSTER_API, {"cluster.x-k8s.io/control-plane": ""}),
        (OPENSHIFT, {"machine.openshift.io/cluster-api-machine-role": "master"}),
    ],
)
def test_a_control_plane_is_recognized_by_its_label_even_in_a_set(
    world: MachineWorld, machines: MachineProviders, provider: str, label: Object
) -> None:
    world.make(["a"], provider=provider)
    world.patch(provider, "machines", machine_name("a"), {"metadata": {"labels": label}})

    found = seen(machines, "a", provider)

    assert (found.control_plane, found.pool) == (True, None)


def test_a_worker_of_openshift_is_no_control_plane(world: MachineWorld, machines: MachineProviders) -> None:
    world.make(["a"], provider=OPENSHIFT)
    role = {"machine.openshift.io/cluster-api-machine-role": "worker"}
    world.patch(OPENSHIFT, "machines", machine_name("a"), {"metadata": {"labels": role}})

    assert not seen(machines, "a", OPENSHIFT).control_plane


@pytest.mark.parametrize("provider", SETS)
def test_a_machine_without_an_owner_has_no_pool(
    world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    world.make(["a"], provider=provider)
    world.patch(provider, "machines", machine_name("a"), {"metadata": {"ownerReferences": None}})

    found = seen(machines, "a", provider)

    assert (found.pool, found.control_plane) == (None, False)


@pytest.mark.parametrize("provider", [KARPENTER, *SETS])
def test_a_machine_that_is_being_deleted_is_read_as_such(
    world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    world.make(["a"], provider=provider)
    world.delete(provider, machine_name("a"))

    assert seen(machines, "a", provider).deleting


# Machines that can't be identified.


def test_a_machine_of_a_machine_pool_is_not_replaced(world: MachineWorld, machines: MachineProviders) -> None:
    world.make(["a"])
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "name": "mp", "uid": "u"}
    world.patch(
        CLUSTER_API,
        "machines",
        machine_name("a"),
        {"metadata": {"ownerReferences": [{**owner, "controller": True}]}},
    )

    assert "MachinePool mp" in problem(machines, ref("a"))


@pytest.mark.parametrize("provider", SETS)
def test_an_annotation_that_names_another_node_s_machine_is_not_believed(
    world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    world.make(NODES, provider=provider)

    reported = problem(machines, ref("a", provider, name=machine_name("b")))

    assert reported == f"Machine {NAMESPACE}/m-b is of node b, not of this one"


def test_a_machine_without_a_node_is_of_no_node(world: MachineWorld, machines: MachineProviders) -> None:
    world.make(["a"])
    world.patch(CLUSTER_API, "machines", machine_name("a"), {"status": None}, "status")

    assert "of no node" in problem(machines, ref("a"))


@pytest.mark.parametrize("name", ["../../secrets/x", "a/b", "", "A", "a?x=y", "a%2Fb"])
def test_a_name_that_can_be_none_is_never_asked_for(
    kinds: ControlPlane, world: MachineWorld, machines: MachineProviders, name: str
) -> None:
    asked = replace(ref("a"), name=name)

    assert "there can be no Machine" in problem(machines, asked)
    assert "there can be no Machine" in problem(machines, replace(ref("a"), namespace=name))


@pytest.mark.parametrize("provider", SETS)
def test_a_missing_machine_is_reported_in_words(
    world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    assert problem(machines, ref("a", provider)) == f"there is no Machine {NAMESPACE}/m-a"


def test_a_missing_set_is_reported_in_words(stub: StubMaker) -> None:
    owner = {"apiVersion": "cluster.x-k8s.io/v1", "kind": "MachineSet", "name": "workers", "controller": True}

    def answer(asked: Asked) -> Answer:
        if asked.path == "/apis/cluster.x-k8s.io":
            return json_answer({"preferredVersion": {"version": "v1"}})
        if asked.path.endswith("/machines/m-a"):
            meta = {"name": "m-a", "ownerReferences": [owner]}
            spec, state = {"providerID": "test:///a"}, {"nodeRef": {"name": "a"}}
            return json_answer({"metadata": meta, "spec": spec, "status": state})
        return status(404, "NotFound", "not found")

    _, connection = stub(answer)

    assert problem(all_machines(connection), ref("a")) == f"there is no MachineSet {NAMESPACE}/workers"


@pytest.mark.parametrize("count", [0, 2])
def test_a_node_with_no_claim_or_two_is_reported_in_words(
    world: MachineWorld, machines: MachineProviders, count: int
) -> None:
    world.make(["a", "b"], provider=KARPENTER)
    name = "a" if count else "c"
    world.patch(KARPENTER, "nodeclaims", machine_name("b"), {"status": {"nodeName": name}}, "status")

    assert (
        problem(machines, ref("a" if count else "b", KARPENTER))
        == f"{count or 'no'} NodeClaims are of this node"
    )


@pytest.mark.parametrize("provider", [KARPENTER, *SETS])
@pytest.mark.parametrize("says", ["test:///b", "", "test:///a/", "TEST:///a", "x" * 5000])
def test_a_machine_of_another_vm_than_the_node_s_is_not_its_own(
    world: MachineWorld, machines: MachineProviders, provider: str, says: str
) -> None:
    world.make(["a", "b"], provider=provider)

    reported = problem(machines, replace(ref("a", provider), provider_id=says))

    assert "is of test:///a" in reported
    assert len(reported) < 500


@pytest.mark.parametrize("provider", [KARPENTER, *SETS])
def test_a_machine_that_names_no_vm_is_of_no_node_yet(
    world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    world.make(["a"], provider=provider)
    name = machine_name("a")
    if provider == KARPENTER:
        world.patch(provider, "nodeclaims", name, {"status": {"providerID": None}}, "status")
    else:
        world.patch(provider, "machines", name, {"spec": {"providerID": None}})

    for says in ("test:///a", ""):
        reported = problem(machines, replace(ref("a", provider), provider_id=says))
        assert "names no providerID yet" in reported


@pytest.mark.parametrize("provider", SETS)
def test_a_machine_of_an_earlier_node_of_that_name_is_not_this_one_s(
    world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    world.make(["a"], provider=provider)
    reference = {"name": "a", "uid": "uid-of-a"}
    world.patch(provider, "machines", machine_name("a"), {"status": {"nodeRef": reference}}, "status")

    assert seen(machines, "a", provider).name == machine_name("a")
    reported = problem(machines, replace(ref("a", provider), uid=ANOTHER))
    assert "is of an earlier node a" in reported


@pytest.mark.parametrize("provider", SETS)
@pytest.mark.parametrize(
    ("owner", "words"),
    [({"uid": ANOTHER}, "is not the one that owns"), ({"name": "../machines/m-a"}, "there can be no")],
)
def test_an_owner_that_is_another_object_gives_the_machine_no_pool(
    world: MachineWorld, machines: MachineProviders, provider: str, owner: Object, words: str
) -> None:
    world.make(["a"], provider=provider)
    found = world.machine(machine_name("a"), provider)
    assert found is not None
    (first,) = found["metadata"]["ownerReferences"]
    world.patch(
        provider, "machines", machine_name("a"), {"metadata": {"ownerReferences": [{**first, **owner}]}}
    )

    assert words in problem(machines, ref("a", provider))


@pytest.mark.parametrize("provider", [KARPENTER, *SETS])
def test_missing_kinds_are_reported(cluster: ControlPlane, machines: MachineProviders, provider: str) -> None:
    assert "this cluster has no such API" in problem(machines, ref("a", provider))


def test_a_machine_of_aks_is_not_looked_for_in_the_cluster(machines: MachineProviders) -> None:
    asked = MachineRef("a", "u", aks.NAME, "a", pool="np")

    assert "replace.aks.cluster" in problem(machines, asked)


@pytest.mark.parametrize(
    ("plural", "name", "broken"),
    [
        ("machines", "m-a", {"status": {"nodeRef": "a"}}),
        ("machinesets", "one-7c9f", {"status": {"readyReplicas": "many"}}),
        ("machinedeployments", "one", {"status": {"updatedReplicas": []}}),
    ],
)
def test_one_broken_object_spoils_no_other(
    world: MachineWorld, machines: MachineProviders, plural: str, name: str, broken: Object
) -> None:
    world.make(["a"], pool="one")
    world.make(["b"], pool="two")
    world.patch(CLUSTER_API, plural, name, broken, "status")

    first, second = machines.machines([ref("a"), ref("b")])

    assert f"{NAMESPACE}/{name} can't be read" in first.problem
    assert second.problem == ""
    assert pool_of(second).name == "two"


def test_one_broken_claim_spoils_no_other(world: MachineWorld, machines: MachineProviders) -> None:
    world.make(NODES, provider=KARPENTER)
    world.patch(KARPENTER, "nodeclaims", machine_name("a"), {"status": {"nodeName": ["a"]}}, "status")

    first, second = machines.machines([ref("a", KARPENTER), ref("b", KARPENTER)])

    assert first.problem == "no NodeClaims are of this node, and 1 can't be read"
    assert second.problem == ""


def test_one_missing_kind_spoils_no_other(cluster: ControlPlane, machines: MachineProviders) -> None:
    world = MachineWorld(cluster.api, providers=[OPENSHIFT])
    world.make(["a"], provider=OPENSHIFT)

    found = machines.machines([ref("x", KARPENTER), ref("y"), ref("a", OPENSHIFT)])

    assert [bool(one.problem) for one in found] == [True, True, False]
    assert [one.ref.node for one in found] == ["x", "y", "a"]


def test_a_machine_of_the_same_name_in_another_api_is_another(
    world: MachineWorld, machines: MachineProviders
) -> None:
    world.make(["a"], pool="one")
    world.make(["a"], pool="two", provider=OPENSHIFT)

    first, second = machines.machines([ref("a"), ref("a", OPENSHIFT)])

    assert (pool_of(first).name, pool_of(second).name) == ("one", "two")


@pytest.mark.parametrize("provider", [KARPENTER, *SETS])
def test_what_we_may_not_read_is_reported_in_words(
    kinds: ControlPlane, world: MachineWorld, provider: str
) -> None:
    world.make(["a"], provider=provider)
    wait_for("the account", lambda: kinds.api.find("serviceaccounts", "default"))
    connection = Connection(str(kinds.kubeconfig_for("default")))

    try:
        reported = problem(all_machines(connection), ref("a", provider))
    finally:
        connection.close()

    assert reported.startswith("we have no right to read ")
    assert "403" in reported
    assert "is forbidden" in reported


def test_without_an_answer_the_rest_is_not_requested(stub: StubMaker) -> None:
    server, connection = stub(lambda _: status(503, message="away", Retry_After="60"))

    first, second, third = all_machines(connection).machines(
        [ref("a"), ref("b", OPENSHIFT), ref("c", KARPENTER)]
    )

    assert {asked.path for asked in server.asked} == {"/apis/cluster.x-k8s.io"}
    assert "the API cluster.x-k8s.io can't be read" in first.problem
    for other in (second, third):
        assert "can't be read" in other.problem
        assert "away" in other.problem


def test_an_api_without_a_preferred_version_is_reported(stub: StubMaker) -> None:
    _, connection = stub(lambda _: json_answer({"kind": "APIGroup"}))

    assert "no preferred version" in problem(all_machines(connection), ref("a"))


def test_a_version_that_an_upgrade_brings_is_taken_up_by_the_same_process(stub: StubMaker) -> None:
    preferred = iter(["v1", "v2"])

    def answer(asked: Asked) -> Answer:
        if asked.path == "/apis/cluster.x-k8s.io":
            return json_answer({"preferredVersion": {"version": next(preferred)}})
        return status(404, "NotFound", "not found")

    server, connection = stub(answer)
    ours = all_machines(connection)

    ours.machines([ref("a"), ref("b")])
    ours.machines([ref("a")])

    versions = [asked.path.split("/")[3] for asked in server.asked if "/machines/" in asked.path]
    assert versions == ["v1", "v1", "v2"]


# Asking for one more.


@pytest.mark.parametrize("provider", SETS)
@pytest.mark.parametrize("deployment", [True, False])
def test_a_pool_is_raised_and_its_owner_makes_another_machine(
    kinds: ControlPlane,
    world: MachineWorld,
    machines: MachineProviders,
    provider: str,
    deployment: bool,
) -> None:
    world.make(NODES, provider=provider, deployment=deployment)

    machines.scale_up(ScaleUp("a", seen(machines, "a", provider), 4))
    world.settle()

    assert world.wanted(provider=provider) == 4
    assert len(nodes(kinds)) == 4
    assert pool_of(seen(machines, "a", provider)).ready == 4


@pytest.mark.parametrize("provider", SETS)
def test_raised_twice_is_raised_once(
    kinds: ControlPlane, world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    world.make(NODES, provider=provider)
    action = ScaleUp("a", seen(machines, "a", provider), 4)
    machines.scale_up(action)
    version = pool_of(seen(machines, "a", provider)).revision

    machines.scale_up(action)
    machines.scale_up(ScaleUp("a", seen(machines, "a", provider), 4))

    assert world.wanted(provider=provider) == 4
    assert pool_of(seen(machines, "a", provider)).revision == version


def test_a_pool_that_has_as_many_is_not_even_asked(
    kinds: ControlPlane, world: MachineWorld, machines: MachineProviders
) -> None:
    world.make(NODES)
    before = writes(kinds)

    machines.scale_up(ScaleUp("a", seen(machines, "a"), 3))

    assert writes(kinds) == before


@pytest.mark.parametrize("provider", SETS)
@pytest.mark.parametrize("number", [2, 7])
def test_a_number_that_another_client_changed_is_a_conflict_or_done(
    world: MachineWorld, machines: MachineProviders, provider: str, number: int
) -> None:
    world.make(NODES, provider=provider)
    action = ScaleUp("a", seen(machines, "a", provider), 4)
    world.raise_to(number, provider)

    if number >= 4:
        machines.scale_up(action)
    else:
        with pytest.raises(Conflict, match="workers is not as it was seen: it wants 2 machines, not 3"):
            machines.scale_up(action)

    assert world.wanted(provider=provider) == number


def test_a_status_that_was_written_in_between_changes_nothing(
    world: MachineWorld, machines: MachineProviders
) -> None:
    world.make(NODES)
    action = ScaleUp("a", seen(machines, "a"), 4)
    world.patch(CLUSTER_API, "machinedeployments", "workers", {"status": {"readyReplicas": 2}}, "status")

    machines.scale_up(action)

    assert world.wanted() == 4


def test_the_number_alone_is_written(world: MachineWorld, machines: MachineProviders) -> None:
    world.make(NODES)
    (before,) = world.all_of(CLUSTER_API, "machinedeployments")

    machines.scale_up(ScaleUp("a", seen(machines, "a"), 4))

    (after,) = world.all_of(CLUSTER_API, "machinedeployments")
    assert after["spec"] == {**before["spec"], "replicas": 4}
    assert after["metadata"].get("annotations") == before["metadata"].get("annotations")


def test_it_is_not_tried_for_ever(stub: StubMaker) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.method == "PATCH":
            return status(409, "Conflict", "changed")
        if asked.path.count("/") == 2:
            return json_answer({"preferredVersion": {"version": "v1"}})
        return json_answer({"metadata": {"resourceVersion": str(asked.number)}, "spec": {"replicas": 3}})

    server, connection = stub(answer)
    machine = Machine(ref("a"), "m-a", "u", Pool("MachineSet", "workers", NAMESPACE, 3, 3, "1", scales=True))

    with pytest.raises(Conflict):
        all_machines(connection, guard=lambda: None).scale_up(ScaleUp("a", machine, 4))

    assert sum(asked.method == "PATCH" for asked in server.asked) == TRIES


def test_a_write_whose_answer_was_lost_is_not_done_twice(stub: StubMaker) -> None:
    """The server has it, we don't know: the second try names what is gone, and then it is read."""

    def answer(asked: Asked) -> Answer:
        if asked.path.count("/") == 2:
            return json_answer({"preferredVersion": {"version": "v1"}})
        patches = sum(one.method == "PATCH" for one in server.asked)
        if asked.method == "PATCH":
            return Answer(b"{", cut=True) if patches == 1 else status(409, "Conflict", "changed")
        return json_answer({"metadata": {"resourceVersion": "2"}, "spec": {"replicas": 4}})

    server, connection = stub(answer)
    machine = Machine(ref("a"), "m-a", "u", Pool("MachineSet", "workers", NAMESPACE, 3, 3, "1", scales=True))

    all_machines(connection, guard=lambda: None).scale_up(ScaleUp("a", machine, 4))

    assert [asked.method for asked in server.asked if asked.path.count("/") > 2] == ["PATCH", "PATCH", "GET"]


def test_what_keeps_no_number_can_t_be_raised(world: MachineWorld, machines: MachineProviders) -> None:
    world.make(["a"], provider=KARPENTER)

    with pytest.raises(Rejected, match="nothing keeps a number"):
        machines.scale_up(ScaleUp("a", seen(machines, "a", KARPENTER), 2))


# Having one deleted.


@pytest.mark.parametrize("provider", [KARPENTER, *SETS])
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
@pytest.mark.parametrize("node", NODES)
def test_a_pool_that_was_raised_is_lowered_and_the_machine_that_is_meant_goes(
    kinds: ControlPlane, world: MachineWorld, machines: MachineProviders, provider: str, node: str
) -> None:
    world.make(NODES, provider=provider)
    machines.scale_up(ScaleUp(node, seen(machines, node, provider), 4))
    world.settle()
    (new,) = nodes(kinds) - set(NODES)

    machines.remove(Remove(node, seen(machines, node, provider), lower=3))
    world.settle()

    assert world.wanted(provider=provider) == 3
    assert nodes(kinds) == {*NODES, new} - {node}


@pytest.mark.parametrize("provider", SETS)
def test_it_is_marked_before_the_pool_is_lowered(
    kinds: ControlPlane, world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    world.make(NODES, provider=provider)
    machine = seen(machines, "b", provider)
    before = len(writes(kinds))

    machines.remove(Remove("b", machine, lower=2))

    plural = "machinedeployments" if provider is CLUSTER_API else "machinesets"
    assert writes(kinds)[before:] == [("patch", "machines"), ("patch", plural)]
    key, value = {
        CLUSTER_API: ("cluster.x-k8s.io/delete-machine", "yes"),
        OPENSHIFT: ("machine.openshift.io/delete-machine", "true"),
    }[provider]
    assert marks(world, "b", provider)[key] == value


@pytest.mark.parametrize("provider", SETS)
def test_a_pass_that_was_killed_between_mark_and_lowering_goes_on_where_it_was(
    kinds: ControlPlane,
    world: MachineWorld,
    machines: MachineProviders,
    connection: Connection,
    provider: str,
) -> None:
    world.make(NODES, provider=provider)
    asked = iter([None])

    def killed_at_the_second() -> None:
        if next(asked, "over") == "over":
            raise LockLost("killed")

    with pytest.raises(LockLost):
        all_machines(connection, guard=killed_at_the_second).remove(
            Remove("c", seen(machines, "c", provider), lower=2)
        )
    assert world.wanted(provider=provider) == 3
    machines.remove(Remove("c", seen(machines, "c", provider), lower=2))
    world.settle()

    assert nodes(kinds) == {"a", "b"}


@pytest.mark.parametrize("provider", SETS)
def test_lowered_twice_is_lowered_once(
    kinds: ControlPlane, world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    world.make(NODES, provider=provider)
    action = Remove("c", seen(machines, "c", provider), lower=2)

    machines.remove(action)
    machines.remove(action)
    machines.remove(Remove("c", seen(machines, "c", provider), lower=2))
    world.settle()
    machines.remove(action)

    assert world.wanted(provider=provider) == 2
    assert nodes(kinds) == {"a", "b"}


def test_a_pool_that_is_low_already_is_left_alone_and_nothing_marked(
    world: MachineWorld, machines: MachineProviders
) -> None:
    world.make(NODES)

    machines.remove(Remove("c", seen(machines, "c"), lower=3))

    assert world.wanted() == 3
    assert marks(world, "c", CLUSTER_API) == {}


@pytest.mark.parametrize("lower", [None, 2])
@pytest.mark.parametrize("provider", SETS)
def test_what_goes_already_is_left_alone(
    kinds: ControlPlane,
    world: MachineWorld,
    machines: MachineProviders,
    provider: str,
    lower: int | None,
) -> None:
    world.make(NODES, provider=provider)
    world.delete(provider, machine_name("c"))
    before = writes(kinds)

    machines.remove(Remove("c", seen(machines, "c", provider), lower))

    assert writes(kinds) == before


@pytest.mark.parametrize("provider", [KARPENTER, *SETS])
def test_what_has_gone_is_done_and_nothing_is_lowered_for_it(
    world: MachineWorld, machines: MachineProviders, provider: str
) -> None:
    world.make(NODES, provider=provider)
    machine = seen(machines, "c", provider)
    world.delete(provider, machine.name)
    world.settle()

    machines.remove(Remove("c", machine))
    machines.remove(Remove("c", machine, lower=2))

    if provider is not KARPENTER:
        assert world.wanted(provider=provider) == 3
    assert len(world.machines(provider)) == (2 if provider is KARPENTER else 3)


@pytest.mark.parametrize("provider", [KARPENTER, *SETS])
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


def test_a_number_that_another_client_changed_before_the_scale_down_is_a_conflict(
    world: MachineWorld, machines: MachineProviders
) -> None:
    world.make(NODES)
    machine = seen(machines, "c")
    world.raise_to(5)

    with pytest.raises(Conflict, match="it wants 5 machines, not 3"):
        machines.remove(Remove("c", machine, lower=2))
    assert world.wanted() == 5


# Who asks.


Work = Callable[[MachineProviders, Machine], None]


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda ours, machine: ours.scale_up(ScaleUp("a", machine, 4)), id="raise"),
        pytest.param(lambda ours, machine: ours.remove(Remove("a", machine)), id="delete"),
        pytest.param(lambda ours, machine: ours.remove(Remove("a", machine, lower=2)), id="lower"),
    ],
)
def test_a_lost_lock_writes_nothing(
    kinds: ControlPlane, world: MachineWorld, machines: MachineProviders, connection: Connection, work: Work
) -> None:
    def lost() -> None:
        raise LockLost("gone")

    world.make(NODES)
    machine = seen(machines, "a")
    before = writes(kinds)

    with pytest.raises(LockLost):
        work(all_machines(connection, guard=lost), machine)
    with pytest.raises(RuntimeError, match="made for reading"):
        work(all_machines(connection), machine)
    assert writes(kinds) == before


def test_a_write_that_is_refused_says_why(
    kinds: ControlPlane, world: MachineWorld, machines: MachineProviders
) -> None:
    world.make(["a"])
    machine = seen(machines, "a")
    wait_for("the account", lambda: kinds.api.find("serviceaccounts", "default"))
    connection = Connection(str(kinds.kubeconfig_for("default")))
    try:
        nobody = all_machines(connection, guard=lambda: None)
        with pytest.raises(Forbidden, match="cannot patch resource"):
            nobody.scale_up(ScaleUp("a", machine, 2))
        with pytest.raises(Forbidden, match="cannot delete resource"):
            nobody.remove(Remove("a", machine))
    finally:
        connection.close()


def test_a_pool_that_has_gone_is_not_found(world: MachineWorld, machines: MachineProviders) -> None:
    world.make(["a"])
    machine = seen(machines, "a")
    gone = replace(machine, pool=replace(pool_of(machine), name="gone"))

    with pytest.raises(NotFound):
        machines.scale_up(ScaleUp("a", gone, 2))


def test_installing_twice_is_installing_once(cluster: ControlPlane) -> None:
    install(cluster.api, "nodeclaims.karpenter.sh")
    install(cluster.api, "nodeclaims.karpenter.sh")

    assert len(cluster.api.list("customresourcedefinitions")) == 1
