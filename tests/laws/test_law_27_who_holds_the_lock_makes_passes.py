"""Law 27: who holds the lock makes passes. Taken whole or not at all, it is renewed only while passes end.

The processes of these tests share a Lease and a clock that stands until a step moves it.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobs.runtime import acting as acting_module
from jobs.runtime import watchdog as watchdog_module
from jobs.runtime.acting import Acting, Following
from jobs.runtime.environment import Target
from jobs.runtime.outside import Wiring
from jobs.runtime.process import Companion, Observer, Observers
from jobs.runtime.watchdog import LONGEST, Watchdog
from reconciler.kubernetes.lease import DURATION, Lock, Sighting
from reconciler.kubernetes.lease import LONGEST as LONGEST_HELD
from reconciler.model.errors import LockHeld, LockLost, NoThread
from reconciler.passes.store import Store
from reconciler.run import PARTS
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.clock import SystemClock
from tests.support.fakes.lease import LeaseServer
from tests.support.fakes.threads import Once, refused
from tests.support.searching import examples
from tests.support.stub import kubeconfig

TRY_EVERY = 2.0
"""Seconds between two tries of a standby."""


class Process:
    """A process that wants the lock. Its renewals come when the test says so."""

    def __init__(self, server: LeaseServer, name: str) -> None:
        self.server, self.name = server, name
        self.sighting = Sighting(server.clock)
        self.count = 0
        self.lock: Lock | None = None

    def holds(self) -> bool:
        """Whether it would write now."""
        try:
            if self.lock is not None:
                self.lock.check()
        except LockLost:
            self.leave()
        return self.lock is not None

    def attempt(self) -> None:
        """Take the lock if it is free."""
        if self.holds():
            return
        self.count += 1
        lock = Lock(
            self.server.connection,
            identity=f"{self.name}/{self.count}",
            process=f"{self.name}/",
            sighting=self.sighting,
            renew_every=3600,
            held_clock=self.server.clock,
            wall=self.server.clock,
        )
        try:
            lock.acquire()
        except LockHeld:
            return
        self.lock = lock

    def renew(self) -> None:
        """Renew the lock, if it has one; a stopped process finds out here that it is lost."""
        if self.lock is not None and self.holds():
            self.lock.renew()

    def leave(self) -> None:
        """Release the lock."""
        if self.lock is not None:
            self.lock.release()
            self.lock = None


@dataclass(frozen=True)
class Step:
    """What happens: `what` to the process of this number, or to the Lease, after so many seconds."""

    after: float
    what: str
    who: int = 0


WRITTEN_BY_OTHERS: Mapping[str, Mapping[str, Any]] = {
    "a short duration": {"leaseDurationSeconds": 1},
    "an endless duration": {"leaseDurationSeconds": 2**31 - 1},
    "the last transition": {"leaseTransitions": 2**31 - 1},
    "no number of transitions": {"leaseTransitions": None},
    "another label": {},
}
"""What others change in the Lease. Who writes its holder, or when it was renewed, takes it or keeps it."""

happenings = st.lists(
    st.builds(
        Step,
        st.floats(0, 25),
        st.sampled_from(["attempt", "attempt", "renew", "renew", "leave", *WRITTEN_BY_OTHERS]),
        st.integers(0, 2),
    ),
    max_size=60,
)


def play(server: LeaseServer, processes: list[Process], steps: list[Step]) -> Iterator[Step]:
    """Let each step happen."""
    for step in steps:
        server.now += step.after
        if step.what in WRITTEN_BY_OTHERS:
            server.change(dict(WRITTEN_BY_OTHERS[step.what]), {"others": str(server.now)})
        else:
            getattr(processes[step.who], step.what)()
        yield step


@given(happenings)
@settings(max_examples=examples(100))
@example([Step(0, "attempt"), Step(0, "a short duration"), Step(0, "attempt", 1), Step(2, "attempt", 1)])
@example([Step(0, "attempt"), Step(0, "attempt", 1), *[Step(8, "renew"), Step(0, "attempt", 1)] * 3])
def test_no_two_processes_ever_hold_it(steps: list[Step]) -> None:
    server = LeaseServer()
    processes = [Process(server, name) for name in "abc"]
    try:
        for step in play(server, processes, steps):
            holders = [process.name for process in processes if process.holds()]
            assert len(holders) <= 1, step
    finally:
        for process in processes:
            process.leave()


@given(happenings, st.floats(0, 25))
@settings(max_examples=examples(100))
def test_whatever_others_wrote_a_process_that_lives_leads_in_time(steps: list[Step], after: float) -> None:
    server = LeaseServer()
    processes = [Process(server, name) for name in "abc"]
    living = processes[0]
    try:
        for _ in play(server, processes, steps):
            pass
        # From now on the others neither renew nor release.
        server.now += after
        ends = server.now + max(DURATION, LONGEST_HELD) + 2 * TRY_EVERY
        while not living.holds():
            assert server.now <= ends
            living.attempt()
            server.now += TRY_EVERY
        assert server.spec["holderIdentity"].startswith("a/")
    finally:
        for process in processes:
            process.leave()


@given(
    st.lists(st.tuples(st.floats(0, 400), st.sampled_from(["begins", "wrote", "acted", "ends"])), max_size=40)
)
@settings(max_examples=examples(200))
def test_the_lock_is_renewed_only_while_passes_end(steps: list[tuple[float, str]]) -> None:
    server = LeaseServer()
    every, most = 30.0, 210.0
    watchdog = Watchdog(every, server.clock)
    sign, longest = server.now, LONGEST
    began = server.now
    for after, what in steps:
        server.now += after
        silence = server.now - sign
        # A pass that has shown nothing for so long is never taken for one that goes on.
        assert bool(watchdog.stands_still()) is (silence > longest)
        match what:
            case "begins":
                began = server.now
                watchdog.begins()
                continue
            case "wrote":
                watchdog.wrote()
            case "acted":
                watchdog.acted()
                longest = min(max(LONGEST, 2 * (server.now - began)), most)
                continue
            case "ends":
                watchdog.ends(0.0)
        sign = server.now


class Failing(Companion):
    """Raises at its number of the calls of `before`, of all companions together."""

    def __init__(self, steps: list[str], at: int, error: BaseException) -> None:
        self._steps, self._at, self._error = steps, at, error
        self.closed = False

    def before(self, settings: Settings) -> None:
        self._steps.append("before")
        if len(self._steps) == self._at:
            raise self._error

    def close(self) -> None:
        self.closed = True


class Leads(Observer):
    """Hears whether the process has the lock; the first call may raise."""

    def __init__(self, error: BaseException | None) -> None:
        self._error = error
        self.said: list[bool] = []

    def leads(self, *, leads: bool) -> None:
        self.said.append(leads)
        if self._error is not None and leads:
            error, self._error = self._error, None
            raise error


ERRORS: Mapping[str, Callable[[], BaseException]] = {
    "EAGAIN": lambda: RuntimeError("can't start new thread"),
    "EMFILE": lambda: OSError(errno.EMFILE, "Too many open files"),
    "ImportError": lambda: ImportError("libmsgspec.so: cannot map"),
    "MemoryError": MemoryError,
    "interrupt": KeyboardInterrupt,
}
SETTINGS = parse_settings("mode: Enforce", "maintenance.yaml")


class Clock(SystemClock):
    """The clock of the passes. The first time, it may raise."""

    def __init__(self, error: BaseException | None = None) -> None:
        self._error = error

    def now(self) -> datetime:
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return super().now()


@pytest.mark.parametrize(
    ("step", "fails"),
    [
        *product(("the clock", "companion 1", "companion 2", "companion 3"), ERRORS),
        # Any other error of an observer harms no takeover.
        ("the observers", "interrupt"),
    ],
)
def test_after_a_takeover_that_fails_anywhere_the_lock_is_free(
    step: str, fails: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    error, server, steps = ERRORS[fails], LeaseServer(), list[str]()
    at = int(step[-1]) if step.startswith("companion") else 0
    companions = [Failing(steps, at, error()) for _ in range(3)]
    monkeypatch.setattr(acting_module, "companions_of", lambda _: companions)
    leads = Leads(error() if step == "the observers" else None)
    clock = Clock(error() if step == "the clock" else None)
    acting = acting_of(server, clock, Observers(leads), monkeypatch, tmp_path)

    with pytest.raises(type(error())):
        acting.__enter__()

    assert server.spec["holderIdentity"] == ""
    assert leads.said[-1:] == [False]
    assert all(companion.closed for companion in companions)
    with pytest.raises(LockLost):
        acting.run_pass()
    # The next try of this process, or of another one, leads at once.
    with acting_of(server, Clock(), Observers(leads), monkeypatch, tmp_path):
        assert server.spec["holderIdentity"]
        assert leads.said[-1]


def acting_of(
    server: LeaseServer,
    clock: Clock,
    observers: Observers,
    monkeypatch: pytest.MonkeyPatch,
    folder: Any,
    watchdog: Watchdog | None = None,
) -> Acting:
    """Return what takes the lock on this server."""
    from reconciler.kubernetes.connection import Connection

    file = folder / "kubeconfig"
    file.write_text(json.dumps(kubeconfig("http://127.0.0.1:9", {"token": "none"})), encoding="utf-8")
    connection = Connection(str(file))
    monkeypatch.setattr(connection, "send", server.send)
    monkeypatch.setattr(acting_module, "read_rivals", lambda *_: ())
    following = Following(Store(PARTS), watchdog or Watchdog(), Sighting(), lambda: None, lambda: True)
    wiring, every = Wiring(connection, Target(str(file))), timedelta(seconds=30)
    return Acting(wiring, SETTINGS, clock, observers, following, every)


def test_a_lock_that_can_not_be_renewed_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    server = LeaseServer()
    acting = acting_of(server, Clock(), Observers(), monkeypatch, tmp_path)
    with refused(Once("lock")), pytest.raises(NoThread):
        acting.__enter__()
    assert server.lease is None
    with acting:
        assert server.spec["holderIdentity"]


def test_the_lock_of_a_process_whose_passes_stand_still_is_not_renewed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    server = LeaseServer()
    asked: list[str] = []

    class Watched(Watchdog):
        def stands_still(self) -> str:
            asked.append(super().stands_still())
            return asked[-1]

    monkeypatch.setattr(acting_module, "Lock", partial(Lock, renew_every=0.01))
    acting = acting_of(server, Clock(), Observers(), monkeypatch, tmp_path, Watched())
    with acting:
        before = server.version
        wait_for("a renewal", lambda: server.version > before)
        monkeypatch.setattr(watchdog_module, "LONGEST", -1.0)
        wait_for("the end of the renewals", lambda: len(asked) > 5 and all(asked[-5:]))
        before = server.version
        count = len(asked)
        wait_for("more looks", lambda: len(asked) > count + 5)
        assert server.version == before
