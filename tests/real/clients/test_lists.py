"""The big lists: both formats give the same values, and a broken answer is never taken for a short list."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kubernetes.answers import GONE
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.paths import BUDGETS, NODES, PODS
from reconciler.kubernetes.wire import protobuf
from reconciler.kubernetes.wire.lists import ListResult, budget_format, list_all, node_format, pod_format
from reconciler.model.errors import ClusterError, Rejected, Unreachable
from reconciler.model.node import Node, Wanted
from reconciler.model.pod import Pod, PodDisruptionBudget
from tests.real.clients.conftest import PREFIX, WANTED
from tests.support import shapes
from tests.support.controlplane import workloads
from tests.support.controlplane.fill import fill
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.waiting import wait_for
from tests.support.stub import JSON, PROTOBUF, Answer, Asked, StubMaker, status

Value = TypeVar("Value", Node, Pod, PodDisruptionBudget)
SELECTORS: tuple[shapes.Object, ...] = (
    {},
    {"selector": {}},
    {
        "selector": {
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}],
        }
    },
)
WITH_CAPACITY = Wanted(WANTED.conditions, PREFIX, capacity=True)


def reader_of(body: bytes, sizes: list[int]) -> Callable[[int], bytes]:
    """Reads the body in pieces of those sizes, then whole."""
    at = 0
    left = list(sizes)

    def read(size: int) -> bytes:
        nonlocal at
        piece = body[at : at + min(size, left.pop(0) if left else size)]
        at += len(piece)
        return piece

    return read


@given(st.lists(shapes.nodes, max_size=4), st.booleans())
def test_nodes_are_the_same_from_json_and_from_protobuf(
    documents: list[shapes.Object], capacity: bool
) -> None:
    form = node_format(Wanted(WANTED.conditions, PREFIX, capacity=capacity))
    _, _, from_json = form.list_from_json(shapes.as_json("NodeList", documents))
    body = shapes.as_protobuf("NodeList", documents)
    cut = protobuf.items(reader_of(body, []), "NodeList", lambda _: None)

    assert from_json == [form.from_protobuf(item) for item in cut]


@given(st.lists(shapes.pods, max_size=4), st.booleans())
def test_pods_are_the_same_from_json_and_from_protobuf(
    documents: list[shapes.Object], placement: bool
) -> None:
    form = pod_format(placement=placement)
    _, _, from_json = form.list_from_json(shapes.as_json("PodList", documents))
    body = shapes.as_protobuf("PodList", documents)
    cut = protobuf.items(reader_of(body, []), "PodList", lambda _: None)

    assert from_json == [form.from_protobuf(item) for item in cut]


@given(st.lists(shapes.nodes, max_size=4), st.lists(st.integers(1, 60), max_size=40))
def test_how_the_stream_is_cut_into_chunks_changes_nothing(
    documents: list[shapes.Object], sizes: list[int]
) -> None:
    body = shapes.as_protobuf("NodeList", documents)
    whole = [bytes(item) for item in protobuf.items(reader_of(body, []), "NodeList", lambda _: None)]

    assert whole == [
        bytes(item) for item in protobuf.items(reader_of(body, sizes), "NodeList", lambda _: None)
    ]


@given(st.lists(shapes.nodes, min_size=1, max_size=3), st.data())
def test_a_body_that_ends_early_is_an_error_and_not_a_shorter_list(
    documents: list[shapes.Object], data: st.DataObject
) -> None:
    body = shapes.as_protobuf("NodeList", documents)
    # Behind the list come only two empty fields of two bytes each.
    end = data.draw(st.integers(0, len(body) - 5))

    with pytest.raises((Unreachable, Rejected)):
        list(protobuf.items(reader_of(body[:end], []), "NodeList", lambda _: None))


@given(st.binary(max_size=60))
def test_garbage_is_refused_in_our_own_words(body: bytes) -> None:
    for whole in (body, b"k8s\x00" + body, shapes.envelope("NodeList", body)):
        try:
            for item in protobuf.items(reader_of(whole, []), "NodeList", lambda _: None):
                node_format(WANTED).from_protobuf(item)
        except ClusterError:
            pass


def test_a_real_server_gives_the_same_in_both_formats(cluster: ControlPlane, connection: Connection) -> None:
    fill(cluster.kubeconfig, nodes=7)
    cluster.api.patch("nodes", fill_name(cluster), {"metadata": {"annotations": {f"{PREFIX}/record": "{}"}}})
    web = workloads.deployment("web", 3, volumes=[{"name": "tmp", "emptyDir": {}}])
    cluster.api.create("deployments", web)
    wait_for("pods", lambda: len(cluster.api.list("pods", "default")) == 3)

    def both_nodes() -> bool:
        return same(lambda accept: list_all(connection, NODES, nodes, page=3, accept=accept))

    def both_pods() -> bool:
        return same(lambda accept: list_all(connection, PODS, pods, accept=accept))

    def both_budgets() -> bool:
        return same(lambda accept: list_all(connection, BUDGETS, budget_format(), page=2, accept=accept))

    for number, chosen in enumerate(SELECTORS):
        spec = {"maxUnavailable": number, "unhealthyPodEvictionPolicy": "AlwaysAllow", **chosen}
        body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": f"b{number}"}}
        cluster.api.create("poddisruptionbudgets", {**body, "spec": spec})
    nodes, pods = node_format(WITH_CAPACITY), pod_format(placement=True)
    # kwok keeps writing to the objects that it manages, so both reads must be of the same moment.
    wait_for("two reads of the same nodes", both_nodes)
    wait_for("two reads of the same pods", both_pods)
    found = list_all(connection, NODES, nodes, page=3).items
    assert len(found) == 7
    assert all(node.ready and node.allocatable["cpu"] == "7820m" and node.zone for node in found)
    assert [node.annotations for node in found if node.annotations] == [{f"{PREFIX}/record": "{}"}]
    wait_for("two reads of the same budgets", both_budgets)
    budgets = {one.name: one for one in list_all(connection, BUDGETS, budget_format(), page=2).items}
    assert [str(budgets[f"b{number}"].selector) for number in range(3)] == ["None", "", "app=web,!tier"]
    assert all(one.unhealthy_always and one.resource_version for one in budgets.values())
    wait_for("the status of a budget", lambda: _budget(connection, "b2").expected == 3)
    assert _budget(connection, "b2").desired == 1
    assert all(pod.empty_dir for pod in list_all(connection, PODS, pods).items)


def _budget(connection: Connection, name: str) -> PodDisruptionBudget:
    found = list_all(connection, BUDGETS, budget_format(), page=2).items
    return next(one for one in found if one.name == name)


def fill_name(cluster: ControlPlane) -> str:
    """The name of any node."""
    return str(cluster.api.list("nodes", metadata_only=True)[0]["metadata"]["name"])


def same(ask: Callable[[str], ListResult[Value]]) -> bool:
    """Whether both formats give the same; only where both were read from the same version."""
    one, two = ask(PROTOBUF), ask(JSON)
    if one.resource_version != two.resource_version:
        return False
    assert one.items == two.items
    return True


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_pages_are_put_together(stub: StubMaker, content_type: str) -> None:
    def answer(asked: Asked) -> Answer:
        page = int(asked.query.get("continue", "0"))
        body = encode(content_type, [{"metadata": {"name": f"n{page}"}}], str(page + 1) if page < 2 else "")
        return Answer(body, content_type=content_type)

    server, connection = stub(answer)
    listed = list_all(connection, NODES, node_format(WANTED), page=1)

    assert [node.name for node in listed.items] == ["n0", "n1", "n2"]
    assert listed.resource_version == "7"
    assert [asked.query["limit"] for asked in server.asked] == ["1", "1", "1"]


def encode(content_type: str, items: list[shapes.Object], token: str = "") -> bytes:
    """A list of nodes in either format."""
    return (shapes.as_protobuf if content_type == PROTOBUF else shapes.as_json)("NodeList", items, token)


def test_a_list_whose_rest_was_compacted_away_is_read_again(stub: StubMaker) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.number == 1:
            return status(GONE, "Expired", "The provided continue parameter is too old")
        token = "more" if asked.number == 0 else ""
        return Answer(encode(PROTOBUF, [{"metadata": {"name": "n"}}], token), content_type=PROTOBUF)

    server, connection = stub(answer)

    assert [node.name for node in list_all(connection, NODES, node_format(WANTED)).items] == ["n"]
    assert [asked.query.get("continue") for asked in server.asked] == [None, "more", None]


def test_a_list_that_is_always_compacted_away_is_given_up(stub: StubMaker) -> None:
    _, connection = stub(lambda _: status(GONE, "Expired"))

    with pytest.raises(Unreachable, match="stale"):
        list_all(connection, NODES, node_format(WANTED))


def test_a_page_that_is_cut_off_is_asked_for_again(stub: StubMaker) -> None:
    body = encode(PROTOBUF, [{"metadata": {"name": "n", "uid": "u" * 500}}])

    def answer(asked: Asked) -> Answer:
        if asked.number == 0:
            return Answer(body[:-100], content_type=PROTOBUF, cut=True)
        return Answer(body, content_type=PROTOBUF)

    server, connection = stub(answer)

    assert [node.name for node in list_all(connection, NODES, node_format(WANTED)).items] == ["n"]
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(Answer(b"<html>", content_type="text/html"), "proxy", id="neither format"),
        pytest.param(Answer(b"<html>"), "can't be read", id="no JSON"),
        pytest.param(Answer(b"[]"), "can't be read", id="JSON of another shape"),
        pytest.param(Answer(b'{"kind":"Status"}'), "Status", id="a Status instead of a list"),
        pytest.param(
            Answer(shapes.envelope("Status", b""), content_type=PROTOBUF), "Status", id="a Status in protobuf"
        ),
        pytest.param(Answer(b"<html>", content_type=PROTOBUF), "does not begin", id="protobuf only by name"),
        pytest.param(
            Answer(shapes.envelope("NodeList", b""), content_type=PROTOBUF), "no metadata", id="an empty list"
        ),
    ],
)
def test_an_answer_that_is_no_list_is_refused_with_the_reason(
    stub: StubMaker, answer: Answer, words: str
) -> None:
    _, connection = stub(lambda _: answer)

    with pytest.raises(Rejected, match=words):
        list_all(connection, NODES, node_format(WANTED))


def test_a_refusal_in_protobuf_is_read(stub: StubMaker) -> None:
    refused = protobuf.Status(message="no such field", reason="Invalid", code=422)
    refused.details.causes.add(reason="FieldValueInvalid", message="spec.x")
    body = shapes.envelope("Status", refused.SerializeToString())
    _, connection = stub(lambda _: Answer(body, 422, PROTOBUF))

    with pytest.raises(Rejected, match="422 no such field") as caught:
        list_all(connection, NODES, node_format(WANTED))
    assert (caught.value.reason, caught.value.causes) == ("Invalid", ("spec.x",))


def test_null_for_a_list_is_an_empty_one(stub: StubMaker) -> None:
    _, connection = stub(lambda _: Answer(json.dumps({"kind": "NodeList", "items": None}).encode()))

    assert list_all(connection, NODES, node_format(WANTED)).items == []


def test_null_in_json_is_the_same_as_absent() -> None:
    metadata = {"name": "x", "labels": None, "annotations": None, "ownerReferences": None}
    node = {
        "metadata": {**metadata, "deletionTimestamp": None},
        "spec": {"taints": None, "unschedulable": None},
        "status": {"conditions": None, "allocatable": None, "nodeInfo": None},
    }
    affinity = {"nodeAffinity": None, "podAffinity": None, "podAntiAffinity": None}
    pod = {
        "metadata": metadata,
        "spec": {
            "volumes": [{"emptyDir": None, "persistentVolumeClaim": None}],
            "containers": [{"resources": None}],
            "initContainers": None,
            "terminationGracePeriodSeconds": None,
            "affinity": affinity,
            "tolerations": None,
            "priority": None,
            "overhead": None,
            "topologySpreadConstraints": None,
        },
        "status": {"conditions": None},
    }
    nodes, pods = node_format(WITH_CAPACITY), pod_format(placement=True)
    bare = {"metadata": {"name": "x"}}

    assert nodes.from_json(json.dumps(node).encode()) == nodes.from_json(json.dumps(bare).encode())
    assert pods.from_json(json.dumps(pod).encode()) == pods.from_json(json.dumps(bare).encode())


def test_json_may_write_quantities_as_numbers_and_times_in_any_zone() -> None:
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T13:00:00.7+01:00"}
    status = {"allocatable": {"cpu": 4, "memory": "2Gi"}, "conditions": [condition]}
    found = node_format(WITH_CAPACITY).from_json(
        json.dumps({"metadata": {"name": "x"}, "status": status}).encode()
    )

    assert found.allocatable == {"cpu": "4", "memory": "2Gi"}
    assert found.conditions[0].heartbeat == datetime(2026, 1, 1, 12, tzinfo=UTC)
