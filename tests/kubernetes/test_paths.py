"""No name from an object leads to another object: every client that builds a path, against hostile names."""

import ast
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import ApiPath, Connection, Request, api, core, on_node
from reconciler.kubernetes.eviction import Evictions
from reconciler.kubernetes.lease import Lock
from reconciler.kubernetes.nodes import read_node
from reconciler.kubernetes.turns import Turns
from reconciler.model.errors import NotFound, Rejected
from reconciler.model.leases import LeaseRef, LeaseSeen, LeaseTake
from reconciler.model.node import Taint, Wanted
from reconciler.model.pod import Owner, Pod, PodSpec
from reconciler.model.writes import ConditionsWrite, LabelsWrite, NodeWrite, TaintWrite
from tests.support.stub import Answer, Asked, Stub, StubMaker, json_answer

HOSTILE = (
    "..",
    ".",
    "a/../../../other/deployments/b",
    "a/scale",
    "a%2fb",
    "%2e%2e",
    "a?x=1",
    "a#b",
    "a,metadata.name=b",
    "a\\b",
    "a b",
    "a\n",
    "a\r\nX: y",
    "\udc80",
    "é",
    "A",
    "a..b",
    "a" * 254,
    "a" * 100_000,
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def server(stub: StubMaker) -> tuple[Stub, Connection]:
    """A server that knows every object, each with an owner as the pod's author wants it."""

    def answer(asked: Asked) -> Answer:
        if asked.path in ("/apis/cluster.x-k8s.io", "/apis/karpenter.sh"):
            return json_answer({"preferredVersion": {"version": "v1beta1"}})
        return json_answer({"metadata": {"name": "a", "uid": "u"}, "spec": {}, "status": {}})

    return stub(answer)


def pod(namespace: str = "default", name: str = "p", owner: str = "rs", claim: str = "c") -> Pod:
    return Pod(
        namespace,
        name,
        "u",
        "n",
        owner=Owner("ReplicaSet", owner, "apps/v1", "u"),
        spec=PodSpec(claims=(claim,)),
    )


def write(node: str) -> NodeWrite:
    return NodeWrite(node, "u", False, {}, "node-maintenance.dev", unschedulable=True)


def evictions(connection: Connection) -> Evictions:
    return Evictions(connection, guard=lambda: None, prefix="node-maintenance.dev")


Use = Callable[[Connection, str], object]

USES: dict[str, Use] = {
    "restart, namespace": lambda c, name: evictions(c).restart(pod(namespace=name), NOW),
    "restart, owner": lambda c, name: evictions(c).restart(pod(owner=name), NOW),
    "evict, namespace": lambda c, name: evictions(c).evict(pod(namespace=name), grace=None),
    "evict, pod": lambda c, name: evictions(c).evict(pod(name=name), grace=None),
    "delete, pod": lambda c, name: evictions(c).delete(pod(name=name), grace=None),
    "list the pods of a node": lambda c, name: evictions(c).pods(name),
    "watch the pods of a node": lambda c, name: evictions(c).watch_pods(name),
    "read a node": lambda c, name: read_node(c, name, Wanted(frozenset(), "p")),
    "patch a node": lambda c, name: Cluster(c, guard=lambda: None).patch_node(write(name)),
    "patch conditions": lambda c, name: Cluster(c, guard=lambda: None).patch_conditions(
        ConditionsWrite(name, "u", gone=("X",))
    ),
    "patch a taint": lambda c, name: Cluster(c, guard=lambda: None).patch_taint(
        TaintWrite(name, "u", Taint("x", effect="PreferNoSchedule"), wanted=True)
    ),
    "patch labels": lambda c, name: Cluster(c, guard=lambda: None).patch_labels(
        LabelsWrite(name, "u", {"x": "true"})
    ),
    "list pods": lambda c, name: Cluster(c).pods(name),
    "write the ledger": lambda c, name: Cluster(c, namespace=name).ledger(),
    "take a turn": lambda c, name: Turns(c, lambda: None).take_lease(
        LeaseTake(LeaseRef("ops", name), "n", NOW, timedelta(minutes=1), LeaseSeen("", NOW, timedelta()))
    ),
    "lease, namespace": lambda c, name: Lock(c, identity="me", namespace=name).acquire(),
    "lease, name": lambda c, name: Lock(c, identity="me", name=name).acquire(),
}


@pytest.mark.parametrize("use", USES)
def test_a_hostile_name_is_an_error_of_its_object_and_reaches_no_server(
    server: tuple[Stub, Connection], use: str
) -> None:
    stub, connection = server

    for name in HOSTILE:
        with pytest.raises(Rejected, match=r"is no name of a Kubernetes object|that can't exist") as caught:
            USES[use](connection, name)
        assert len(str(caught.value)) < 1000
    assert stub.asked == []


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:20])
def test_a_node_that_a_person_names_is_not_found(server: tuple[Stub, Connection], name: str) -> None:
    stub, connection = server

    with pytest.raises(NotFound):
        Cluster(connection).node(name, Wanted(frozenset(), "p"))
    assert stub.asked == []


@pytest.mark.parametrize(
    "name", ["n", "a-1.b-2", "0", "x" * 63, "aks-np-12345678-vmss00000a", "a." * 126 + "a"]
)
def test_the_names_of_kubernetes_are_taken(name: str) -> None:
    assert (
        api("apps", "v1", name) / "deployments" / name
        == f"/apis/apps/v1/namespaces/{name}/deployments/{name}"
    )
    assert core(name) / "pods" / name == f"/api/v1/namespaces/{name}/pods/{name}"
    assert on_node(name) == f"spec.nodeName={name}"


@given(st.lists(st.text(max_size=12), min_size=1, max_size=4))
def test_a_path_has_as_many_segments_as_names_or_there_is_none(names: list[str]) -> None:
    try:
        path = ApiPath(*names)
    except Rejected:
        return
    assert path.segments == tuple(names)
    assert path.count("/") == len(names)
    assert not set("%?#\\ ") & set(path)


def test_a_request_checks_a_path_that_was_not_built_from_names() -> None:
    assert Request("GET", "/api/v1/nodes").path == ApiPath("api", "v1", "nodes")  # type: ignore[arg-type]
    for path in ("/api/v1/namespaces/a/../b", "/api/v1//nodes", "/api/v1/nodes?x", "api/..", ""):
        with pytest.raises(Rejected):
            Request("GET", path)  # type: ignore[arg-type]


def test_no_client_writes_a_path_by_itself() -> None:
    folder = Path(__file__).parents[2] / "reconciler"
    found = [
        f"{file.name}: {node.value}"
        # The transports of notices talk to other servers.
        for file in sorted(
            [*(folder / "kubernetes").rglob("*.py"), *(folder / "features/events").glob("*.py")]
        )
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith(("/api/", "/apis/"))
    ]
    assert found == []
