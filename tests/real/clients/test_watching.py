"""Watches list, follow, reconnect, list again after a 410, and end from any thread."""

import json
import threading
from collections.abc import Iterator
from queue import Queue
from typing import Any

import pytest

from reconciler.kubernetes import watching
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.eviction import Evictions
from reconciler.kubernetes.scale.node_store import NodeChange, NodeStore, follow_nodes
from reconciler.model.errors import Forbidden
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import BudgetGone, Listed, PodGone
from tests.real.clients.conftest import PREFIX, WANTED
from tests.support.controlplane import workloads
from tests.support.controlplane.fill import fill, patch_conditions, vm_event
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.shapes import negotiated
from tests.support.stub import PROTOBUF, Answer, Asked, StubMaker, json_answer, status

Seen = Queue[Any]


def follow(changes: Iterator[Any]) -> tuple[Seen, threading.Thread]:
    """Read the changes in a thread of their own; None is put when they end."""
    seen: Seen = Queue()

    def run() -> None:
        for change in changes:
            seen.put(change)
        seen.put(None)

    thread = threading.Thread(target=run)
    thread.start()
    return seen, thread


def ended(*threads: threading.Thread) -> None:
    """Wait until these have ended."""
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def until(seen: Seen, matches: Any) -> Any:
    """The first change that matches."""
    while True:
        change = seen.get(timeout=30)
        assert change is not None, "the watch ended"
        if matches(change):
            return change


def test_pods_are_listed_then_followed_until_they_are_gone(
    cluster: ControlPlane, evictions: Evictions
) -> None:
    one, two = fill(cluster.kubeconfig, nodes=2)
    cluster.api.create("pods", workloads.pod("a", node_name=one))
    with evictions.watch_pods(one) as changes:
        seen, thread = follow(changes)
        a = until(seen, lambda change: isinstance(change, Pod))
        assert a.name == "a"
        cluster.api.create("pods", workloads.pod("elsewhere", node_name=two))
        cluster.api.create("pods", workloads.pod("b", node_name=one))
        assert until(seen, lambda change: isinstance(change, Pod) and change.name != "a").name == "b"
        evictions.evict(a, grace=None)
        until(seen, lambda change: isinstance(change, Pod) and change.uid == a.uid and change.deleting_until)
        until(seen, lambda change: change == PodGone(a.uid))
    ended(thread)


def test_budgets_are_followed(cluster: ControlPlane, evictions: Evictions) -> None:
    fill(cluster.kubeconfig, nodes=1)
    cluster.api.create("deployments", workloads.deployment("web", 2))
    cluster.api.create("poddisruptionbudgets", workloads.budget("web", max_unavailable=1))
    with evictions.watch_budgets() as changes:
        seen, thread = follow(changes)
        until(seen, lambda change: isinstance(change, PodDisruptionBudget) and change.allowed == 1)
        cluster.api.delete("poddisruptionbudgets", "web")
        until(seen, lambda change: change == BudgetGone("default/web"))
    ended(thread)


def test_the_budgets_of_one_namespace_are_followed_without_the_others(
    cluster: ControlPlane, evictions: Evictions
) -> None:
    for namespace in ("default", "kube-public"):
        cluster.api.create(
            "poddisruptionbudgets", workloads.budget("web", namespace=namespace, max_unavailable=1)
        )
    with evictions.watch_budgets("kube-public") as changes:
        seen, thread = follow(changes)
        assert until(seen, lambda _: True).key == "kube-public/web"
        for namespace in ("default", "kube-public"):
            cluster.api.delete("poddisruptionbudgets", "web", namespace)
        keys = set()
        while (change := seen.get(timeout=30)) != BudgetGone("kube-public/web"):
            keys.add(getattr(change, "key", "listed"))
    ended(thread)
    assert keys <= {"kube-public/web", "listed"}


def test_a_watch_outlives_the_api_server(cluster: ControlPlane, evictions: Evictions) -> None:
    node = fill(cluster.kubeconfig, nodes=1)[0]
    cluster.api.create("pods", workloads.pod("a", node_name=node))
    with evictions.watch_pods(node) as changes:
        seen, thread = follow(changes)
        until(seen, lambda change: isinstance(change, Pod) and change.ready)
        cluster.stop_apiserver()
        cluster.start_apiserver()
        cluster.api.create("pods", workloads.pod("b", node_name=node))
        until(seen, lambda change: isinstance(change, Pod) and change.name == "b")
    ended(thread)


def pod(name: str, version: str) -> dict[str, Any]:
    """A pod as a stub serves it."""
    return {"metadata": {"name": name, "namespace": "d", "uid": name, "resourceVersion": version}}


def pod_list(*pods: dict[str, Any], version: str = "1") -> Answer:
    """A list of pods."""
    return json_answer({"kind": "PodList", "metadata": {"resourceVersion": version}, "items": pods})


class Script:
    """Gives these answers one after the other. `asked` are the lists and watches so far.

    Who only asks for the newest version is told a late one, or `newest`.
    """

    newest = "99"

    def __init__(self, *answers: Answer) -> None:
        """Use these answers."""
        self.answers = answers
        self.asked: list[Asked] = []

    def __call__(self, asked: Asked) -> Answer:
        """Answer a request."""
        if asked.query.get("limit") == "1":
            return pod_list(version=self.newest)
        self.asked.append(asked)
        return self.answers[len(self.asked) - 1]


def events(*them: tuple[str, dict[str, Any]]) -> Answer:
    """A watch's whole answer."""
    return Answer(b"".join(json.dumps({"type": kind, "object": it}).encode() + b"\n" for kind, it in them))


def test_after_a_410_what_vanished_meanwhile_is_reported(stub: StubMaker) -> None:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    script = Script(
        pod_list(pod("a", "1"), pod("b", "1")),
        events(("ERROR", gone)),
        pod_list(pod("b", "1"), pod("c", "5"), version="6"),
        Answer(hang=True),
    )
    server, connection = stub(script)
    with Evictions(connection, prefix=PREFIX).watch_pods("n") as changes:
        reported = [next(changes) for _ in range(6)]
        seen, thread = follow(changes)
        wait_for("the second watch", lambda: len(script.asked) == 4)
        server.closed.set()
    thread.join(60)

    assert seen.get() is None
    assert [name_of(change) for change in reported] == ["a", "b", "listed", "gone a", "c", "listed"]
    assert script.asked[3].query["resourceVersion"] == "6"


def name_of(change: Any) -> str:
    """The pod's name, `gone` and its UID, or `listed`."""
    match change:
        case PodGone(uid):
            return f"gone {uid}"
        case Listed():
            return "listed"
        case _:
            return str(change.name)


def test_a_watch_goes_on_where_it_was_cut(stub: StubMaker) -> None:
    bookmark = {"metadata": {"resourceVersion": "9"}}

    script = Script(
        pod_list(pod("a", "1")),
        events(("MODIFIED", pod("a", "4")), ("BOOKMARK", bookmark)),
        events(("DELETED", pod("a", "12"))),
        Answer(hang=True),
    )
    _, connection = stub(script)
    with Evictions(connection, prefix=PREFIX).watch_pods("n") as changes:
        reported = [next(changes) for _ in range(4)]

    assert [name_of(change) for change in reported] == ["a", "listed", "a", "gone a"]
    assert [asked.query.get("resourceVersion") for asked in script.asked[1:3]] == ["1", "9"]


def test_a_watch_whose_server_has_an_older_version_lists_again_at_once(stub: StubMaker) -> None:
    """A watch from a version that does not exist yet would be silent, maybe for hours."""
    script = Script(
        pod_list(pod("a", "1"), version="7"),
        events(("MODIFIED", pod("a", "8")), ("ADDED", pod("b", "9"))),
        # A backup from before b, in which a has changed since, to the same version.
        pod_list({**pod("a", "8"), "status": {"phase": "Failed"}}, version="8"),
        pod_list({**pod("a", "8"), "status": {"phase": "Failed"}}, version="8"),
        Answer(hang=True),
    )
    script.newest = "8"
    server, connection = stub(script)
    with Evictions(connection, prefix=PREFIX).watch_pods("n") as changes:
        seen, thread = follow(changes)
        reported = [seen.get(timeout=60) for _ in range(7)]
        server.closed.set()
    thread.join(60)

    assert [name_of(change) for change in reported] == ["a", "listed", "a", "b", "gone b", "a", "listed"]
    assert "watch" not in script.asked[2].query


def test_objects_are_listed_again_after_a_bounded_time_so_that_a_lost_event_is_found(
    stub: StubMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "RELIST_EVERY", 0.0)
    monkeypatch.setattr(watching, "RELIST_FOR_EACH", 0.0)
    bookmark = events(("BOOKMARK", {"metadata": {"resourceVersion": "3"}}))
    script = Script(
        pod_list(pod("a", "1"), pod("b", "1")),
        bookmark,
        # Between the two lists, a was deleted and b has changed. The watch got neither event.
        pod_list(pod("b", "2"), version="4"),
        Answer(hang=True),
    )
    server, connection = stub(script)
    with Evictions(connection, prefix=PREFIX).watch_pods("n") as changes:
        seen, thread = follow(changes)
        reported = [seen.get(timeout=60) for _ in range(6)]
        server.closed.set()
    thread.join(60)

    assert [name_of(change) for change in reported] == ["a", "b", "listed", "gone a", "b", "listed"]


def test_an_object_that_can_not_be_read_stops_no_other_and_is_listed_again(
    stub: StubMaker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching, "REREAD_AFTER", 0.0)
    # A key that is no UTF-8.
    broken = {"metadata": {"uid": "bad", "labels": {"BROKEN": "x"}}}
    some = events(("MODIFIED", broken), ("ADDED", pod("good", "5")), ("ADDED", pod("other", "6")))
    changed = negotiated("/api/v1/pods", some.body, watch=True) or b""
    script = Script(
        pod_list(pod("bad", "1")),
        Answer(changed.replace(b"BROKEN", b"BRO\xffEN"), content_type=PROTOBUF),
        pod_list(pod("bad", "7"), pod("good", "5"), version="8"),
        Answer(hang=True),
    )
    server, connection = stub(script)
    with Evictions(connection, prefix=PREFIX).watch_pods("n") as changes:
        seen, thread = follow(changes)
        reported = [seen.get(timeout=60) for _ in range(5)]
        server.closed.set()
    thread.join(60)

    assert [name_of(change) for change in reported] == ["bad", "listed", "good", "bad", "listed"]
    (record,) = [each for each in caplog.records if "skips an object" in each.getMessage()]
    assert record.exc_info


def test_a_server_that_ends_every_watch_at_once_is_asked_with_pauses(
    stub: StubMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[int] = []

    def pause(failures: int, wish: float) -> float:
        pauses.append(failures)
        return wish

    monkeypatch.setattr(watching, "pause_after", pause)
    gone = events(("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}))
    script = Script(
        pod_list(), Answer(b""), Answer(b""), gone, pod_list(), gone, pod_list(), Answer(hang=True)
    )
    server, connection = stub(script)
    with Evictions(connection, prefix=PREFIX).watch_pods("n") as changes:
        _, thread = follow(changes)
        wait_for("the last watch", lambda: len(script.asked) == len(script.answers))
        server.closed.set()
    thread.join(60)

    assert pauses[:4] == [1, 2, 3, 4]


def test_leaving_in_the_middle_ends_the_iterator_and_so_closes_its_connection(stub: StubMaker) -> None:
    two = events(("MODIFIED", pod("a", "4")), ("MODIFIED", pod("a", "5")))
    _, connection = stub(lambda asked: pod_list(pod("a", "1")) if asked.number == 0 else two)
    with Evictions(connection, prefix=PREFIX).watch_pods("n") as changes:
        reported = [next(changes) for _ in range(3)]

    assert [name_of(change) for change in reported] == ["a", "listed", "a"]
    # The second event is read already: only an iterator that is closed does not hand it out.
    assert next(changes, "ended") == "ended"


def test_what_is_no_outage_is_raised(stub: StubMaker) -> None:
    _, connection = stub(lambda asked: pod_list() if asked.number == 0 else status(403, "Forbidden"))
    with Evictions(connection, prefix=PREFIX).watch_pods("n") as changes, pytest.raises(Forbidden):
        list(changes)


def test_nodes_wake_for_what_we_read_and_sleep_through_heartbeats(
    cluster: ControlPlane, connection: Connection, ours: Cluster
) -> None:
    one, two = fill(cluster.kubeconfig, nodes=2)
    with follow_nodes(connection, WANTED, NodeStore()) as changes:
        seen, thread = follow(changes)
        assert seen.get(timeout=30) == NodeChange("")
        # A heartbeat, a foreign annotation, an image list: nothing that we read.
        ready = next(
            condition
            for condition in cluster.api.get("nodes", one)["status"]["conditions"]
            if condition["type"] == "Ready"
        )
        patch_conditions(cluster.api, one, {**ready, "lastHeartbeatTime": "2030-01-01T00:00:00Z"})
        cluster.api.patch("nodes", one, {"metadata": {"annotations": {"theirs": "x"}}})
        patch_conditions(cluster.api, two, vm_event())
        assert seen.get(timeout=30) == NodeChange(two, urgent=True)
        cluster.api.patch("nodes", one, {"metadata": {"annotations": {f"{PREFIX}/imds": "{}"}}})
        assert seen.get(timeout=30) == NodeChange(one, urgent=True)
        for key in ("request", "hold", "hold-of-many", "defer", "approved"):
            cluster.api.patch("nodes", one, {"metadata": {"annotations": {f"{PREFIX}/{key}": "{}"}}})
            assert seen.get(timeout=30) == NodeChange(one, urgent=True), key
        cluster.api.patch("nodes", one, {"metadata": {"annotations": {f"{PREFIX}/record": "{}"}}})
        assert seen.get(timeout=30) == NodeChange(one)
        patch_conditions(cluster.api, one, {**ready, "status": "False"})
        assert seen.get(timeout=30) == NodeChange(one)
        cluster.api.patch("nodes", two, {"spec": {"unschedulable": True}})
        assert seen.get(timeout=30) == NodeChange(two)
        cluster.api.delete("nodes", one)
        assert seen.get(timeout=30) == NodeChange(one)
    assert seen.get(timeout=30) is None
    thread.join(60)


def test_leaving_wakes_a_waiting_thread_at_once(cluster: ControlPlane, connection: Connection) -> None:
    with follow_nodes(connection, WANTED, NodeStore()) as changes:
        seen, thread = follow(changes)
        assert seen.get(timeout=30) == NodeChange("")
    # The stream itself would only end after minutes.
    thread.join(5)
    assert not thread.is_alive()
