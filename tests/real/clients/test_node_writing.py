"""One patch of one node: who else wrote in between decides whether it is tried again."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from reconciler import USER_AGENT
from reconciler.http.retrying import TRIES, UNANSWERED
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.scale.cluster import CachedCluster
from reconciler.kubernetes.scale.node_store import NodeStore
from reconciler.model import limits
from reconciler.model.errors import Conflict, Forbidden, LockLost, NotFound, Rejected, Unreachable
from reconciler.model.node import Node, Taint
from reconciler.model.values import replace
from reconciler.model.writes import ListChanges, NodeWrite, node_write, own_keys, used_keys
from tests.real.clients.conftest import PREFIX, WANTED
from tests.support.beside import meanwhile
from tests.support.controlplane.api import ApiError, Object
from tests.support.controlplane.fill import Pool, fill
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.webhooks import for_nodes, in_force
from tests.support.patches import answer_patch, refused
from tests.support.stub import Answer, Asked, StubMaker, json_answer, status

NAME = Pool("np").node_name(0)
RECORD = f"{PREFIX}/record"
STATE = f"{PREFIX}/state"


def cordon(node: Node) -> NodeWrite:
    """A cordon with label and record, decided upon the node as given."""
    labels: dict[str, str | None] = {STATE: "in-maintenance", "mechanic.cordoned": None}
    return node_write(node, PREFIX, unschedulable=True, labels=labels, annotations={RECORD: "{}"})


@pytest.fixture
def node(cluster: ControlPlane, ours: Cluster) -> Node:
    """The only node, as a pass saw it."""
    fill(cluster.kubeconfig, nodes=1)
    cluster.api.patch("nodes", NAME, {"metadata": {"labels": {"mechanic.cordoned": "true"}}})
    return ours.nodes(WANTED)[0]


def test_cordon_label_and_record_go_in_one_patch(cluster: ControlPlane, ours: Cluster, node: Node) -> None:
    ours.patch_node(cordon(node))

    found = ours.nodes(WANTED)[0]
    assert found.unschedulable
    assert found.labels[STATE] == "in-maintenance"
    assert "mechanic.cordoned" not in found.labels
    assert found.annotations == {RECORD: "{}", f"{PREFIX}/uid": found.uid}


def test_an_uncordon_takes_the_keys_away(ours: Cluster, node: Node) -> None:
    ours.patch_node(cordon(node))
    seen = ours.nodes(WANTED)[0]
    back = replace(
        cordon(seen),
        unschedulable=False,
        labels={STATE: None},
        annotations={RECORD: None},
        seen_own=own_keys(seen, PREFIX, {STATE}),
    )
    ours.patch_node(back)

    found = ours.nodes(WANTED)[0]
    assert (found.unschedulable, found.annotations, STATE in found.labels) == (False, {}, False)


def test_a_heartbeat_in_between_changes_nothing(cluster: ControlPlane, ours: Cluster, node: Node) -> None:
    cluster.api.patch("nodes", NAME, {"metadata": {"labels": {"theirs": "x"}}})
    ours.patch_node(cordon(node))

    assert ours.nodes(WANTED)[0].unschedulable


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        pytest.param({"spec": {"unschedulable": True}}, "cordoned", id="somebody's cordon"),
        pytest.param({"metadata": {"annotations": {RECORD: "other"}}}, "changed", id="another record"),
        pytest.param({"metadata": {"annotations": {f"{PREFIX}/request": "{}"}}}, "changed", id="a request"),
        pytest.param({"metadata": {"labels": {STATE: "x"}}}, "changed", id="our label"),
        pytest.param({"metadata": {"labels": {"mechanic.cordoned": None}}}, "changed", id="an adopted label"),
    ],
)
def test_what_is_ours_changed_in_between_is_a_conflict(
    cluster: ControlPlane, ours: Cluster, node: Node, patch: dict[str, object], words: str
) -> None:
    cluster.api.patch("nodes", NAME, patch)

    with pytest.raises(Conflict, match=words):
        ours.patch_node(cordon(node))


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"annotations": {"theirs/reboot-ok": None}}, id="an annotation that is gone"),
        pytest.param({"annotations": {"theirs/stop": "yes"}}, id="an annotation that was not there"),
        pytest.param({"labels": {"theirs/ready": "no"}}, id="a label"),
    ],
)
def test_what_a_check_read_changed_in_between_is_a_conflict(
    cluster: ControlPlane, ours: Cluster, node: Node, patch: dict[str, dict[str, object]]
) -> None:
    read = {"annotations": {"theirs/reboot-ok": "yes"}, "labels": {"theirs/ready": "yes"}}
    cluster.api.patch("nodes", NAME, {"metadata": read})
    seen = ours.nodes(replace(WANTED, annotations=frozenset(read["annotations"])))[0]
    used = used_keys(seen, ["theirs/ready"], ["theirs/reboot-ok", "theirs/stop"])
    cluster.api.patch("nodes", NAME, {"metadata": patch})

    (key,) = (key for found in patch.values() for key in found)
    with pytest.raises(Conflict, match=f"someone changed {key}, which a check of its profiles read"):
        ours.patch_node(replace(cordon(seen), seen_by_checks=used))
    assert not ours.nodes(WANTED)[0].unschedulable


def test_whoever_else_writes_the_node_each_write_is_sent_once_and_read_never(
    cluster: ControlPlane, connection: Connection, node: Node
) -> None:
    """Others change its annotations, labels, taints and status without a pause."""
    sent: list[int] = []
    changes: Counter[str] = Counter()

    def guard() -> None:
        sent.append(1)
        before = changes.copy()
        wait_for("changes of all", lambda: all(changes[kind] > before[kind] for kind in THEIRS))

    ours = Cluster(connection, guard=guard)
    with changing(cluster, changes):
        for cordoned in (True, False) * 5:
            seen = ours.node(NAME, WANTED)
            text = f'{{"n": {len(sent)}}}'
            ours.patch_node(replace(cordon(seen), unschedulable=cordoned, annotations={RECORD: text}))
            assert ours.node(NAME, WANTED).unschedulable is cordoned

    writes = cluster.audit_entries(USER_AGENT, {"patch"})
    assert len(sent) == 10
    assert [one.code for one in writes if one.name == NAME] == [200] * 10


THEIRS: dict[str, Callable[[int], tuple[Object, str | None]]] = {
    "annotations": lambda count: ({"metadata": {"annotations": {"theirs/count": str(count)}}}, None),
    "labels": lambda count: ({"metadata": {"labels": {"theirs/count": str(count)}}}, None),
    "taints": lambda count: ({"spec": {"taints": [{"key": f"a{count % 3}", "effect": "NoExecute"}]}}, None),
    "status": lambda count: ({"status": {"nodeInfo": {"bootID": str(count)}}}, "status"),
}


@contextmanager
def changing(cluster: ControlPlane, changes: Counter[str]) -> Iterator[None]:
    """Clients that change the node as fast as the API server takes it, and count their changes."""

    def keep_writing(kind: str, ended: threading.Event) -> None:
        while not ended.is_set():
            body, subresource = THEIRS[kind](changes[kind])
            cluster.api.patch("nodes", NAME, body, subresource=subresource)
            changes[kind] += 1

    with meanwhile(*(partial(keep_writing, kind) for kind in THEIRS)):
        yield


def test_the_first_annotation_of_a_node_does_not_replace_one_that_comes_with_it(
    cluster: ControlPlane, connection: Connection, node: Node
) -> None:
    """A JSON Patch can't add a key to annotations that do not exist."""
    cluster.api.patch("nodes", NAME, {"metadata": {"annotations": None}})
    seen = Cluster(connection).node(NAME, WANTED)
    sent: list[int] = []

    def guard() -> None:
        sent.append(1)
        if len(sent) == 2:
            cluster.api.patch("nodes", NAME, {"metadata": {"annotations": {"theirs/first": "1"}}})

    Cluster(connection, guard=guard).patch_node(cordon(seen))

    annotations = cluster.api.get("nodes", NAME)["metadata"]["annotations"]
    assert annotations == {"theirs/first": "1", RECORD: "{}", f"{PREFIX}/uid": node.uid}
    assert len(sent) == 3


@pytest.mark.parametrize("text", ['{"a": "<b> & c"}', "\u2028\u2029", 'é "\\/\n\t', ""], ids=ascii)
def test_a_text_is_compared_as_the_server_encodes_it(
    cluster: ControlPlane, connection: Connection, node: Node, text: str
) -> None:
    cluster.api.patch("nodes", NAME, {"metadata": {"annotations": {f"{PREFIX}/hold": text}}})
    sent: list[int] = []
    ours = Cluster(connection, guard=lambda: sent.append(1))

    ours.patch_node(cordon(ours.node(NAME, WANTED)))

    assert ours.node(NAME, WANTED).annotations[f"{PREFIX}/hold"] == text
    assert len(sent) == 1


def test_what_is_longer_than_what_is_read_is_not_compared_and_can_be_removed(
    cluster: ControlPlane, connection: Connection, node: Node
) -> None:
    long = "x" * (limits.ANNOTATION + 10)
    cluster.api.patch("nodes", NAME, {"metadata": {"annotations": {RECORD: long, "theirs/y": "z"}}})
    sent: list[int] = []
    ours = Cluster(connection, guard=lambda: sent.append(1))
    seen = ours.node(NAME, WANTED)

    ours.patch_node(node_write(seen, PREFIX, annotations={RECORD: None, "theirs/none": None}))

    assert ours.node(NAME, replace(WANTED, annotations=frozenset({"theirs/y"}))).annotations == {
        "theirs/y": "z"
    }
    assert len(sent) == 1


def test_what_was_copied_from_another_node_is_replaced_unless_it_is_written_anew(
    cluster: ControlPlane, ours: Cluster, node: Node
) -> None:
    copy = {RECORD: "of another", f"{PREFIX}/uid": "another", f"{PREFIX}/hold": "copied"}
    cluster.api.patch("nodes", NAME, {"metadata": {"annotations": copy, "labels": {STATE: "copied"}}})
    seen = ours.node(NAME, WANTED)
    ours.patch_node(cordon(seen))

    after = ours.node(NAME, WANTED)
    assert after.annotations == {RECORD: "{}", f"{PREFIX}/uid": node.uid}
    assert after.labels[STATE] == "in-maintenance"
    # Whoever writes the same from the copy finds that it is no copy any more.
    with pytest.raises(Conflict, match="someone"):
        ours.patch_node(node_write(seen, PREFIX, annotations={RECORD: "late"}))


def test_a_server_that_compares_in_another_way_gets_the_version(stub: StubMaker) -> None:
    """It refuses a test of what is not there, as RFC 6902 says."""
    node: Object = {
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "5", "labels": {"a": "b"}},
        "spec": {},
    }

    def answer(asked: Asked) -> Answer:
        if asked.method == "PATCH":
            of_nothing = any(one.get("value", "") is None for one in json.loads(asked.body))
            return refused() if of_nothing else answer_patch(node, asked)
        return json_answer(node)

    server, connection = stub(answer)
    Cluster(connection, guard=lambda: None).patch_node(cordon(SEEN))

    assert node["metadata"]["annotations"][RECORD] == "{}"
    assert sum(asked.method == "PATCH" for asked in server.asked) == 3


def test_a_write_that_the_server_refuses_at_each_version_is_refused(stub: StubMaker) -> None:
    server, connection = stub(
        lambda asked: refused() if asked.method == "PATCH" else as_json("5", cordoned=False)
    )

    with pytest.raises(Rejected, match="the server rejected our request"):
        Cluster(connection, guard=lambda: None).patch_node(cordon(SEEN))
    assert len(server.asked) < TRIES


def test_what_a_node_may_not_contain_is_sent_once(
    cluster: ControlPlane, connection: Connection, node: Node
) -> None:
    sent: list[int] = []
    ours = Cluster(connection, guard=lambda: sent.append(1))

    with pytest.raises(Rejected, match="a valid label"):
        ours.patch_node(node_write(node, PREFIX, labels={"theirs/go": "not a label"}))
    assert len(sent) == 1


def test_a_node_created_again_under_its_name_is_left_alone(
    cluster: ControlPlane, ours: Cluster, node: Node
) -> None:
    cluster.api.delete("nodes", NAME)
    fill(cluster.kubeconfig, nodes=1)

    with pytest.raises(Conflict, match="created again"):
        ours.patch_node(cordon(node))
    assert not ours.nodes(WANTED)[0].unschedulable


def test_the_uid_alone_stops_a_write_to_another_node_of_that_name(
    cluster: ControlPlane, ours: Cluster, node: Node
) -> None:
    # The version is right: only the UID shows it.
    with pytest.raises(Conflict, match="created again"):
        ours.patch_node(replace(cordon(node), uid="00000000-0000-0000-0000-000000000000"))
    assert not ours.nodes(WANTED)[0].unschedulable


def test_a_node_that_has_gone_is_not_found(cluster: ControlPlane, ours: Cluster, node: Node) -> None:
    cluster.api.delete("nodes", NAME)

    with pytest.raises(NotFound):
        ours.patch_node(cordon(node))


def test_the_same_write_again_is_a_quiet_success(ours: Cluster, node: Node) -> None:
    ours.patch_node(cordon(node))
    ours.patch_node(cordon(node))


def test_a_lost_lock_writes_nothing(cluster: ControlPlane, connection: Connection, node: Node) -> None:
    def lost() -> None:
        raise LockLost("gone")

    with pytest.raises(LockLost):
        Cluster(connection, guard=lost).patch_node(cordon(node))
    assert cluster.api.get("nodes", NAME)["metadata"]["resourceVersion"] == node.resource_version


def as_json(version: str, *, cordoned: bool) -> Answer:
    """The node as a stub serves it."""
    shown = {"labels": {STATE: "in-maintenance"}, "annotations": {RECORD: "{}"}} if cordoned else {}
    return json_answer(
        {
            "metadata": {"name": "n", "uid": "u", "resourceVersion": version, **shown},
            "spec": {"unschedulable": cordoned},
        }
    )


SEEN = Node("n", "u", "1")


def test_a_write_whose_answer_was_lost_is_not_sent_again(stub: StubMaker) -> None:
    def answer(asked: Asked) -> Answer:
        return Answer(b"{", cut=True) if asked.method == "PATCH" else as_json("2", cordoned=True)

    server, connection = stub(answer)
    Cluster(connection, guard=lambda: None).patch_node(cordon(SEEN))

    assert [asked.method for asked in server.asked] == ["PATCH", "GET"]


def test_a_write_that_never_arrived_is_sent_again(stub: StubMaker) -> None:
    def answer(asked: Asked) -> Answer:
        return status(503) if asked.number == 0 else as_json("2", cordoned=asked.method == "PATCH")

    server, connection = stub(answer)
    Cluster(connection, guard=lambda: None).patch_node(cordon(SEEN))

    assert [asked.method for asked in server.asked] == ["PATCH", "GET", "PATCH"]


@pytest.mark.parametrize(("code", "kind", "tries"), [(409, Conflict, TRIES), (503, Unreachable, UNANSWERED)])
def test_it_is_not_tried_for_ever(stub: StubMaker, code: int, kind: type[Exception], tries: int) -> None:
    def answer(asked: Asked) -> Answer:
        return status(code) if asked.method == "PATCH" else as_json(str(asked.number), cordoned=False)

    server, connection = stub(answer)
    with pytest.raises(kind):
        Cluster(connection, guard=lambda: None).patch_node(cordon(SEEN))
    assert sum(asked.method == "PATCH" for asked in server.asked) == tries
    assert sum(server.slept) < 10


# A policy of the cluster that denies changes of node labels, as in AKS Automatic.

POLICY, BINDING = for_nodes(
    "no-node-labels",
    "object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({})",
    "node labels are not yours",
)


@pytest.fixture
def denied(cluster: ControlPlane, node: Node) -> Iterator[Node]:
    """The node, in a cluster with this policy in force."""
    with in_force(cluster.api, POLICY, BINDING, lambda: _denies(cluster)):
        yield node


def _denies(cluster: ControlPlane) -> bool:
    try:
        cluster.api.patch("nodes", NAME, {"metadata": {"labels": {"probe": "x"}}})
        # The policy may come into force between the two, and then refuses this one.
        cluster.api.patch("nodes", NAME, {"metadata": {"labels": {"probe": None}}})
    except ApiError:
        return True
    return False


def test_a_denied_label_does_not_stop_the_cordon_and_its_record(ours: Cluster, denied: Node) -> None:
    seen = ours.nodes(WANTED)[0]

    said = ours.patch_node(cordon(seen))
    again = ours.patch_node(
        node_write(ours.nodes(WANTED)[0], PREFIX, labels={STATE: "in-maintenance"}, annotations={})
    )

    found = ours.nodes(WANTED)[0]
    assert found.unschedulable
    assert found.annotations == {RECORD: "{}", f"{PREFIX}/uid": found.uid}
    assert STATE not in found.labels
    for answer in (said, again):
        assert "ValidatingAdmissionPolicy 'no-node-labels'" in answer.said
        assert "keys.stateLabel: false" in answer.said
        assert f"label:{STATE}" in answer.lost


def changed(asked: Asked, part: str) -> bool:
    """Whether the request changes something whose path has this part."""
    operations = json.loads(asked.body or b"[]")
    return any(one["op"] != "test" and part in one["path"].replace("~1", "/") for one in operations)


GATEKEEPER = (
    'admission webhook "validation.gatekeeper.sh" denied the request: '
    "[azurepolicy-k8sazurev1restrictednodeedits] Cannot edit system node labels"
)


def test_a_webhook_that_denies_labels_does_not_stop_the_cordon(stub: StubMaker) -> None:
    def answer(asked: Asked) -> Answer:
        if changed(asked, "/metadata/labels/"):
            return status(403, "Forbidden", GATEKEEPER)
        return as_json("2", cordoned=True)

    server, connection = stub(answer)
    said = Cluster(connection, guard=lambda: None).patch_node(cordon(Node(NAME, "u", "1")))

    assert "k8sazurev1restrictednodeedits" in said.said
    assert [asked.method for asked in server.asked] == ["PATCH", "PATCH"]


def test_a_label_without_which_the_record_is_lost_is_not_left_out(stub: StubMaker) -> None:
    def answer(asked: Asked) -> Answer:
        if changed(asked, "/record-kept") or changed(asked, "/record"):
            return status(403, "Forbidden", GATEKEEPER)
        return as_json("2", cordoned=True)

    server, connection = stub(answer)
    with pytest.raises(Forbidden, match="restrictednodeedits"):
        Cluster(connection, guard=lambda: None).patch_node(cordon(Node(NAME, "u", "1")))

    # With labels, without them, and without the record as a dry run.
    assert [asked.method for asked in server.asked] == ["PATCH", "PATCH", "PATCH"]


def test_a_missing_right_is_no_denial_of_labels(stub: StubMaker) -> None:
    words = (
        'nodes "x" is forbidden: User "y" cannot patch resource "nodes" in API group "" at the cluster scope'
    )
    server, connection = stub(lambda _: status(403, "Forbidden", words))

    with pytest.raises(Forbidden):
        Cluster(connection, guard=lambda: None).patch_node(cordon(Node(NAME, "u", "1")))
    assert len(server.asked) == 1


def test_lists_keep_every_other_entry_also_after_another_write(
    cluster: ControlPlane, ours: Cluster, node: Node
) -> None:
    """The taint of another tool has a field that no pass reads, and comes after the read of the pass."""
    theirs = {"key": "other", "effect": "NoExecute", "timeAdded": "2026-11-21T12:00:00Z"}
    old = {"key": "old", "value": "1", "effect": "NoSchedule"}
    cluster.api.patch("nodes", NAME, {"spec": {"taints": [theirs, old]}})
    cluster.api.patch("nodes", NAME, {"metadata": {"finalizers": ["other.example.com/keep"]}})
    lists = ListChanges(("example.com/keep",), (), (Taint("old", "2", "NoSchedule"),), ())

    ours.patch_node(node_write(node, PREFIX, unschedulable=True, lists=lists))

    found = cluster.api.get("nodes", NAME)
    taints = [one for one in found["spec"]["taints"] if one["key"] in ("other", "old")]
    assert taints == [theirs, {"key": "old", "value": "2", "effect": "NoSchedule"}]
    assert found["metadata"]["finalizers"] == ["other.example.com/keep", "example.com/keep"]
    assert found["spec"]["unschedulable"]

    seen = ours.nodes(WANTED)[0]
    assert seen.finalizers == ("other.example.com/keep", "example.com/keep")
    gone = ListChanges(
        (), ("example.com/keep", "other.example.com/keep"), (), (Taint("old", "2", "NoSchedule"),)
    )
    ours.patch_node(node_write(seen, PREFIX, lists=gone))
    ours.patch_node(node_write(seen, PREFIX, lists=gone))

    found = cluster.api.get("nodes", NAME)
    assert [one["key"] for one in found["spec"]["taints"] if one["key"] in ("other", "old")] == ["other"]
    assert "finalizers" not in found["metadata"]


def test_lists_of_a_node_whose_record_has_changed_are_not_written(
    cluster: ControlPlane, ours: Cluster, node: Node
) -> None:
    cluster.api.patch("nodes", NAME, {"metadata": {"annotations": {RECORD: "theirs"}}})

    with pytest.raises(Conflict, match="someone changed the keys"):
        ours.patch_node(node_write(node, PREFIX, lists=ListChanges(("example.com/keep",))))

    assert "finalizers" not in cluster.api.get("nodes", NAME)["metadata"]


def test_what_a_refused_write_has_read_is_known_to_the_next_decision(
    cluster: ControlPlane, connection: Connection, node: Node
) -> None:
    """A pass decides again at once, and no watch may have shown the change by then."""
    store = NodeStore()
    store.begin(WANTED)
    assert [*store.listed([node], node.resource_version)] == []
    cluster.api.patch("nodes", NAME, {"metadata": {"annotations": {f"{PREFIX}/hold": "{}"}}})

    with pytest.raises(Conflict):
        CachedCluster(connection, guard=lambda: None, store=store).patch_node(cordon(node))

    assert store.newest()[NAME].annotations == {f"{PREFIX}/hold": "{}"}
