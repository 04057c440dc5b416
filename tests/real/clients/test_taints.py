"""One taint of a node: all others stay, whoever writes them at the same time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.model.errors import Forbidden, LockLost, NotFound
from reconciler.model.node import Node, Taint
from reconciler.model.values import replace
from reconciler.model.writes import TaintWrite
from tests.real.clients.conftest import PREFIX, WANTED
from tests.support.controlplane.api import ApiError
from tests.support.controlplane.fill import Pool, fill
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.webhooks import for_nodes, in_force
from tests.support.patches import patched
from tests.support.stub import Answer, Asked, StubMaker, json_answer, status

NAME = Pool("np").node_name(0)
OURS = Taint(f"{PREFIX}/maintenance", effect="PreferNoSchedule")
OURS_AS_SENT = {"key": OURS.key, "effect": "PreferNoSchedule"}
SINCE = "2026-05-11T20:00:00Z"
THEIRS: list[dict[str, Any]] = [
    {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
    {"key": "example.com/failing", "effect": "NoExecute", "timeAdded": SINCE},
    {"key": OURS.key, "effect": "NoSchedule"},
]


@pytest.fixture
def node(cluster: ControlPlane, ours: Cluster) -> Node:
    """The only node, with taints of others."""
    fill(cluster.kubeconfig, nodes=1)
    cluster.api.patch("nodes", NAME, {"spec": {"taints": THEIRS}})
    return ours.nodes(WANTED)[0]


def put(node: Node) -> TaintWrite:
    return TaintWrite(node.name, node.uid, OURS, wanted=True)


def taints(cluster: ControlPlane) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cluster.api.get("nodes", NAME)["spec"].get("taints", [])
    return found


def version(cluster: ControlPlane) -> str:
    return str(cluster.api.get("nodes", NAME)["metadata"]["resourceVersion"])


def test_it_comes_and_goes_and_the_others_keep_every_field(
    cluster: ControlPlane, ours: Cluster, node: Node
) -> None:
    assert ours.patch_taint(put(node)) == ""
    assert taints(cluster) == [*THEIRS, OURS_AS_SENT]

    seen = version(cluster)
    assert ours.patch_taint(put(node)) == ""
    assert version(cluster) == seen

    assert ours.patch_taint(replace(put(node), wanted=False)) == ""
    assert taints(cluster) == THEIRS


def test_the_only_taint_of_a_node_comes_and_goes(cluster: ControlPlane, ours: Cluster, node: Node) -> None:
    cluster.api.patch("nodes", NAME, {"spec": {"taints": None}})

    ours.patch_taint(put(node))
    assert taints(cluster) == [OURS_AS_SENT]
    ours.patch_taint(replace(put(node), wanted=False))
    assert taints(cluster) == []


ADDED = {"key": "example.com/new", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("before", "wanted", "tries"),
    [
        pytest.param([], True, 2, id="the first of the node"),
        pytest.param(THEIRS, True, 1, id="one more"),
        pytest.param([*THEIRS, OURS_AS_SENT], False, 2, id="one before ours"),
    ],
)
def test_a_taint_that_another_controller_adds_between_read_and_write_stays(
    cluster: ControlPlane,
    connection: Connection,
    node: Node,
    before: list[dict[str, Any]],
    wanted: bool,
    tries: int,
) -> None:
    cluster.api.patch("nodes", NAME, {"spec": {"taints": before}})
    tried = 0

    def guard() -> None:
        nonlocal tried
        tried += 1
        if tried == 1:
            cluster.api.patch("nodes", NAME, {"spec": {"taints": [ADDED, *before]}})

    Cluster(connection, guard=guard).patch_taint(replace(put(node), wanted=wanted))

    others = [one for one in before if one != OURS_AS_SENT]
    assert taints(cluster) == [ADDED, *others, *([OURS_AS_SENT] if wanted else [])]
    assert tried == tries


def test_a_node_created_again_under_its_name_gets_no_taint(
    cluster: ControlPlane, ours: Cluster, node: Node
) -> None:
    cluster.api.delete("nodes", NAME)
    with pytest.raises(NotFound):
        ours.patch_taint(put(node))
    fill(cluster.kubeconfig, nodes=1)

    with pytest.raises(NotFound, match="created again"):
        ours.patch_taint(put(node))
    assert OURS_AS_SENT not in taints(cluster)


def test_a_lost_lock_writes_no_taint(cluster: ControlPlane, connection: Connection, node: Node) -> None:
    def lost() -> None:
        raise LockLost("gone")

    with pytest.raises(LockLost):
        Cluster(connection, guard=lost).patch_taint(put(node))
    assert taints(cluster) == THEIRS


def test_a_write_whose_answer_was_lost_adds_one_taint(stub: StubMaker) -> None:
    node: dict[str, Any] = {"metadata": {"name": "n", "uid": "u", "resourceVersion": "1"}, "spec": {}}

    def answer(asked: Asked) -> Answer:
        if asked.method == "PATCH":
            node.update(patched(node, json.loads(asked.body)))
            return Answer(b"{", cut=True)
        return json_answer(node)

    server, connection = stub(answer)
    Cluster(connection, guard=lambda: None).patch_taint(TaintWrite("n", "u", OURS, wanted=True))

    assert node["spec"]["taints"] == [OURS_AS_SENT]
    assert [asked.method for asked in server.asked] == ["GET", "PATCH", "GET"]


# A policy of the cluster that denies changes of taints.

POLICY, BINDING = for_nodes(
    "no-node-taints",
    "object.spec.?taints.orValue([]) == oldObject.spec.?taints.orValue([])",
    "node taints are not yours",
)


@pytest.fixture
def denied(cluster: ControlPlane, node: Node) -> Iterator[Node]:
    """The node, in a cluster with this policy in force."""
    with in_force(cluster.api, POLICY, BINDING, lambda: _denies(cluster)):
        yield node


def _denies(cluster: ControlPlane) -> bool:
    try:
        cluster.api.patch("nodes", NAME, {"spec": {"taints": []}})
        # The policy may come into force between the two, and then refuses this one.
        cluster.api.patch("nodes", NAME, {"spec": {"taints": THEIRS}})
    except ApiError:
        return True
    return False


def test_a_denied_taint_is_no_error_and_names_the_policy(ours: Cluster, denied: Node) -> None:
    said = ours.patch_taint(put(denied))

    assert "ValidatingAdmissionPolicy 'no-node-taints'" in said
    assert "hints.taint: false" in said


def test_a_missing_right_is_an_error(stub: StubMaker) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.method == "GET":
            return json_answer({"metadata": {"name": "n", "uid": "u", "resourceVersion": "1"}})
        return status(403, "Forbidden", 'nodes "n" is forbidden: User "x" cannot patch resource "nodes"')

    _, connection = stub(answer)
    with pytest.raises(Forbidden):
        Cluster(connection, guard=lambda: None).patch_taint(TaintWrite("n", "u", OURS, wanted=True))
