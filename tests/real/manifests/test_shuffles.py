"""Under the rights of k8s/base and k8s/shuffles, the workloads of pods are read; nothing more is granted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.workloads import Workloads
from reconciler.model.errors import ClusterError, Forbidden
from reconciler.model.pod import Workload, WorkloadKind
from tests.real.manifests.applying import applied
from tests.real.manifests.permissions import granted, missing, unused, used
from tests.support.controlplane import workloads
from tests.support.controlplane.api import Object
from tests.support.controlplane.fill import fill
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane


def other(kind: str, name: str, replicas: int) -> Object:
    """A ReplicaSet or a StatefulSet."""
    made = workloads.deployment(name, replicas)
    return {**made, "kind": kind}


@pytest.fixture
def connection(cluster: ControlPlane) -> Iterator[Connection]:
    """As the reconciler with the rights of the base, on a cluster with a pod of each kind."""
    fill(cluster.kubeconfig, nodes=1)
    cluster.api.create("deployments", workloads.deployment("web", 2))
    cluster.api.create("daemonsets", workloads.daemon_set("agent"))
    cluster.api.create("replicasets", other("ReplicaSet", "alone", 1))
    cluster.api.create("statefulsets", other("StatefulSet", "db", 1))
    with applied(cluster, "base"):
        made = Connection(str(cluster.kubeconfig_for("reconciler", "node-maintenance")))
        yield made
        made.close()


def test_the_workloads_of_a_node_are_read(cluster: ControlPlane, connection: Connection) -> None:
    (node,) = (str(one["metadata"]["name"]) for one in cluster.api.list("nodes"))
    expected = {
        Workload(WorkloadKind.DAEMON_SET, "agent", 1),
        Workload(WorkloadKind.DEPLOYMENT, "web", 2),
        Workload(WorkloadKind.REPLICA_SET, "alone", 1),
        Workload(WorkloadKind.STATEFUL_SET, "db", 1),
    }
    ours = Workloads(connection)

    def refused() -> str:
        try:
            ours.on_node(node)
        except Forbidden as error:
            return error.needs if error.needs != "list pods" else ""
        return ""

    assert wait_for("pods, and the rights of the base", refused).endswith(".apps in default")

    def read() -> bool:
        try:
            found = ours.on_node(node)
        except ClusterError:
            return False
        return len(found) == len(expected) + 1 and set(found) == expected

    with applied(cluster, "shuffles"):
        wait_for("all workloads", read)

    entries = used(cluster.audit_entries())
    assert missing(granted("base") | granted("shuffles"), entries) == set()
    assert unused(granted("shuffles"), entries) == set()
