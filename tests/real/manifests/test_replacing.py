"""Under exactly the rights of k8s/replacing, machines of every provider are read, raised for and deleted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.kubernetes.connection import Connection
from reconciler.model.machine import CLUSTER_API, KARPENTER, OPENSHIFT, MachineRef, Remove, ScaleUp
from tests.features.machines.all_providers import all_machines
from tests.real.manifests.applying import applied
from tests.real.manifests.permissions import granted, missing, unused, used
from tests.support.controlplane.api import Api, ApiError
from tests.support.controlplane.machines import NAMESPACE, MachineWorld, machine_name
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane

SYSTEM = "node-maintenance"
PREFIXES = {"karpenter": KARPENTER, "cluster-api": CLUSTER_API, "openshift": OPENSHIFT}


@pytest.fixture
def world(cluster: ControlPlane) -> Iterator[MachineWorld]:
    """Three nodes of each provider, and an account that has these rights and no others."""
    made = MachineWorld(cluster.api)
    for prefix, provider in PREFIXES.items():
        made.make([f"{prefix}-{one}" for one in "abc"], provider=provider)
    # A MachineSet that no MachineDeployment owns.
    made.make(["cluster-api-d"], provider=CLUSTER_API, pool="single", deployment=False)
    cluster.api.create_namespace(SYSTEM)
    cluster.api.create("serviceaccounts", {"metadata": {"name": "reconciler", "namespace": SYSTEM}})
    with applied(cluster, "replacing"):
        yield made


@pytest.fixture
def ours(cluster: ControlPlane, world: MachineWorld) -> Iterator[Connection]:
    """To the API server as that account, whose rights are in force."""
    connection = Connection(str(cluster.kubeconfig_for("reconciler", SYSTEM)))
    wait_for("the rights", lambda: not all_machines(connection).machines([ref("karpenter-a")])[0].problem)
    yield connection
    connection.close()


def ref(node: str) -> MachineRef:
    provider = PREFIXES[node.rpartition("-")[0]]
    if provider == KARPENTER:
        return MachineRef(node, "u", provider, node, provider_id=f"test:///{node}")
    return MachineRef(node, "u", provider, machine_name(node), NAMESPACE, provider_id=f"test:///{node}")


def test_all_that_is_done_to_machines_may_be_done_and_nothing_else_is_granted(
    cluster: ControlPlane, world: MachineWorld, ours: Connection
) -> None:
    machines = all_machines(ours, guard=lambda: None)
    for place in ("cluster-api", "openshift"):
        node, other = f"{place}-a", f"{place}-b"
        provider = ref(node).provider
        machines.scale_up(ScaleUp(node, machines.machines([ref(node)])[0], 4))
        machines.remove(Remove(node, machines.machines([ref(node)])[0], lower=3))
        assert world.wanted(provider=provider) == 3
        machines.remove(Remove(other, machines.machines([ref(other)])[0]))
    machines.scale_up(ScaleUp("cluster-api-d", machines.machines([ref("cluster-api-d")])[0], 2))
    machines.remove(Remove("karpenter-a", machines.machines([ref("karpenter-a")])[0]))
    world.step()

    left = {one["metadata"]["name"] for one in world.api.list("nodes")}
    assert left.isdisjoint({"cluster-api-b", "openshift-b", "karpenter-a"})
    entries = used(cluster.audit_entries())
    assert missing(granted("replacing"), entries) == set()
    assert unused(granted("replacing"), entries) == set()


def test_and_nothing_more(cluster: ControlPlane, ours: Connection) -> None:
    wanted = [
        ("PATCH", "apis/cluster.x-k8s.io/v1beta2/namespaces/machines/machinedeployments/workers"),
        ("PATCH", "apis/machine.openshift.io/v1beta1/namespaces/machines/machinesets/workers"),
        ("DELETE", "apis/machine.openshift.io/v1beta1/namespaces/machines/machinesets/workers"),
        ("DELETE", "apis/machine.openshift.io/v1beta1/namespaces/machines/machines"),
        ("GET", "apis/machine.openshift.io/v1beta1/machines"),
        ("PATCH", "apis/karpenter.sh/v1/nodeclaims/m-karpenter-a"),
        ("DELETE", "apis/karpenter.sh/v1/nodeclaims"),
        ("DELETE", "api/v1/nodes/karpenter-a"),
    ]
    with Api(cluster.kubeconfig_for("reconciler", SYSTEM), user_agent="tests-replacing") as api:
        assert [status(api, *one) for one in wanted] == [403] * len(wanted)


def status(api: Api, method: str, path: str) -> int:
    """What the server says to it."""
    headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
    body = {"metadata": {"labels": {"a": "b"}}} if method == "PATCH" else None
    try:
        api.request(method, path, body, headers=headers)
    except ApiError as error:
        return error.status
    return 200
