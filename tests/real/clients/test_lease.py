"""The lock: one holder at a time, no trust in clocks of others, and none in our own after a long sleep."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.lease import Lock, Sighting
from reconciler.model.errors import LockHeld, LockLost, NoThread, Unauthorized
from tests.support.beside import meanwhile
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


def others(cluster: ControlPlane, **spec: Any) -> None:
    """A Lease that others have written."""
    cluster.api.create_namespace(NAMESPACE)
    cluster.api.create("leases", {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec})


def held(lock: Lock) -> LockHeld:
    """How another holder keeps the lock from being ours."""
    with pytest.raises(LockHeld) as caught:
        lock.acquire()
    return caught.value


OLD = "2020-01-01T00:00:00.000000Z"
COMING = "2099-01-01T00:00:00.000000Z"


@pytest.mark.parametrize(
    ("written", "lasts"), [(None, 20), (1, 20), (21, 21), (60, 60), (3600, 60), (2**31 - 1, 60)]
)
@pytest.mark.parametrize("renewed", [OLD, COMING, None])
def test_no_time_that_is_written_in_the_lease_is_believed(
    cluster: ControlPlane, connection: Connection, written: int | None, lasts: int, renewed: str | None
) -> None:
    others(cluster, holderIdentity="other", leaseDurationSeconds=written, renewTime=renewed)
    now = SimpleNamespace(seconds=100.0)
    lock = Lock(connection, identity="me", sighting=Sighting(lambda: now.seconds))

    assert (held(lock).again, held(lock).alive) == (lasts, False)
    now.seconds += lasts - 0.5
    assert held(lock).again == 0.5
    now.seconds += 0.5
    with lock:
        lock.check()
        assert lease(cluster)["holderIdentity"] == "me"


def test_a_renewal_that_was_seen_shows_a_holder_that_lives(
    cluster: ControlPlane, connection: Connection
) -> None:
    others(cluster, holderIdentity="other", leaseDurationSeconds=20, renewTime=OLD)
    now = SimpleNamespace(seconds=100.0)
    lock = Lock(connection, identity="me", sighting=Sighting(lambda: now.seconds))
    assert not held(lock).alive
    now.seconds += 19
    cluster.api.patch("leases", NAME, {"spec": {"renewTime": COMING}}, NAMESPACE)
    assert (held(lock).again, held(lock).alive) == (20, True)
    now.seconds += 13
    assert (held(lock).again, held(lock).alive) == (7, False)


def test_what_everybody_changes_in_the_lease_is_no_renewal(
    cluster: ControlPlane, connection: Connection
) -> None:
    others(cluster, holderIdentity="other", leaseDurationSeconds=20, renewTime=OLD)
    now = SimpleNamespace(seconds=100.0)
    lock = Lock(connection, identity="me", sighting=Sighting(lambda: now.seconds))
    held(lock)
    for number in range(2):
        now.seconds += 10
        changed = {"metadata": {"annotations": {"a": str(number)}}, "spec": {"leaseTransitions": number}}
        cluster.api.patch("leases", NAME, changed, NAMESPACE)
    with lock:
        lock.check()


def test_a_lease_that_others_change_all_the_time_is_taken(
    cluster: ControlPlane, connection: Connection
) -> None:
    others(cluster, holderIdentity="", leaseDurationSeconds=20)

    def change(ended: threading.Event) -> None:
        number = 0
        while not ended.wait(0.005):
            number += 1
            cluster.api.patch("leases", NAME, {"metadata": {"annotations": {"n": str(number)}}}, NAMESPACE)

    with meanwhile(change), make(connection) as lock:
        lock.check()


@pytest.mark.parametrize(("before", "after"), [(None, 1), (2**31 - 2, 2**31 - 1), (2**31 - 1, 0)])
def test_the_number_of_holders_begins_again_before_the_server_refuses_it(
    cluster: ControlPlane, connection: Connection, before: int | None, after: int
) -> None:
    others(cluster, leaseTransitions=before)
    with make(connection) as lock:
        lock.check()
        assert lease(cluster)["leaseTransitions"] == after


def test_a_holder_whose_name_go_encodes_in_another_way_loses_the_lock_too(
    cluster: ControlPlane, connection: Connection
) -> None:
    others(cluster, holderIdentity="<a&b>", renewTime=OLD)
    now = SimpleNamespace(seconds=100.0)
    lock = Lock(connection, identity="me", sighting=Sighting(lambda: now.seconds))
    held(lock)
    now.seconds += 60
    with lock:
        assert lease(cluster)["holderIdentity"] == "me"


def test_a_holder_with_an_endless_name_is_cut(cluster: ControlPlane, connection: Connection) -> None:
    others(cluster, holderIdentity="x" * 1_000_000, renewTime=OLD)
    error = held(make(connection))
    assert len(error.holder) == 253
    assert len(str(error)) < 300


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
        if asked.method == "POST":
            return Answer(b"{", cut=True)
        if asked.number == 0:
            return status(404)
        return json_answer({"metadata": {"uid": "u"}, "spec": {"holderIdentity": "other"}})

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
    first = make(connection, "me/1", held_clock=lambda: now.seconds)
    first.acquire()
    now.seconds += DURATION
    assert lost(first)
    first.release()

    with make(connection, "me/2", process="me/") as lock:
        lock.check()
        assert lost(first)
        assert lease(cluster)["holderIdentity"] == "me/2"


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


def renewals(cluster: ControlPlane) -> str:
    """When the Lease was renewed last."""
    return str(lease(cluster)["renewTime"])


def test_a_lock_is_not_renewed_while_passes_stand_still(
    cluster: ControlPlane, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []
    because = ""

    def stands_still() -> str:
        asked.append(because)
        return because

    lock = Lock(connection, identity="me", duration=DURATION, renew_every=0.02, stands_still=stands_still)
    with lock:
        first = renewals(cluster)
        wait_for("a renewal", lambda: renewals(cluster) != first)
        because = "no pass has ended for 61 s"
        wait_for("the end of the renewals", lambda: asked[-1:] == [because])
        # One may have been under way.
        wait_for("more looks", lambda: asked.count(because) > 20)
        last = renewals(cluster)
        wait_for("more looks", lambda: asked.count(because) > 40)
        assert renewals(cluster) == last
        assert caplog.text.count(because) == 1
        because = ""
        wait_for("a renewal", lambda: renewals(cluster) != last)


def test_the_lock_is_given_back_in_time_whatever_keeps_its_process_from_it(
    cluster: ControlPlane, connection: Connection
) -> None:
    lock = make(connection)
    lock.acquire()
    lock.release_within(0.1)
    wait_for("the end of the lock", lambda: lease(cluster)["holderIdentity"] == "")
    assert lost(lock)
    lock.release()


def test_an_answer_that_comes_after_the_end_gives_nobody_the_lock(stub: StubMaker) -> None:
    asked_for, ended = threading.Event(), threading.Event()
    holders: list[str] = []

    def answer(asked: Asked) -> Answer:
        if asked.method == "GET":
            return status(404)
        if asked.method == "POST":
            asked_for.set()
            ended.wait(30)
        if asked.method == "PATCH":
            holders.append(msgspec.json.decode(asked.body)[1]["value"])
        return json_answer({"metadata": {"resourceVersion": "1"}, "spec": {"holderIdentity": "me"}})

    _, connection = stub(answer)
    lock = make(connection)
    with ThreadPoolExecutor() as threads:
        acquiring = threads.submit(lock.acquire)
        assert asked_for.wait(30)
        lock.release()
        ended.set()
        with pytest.raises(LockLost, match="given back"):
            acquiring.result(30)
    assert holders == [""]
    assert lost(lock)
