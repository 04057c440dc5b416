"""Workloads of the pods of a node: each kind of owner, and references that are forged or out of date."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.workloads import OWNERS, Workloads
from reconciler.model.errors import Forbidden, Unreachable
from reconciler.model.pod import Workload, WorkloadKind
from tests.support.stub import Answer, Asked, Stub, json_answer, status

Object = dict[str, Any]
APPS = "/apis/apps/v1/namespaces/default"


def reference(kind: str, name: str, uid: str = "u", group: str = "apps/v1") -> Object:
    return {"kind": kind, "name": name, "uid": uid, "apiVersion": group, "controller": True}


def pod(number: int, *owners: Object, phase: str = "Running") -> Object:
    metadata = {"name": f"p{number}", "namespace": "default", "uid": f"p{number}", "ownerReferences": owners}
    return {"metadata": metadata, "spec": {"nodeName": "n"}, "status": {"phase": phase}}


def named(name: str, *owners: Object, uid: str = "u", **parts: Object) -> Object:
    return {"metadata": {"name": name, "uid": uid, "ownerReferences": owners}, **parts}


class Server:
    """Pods of one node, and objects by the end of their path."""

    def __init__(self) -> None:
        self.pods: list[Object] = []
        self.objects: dict[str, Object] = {}
        self.forbidden = ""
        self.stub = Stub(self.answer)

    def answer(self, asked: Asked) -> Answer:
        path = asked.path.partition("?")[0]
        if self.forbidden and self.forbidden in path:
            return status(403, "Forbidden", "no")
        if path == "/api/v1/pods":
            page = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}}
            return json_answer({**page, "items": self.pods})
        found = self.objects.get(path.removeprefix(f"{APPS}/"))
        return json_answer(found) if found is not None else status(404, "NotFound", "gone")


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stub.close()


@pytest.fixture
def workloads(server: Server, tmp_path: Path) -> Iterator[Workloads]:
    connection = Connection(str(server.stub.write_kubeconfig(tmp_path / "config")), sleep=lambda _: None)
    # A clock that stands still: on a busy machine, many requests take longer than they may.
    yield Workloads(connection, clock=lambda: 0.0)
    connection.close()


def test_each_kind_of_owner_has_its_replicas(server: Server, workloads: Workloads) -> None:
    server.objects = {
        "daemonsets/agent": named("agent", status={"numberReady": 7, "desiredNumberScheduled": 9}),
        "statefulsets/db": named("db", spec={"replicas": 3}),
        "replicasets/web-1": named("web-1", reference("Deployment", "web"), spec={"replicas": 4}),
        "deployments/web": named("web", spec={"replicas": 5}),
        "replicasets/alone": named("alone", spec={}),
        "replicasets/canary": named("canary", reference("Rollout", "r", "x", "argoproj.io/v1"), spec={}),
    }
    owners = [
        reference("DaemonSet", "agent"),
        reference("StatefulSet", "db"),
        reference("ReplicaSet", "web-1"),
        reference("ReplicaSet", "web-1"),
        reference("ReplicaSet", "alone"),
        # maintenance-controller counts owners that are no controllers, too.
        {**reference("ReplicaSet", "canary"), "controller": False},
    ]
    server.pods = [pod(number, owner) for number, owner in enumerate(owners)]

    assert workloads.on_node("n") == (
        Workload(WorkloadKind.DAEMON_SET, "agent", 7),
        Workload(WorkloadKind.STATEFUL_SET, "db", 3),
        Workload(WorkloadKind.DEPLOYMENT, "web", 5),
        Workload(WorkloadKind.DEPLOYMENT, "web", 5),
        Workload(WorkloadKind.REPLICA_SET, "alone", 1),
        Workload(WorkloadKind.REPLICA_SET, "canary", 1),
    )
    # An owner is read once, however many of its pods the node has.
    assert sum("replicasets/web-1" in asked.path for asked in server.stub.asked) == 1


@pytest.mark.parametrize(
    "one",
    [
        pod(1),
        pod(1, reference("Job", "j", group="batch/v1")),
        pod(1, reference("DaemonSet", "agent", group="example.com/v1")),
        pod(1, reference("DaemonSet", "agent"), phase="Succeeded"),
        pod(1, reference("DaemonSet", "gone")),
        pod(1, reference("DaemonSet", "agent", uid="of another one")),
        pod(1, reference("DaemonSet", "../../../api/v1/namespaces/x/secrets/y")),
    ],
)
def test_a_pod_without_such_an_owner_does_not_count(
    server: Server, workloads: Workloads, one: Object
) -> None:
    server.objects = {"daemonsets/agent": named("agent", status={"numberReady": 1})}
    server.pods = [one, pod(2, reference("DaemonSet", "agent"))]

    assert workloads.on_node("n") == (Workload(WorkloadKind.DAEMON_SET, "agent", 1),)


def test_a_node_with_very_many_owners_costs_a_limited_number_of_requests(
    server: Server, workloads: Workloads
) -> None:
    names = [f"s{number}" for number in range(OWNERS + 5)]
    server.objects = {f"statefulsets/{name}": named(name, spec={"replicas": 1}) for name in names}
    server.pods = [pod(number, reference("StatefulSet", name)) for number, name in enumerate(names)]

    assert len(workloads.on_node("n")) == OWNERS
    assert len(server.stub.asked) == OWNERS + 1


def test_a_missing_permission_is_named(server: Server, workloads: Workloads) -> None:
    server.pods = [pod(1, reference("DaemonSet", "agent"))]
    server.forbidden = "daemonsets"

    with pytest.raises(Forbidden) as caught:
        workloads.on_node("n")
    assert caught.value.needs == "get daemonsets.apps in default"


def test_a_slow_server_costs_a_limited_time(server: Server, tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(5)]
    server.objects = {f"statefulsets/{name}": named(name, spec={"replicas": 1}) for name in names}
    server.pods = [pod(number, reference("StatefulSet", name)) for number, name in enumerate(names)]
    connection = Connection(str(server.stub.write_kubeconfig(tmp_path / "config")))
    # Each look at the clock is after two more seconds.
    slow = Workloads(connection, clock=itertools.count(0, 2).__next__)

    with pytest.raises(Unreachable, match="more than 5 s"):
        slow.on_node("n")
    connection.close()

    assert len(server.stub.asked) == 3
