"""Labels of a node that only show something: all others stay, and another node of that name gets none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.kubernetes import node_writing
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.node_writing import LabelWriter
from reconciler.model.errors import Conflict, Forbidden, LockLost, NotFound
from reconciler.model.node import Node
from reconciler.model.values import replace
from reconciler.model.writes import LabelsWrite
from tests.real.clients.conftest import WANTED
from tests.support.controlplane.api import ApiError
from tests.support.controlplane.fill import Pool, fill
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.webhooks import for_nodes, in_force
from tests.support.stub import StubMaker, json_answer, status

NAME = Pool("np").node_name(0)
KEY = "cloud.sap/example"


@pytest.fixture
def node(cluster: ControlPlane, ours: Cluster) -> Node:
    """The only node."""
    fill(cluster.kubeconfig, nodes=1)
    return ours.nodes(WANTED)[0]


def put(node: Node, value: str = "true") -> LabelsWrite:
    return LabelsWrite(node.name, node.uid, {KEY: value})


def labels(cluster: ControlPlane) -> dict[str, str]:
    found: dict[str, str] = cluster.api.get("nodes", NAME)["metadata"]["labels"]
    return found


def test_it_is_set_and_changed_and_the_others_stay(cluster: ControlPlane, ours: Cluster, node: Node) -> None:
    before = labels(cluster)
    for value in ("true", "false"):
        assert ours.patch_labels(put(node, value)) == ""
        assert labels(cluster) == {**before, KEY: value}


def test_another_node_of_that_name_gets_none(cluster: ControlPlane, ours: Cluster, node: Node) -> None:
    with pytest.raises(Conflict, match="was deleted and created again"):
        ours.patch_labels(put(replace(node, uid="00000000-0000-0000-0000-000000000000")))
    with pytest.raises(NotFound):
        ours.patch_labels(put(replace(node, name="nobody")))
    assert KEY not in labels(cluster)


def test_a_lost_lock_writes_no_label(cluster: ControlPlane, connection: Connection, node: Node) -> None:
    def lost() -> None:
        raise LockLost("gone")

    with pytest.raises(LockLost):
        Cluster(connection, guard=lost).patch_labels(put(node))
    assert KEY not in labels(cluster)


POLICY, BINDING = for_nodes(
    "no-node-labels",
    f"!('{KEY}' in object.metadata.labels) || object.metadata.labels['{KEY}'] == 'theirs'",
    "node labels are not yours",
)


@pytest.fixture
def denied(cluster: ControlPlane, node: Node) -> Iterator[Node]:
    """The node, in a cluster with this policy in force."""

    def denies() -> bool:
        try:
            cluster.api.patch("nodes", NAME, {"metadata": {"labels": {KEY: "x"}}})
            cluster.api.patch("nodes", NAME, {"metadata": {"labels": {KEY: None}}})
        except ApiError:
            return True
        return False

    with in_force(cluster.api, POLICY, BINDING, denies):
        yield node


def test_a_denied_label_is_no_error_and_names_the_policy(ours: Cluster, denied: Node) -> None:
    assert "ValidatingAdmissionPolicy 'no-node-labels'" in ours.patch_labels(put(denied))


def test_a_missing_right_is_an_error(stub: StubMaker) -> None:
    _, connection = stub(lambda asked: status(403, "Forbidden", 'User "x" cannot patch resource "nodes"'))
    with pytest.raises(Forbidden):
        Cluster(connection, guard=lambda: None).patch_labels(LabelsWrite("n", "u", {KEY: "true"}))


def test_labels_that_do_not_stay_are_written_less_and_less_often(stub: StubMaker) -> None:
    server, connection = stub(lambda asked: json_answer({"metadata": {"name": "n", "uid": "u"}}))
    seconds = [0.0]
    writer = LabelWriter(connection, lambda: None, lambda: seconds[0])
    said = set()
    for _ in range(3600):
        said.add(writer.write(LabelsWrite("n", "u", {KEY: "true"})))
        seconds[0] += 1

    assert len(server.asked) == 9
    assert any("did not stay" in text for text in said)
    assert writer.write(LabelsWrite("n", "u", {KEY: "false"})) == ""
    assert len(server.asked) == 10


def test_only_the_last_nodes_are_remembered(stub: StubMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_writing, "REMEMBERED", 2)
    server, connection = stub(lambda asked: json_answer({"metadata": {"name": "n", "uid": "u"}}))
    writer = LabelWriter(connection, lambda: None, lambda: 0.0)
    for uid in ("a", "b", "c", "b", "c", "a"):
        writer.write(LabelsWrite("n", uid, {KEY: "true"}))

    assert len(server.asked) == 4
