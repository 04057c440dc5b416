"""The lock: one holder at a time, no trust in clocks of others, and none in our own after a long sleep."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.lease import Lock
from reconciler.kubernetes.server_time import boottime
from reconciler.model.errors import LockHeld, LockLost, NoThread, Unauthorized
from tests.support.controlplane.api import Object
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.fakes.threads import Once, refused
from tests.support.stub import Answer, Asked, StubMaker, json_answer, status

NAMESPACE = "node-maintenance"
NAME = "reconciler-lock"
DURATION = 600
"""Seconds, far more than a test takes: no pause of the machine loses a lock."""


def lease(cluster: ControlPlane) -> Object:
    """The Lease's spec."""
    spec: Object = cluster.api.get("leases", NAME, NAMESPACE)["spec"]
    return spec


def make(connection: Connection, identity: str = "me", **clocks: Any) -> Lock:
    """A lock that renews only when the test is long over."""
    return Lock(connection, identity=identity, duration=DURATION, renew_every=60, **clocks)


def test_of_many_that_begin_at_once_one_acts_and_the_next_begins_when_it_gives_the_lock_back(
    cluster: ControlPlane,
) -> None:
    cluster.api.create_namespace(NAMESPACE)
    with ExitStack() as connections, ThreadPoolExecutor() as threads:
        locks = [
            Lock(
                connections.enter_context(closing(Connection(str(cluster.kubeconfig)))),
                identity=f"p{number}",
                duration=DURATION,
                renew_every=0.2,
            )
            for number in range(4)
        ]
        failures = list(threads.map(lambda lock: _failure(lock.acquire), locks))
        (first,) = [number for number, failure in enumerate(failures) if failure is None]
        others = [number for number in range(4) if number != first]
        assert [getattr(failures[number], "holder", None) for number in others] == [f"p{first}"] * 3
        locks[first].check()

        locks[first].release()
        assert lease(cluster)["holderIdentity"] == ""
        assert lost(locks[first])
        with locks[others[0]] as second:
            second.check()
            assert lease(cluster)["leaseTransitions"] == 1


def _failure(acquire: Callable[[], None]) -> LockHeld | None:
    try:
        acquire()
    except LockHeld as error:
        return error
    return None


def test_times_in_the_lease_are_not_trusted(cluster: ControlPlane, connection: Connection) -> None:
    cluster.api.create_namespace(NAMESPACE)
    old = "2020-01-01T00:00:00.000000Z"
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 1, "renewTime": old, "acquireTime": old}
    cluster.api.create("leases", {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec})
    waited: list[float] = []

    def clock() -> float:
        waited.append(boottime())
        return waited[-1]

    with make(connection, watch_clock=clock) as lock:
        lock.check()
    assert waited[-1] - waited[0] >= 1


def test_a_holder_that_is_seen_to_live_refuses_at_once(cluster: ControlPlane, connection: Connection) -> None:
    cluster.api.create_namespace(NAMESPACE)
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 3600}
    cluster.api.create("leases", {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec})
    renewed: list[int] = []

    def clock() -> float:
        # The first look is when the watch is about to begin.
        if len(renewed) == 1:
            cluster.api.patch("leases", NAME, {"spec": {"leaseTransitions": 5}}, NAMESPACE)
        renewed.append(1)
        return float(len(renewed))

    with pytest.raises(LockHeld, match="other"):
        make(connection, watch_clock=clock).acquire()


def test_the_namespace_is_made_where_it_is_missing(cluster: ControlPlane, connection: Connection) -> None:
    with make(connection) as lock:
        lock.check()

    assert cluster.api.find("namespaces", NAMESPACE) is not None


def test_without_the_right_to_create_the_namespace_the_error_says_what_to_grant(
    cluster: ControlPlane,
) -> None:
    cluster.api.create("serviceaccounts", {"metadata": {"name": "nobody", "namespace": "default"}})
    connection = Connection(str(cluster.kubeconfig_for("nobody")))

    with pytest.raises(Unauthorized, match="leases in namespace node-maintenance"):
        make(connection).acquire()
    connection.close()


def test_a_lock_is_trusted_for_three_fifths_of_its_duration(
    cluster: ControlPlane, connection: Connection
) -> None:
    now = SimpleNamespace(seconds=100.0)
    lock = make(connection, held_clock=lambda: now.seconds)
    with pytest.raises(LockLost, match="never was"):
        lock.check()
    with lock:
        now.seconds += DURATION * 3 / 5 - 0.1
        lock.check()
        now.seconds += 0.2
        with pytest.raises(LockLost, match="not renewed"):
            lock.check()
        # A clock that goes back does not bring it back.
        now.seconds = 100
        with pytest.raises(LockLost, match="not renewed"):
            lock.check()


def test_the_age_counts_from_before_the_request_and_not_from_its_answer(stub: StubMaker) -> None:
    now = SimpleNamespace(seconds=100.0)

    def answer(asked: Asked) -> Answer:
        if asked.method == "GET":
            return status(404)
        now.seconds += DURATION
        return json_answer({"metadata": {"resourceVersion": "1"}, "spec": {"holderIdentity": "me"}})

    _, connection = stub(answer)
    with make(connection, held_clock=lambda: now.seconds) as lock, pytest.raises(LockLost):
        lock.check()


def test_a_create_whose_answer_was_lost_is_found_to_be_ours(stub: StubMaker) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.method == "POST":
            return Answer(b"{", cut=True)
        if asked.number == 0:
            return status(404)
        return json_answer({"metadata": {"resourceVersion": "1"}, "spec": {"holderIdentity": "me"}})

    _, connection = stub(answer)
    with make(connection) as lock:
        lock.check()


def test_a_create_whose_answer_was_lost_is_not_ours_if_the_lease_names_another(stub: StubMaker) -> None:
    def answer(asked: Asked) -> Answer:
        held = {"metadata": {"uid": "u", "resourceVersion": "1"}, "spec": {"holderIdentity": "other"}}
        if asked.method == "POST":
            return Answer(b"{", cut=True)
        if asked.number == 0:
            return status(404)
        if "watch" in asked.query:
            held["metadata"]["resourceVersion"] = "2"
            return Answer(json.dumps({"type": "MODIFIED", "object": held}).encode() + b"\n")
        return json_answer(held)

    _, connection = stub(answer)
    with pytest.raises(LockHeld, match="other"):
        make(connection).acquire()


def test_the_age_of_a_renewal_counts_from_before_it_was_sent(stub: StubMaker) -> None:
    now = SimpleNamespace(seconds=100.0, renewals=0)

    def answer(asked: Asked) -> Answer:
        if asked.method == "GET":
            return status(404)
        if asked.method != "POST":
            now.renewals += 1
            if now.renewals > 1:
                return status(500)
            now.seconds += 2
        return json_answer({"metadata": {"resourceVersion": "1"}, "spec": {"holderIdentity": "me"}})

    _, connection = stub(answer)
    with Lock(
        connection, identity="me", duration=DURATION, renew_every=0.05, held_clock=lambda: now.seconds
    ) as lock:
        wait_for("more renewals", lambda: now.renewals > 3)
        now.seconds = 100.0 + DURATION
        with pytest.raises(LockLost, match=r"not renewed for 600\.0"):
            lock.check()


def test_a_renewal_goes_on_after_its_check_got_no_answer(stub: StubMaker) -> None:
    methods: list[str] = []

    def answer(asked: Asked) -> Answer:
        methods.append(asked.method)
        if asked.method == "GET":
            return status(404 if asked.number == 0 else 403)
        if asked.method == "PATCH":
            return status(422)
        return json_answer({"metadata": {"resourceVersion": "1"}, "spec": {"holderIdentity": "me"}})

    _, connection = stub(answer)
    with Lock(connection, identity="me", duration=DURATION, renew_every=0.05) as lock:
        wait_for("another renewal", lambda: methods.count("PATCH") > 1)
        lock.check()


class Late:
    """An API server whose answers come so many seconds late, by a clock that the test moves."""

    def __init__(self, seconds: float) -> None:
        self.late = seconds
        self.now = 100.0
        self.renewals: list[float] = []
        self._moved = threading.Condition()

    def clock(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        with self._moved:
            self.now += seconds
            self._moved.notify_all()

    def close(self) -> None:
        with self._moved:
            self.late = 0.0
            self._moved.notify_all()

    def __call__(self, asked: Asked) -> Answer:
        if asked.method == "GET":
            return status(404)
        if asked.method == "PATCH":
            sent = self.now
            with self._moved:
                self.renewals.append(sent)
                self._moved.wait_for(lambda: self.now >= sent + self.late, timeout=60)
        return json_answer({"metadata": {"resourceVersion": "1"}, "spec": {"holderIdentity": "me"}})


@pytest.mark.parametrize(("late", "lost_at"), [(8.0, None), (12.5, 112.0)])
def test_a_lock_is_kept_while_answers_come_within_eight_seconds(
    stub: StubMaker, late: float, lost_at: float | None
) -> None:
    server = Late(late)
    _, connection = stub(server)
    lock = Lock(connection, identity="me", renew_every=0.05, held_clock=server.clock)
    with lock, closing(server):
        for _ in range(60):
            server.advance(0.5)
            # Less than the 12 s after which the client gives up a request, and sends another one.
            wait_for(
                "a renewal, or the loss",
                lambda: server.renewals[-1:] == [server.now] or lost(lock),
                seconds=10,
            )
            if lost(lock):
                break
        assert (server.now if lost(lock) else None) == lost_at


def test_a_lock_that_was_lost_is_taken_again_at_once_by_its_own_process(
    cluster: ControlPlane, connection: Connection
) -> None:
    now = SimpleNamespace(seconds=100.0)
    first = make(connection, held_clock=lambda: now.seconds)
    first.acquire()
    now.seconds += DURATION
    assert lost(first)
    first.release()

    def never() -> float:
        raise AssertionError("the Lease is watched")

    with make(connection, "me, again", earlier="me", watch_clock=never) as lock:
        lock.check()
        assert lost(first)
        assert lease(cluster)["holderIdentity"] == "me, again"


def test_a_loss_says_why_the_renewals_failed(stub: StubMaker) -> None:
    now = SimpleNamespace(seconds=100.0)
    patches: list[str] = []

    def answer(asked: Asked) -> Answer:
        if asked.method == "PATCH":
            patches.append(asked.path)
            return status(403, "Forbidden", "no patch for you")
        return status(404) if asked.method == "GET" else json_answer({"metadata": {}})

    _, connection = stub(answer)
    clock = lambda: now.seconds  # noqa: E731 - one line for one clock
    with Lock(connection, identity="me", renew_every=0.05, held_clock=clock) as lock:
        wait_for("two renewals", lambda: len(patches) > 1)
        now.seconds += 12
        with pytest.raises(LockLost, match=r"not renewed for 12\.0 s: .*no patch for you"):
            lock.check()


def test_after_another_process_has_taken_the_lock_a_renewal_fails_for_good(
    cluster: ControlPlane, connection: Connection
) -> None:
    lock = Lock(connection, identity="me", duration=DURATION, renew_every=0.05)
    with lock:
        lock.check()
        cluster.api.patch("leases", NAME, {"spec": {"holderIdentity": "thief"}}, NAMESPACE)
        wait_for("loss of the lock", lambda: lost(lock))
    assert lease(cluster)["holderIdentity"] == "thief"


def test_a_lock_that_somebody_deleted_is_lost_for_that_reason(
    cluster: ControlPlane, connection: Connection
) -> None:
    with Lock(connection, identity="me", duration=DURATION, renew_every=0.05) as lock:
        cluster.api.delete("leases", NAME, NAMESPACE)
        wait_for("loss of the lock", lambda: lost(lock))
        with pytest.raises(LockLost, match="somebody deleted it"):
            lock.check()


def lost(lock: Lock) -> bool:
    """Whether it is not ours any more."""
    try:
        lock.check()
    except LockLost:
        return True
    return False


def test_a_lock_is_renewed_for_as_long_as_it_is_held(cluster: ControlPlane, connection: Connection) -> None:
    now = SimpleNamespace(seconds=100.0)

    def clock() -> float:
        return float(now.seconds)

    def renewed() -> bool:
        return datetime.fromisoformat(lease(cluster)["renewTime"]).timestamp() == clock()

    with Lock(
        connection, identity="me", duration=DURATION, renew_every=0.05, held_clock=clock, wall=clock
    ) as lock:
        for _ in range(6):
            # Twice the step is less than a renewal counts for: its answer may come after the next step.
            now.seconds += DURATION / 4
            lock.check()
            wait_for("a renewal", renewed)


def test_a_renewal_whose_thread_can_not_start_is_followed_by_the_next_one(
    cluster: ControlPlane, connection: Connection
) -> None:
    refuses = Once("renewal")
    with refused(refuses), Lock(connection, identity="me", duration=DURATION, renew_every=0.05) as lock:
        before = lease(cluster)["renewTime"]
        wait_for("a renewal", lambda: lease(cluster)["renewTime"] != before)
        assert refuses.left == []
        lock.check()


def test_a_lock_that_nothing_would_renew_is_not_taken(connection: Connection) -> None:
    lock = make(connection)
    with refused(Once("lock")), pytest.raises(NoThread):
        lock.acquire()
    with make(connection, "other") as other:
        other.check()
