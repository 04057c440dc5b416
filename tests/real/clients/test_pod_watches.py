"""One watch of all pods for many nodes: each node hears of its own pods, whatever happens to the watch."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from reconciler.kubernetes.connection import PROTOBUF, Connection
from reconciler.kubernetes.scale import evictions as sharing
from reconciler.kubernetes.scale import pod_watches
from reconciler.kubernetes.scale.evictions import SharedEvictions
from reconciler.kubernetes.scale.pod_watches import REQUEST, PodLists
from reconciler.model.errors import Rejected
from reconciler.model.pod import Pod
from reconciler.model.ports import Listed, PodGone
from reconciler.model.values import replace
from tests.real.clients.conftest import PREFIX
from tests.real.clients.test_watching import ended, events, follow, name_of, pod_list, until
from tests.support import shapes
from tests.support.controlplane import workloads
from tests.support.controlplane.fill import fill
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.stub import Answer, Asked, Stub, StubMaker


@pytest.fixture(autouse=True)
def _none_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "ALONE", 0)


def _watched(server: Stub) -> list[str]:
    return [asked.query["fieldSelector"] for asked in server.asked if "watch" in asked.query]


def _is(name: str) -> Any:
    return lambda change: isinstance(change, Pod) and change.name == name


def test_each_node_hears_of_its_pods_also_of_late_ones_and_after_it_was_recreated(
    cluster: ControlPlane, evictions: SharedEvictions
) -> None:
    one, two = fill(cluster.kubeconfig, nodes=2)
    cluster.api.create("pods", workloads.pod("a", node_name=one))
    with ExitStack() as watches:
        seen, thread = follow(watches.enter_context(evictions.watch_pods(one)))
        until(seen, _is("a"))
        # The shared watch goes on already.
        others, other_thread = follow(watches.enter_context(evictions.watch_pods(two)))
        until(others, lambda change: change == Listed())
        cluster.api.create("pods", workloads.pod("late", node_name=one))
        late = until(seen, _is("late"))
        evictions.delete(late, grace=0)
        until(seen, lambda change: change == PodGone(late.uid))

        node = cluster.api.get("nodes", one)
        cluster.api.delete("nodes", one)
        cluster.api.create("nodes", {"metadata": {"name": one, "labels": node["metadata"]["labels"]}})
        cluster.api.create("pods", workloads.pod("new", node_name=one))
        until(seen, _is("new"))
        cluster.api.create("pods", workloads.pod("of-two", node_name=two))
        assert until(others, lambda change: isinstance(change, Pod)).name == "of-two"
    ended(thread, other_thread)


def test_the_shared_watch_outlives_the_api_server(cluster: ControlPlane, evictions: SharedEvictions) -> None:
    node = fill(cluster.kubeconfig, nodes=1)[0]
    with evictions.watch_pods(node) as changes:
        seen, thread = follow(changes)
        until(seen, lambda change: change == Listed())
        cluster.stop_apiserver()
        cluster.start_apiserver()
        cluster.api.create("pods", workloads.pod("b", node_name=node))
        until(seen, _is("b"))
    ended(thread)


def _pod(name: str, version: str, node: str = "n") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "d", "uid": name, "resourceVersion": version}
    return {"metadata": metadata, "spec": {"nodeName": node}}


def test_after_a_410_the_pods_are_listed_again_and_what_is_older_is_not_told(stub: StubMaker) -> None:
    expired = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    lists = [pod_list(_pod("a", "3"), _pod("b", "3"), version="4"), pod_list(_pod("b", "9"), version="10")]
    watches = [
        events(
            # Older than the list, doubled, and of another node.
            ("ADDED", _pod("b", "3")),
            ("MODIFIED", _pod("b", "5")),
            ("MODIFIED", _pod("b", "5")),
            ("ADDED", _pod("x", "6", "other")),
            ("ERROR", expired),
        ),
        events(("DELETED", _pod("b", "12"))),
    ]

    def answer(asked: Asked) -> Answer:
        if "watch" in asked.query:
            # The first watch begins once the pods are listed.
            wait_for("the list of the node", lambda: len(lists) < 2)
            return watches.pop(0) if watches else Answer(hang=True)
        return lists.pop(0) if asked.query["fieldSelector"] == "spec.nodeName=n" else pod_list(version="2")

    server, connection = stub(answer)
    with SharedEvictions(connection, prefix=PREFIX).watch_pods("n") as changes:
        told = [name_of(next(changes)) for _ in range(9)]
        server.closed.set()

    assert told[:5] == ["a", "b", "listed", "b", "b"]
    assert told[5:] == ["gone a", "b", "listed", "gone b"]
    assert set(_watched(server)) == {"spec.nodeName!="}


def test_the_pods_are_listed_again_because_a_watch_may_lose_an_event(
    stub: StubMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_watches, "RELIST_EVERY", 0.01)
    lists = [pod_list(_pod("a", "3"), version="4"), Answer(status=403), pod_list(_pod("b", "5"), version="6")]

    def answer(asked: Asked) -> Answer:
        if "watch" in asked.query:
            return Answer(quiet=True, content_type=PROTOBUF)
        if asked.query["fieldSelector"] != "spec.nodeName=n":
            return pod_list(version="2")
        return lists.pop(0) if len(lists) > 1 else lists[0]

    server, connection = stub(answer)
    with SharedEvictions(connection, prefix=PREFIX).watch_pods("n") as changes:
        seen, thread = follow(changes)
        until(seen, lambda change: change == PodGone("a"))
        until(seen, _is("b"))
        server.closed.set()
    ended(thread)


def _no_pods(asked: Asked) -> Answer:
    return Answer(quiet=True, content_type=PROTOBUF) if "watch" in asked.query else pod_list()


def test_the_first_watches_have_a_connection_each_and_the_others_share_one(
    stub: StubMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "ALONE", 1)
    server, connection = stub(_no_pods)
    evictions = SharedEvictions(connection, prefix=PREFIX)
    with evictions.watch_pods("a") as a, evictions.watch_pods("b") as b, evictions.watch_pods("c") as c:
        assert [next(changes) for changes in (a, b, c)] == [Listed()] * 3
        threads = [follow(changes)[1] for changes in (a, b, c)]
        wait_for("both watches", lambda: len(_watched(server)) == 2)
    server.closed.set()
    ended(*threads)

    assert sorted(_watched(server)) == ["spec.nodeName!=", "spec.nodeName=a"]


def test_too_many_that_wait_together_share_one_from_the_first_on(
    stub: StubMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "ALONE", 2)
    server, connection = stub(_no_pods)
    entered, go = threading.Semaphore(0), threading.Event()

    def first() -> None:
        entered.release()
        go.wait(30)

    evictions = SharedEvictions(connection, prefix=PREFIX, first=first)
    with ExitStack() as watches, ThreadPoolExecutor(3) as threads:
        opened = [threads.submit(watches.enter_context, evictions.watch_pods(node)) for node in "abc"]
        for _ in opened:
            assert entered.acquire(timeout=30)
        go.set()
        followed = [follow(each.result(30)) for each in opened]
        for seen, _ in followed:
            until(seen, lambda change: change == Listed())
        wait_for("the watch", lambda: any("watch" in asked.query for asked in server.asked))
        server.closed.set()
    ended(*(thread for _, thread in followed))

    assert _watched(server) == ["spec.nodeName!="]


def test_one_list_of_all_pods_has_those_of_each_node(cluster: ControlPlane) -> None:
    one, two, empty, other = fill(cluster.kubeconfig, nodes=4)
    for name, node in {"a": one, "b": two, "c": two, "d": other}.items():
        cluster.api.create("pods", workloads.pod(name, node_name=node))
    connection = Connection(str(cluster.kubeconfig))
    pods = PodLists(connection)
    listed = pods.together({one, two, empty})
    names = {node: sorted(pod.name for pod in found.items) for node, found in listed.items()}
    assert names == {one: ["a"], two: ["b", "c"], empty: []}
    assert {pod.uid for pod in listed[two].items} == {pod.uid for pod in pods.alone(two).items}
    assert int(listed[empty].resource_version) > 0
    assert pods.enough() == 4 / REQUEST
    pods.gone()
    assert pods.enough() == 3 / REQUEST
    connection.close()


def test_one_list_has_the_cordoned_nodes_and_shows_them_later(
    cluster: ControlPlane, evictions: SharedEvictions
) -> None:
    one, two, other = fill(cluster.kubeconfig, nodes=3)
    for node in (one, two):
        cluster.api.patch("nodes", node, {"spec": {"unschedulable": True}})
    assert evictions.listed(one) is None
    nodes = evictions.cordoned({one, other, "gone"})
    assert nodes.keys() == {one}
    read = evictions.node(one)
    assert read is not None
    # The list is of metadata alone.
    assert nodes[one] == replace(
        read, conditions=(), taints=(), provider_id="", boot_id="", kubelet_version=""
    )
    shown = evictions.listed(two)
    assert shown is not None
    assert shown[0].unschedulable
    assert 0 <= shown[1] < 60
    assert evictions.listed(other) is None


def test_a_pod_that_cannot_be_read_harms_the_list_of_its_own_node_only(stub: StubMaker) -> None:
    broken = _pod("x", "1", "b")
    broken["metadata"]["labels"] = {"broken": ""}

    def answer(asked: Asked) -> Answer:
        node = asked.query["fieldSelector"].partition("spec.nodeName=")[2]
        pods = [_pod("y", "1", "a"), broken]
        listed = pod_list(*(pod for pod in pods if not node or pod["spec"]["nodeName"] == node))
        encoded = shapes.negotiated(asked.path, listed.body, watch=False)
        return Answer((encoded or b"").replace(b"broken", 6 * b"\xff"), content_type=PROTOBUF)

    _, connection = stub(answer)
    pods = PodLists(connection)
    assert pods.together({"a", "b"}) == {}
    assert [pod.name for pod in pods.alone("a").items] == ["y"]
    with pytest.raises(Rejected):
        pods.alone("b")
