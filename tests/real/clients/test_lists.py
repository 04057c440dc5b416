"""Lists, plain and streamed, read what the API server has, and take no broken answer for a short list."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kubernetes.connection import BUDGETS, GONE, NODES, PODS, ApiPath, Connection, Request
from reconciler.kubernetes.objects import OnlyMetadata
from reconciler.kubernetes.scale import pages
from reconciler.kubernetes.scale.pages import list_streamed
from reconciler.kubernetes.wire import protobuf
from reconciler.kubernetes.wire.formats import Format, budget_format, json_format, node_format, pod_format
from reconciler.kubernetes.wire.lists import ListResult, list_all
from reconciler.model.errors import ClusterError, Rejected, Unreachable
from reconciler.model.node import Node, Wanted
from reconciler.model.pod import Pod, PodDisruptionBudget
from tests.real.clients.conftest import PREFIX, WANTED
from tests.support import shapes
from tests.support.controlplane import workloads
from tests.support.controlplane.fill import fill
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.stub import PROTOBUF, Answer, Asked, StubMaker, status

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
Listing = Callable[..., ListResult[Any]]

in_both_ways = pytest.mark.parametrize("listing", [list_all, list_streamed])

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


@given(st.lists(shapes.nodes, max_size=4), st.lists(st.integers(1, 60), max_size=40))
def test_how_the_stream_is_cut_into_chunks_changes_nothing(
    documents: list[shapes.Object], sizes: list[int]
) -> None:
    body = shapes.as_protobuf("NodeList", documents)
    whole = [bytes(item) for item in pages.items(reader_of(body, []), "NodeList", lambda _: None)]

    assert whole == [bytes(item) for item in pages.items(reader_of(body, sizes), "NodeList", lambda _: None)]


@given(st.lists(shapes.nodes, min_size=1, max_size=3), st.data())
def test_a_body_that_ends_early_is_an_error_and_not_a_shorter_list(
    documents: list[shapes.Object], data: st.DataObject
) -> None:
    body = shapes.as_protobuf("NodeList", documents)
    # Behind the list come only two empty fields of two bytes each.
    end = data.draw(st.integers(0, len(body) - 5))

    with pytest.raises((Unreachable, Rejected)):
        list(pages.items(reader_of(body[:end], []), "NodeList", lambda _: None))
    with pytest.raises(Rejected):
        protobuf.read_list(body[:end], "NodeList")


@given(st.binary(max_size=60))
def test_garbage_is_refused_in_our_own_words(body: bytes) -> None:
    for whole in (body, b"k8s\x00" + body, shapes.envelope("NodeList", body)):
        with suppress(ClusterError):
            for item in pages.items(reader_of(whole, []), "NodeList", lambda _: None):
                node_format(WANTED).read(item)
        with suppress(ClusterError):
            node_format(WANTED).page(whole)


@in_both_ways
def test_what_a_real_server_says_in_json_is_read_in_protobuf(
    listing: Listing, cluster: ControlPlane, connection: Connection
) -> None:
    fill(cluster.kubeconfig, nodes=7)
    cluster.api.patch("nodes", fill_name(cluster), {"metadata": {"annotations": {f"{PREFIX}/record": "{}"}}})
    web = workloads.deployment("web", 3, volumes=[{"name": "tmp", "emptyDir": {}}])
    cluster.api.create("deployments", web)
    wait_for("pods", lambda: len(cluster.api.list("pods", "default")) == 3)

    def same(kind: str, path: ApiPath, form: Format[Value]) -> bool:
        """Whether both formats have the same; only where both were read at the same moment."""
        one = listing(connection, path, form, page=3)
        two = json.loads(connection.send(Request("GET", path)))
        if one.resource_version != two["metadata"]["resourceVersion"]:
            return False
        assert one.items == [
            form.read(shapes.encoded(shapes.MESSAGES[kind](), item)) for item in two["items"]
        ]
        return True

    for number, chosen in enumerate(SELECTORS):
        spec = {"maxUnavailable": number, "unhealthyPodEvictionPolicy": "AlwaysAllow", **chosen}
        body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": f"b{number}"}}
        cluster.api.create("poddisruptionbudgets", {**body, "spec": spec})
    nodes, pods = node_format(WITH_CAPACITY), pod_format(placement=True)
    # kwok keeps writing to the objects that it manages, so both reads must be of the same moment.
    wait_for("two reads of the same nodes", lambda: same("Node", NODES, nodes))
    wait_for("two reads of the same pods", lambda: same("Pod", PODS, pods))
    found = listing(connection, NODES, nodes, page=3).items
    assert len(found) == 7
    assert all(node.ready and node.allocatable["cpu"] == "7820m" and node.zone for node in found)
    assert [node.annotations for node in found if node.annotations] == [{f"{PREFIX}/record": "{}"}]
    wait_for("two reads of the same budgets", lambda: same("PodDisruptionBudget", BUDGETS, budget_format()))
    budgets = {one.name: one for one in listing(connection, BUDGETS, budget_format(), page=2).items}
    assert [str(budgets[f"b{number}"].selector) for number in range(3)] == ["None", "", "app=web,!tier"]
    assert all(one.unhealthy_always and one.resource_version for one in budgets.values())
    wait_for("the status of a budget", lambda: _budget(connection, "b2").expected == 3)
    assert _budget(connection, "b2").desired == 1
    assert all(pod.spec.empty_dir for pod in listing(connection, PODS, pods).items)


def _budget(connection: Connection, name: str) -> PodDisruptionBudget:
    found = list_all(connection, BUDGETS, budget_format(), page=2).items
    return next(one for one in found if one.name == name)


def fill_name(cluster: ControlPlane) -> str:
    """The name of any node."""
    return str(cluster.api.list("nodes", metadata_only=True)[0]["metadata"]["name"])


@in_both_ways
def test_pages_are_put_together(listing: Listing, stub: StubMaker) -> None:
    def answer(asked: Asked) -> Answer:
        page = int(asked.query.get("continue", "0"))
        body = encode([{"metadata": {"name": f"n{page}"}}], str(page + 1) if page < 2 else "")
        return Answer(body, content_type=PROTOBUF)

    server, connection = stub(answer)
    listed = listing(connection, NODES, node_format(WANTED), page=1)

    assert [node.name for node in listed.items] == ["n0", "n1", "n2"]
    assert listed.resource_version == "7"
    assert [asked.query["limit"] for asked in server.asked] == ["1", "4", "4"]


def encode(items: list[shapes.Object], token: str = "") -> bytes:
    """A list of nodes."""
    return shapes.as_protobuf("NodeList", items, token)


@in_both_ways
def test_a_list_whose_rest_was_compacted_away_is_read_again(listing: Listing, stub: StubMaker) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.number == 1:
            return status(GONE, "Expired", "The provided continue parameter is too old")
        token = "more" if asked.number == 0 else ""
        return Answer(encode([{"metadata": {"name": "n"}}], token), content_type=PROTOBUF)

    server, connection = stub(answer)

    assert [node.name for node in listing(connection, NODES, node_format(WANTED)).items] == ["n"]
    assert [asked.query.get("continue") for asked in server.asked] == [None, "more", None]


@in_both_ways
def test_a_list_that_is_always_compacted_away_is_given_up(listing: Listing, stub: StubMaker) -> None:
    _, connection = stub(lambda _: status(GONE, "Expired"))

    with pytest.raises(Unreachable, match="stale"):
        listing(connection, NODES, node_format(WANTED))


@in_both_ways
def test_a_page_that_is_cut_off_is_asked_for_again(listing: Listing, stub: StubMaker) -> None:
    body = encode([{"metadata": {"name": "n", "uid": "u" * 500}}])

    def answer(asked: Asked) -> Answer:
        if asked.number == 0:
            return Answer(body[:-100], content_type=PROTOBUF, cut=True)
        return Answer(body, content_type=PROTOBUF)

    server, connection = stub(answer)

    assert [node.name for node in listing(connection, NODES, node_format(WANTED)).items] == ["n"]
    assert len(server.asked) == 2


@in_both_ways
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(Answer(b"<html>", content_type="text/html"), "proxy", id="neither format"),
        pytest.param(Answer(b"<html>"), "proxy", id="JSON"),
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
    listing: Listing, stub: StubMaker, answer: Answer, words: str
) -> None:
    _, connection = stub(lambda _: answer)

    with pytest.raises(Rejected, match=words):
        listing(connection, NODES, node_format(WANTED))


@in_both_ways
def test_a_refusal_in_protobuf_is_read(listing: Listing, stub: StubMaker) -> None:
    refused = protobuf.Status(message="no such field", reason="Invalid", code=422)
    refused.details.causes.add(reason="FieldValueInvalid", message="spec.x")
    body = shapes.envelope("Status", refused.SerializeToString())
    _, connection = stub(lambda _: Answer(body, 422, PROTOBUF))

    with pytest.raises(Rejected, match="422 no such field") as caught:
        listing(connection, NODES, node_format(WANTED))
    assert (caught.value.reason, caught.value.causes) == ("Invalid", ("spec.x",))


def test_null_for_a_list_in_json_is_an_empty_one(stub: StubMaker) -> None:
    _, connection = stub(lambda _: Answer(json.dumps({"kind": "NodeList", "items": None}).encode()))

    assert list_all(connection, NODES, json_format(OnlyMetadata, lambda one: one)).items == []
