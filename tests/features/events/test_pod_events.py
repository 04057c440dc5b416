"""Events on evicted pods and their owners: what they say, how many there are, and what a refusal harms."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from reconciler.features.events import pod_events
from reconciler.features.events.pod_events import DELETED, EVICTED, MOVES, PER_DRAIN_IN_ONE, PodEvents
from reconciler.kubernetes.connection import Connection
from reconciler.model.drains import DrainOrder
from reconciler.model.errors import LockLost
from reconciler.model.pod import Owner, Pod
from reconciler.model.values import replace
from tests.support import builders
from tests.support.builders import NOW
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.threads import Once, refused
from tests.support.stub import Answer, Asked, Stub, StubMaker, json_answer, status

ORDER = DrainOrder("a", "uid-a", NOW, None, why="Redeploy at 2026-11-23T22:00:00Z")
PATIENCE = 60.0


@dataclass
class Server:
    """An API server for Events, and the sentences that the queue has warned with."""

    stub: Stub
    connection: Connection
    answers: Callable[[Asked], Answer] = lambda _: Answer(status=201)
    warned: list[str] = field(default_factory=list)

    def queue(self, guard: Callable[[], None] = lambda: None, zone: tzinfo = UTC) -> PodEvents:
        """A queue that sends as fast as it can."""
        return PodEvents(
            self.connection, guard, lambda: zone, warn=self.warned.append, per_second=1e6, behind=0.0
        )

    def sent(self, pods: list[Pod], order: DrainOrder = ORDER, **options: Any) -> list[dict[str, Any]]:
        """The Events that a drain with these pods sends until the queue is closed."""
        queue = self.queue(**options)
        for pod in pods:
            queue.evicted(order, pod)
        queue.close(PATIENCE)
        return self.bodies

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """Every Event that came."""
        return [json.loads(asked.body) for asked in self.posts]

    @property
    def posts(self) -> list[Asked]:
        """The requests with an Event."""
        return [asked for asked in self.stub.asked if asked.method == "POST"]

    @property
    def namespaces(self) -> list[str]:
        """To which namespace each came."""
        return [asked.path.split("/")[4] for asked in self.posts]


@pytest.fixture
def server(stub: StubMaker) -> Server:
    def answer(asked: Asked) -> Answer:
        return made.answers(asked)

    made = Server(*stub(answer))
    return made


def pod(name: str, namespace: str = "shop", owner: str = "web") -> Pod:
    """A pod of a ReplicaSet; without an owner nothing creates it again."""
    labels = {"pod-template-hash": owner.partition("-")[2] or "1"}
    found = replace(builders.pod(name, namespace=namespace), owner=None, labels=labels)
    return replace(found, owner=Owner("ReplicaSet", owner, "apps/v1", f"uid-{owner}")) if owner else found


def test_an_owner_says_once_who_evicted_its_pods_and_why_and_a_pod_without_one_itself(server: Server) -> None:
    events = server.sent([pod("bare", owner=""), pod("web-1"), pod("web-2")], zone=ZoneInfo("Europe/Berlin"))

    why = "by node-maintenance-reconciler: Redeploy at Mon 2026-11-23 23:00 CET (Europe/Berlin)"
    assert [(one["reason"], one["involvedObject"]["name"], one["message"]) for one in events] == [
        (EVICTED, "bare", f"evicted from node a {why}"),
        (MOVES, "web", f"pods are evicted from node a {why}"),
    ]
    assert {one["metadata"]["namespace"] for one in events} == {"shop"} == set(server.namespaces)
    assert events[0]["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "shop",
        "name": "bare",
        "uid": "uid-shop-bare",
    }
    assert events[1]["involvedObject"] == {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "namespace": "shop",
        "name": "web",
        "uid": "uid-web",
    }


def replica_set(asked: Asked) -> Answer:
    """ReplicaSets of the Deployment `shop`, whatever their names; Events are taken."""
    if asked.method == "POST":
        return Answer(status=201)
    controller = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop", "uid": "uid-shop"}
    found = [
        {"name": name, "uid": f"uid-{name}", "ownerReferences": [{**controller, "controller": True}]}
        for name in ("web-old", "web-new")
    ]
    return json_answer({"items": [{"metadata": metadata} for metadata in found]})


def test_the_event_about_a_replica_set_is_on_its_deployment_and_there_once(server: Server) -> None:
    server.answers = replica_set

    sent = server.sent([pod("web-1", owner="web-old"), pod("web-2", owner="web-new")])

    moves = [one for one in sent if one["reason"] == MOVES]
    assert [one["involvedObject"] for one in moves] == [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "namespace": "shop",
            "name": "shop",
            "uid": "uid-shop",
        }
    ] * 2
    # The API server refuses the second one.
    assert moves[0]["metadata"] == moves[1]["metadata"]
    assert moves[0]["metadata"]["name"].startswith("shop.")
    assert moves[0]["message"].startswith("pods are evicted from node a by ")


def test_a_replica_set_that_cant_be_read_now_has_the_event_itself(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_events, "FIRST_PAUSE", 0.01)
    moved = threading.Event()

    def answer(asked: Asked) -> Answer:
        if asked.method == "GET":
            return status(429, "TooManyRequests", "later")
        if MOVES.encode() in asked.body:
            moved.set()
        return Answer(status=201)

    server.answers = answer
    queue = server.queue()
    queue.evicted(ORDER, pod("web-1"))

    assert moved.wait(PATIENCE)
    queue.close(PATIENCE)
    assert [one["involvedObject"]["kind"] for one in server.bodies] == ["ReplicaSet"]
    assert len(server.stub.asked) == 2


def test_a_new_process_uses_the_same_names_and_a_later_drain_has_an_event_on_the_owner_again(
    server: Server,
) -> None:
    for since in (NOW, NOW, NOW + timedelta(hours=1)):
        server.sent([pod("bare", owner=""), pod("web-1")], replace(ORDER, since=since))

    names = [one["metadata"]["name"] for one in server.bodies]
    first, second, third = names[:2], names[2:4], names[4:]
    assert first == second
    assert third[0] == first[0]
    assert third[1] != first[1]


def test_a_deletion_is_said_as_such(server: Server) -> None:
    queue = server.queue()
    queue.evicted(ORDER, pod("web-1", owner=""), deleted=True)
    queue.close(PATIENCE)

    (event,) = server.bodies
    assert event["reason"] == DELETED
    assert event["message"].startswith("deleted from node a by node-maintenance-reconciler")


def test_an_owner_is_told_of_a_deletion_although_pods_were_evicted_before(server: Server) -> None:
    queue = server.queue()
    queue.evicted(ORDER, pod("web-1"))
    for name in ("web-2", "web-3"):
        queue.evicted(ORDER, pod(name), deleted=True)
    queue.close(PATIENCE)

    assert [one["reason"] for one in server.bodies] == [MOVES, DELETED]
    assert server.bodies[1]["message"].startswith("pods are deleted from node a by ")


def test_they_are_sent_behind_the_evictions_or_at_the_end(server: Server) -> None:
    queue = PodEvents(server.connection, lambda: None, per_second=1e6, behind=3600.0)
    for number in range(3):
        queue.evicted(ORDER, pod(f"web-{number}", owner=f"web-{number}"))
    # Another queue sends meanwhile, so that the first one has had the time to.
    server.sent([pod("bare", owner="")])

    assert len(server.stub.asked) == 1
    queue.close(PATIENCE)
    assert len(server.posts) == 4
    assert len(server.stub.asked) == 5


def test_an_event_that_is_not_valid_is_left_out_alone(server: Server) -> None:
    server.answers = lambda asked: (
        status(422, "Invalid", "no") if b'"kind":"odd"' in asked.body else Answer(status=201)
    )
    odd = replace(pod("odd-1"), owner=Owner("odd", "web", "v1", "uid"))

    events = server.sent([odd, pod("web-1")])

    assert [one["involvedObject"]["kind"] for one in events] == ["odd", "ReplicaSet"]
    assert server.warned == []


def test_a_pod_that_is_evicted_again_has_one_event(server: Server) -> None:
    assert len(server.sent([pod("web-1", owner=""), pod("web-1", owner="")])) == 1


@pytest.mark.parametrize("name", ["", "a/b", "A", "x" * 254])
def test_an_owner_whose_name_no_object_can_have_gets_none(server: Server, name: str) -> None:
    found = replace(pod("web-1"), owner=Owner("ReplicaSet", name, "apps/v1", "uid"))

    assert [one["reason"] for one in server.sent([found])] == [EVICTED]


def test_what_a_tenant_writes_as_an_owner_is_cut(server: Server) -> None:
    found = replace(pod("web-1"), owner=Owner("K" * 9999, "web", "v" * 9999, "u" * 9999))

    assert all(len(value) <= 230 for value in server.sent([found])[0]["involvedObject"].values())


def test_a_namespace_that_refuses_is_left_alone_and_delays_no_other(server: Server) -> None:
    gate = threading.Event()
    server.answers = lambda asked: (
        status(403, "Forbidden", "the namespace terminates") if "/evil/" in asked.path else Answer(status=201)
    )
    queue = server.queue(guard=lambda: _wait(gate))
    for number in range(PER_DRAIN_IN_ONE):
        queue.evicted(ORDER, pod(f"evil-{number}", "evil", ""))
        queue.evicted(ORDER, pod(f"web-{number}", "shop", ""))
    gate.set()
    queue.close(PATIENCE)

    assert sorted(server.namespaces) == ["evil", *["shop"] * PER_DRAIN_IN_ONE]
    assert len(server.warned) == 1
    assert "evil" in server.warned[0]


def test_the_namespaces_take_turns_and_one_has_a_limited_share(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_events, "WAITING_IN_ONE", 10)
    monkeypatch.setattr(pod_events, "PER_DRAIN_IN_ONE", 20)
    gate = threading.Event()
    queue = server.queue(guard=lambda: _wait(gate))
    for number in range(20):
        queue.evicted(ORDER, pod(f"evil-{number}", "evil", ""))
    for number in range(3):
        queue.evicted(ORDER, pod(f"web-{number}", "shop", ""))
    gate.set()
    queue.close(PATIENCE)

    # The thread has the first one already.
    assert server.namespaces.index("shop") <= 2
    assert server.namespaces.count("shop") == 3
    assert server.namespaces.count("evil") <= 10 + 1


def test_a_drain_has_a_limited_number_of_events(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_events, "PER_DRAIN", 20)
    monkeypatch.setattr(pod_events, "PER_DRAIN_IN_ONE", 20)
    gate = threading.Event()
    queue = server.queue(guard=lambda: _wait(gate))
    for number in range(30):
        queue.evicted(ORDER, pod(f"web-{number}", f"team-{number % 3}", ""))
    queue.evicted(replace(ORDER, node="b", uid="uid-b"), pod("other", "team-b", ""))
    gate.set()
    queue.close(PATIENCE)

    assert len(server.bodies) == 20 + 1
    assert server.namespaces.count("team-b") == 1


def test_one_namespace_does_not_use_up_the_events_of_a_drain(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_events, "PER_DRAIN", 20)
    monkeypatch.setattr(pod_events, "PER_DRAIN_IN_ONE", 10)

    server.sent([*(pod(f"evil-{number}", "evil", "") for number in range(30)), pod("web-1")])

    assert (server.namespaces.count("evil"), server.namespaces.count("shop")) == (10, 1)


def test_an_event_that_the_server_cant_take_now_is_sent_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_events, "FIRST_PAUSE", 0.01)
    sent = threading.Event()

    def answer(asked: Asked) -> Answer:
        if asked.number == 0:
            return status(429, "TooManyRequests", "later")
        sent.set()
        return Answer(status=201)

    server.answers = answer
    queue = server.queue()
    queue.evicted(ORDER, pod("web-1", owner=""))

    assert sent.wait(PATIENCE)
    queue.close(PATIENCE)
    assert server.bodies[0] == server.bodies[1]
    assert len(server.bodies) == 2


def test_one_that_was_written_before_is_no_trouble(server: Server) -> None:
    server.answers = lambda asked: (
        status(409, "AlreadyExists", "it exists") if asked.method == "POST" else status(404)
    )

    assert len(server.sent([pod("web-1"), pod("bare", owner="")])) == 2
    assert server.warned == []


def test_the_end_does_not_wait_for_a_server_that_hangs(server: Server) -> None:
    server.answers = lambda _: Answer(hang=True)
    queue = server.queue()
    queue.evicted(ORDER, pod("web-1"))

    queue.close(0.01)

    assert "pod-events" in {thread.name for thread in threading.enumerate()}


def test_an_event_whose_thread_can_not_start_is_sent_once_one_can(server: Server) -> None:
    queue = server.queue()
    with refused(Once("pod-events")):
        queue.evicted(ORDER, pod("web-1"))
        assert server.posts == []
        queue.go_on()
        wait_for("the Event", lambda: server.posts)
    queue.close(PATIENCE)


def test_without_the_lock_nothing_is_written(server: Server) -> None:
    def lost() -> None:
        raise LockLost("not renewed")

    assert server.sent([pod("web-1"), pod("web-2")], guard=lost) == []


def _wait(gate: threading.Event) -> None:
    assert gate.wait(PATIENCE)
