"""The threads around the core: the same drains, carried out by real requests side by side."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.drainer import Drainer
from reconciler.errors import ReconcilerError, Unreachable
from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.pod import Pod
from tests.drainer.driving import Scene, order_for
from tests.support.fakes.clock import SystemClock
from tests.support.threads import ThreadedApi, running

_PATIENCE = 60


class _Alive:
    """A scene whose nodes `a` and `b` are cordoned, and the port to it for threads."""

    def __init__(self) -> None:
        self.scene = Scene(ready_after=0.02, lag=0.005, terminates_in=0.02, start=datetime.now(UTC))
        self.api = ThreadedApi(self.scene.api)
        for node in ("a", "b"):
            self.scene.add_node(node, cordoned=True)

    def running(self) -> AbstractContextManager[None]:
        return running(self.api, self.scene.clock)


def _finish(drainer: Drainer, *nodes: str) -> dict[str, DrainProgress]:
    while any(not (one := drainer.progress().get(node)) or one.phase is Phase.RUNNING for node in nodes):
        assert drainer.wait(_PATIENCE), "no drain ended"
    return dict(drainer.progress())


@pytest.fixture
def told() -> list[DrainProgress]:
    """What on_progress was given."""
    return []


def test_two_nodes_are_drained_side_by_side_and_no_budget_is_overdrawn(told: list[DrainProgress]) -> None:
    alive = _Alive()
    scene = alive.scene
    for node in ("a", "b"):
        for app in range(5):
            scene.deployment(f"{node}{app}", node, 4)
            scene.add_budget(f"{node}{app}", max_unavailable=1)
    with alive.running():
        drainer = Drainer(alive.api, SystemClock(), on_progress=told.append)
        since = datetime.now(UTC)
        drainer.start(order_for("a", since=since))
        drainer.start(order_for("b", since=since))
        progress = _finish(drainer, "a", "b")
        drainer.close()

    assert {Phase.DRAINED} == {one.phase for one in progress.values()}
    assert not scene.overdrawn
    assert not scene.there("a") + scene.there("b")
    assert {"a", "b"} == {one.node for one in told if one.phase is Phase.DRAINED}


def test_what_goes_wrong_is_in_the_progress_and_not_in_the_callers_thread() -> None:
    alive = _Alive()
    scene = alive.scene
    scene.add_node("a", cordoned=False)
    with alive.running():
        drainer = Drainer(alive.api, SystemClock())
        drainer.start(order_for("a", since=datetime.now(UTC)))
        progress = _finish(drainer, "a")
        drainer.close()

    assert Phase.STOPPED is progress["a"].phase


def test_a_bug_in_a_request_does_not_leave_the_drain_waiting() -> None:
    alive = _Alive()
    scene = alive.scene
    scene.deployment("web", "a")
    bugs = [KeyError("bug")]

    def trouble(verb: str, _: Pod | None) -> ReconcilerError | None:
        if verb == "node" and bugs:
            raise bugs.pop()
        return None

    scene.trouble = trouble
    with alive.running():
        drainer = Drainer(alive.api, SystemClock())
        drainer.start(order_for("a", since=datetime.now(UTC)))
        progress = _finish(drainer, "a")
        drainer.close()

    assert Phase.DRAINED is progress["a"].phase


def test_a_broken_watch_is_opened_again() -> None:
    alive = _Alive()
    scene = alive.scene
    for app in range(3):
        scene.deployment(f"web{app}", "a", 4)
        scene.add_budget(f"web{app}", max_unavailable=1)
    with alive.running():
        drainer = Drainer(
            alive.api, SystemClock(), on_progress=lambda one: broken.set() if one.gone else None
        )
        broken = threading.Event()
        drainer.start(order_for("a", since=datetime.now(UTC)))
        assert broken.wait(_PATIENCE)
        with alive.api.changed:
            scene.cluster.break_watches(Unreachable("cut"))
            alive.api.changed.notify_all()
        progress = _finish(drainer, "a")
        drainer.close()

    assert Phase.DRAINED is progress["a"].phase


def test_before_our_own_pod_goes_the_lock_is_given_back() -> None:
    alive = _Alive()
    scene = alive.scene
    scene.deployment("us", "a")
    scene.deployment("web", "a", 3)
    left: list[set[str]] = []
    with alive.running():
        drainer = Drainer(
            alive.api,
            SystemClock(),
            before_own_pod=lambda: left.append({pod.name for pod in scene.there("a")}),
        )
        drainer.start(order_for("a", since=datetime.now(UTC), own_pod="shop/us-0"))
        _finish(drainer, "a")
        drainer.close()

    assert [{"us-0"}] == left


def test_close_ends_every_thread_although_a_budget_blocks() -> None:
    before = set(threading.enumerate())
    alive = _Alive()
    scene = alive.scene
    scene.deployment("web", "a", 8)
    scene.add_budget("web", max_unavailable=0)
    blocked = threading.Event()
    drainer = Drainer(
        alive.api, SystemClock(), on_progress=lambda one: blocked.set() if one.blockers else None
    )
    drainer.start(order_for("a", since=datetime.now(UTC)))
    assert blocked.wait(_PATIENCE)
    drainer.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(_PATIENCE)

    assert before >= set(threading.enumerate())
    assert not scene.requests


def test_wait_says_so_when_nothing_ended_in_time() -> None:
    alive = _Alive()
    scene = alive.scene
    scene.deployment("web", "a", 8)
    scene.add_budget("web", max_unavailable=0)
    drainer = Drainer(alive.api, SystemClock())
    drainer.start(order_for("a", since=datetime.now(UTC), timeout=timedelta(hours=1)))

    assert not drainer.wait(0.05)
    drainer.stop("a")
    assert drainer.wait(_PATIENCE)
    assert Phase.STOPPED is drainer.progress()["a"].phase
    drainer.close()
