"""The threads around the core: the same drains, carried out by real requests side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar, cast

import pytest

from reconciler.drain.drainer import Drainer, Limits, shell
from reconciler.drain.drainer.messages import Backoff, CordonChecks
from reconciler.model.drains import DrainOrder, DrainProgress, Escalation, Eviction, Phase
from reconciler.model.errors import NoThread, ReconcilerError, Unreachable
from reconciler.model.node import Node
from reconciler.model.pod import Pod
from reconciler.model.ports import BudgetChange, NodeRead, PodChange
from reconciler.model.values import replace
from reconciler.simulation.api import SimulatedApi
from reconciler.simulation.clock import SimulatedWatch, VirtualClock
from tests.drain.drainer.driving import PLAIN, Scene, order_for
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.clock import SystemClock
from tests.support.fakes.threads import Once, refused

_Item = TypeVar("_Item")


class ThreadedApi:
    """The Evictor port over a simulated cluster, for several threads at once."""

    def __init__(self, api: SimulatedApi) -> None:
        self._api = api
        self.changed = threading.Condition(threading.RLock())
        """Held around every call, and notified after each; hold it to look at the cluster."""

    def node(self, name: str) -> Node | None:
        """Return one node as it is now."""
        return self._call(partial(self._api.node, name))

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """Return the pods of one node, or of all."""
        return self._call(partial(self._api.pods, node, placement=placement))

    def watch_pods(self, node: str) -> AbstractContextManager[Iterator[PodChange]]:
        """List, then watch the pods of one node."""
        return _WaitingWatch(self._call(partial(self._api.watch_pods, node)), self.changed)

    def watch_budgets(self, namespace: str = "") -> AbstractContextManager[Iterator[BudgetChange]]:
        """List, then watch the budgets of a namespace, or all."""
        return _WaitingWatch(self._call(partial(self._api.watch_budgets, namespace)), self.changed)

    def evict(self, pod: Pod, *, grace: int | None) -> None:
        """Evict a pod."""
        self._call(partial(self._api.evict, pod, grace=grace))

    def delete(self, pod: Pod, *, grace: int | None) -> None:
        """Delete a pod."""
        self._call(partial(self._api.delete, pod, grace=grace))

    def restart(self, pod: Pod, now: datetime) -> str:
        """Restart the pod's Deployment."""
        return self._call(partial(self._api.restart, pod, now))

    def attachments(self, node: str, staying: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """Return the volumes still attached."""
        return self._call(partial(self._api.attachments, node, staying))

    def _call(self, request: Callable[[], _Item]) -> _Item:
        with self.changed:
            try:
                return request()
            finally:
                self.changed.notify_all()


class _WaitingWatch(AbstractContextManager[Iterator[_Item]]):
    """A watch that waits for more until it is left from any thread."""

    def __init__(self, watch: SimulatedWatch[_Item], changed: threading.Condition) -> None:
        self._watch = watch
        self._changed = changed
        self._left = False

    def __enter__(self) -> Iterator[_Item]:
        return self._each()

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._left = True
            self._watch.close()
            self._changed.notify_all()

    def _each(self) -> Iterator[_Item]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._left or self._watch.items or self._watch.error)
                if self._left:
                    return
                if not self._watch.items and self._watch.error is not None:
                    raise self._watch.error
                item = self._watch.items.popleft()
            yield item


@contextmanager
def running(api: ThreadedApi, clock: VirtualClock) -> Iterator[None]:
    """Let the cluster's time run as the machine's does."""
    over = threading.Event()

    def live() -> None:
        while not over.wait(0.005):
            with api.changed:
                clock.advance(datetime.now(UTC))
                api.changed.notify_all()

    thread = threading.Thread(target=live)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


_PATIENCE = 60
_SOON = Limits(retry=Backoff(timedelta(milliseconds=10), timedelta(seconds=15)))
"""Errors are tried again after ten milliseconds, and not after a second."""


class _Alive:
    """A scene whose nodes `a` and `b` are cordoned, and the port to it for threads."""

    def __init__(self) -> None:
        self.scene = Scene(ready_after=0.02, lag=0.005, terminates_in=0.02, start=datetime.now(UTC))
        self.api: ThreadedApi = ThreadedApi(self.scene.api)
        for node in ("a", "b"):
            self.scene.add_node(node, cordoned=True)

    def running(self) -> AbstractContextManager[None]:
        return running(self.api, self.scene.clock)


def _finish(drainer: Drainer, *nodes: str) -> dict[str, DrainProgress]:
    while any(not (one := drainer.progress().get(node)) or one.phase is Phase.RUNNING for node in nodes):
        assert drainer.wait(_PATIENCE), "no drain ended"
    return dict(drainer.progress())


@pytest.fixture
def reported() -> list[DrainProgress]:
    """What on_progress was given."""
    return []


def test_two_nodes_are_drained_side_by_side_and_no_budget_is_overdrawn(reported: list[DrainProgress]) -> None:
    alive = _Alive()
    scene = alive.scene
    for node in ("a", "b"):
        for app in range(5):
            scene.deployment(f"{node}{app}", node, 4)
            scene.add_budget(f"{node}{app}", max_unavailable=1)
    with alive.running():
        drainer = Drainer(alive.api, SystemClock(), on_progress=reported.append)
        since = datetime.now(UTC)
        drainer.start(order_for("a", since=since))
        drainer.start(order_for("b", since=since))
        progress = _finish(drainer, "a", "b")
        drainer.close()

    assert {Phase.DRAINED} == {one.phase for one in progress.values()}
    assert not scene.overdrawn
    assert not scene.there("a") + scene.there("b")
    assert {"a", "b"} == {one.node for one in reported if one.phase is Phase.DRAINED}


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
        drainer = Drainer(alive.api, SystemClock(), limits=_SOON)
        drainer.start(order_for("a", since=datetime.now(UTC)))
        progress = _finish(drainer, "a")
        drainer.close()

    assert Phase.DRAINED is progress["a"].phase


@pytest.mark.parametrize("name", ["drain_*", "drain-read_*", "drain-look_*", "watch-*"])
def test_a_thread_that_can_not_start_delays_the_drain_only(name: str) -> None:
    alive = _Alive()
    alive.scene.deployment("web", "a", 3)
    refuses = Once(name)
    with alive.running(), refused(refuses):
        drainer = Drainer(alive.api, SystemClock(), limits=_SOON)
        drainer.start(order_for("a", since=datetime.now(UTC)))
        progress = _finish(drainer, "a")
        drainer.close()

    assert refuses.left == []
    assert Phase.DRAINED is progress["a"].phase


def test_a_drainer_whose_thread_can_not_start_starts_with_the_next_order() -> None:
    alive = _Alive()
    alive.scene.deployment("web", "a", 3)
    drainer = Drainer(alive.api, SystemClock(), limits=_SOON)
    order = order_for("a", since=datetime.now(UTC))
    with alive.running():
        with refused(Once("drainer")), pytest.raises(NoThread):
            drainer.start(order)
        assert drainer.progress() == {}
        drainer.start(order)
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
            alive.api, SystemClock(), limits=_SOON, on_progress=lambda one: broken.set() if one.gone else None
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


@pytest.mark.parametrize("deleted", [False, True], ids=["evictions", "deletions"])
def test_each_eviction_is_reported_with_its_order_and_a_failure_of_that_harms_nothing(deleted: bool) -> None:
    alive = _Alive()
    alive.scene.deployment("web", "a", 3)
    options = replace(PLAIN, use_delete=deleted)
    order = replace(order_for("a", since=datetime.now(UTC), options=options), why="because")
    reported: list[tuple[str, str, bool]] = []

    def report(given: DrainOrder, eviction: Eviction) -> None:
        reported.append((given.why, eviction.pod.name, eviction.deleted))
        raise KeyError("bug")

    with alive.running():
        drainer = Drainer(alive.api, SystemClock(), on_evicted=report)
        drainer.start(order)
        progress = _finish(drainer, "a")
        drainer.close()

    assert Phase.DRAINED is progress["a"].phase
    assert sorted(reported) == [("because", f"web-{number}", deleted) for number in range(3)]


def test_an_eviction_that_is_refused_is_not_reported() -> None:
    alive = _Alive()
    alive.scene.deployment("web", "a", 1)
    alive.scene.add_budget("web", max_unavailable=0)
    blocked, reported = threading.Event(), []
    with alive.running():
        drainer = Drainer(
            alive.api,
            SystemClock(),
            on_progress=lambda one: blocked.set() if one.blockers else None,
            on_evicted=lambda _order, eviction: reported.append(eviction.pod.name),
        )
        drainer.start(order_for("a", since=datetime.now(UTC)))
        assert blocked.wait(_PATIENCE)
        drainer.close()

    assert reported == []


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


class _Jumping(SystemClock):
    """Time as a process has it that may stand still, by `ahead`."""

    ahead = timedelta()

    def now(self) -> datetime:
        """See the port."""
        return super().now() + self.ahead


def test_an_eviction_that_is_sent_late_follows_from_a_new_read_of_the_node() -> None:
    alive, clock = _Alive(), _Jumping()
    scene = alive.scene
    scene.deployment("us", "a")
    reads: list[int] = []

    def stand_still() -> None:
        clock.ahead += timedelta(seconds=5) if not reads else timedelta()
        reads.append(scene.reads.count("node"))

    def count(verb: str, pod: Pod | None) -> None:
        del pod
        if verb == "evict":
            reads.append(scene.reads.count("node"))

    scene.trouble = count
    with alive.running():
        drainer = Drainer(alive.api, clock, before_own_pod=stand_still)
        drainer.start(order_for("a", since=datetime.now(UTC), own_pod="shop/us-0"))
        progress = _finish(drainer, "a")
        drainer.close()

    assert progress["a"].phase is Phase.DRAINED
    # It stood still after the first read, and evicted after the second one.
    assert (reads[0], reads[-1]) == (1, 2)


class _SlowToEnd(ThreadedApi):
    """A watch that was left needs a moment to end, or until `may_end`."""

    moment: float | None = 0.3
    may_end: threading.Event

    def watch_pods(self, node: str) -> AbstractContextManager[Iterator[PodChange]]:
        return self._slowly(super().watch_pods(node))

    @contextmanager
    def _slowly(self, watch: AbstractContextManager[Iterator[PodChange]]) -> Iterator[Iterator[PodChange]]:
        with watch as changes:
            yield self._each(changes)

    def _each(self, changes: Iterator[PodChange]) -> Iterator[PodChange]:
        yield from changes
        self.may_end.wait(self.moment)


def _blocked(alive: _Alive) -> Drainer:
    """Return a drainer with one drain, which a budget blocks."""
    alive.scene.deployment("web", "a", 8)
    alive.scene.add_budget("web", max_unavailable=0)
    blocked = threading.Event()
    drainer = Drainer(
        alive.api, SystemClock(), on_progress=lambda one: blocked.set() if one.blockers else None
    )
    drainer.start(order_for("a", since=datetime.now(UTC)))
    assert blocked.wait(_PATIENCE)
    return drainer


def test_close_ends_every_thread_although_a_budget_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.drain.drainer.shell.CLOSED_WITHIN", timedelta(seconds=_PATIENCE))
    before = set(threading.enumerate())
    alive = _Alive()
    alive.api = slow = _SlowToEnd(alive.scene.api)
    slow.may_end = threading.Event()
    drainer = _blocked(alive)
    drainer.close()

    assert before >= set(threading.enumerate())
    assert not alive.scene.requests


class _NoAnswer(ThreadedApi):
    """Evictions get no answer until `over`, as behind a webhook that hangs."""

    asked: threading.Event
    over: threading.Event

    def evict(self, pod: Pod, *, grace: int | None) -> None:
        self.asked.set()
        self.over.wait(_PATIENCE)
        raise Unreachable("no answer")


def test_close_does_not_wait_for_ever_for_an_eviction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.drain.drainer.shell.CLOSED_WITHIN", timedelta(seconds=0.05))
    alive = _Alive()
    alive.api = hangs = _NoAnswer(alive.scene.api)
    hangs.asked, hangs.over = threading.Event(), threading.Event()
    alive.scene.deployment("web", "a", 3)
    with alive.running():
        drainer = Drainer(alive.api, SystemClock())
        drainer.start(order_for("a", since=datetime.now(UTC)))
        assert hangs.asked.wait(_PATIENCE)
        closing = threading.Thread(target=drainer.close)
        closing.start()
        closing.join(_PATIENCE / 2)
        closed = not closing.is_alive()
        hangs.over.set()
        closing.join()

    assert closed


def test_close_does_not_wait_for_ever_for_a_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.drain.drainer.shell.CLOSED_WITHIN", timedelta(seconds=0.05))
    before = set(threading.enumerate())
    alive = _Alive()
    alive.api = stuck = _SlowToEnd(alive.scene.api)
    stuck.may_end, stuck.moment = threading.Event(), None
    drainer = _blocked(alive)
    closing = threading.Thread(target=drainer.close)
    closing.start()
    closing.join(_PATIENCE)
    closed = not closing.is_alive()

    def left() -> set[str]:
        return {thread.name for thread in set(threading.enumerate()) - before}

    # The others end by themselves, on a busy machine a moment later.
    wait_for("end of the others", lambda: left() == {"watch-a"})
    stuck.may_end.set()
    wait_for("end of the watch", lambda: not left())

    assert closed


def test_wait_says_so_when_nothing_ended_in_time() -> None:
    alive = _Alive()
    scene = alive.scene
    scene.deployment("web", "a", 8, allowed=0)
    drainer = Drainer(alive.api, SystemClock())
    drainer.start(order_for("a", since=datetime.now(UTC), timeout=timedelta(hours=1)))

    assert not drainer.wait(0.05)
    drainer.stop("a")
    assert drainer.wait(_PATIENCE)
    assert Phase.STOPPED is drainer.progress()["a"].phase
    drainer.close()


class _BrokenOnce(ThreadedApi):
    """The first watch of the budgets delivers something that no budget is."""

    broken = True

    def watch_budgets(self, namespace: str = "") -> AbstractContextManager[Iterator[BudgetChange]]:
        if not self.broken:
            return super().watch_budgets(namespace)
        self.broken = False
        return nullcontext(iter([cast("BudgetChange", object())]))


def test_an_error_of_the_core_fails_the_drains_and_the_next_order_starts_them_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    alive = _Alive()
    alive.api = _BrokenOnce(alive.scene.api)
    alive.scene.deployment("web", "a", 8)
    with alive.running():
        drainer = Drainer(alive.api, SystemClock())
        drainer.start(order_for("a", since=datetime.now(UTC)))
        failed = _finish(drainer, "a")["a"]
        drainer.start(order_for("a", since=datetime.now(UTC)))
        assert drainer.wait(_PATIENCE)
        drained = drainer.progress()["a"]
        drainer.close()

    assert (failed.phase, failed.error) == (Phase.FAILED, "internal error: AttributeError")
    assert any(record.exc_info for record in caplog.records)
    assert drained.phase is Phase.DRAINED


def test_a_display_that_fails_stops_no_drain(caplog: pytest.LogCaptureFixture) -> None:
    def show(progress: DrainProgress) -> None:
        raise ValueError(progress.node)

    alive = _Alive()
    alive.scene.deployment("web", "a", 3)
    with alive.running():
        drainer = Drainer(alive.api, SystemClock(), on_progress=show)
        drainer.start(order_for("a", since=datetime.now(UTC)))
        progress = _finish(drainer, "a")
        drainer.close()

    assert progress["a"].phase is Phase.DRAINED
    assert any("can't be shown" in record.getMessage() for record in caplog.records)


class _EndOfProcess(BaseException):
    """As MemoryError or SystemExit: it ends the thread."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_ends_the_thread_is_raised_by_every_later_call() -> None:
    def end(progress: DrainProgress) -> None:
        raise _EndOfProcess(progress.node)

    alive = _Alive()
    alive.scene.deployment("web", "a", 3)
    with alive.running():
        drainer = Drainer(alive.api, SystemClock(), on_progress=end)
        drainer.start(order_for("a", since=datetime.now(UTC)))
        with pytest.raises(_EndOfProcess):
            drainer.wait(_PATIENCE)
        with pytest.raises(_EndOfProcess):
            drainer.start(order_for("b", since=datetime.now(UTC)))
        drainer.close()


class _Waits(SystemClock):
    """A clock that remembers how long its threads wanted to wait."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        if timeout is not None:
            self.asked.append(timeout)
        super().wait(condition, timeout)


def test_a_pod_that_terminates_until_the_end_of_the_calendar_does_not_end_the_thread() -> None:
    alive = _Alive()
    (pod,) = alive.scene.deployment("evil", "a")
    alive.scene.change_pod(replace(pod, deleting_until=datetime(9999, 12, 31, tzinfo=UTC)))
    alive.scene.deployment("web", "b", 3)
    clock = _Waits()
    order = replace(
        order_for("a", since=datetime.now(UTC)),
        timeout=None,
        node_ready=False,
        escalation=Escalation(force_stuck_after=timedelta(minutes=1)),
    )
    # Neither the node nor its pods are read again while the test runs, so the pod's time is the next.
    never = timedelta(days=365_000)
    limits = Limits(cordon=CordonChecks(idle=never), reread_every=never)
    with alive.running():
        drainer = Drainer(alive.api, clock, limits=limits)
        drainer.start(order)
        drainer.start(order_for("b", since=datetime.now(UTC)))
        progress = _finish(drainer, "b")
        drainer.stop("a")
        _finish(drainer, "a")
        drainer.close()

    assert progress["b"].phase is Phase.DRAINED
    assert max(clock.asked) <= threading.TIMEOUT_MAX


class _Held(SystemClock):
    """A clock with which the drainer's thread sees no event until a test says so."""

    def __init__(self) -> None:
        self.waits, self.goes_on = threading.Event(), threading.Event()

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        if threading.current_thread().name != "drainer" or self.goes_on.is_set():
            super().wait(condition, timeout)
            return
        self.waits.set()
        condition.release()
        try:
            self.goes_on.wait(_PATIENCE)
        finally:
            condition.acquire()


def test_a_drain_runs_from_its_order_on() -> None:
    """A pass that sees no drain does not know how many pods it has moved."""
    alive = _Alive()
    alive.scene.deployment("web", "b", 2)
    clock = _Held()
    order = order_for("b", since=datetime.now(UTC))
    with alive.running():
        drainer = Drainer(alive.api, clock)
        drainer.start(order_for("a", since=datetime.now(UTC)))
        assert clock.waits.wait(_PATIENCE)
        drainer.start(order)
        ordered = drainer.progress()["b"]
        clock.goes_on.set()
        ended = _finish(drainer, "a", "b")["b"]
        drainer.close()

    assert ordered == DrainProgress("b", order.uid, Phase.RUNNING)
    assert (ended.phase, ended.gone) == (Phase.DRAINED, 2)


@pytest.mark.parametrize(
    ("age", "change", "saves"),
    [
        pytest.param(timedelta(), {}, True, id="new"),
        pytest.param(timedelta(seconds=2), {}, False, id="sent before"),
        pytest.param(timedelta(), {"unschedulable": False}, False, id="older than our cordon"),
        pytest.param(timedelta(), {"uid": "former"}, False, id="of a node that was recreated"),
    ],
)
def test_a_read_of_others_saves_the_read_of_the_node(
    age: timedelta, change: dict[str, Any], saves: bool
) -> None:
    alive = _Alive()
    scene = alive.scene
    scene.deployment("web", "a", 2)
    node = replace(scene.cluster.nodes["a"], **change)

    with alive.running():
        drainer = Drainer(alive.api, SystemClock())
        drainer.share(lambda name: NodeRead(node, datetime.now(UTC) - age))
        drainer.start(order_for("a", since=datetime.now(UTC)))
        progress = _finish(drainer, "a")
        drainer.close()

    assert progress["a"].phase is Phase.DRAINED
    assert ("node" not in scene.reads) is saves


class _HeldReads(ThreadedApi):
    """Holds reads of nodes until they may go on."""

    def __init__(self, api: SimulatedApi) -> None:
        super().__init__(api)
        self.go, self.reads = threading.Event(), list[str]()

    def node(self, name: str) -> Node | None:
        """Return one node as it is now."""
        self.reads.append(name)
        assert self.go.wait(30)
        return super().node(name)


def test_a_read_is_not_sent_if_others_have_read_the_node_while_it_waited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shell, "LOOKERS", 1)
    alive = _Alive()
    alive.api = api = _HeldReads(alive.scene.api)
    nodes = dict(alive.scene.cluster.nodes)
    for name in "ab":
        alive.scene.deployment(name, name, 1)
    asked: list[str] = []
    sent: list[datetime] = []

    def read(name: str) -> NodeRead | None:
        shown = NodeRead(nodes[name], sent[0]) if sent else None
        asked.append(name)
        return shown

    with alive.running():
        drainer = Drainer(api, SystemClock())
        drainer.share(read)
        drainer.start(order_for("a", since=datetime.now(UTC)))
        wait_for("the read of a", lambda: api.reads == ["a"])
        drainer.start(order_for("b", since=datetime.now(UTC)))
        wait_for("the order for b to ask", lambda: "b" in asked)
        sent.append(datetime.now(UTC) + timedelta(minutes=1))
        api.go.set()
        progress = _finish(drainer, "a", "b")
        drainer.close()

    assert {each.phase for each in progress.values()} == {Phase.DRAINED}
    assert api.reads == ["a"]
