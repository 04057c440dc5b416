"""The faults of a session, one at a time, and what each of them leaves."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from random import Random

import urllib3

from reconciler.kubernetes import lease
from reconciler.kubernetes.reader import NAMESPACE
from reconciler.kubernetes.reconcilers import LOCK
from tests.hostile import attacks
from tests.hostile.instances import Instance, Instances
from tests.hostile.streams import Bender
from tests.support.controlplane.api import ApiError
from tests.support.controlplane.server import ControlPlane
from tests.support.fakes.faulty import ANSWERS, BESIDE, NEEDED, Faulty
from tests.support.fakes.proxy import Proxy, faces

LEASE = lease.DURATION
"""Seconds for which a lock counts that nobody gives back: so long, nobody may act."""

LONGEST_LEASE = 60.0
"""Seconds: the longest duration in a Lease that is believed."""

_SPOILED = 0.04
_BENT = 0.25
_APART = 5.0
_NODE = b"\x12\x04Node"
"""How the kind of an object in protobuf begins an event of the watch of nodes."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong from `begin` to `end`.

    `readable`: nodes and ledger can be read and written, and somebody may act all the time. It lasts so many
    seconds. `met` returns how many requests or events it changed. With `ends`, processes may end by it.
    """

    name: str
    begin: Callable[[], object] = lambda: None
    end: Callable[[], object] = lambda: None
    readable: bool = False
    lasts: float = 15.0
    met: Callable[[], int | None] = lambda: None
    ends: bool = False


class Faults:
    """All faults; some of them happen in the proxy before the API server."""

    def __init__(
        self,
        seed: int,
        proxy: Proxy,
        controlplane: ControlPlane,
        instances: Instances,
        busy: Callable[[], list[str]],
        note: Callable[[str, str, str], None],
    ) -> None:
        """Use a seed for all choices. `busy` are the nodes that others change; `note` logs what happens."""
        self._random, self._lock = Random(f"answers {seed}"), threading.Lock()
        self._controlplane, self._api = controlplane, controlplane.api
        self._instances, self._busy, self._note = instances, busy, note
        self._kinds = Faulty()
        self._spoils = self._bends = self._holds_back = False
        self._proxy = proxy
        self._met = 0
        self._over = threading.Event()
        self._harmed: list[Instance] = []
        bender = Bender(seed, _BENT, self._meet, lambda: not self._bends)
        proxy.instead = self._instead
        proxy.bend = lambda kind, chunks: self._hold_back(bender.bend(kind, chunks))

    def of_round(self, number: int) -> list[Fault]:
        """Return all faults; in the next round, each kind of request has another answer."""
        kinds = {**BESIDE, **NEEDED}
        answers = list(ANSWERS)
        return [
            Fault("none", readable=True),
            *(
                self._kind(kind, pattern, answers[(number + place) % len(answers)])
                for place, (kind, pattern) in enumerate(kinds.items())
            ),
            *self._of_answers(),
            *self._of_processes(),
            *self._of_the_lease(),
            *self._of_the_server(),
        ]

    def _kind(self, kind: str, pattern: str, answer: str) -> Fault:
        return Fault(
            f"{kind}: {answer}",
            partial(self._kinds.begin, pattern, ANSWERS[answer]),
            self._kinds.end,
            readable=kind in BESIDE,
            met=lambda: self._kinds.met,
        )

    def _of_answers(self) -> Iterator[Fault]:
        proxy = self._proxy
        switch = partial(partial, self._switch)
        met = partial(getattr, self, "_met")
        for name, what in {
            "4 % of all answers broken or late": "_spoils",
            "25 % of all events lost, late or broken": "_bends",
        }.items():
            yield Fault(name, switch(what, True), switch(what, False), lasts=30, met=met)
        yield Fault(
            "the watch of nodes is held back",
            switch("_holds_back", True),
            switch("_holds_back", False),
            met=met,
        )
        for minutes in (_APART, -_APART):
            yield Fault(
                f"two API servers, one {minutes:+.0f} minutes off",
                partial(setattr, proxy, "dates", faces(0.0, minutes)),
                partial(setattr, proxy, "dates", faces(0.0)),
                readable=True,
                lasts=30,
            )

    def _of_processes(self) -> Iterator[Fault]:
        no_threads = self._instances.no_threads
        yield Fault(
            "no thread can start", no_threads.touch, partial(no_threads.unlink), readable=True, ends=True
        )
        yield Fault(
            "no file can be opened",
            partial(self._harm, lambda each: each.may_open(0)),
            partial(self._heal, lambda each: each.may_open(None)),
            readable=True,
            ends=True,
        )
        yield Fault(
            "nobody reads the log",
            partial(self._harm, Instance.deafen),
            partial(self._heal, Instance.hear),
            readable=True,
        )
        yield Fault("leader killed", partial(self._signal, signal.SIGKILL), lasts=LEASE)
        yield Fault("leader gets SIGTERM", partial(self._signal, signal.SIGTERM), lasts=5, ends=True)
        yield Fault(
            "leader stands still for 40 s",
            partial(self._signal, signal.SIGSTOP),
            partial(self._heal, lambda each: each.signal(signal.SIGCONT)),
            lasts=40,
        )

    def _of_the_lease(self) -> Iterator[Fault]:
        def held_by(holder: Callable[[Instance], str]) -> None:
            self._write_lease({"holderIdentity": holder(self._instances.await_leader())})

        def handed_over() -> None:
            self._write_lease({"leaseDurationSeconds": 10**9, "leaseTransitions": 2**31 - 1})
            self._signal(signal.SIGKILL)

        yield Fault("Lease of another holder", partial(held_by, lambda _: "elsewhere/1/0.1"), lasts=LEASE)
        yield Fault(
            "Lease of an earlier run of the leader's container", partial(held_by, self._earlier), lasts=LEASE
        )
        yield Fault(
            "Lease of 10^9 s, after 2^31 - 1 takeovers, leader killed", handed_over, lasts=LONGEST_LEASE
        )

    def _of_the_server(self) -> Iterator[Fault]:
        controlplane = self._controlplane
        yield Fault("no API server", controlplane.stop_apiserver, controlplane.start_apiserver, lasts=10)
        yield Fault("all objects restored to 15 s before", controlplane.keep, controlplane.restore)
        yield Fault("nodes change 50 times a second", self._change, self._stop, readable=True)

    # What happens.

    def _switch(self, name: str, value: bool) -> None:
        if value:
            self._met, self._over = 0, threading.Event()
        setattr(self, name, value)
        if not value:
            self._over.set()

    def _instead(self, method: str, path: str) -> bytes | Iterator[bytes] | None:
        """Return what some requests get, and let others wait. Open watches are bent instead."""
        with self._lock:
            chance, spoils = self._random.random(), self._spoils and "watch=" not in path
            if spoils and chance < _SPOILED / 2:
                raw = attacks.answer(self._random, patience=method == "GET")
                self._meet("answer", f"{method} {path}", raw[:60].decode("latin-1"))
                return raw
            slow = self._random.uniform(1, 5) if spoils and chance >= 1 - _SPOILED / 2 else 0
            if slow:
                self._meet("slow", f"{method} {path}", f"{slow:.1f} s")
        if slow:
            self._over.wait(slow)
        return self._kinds.instead(method, path)

    def _meet(self, what: str, on: str = "", how: str = "") -> None:
        self._met += 1
        self._note(what, on, how)

    def _hold_back(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            if self._holds_back and _NODE in chunk:
                self._meet("held back")
                self._over.wait()
            yield chunk

    def _harm(self, harm: Callable[[Instance], object]) -> None:
        self._harmed = [each for each in self._instances.running if each.process.poll() is None]
        for instance in self._harmed:
            harm(instance)

    def _heal(self, heal: Callable[[Instance], object]) -> None:
        for instance in self._harmed:
            # One that has ended needs nothing.
            with suppress(ProcessLookupError):
                heal(instance)

    def _signal(self, number: signal.Signals) -> None:
        leader = self._instances.await_leader()
        leader.signal(number)
        self._harmed = [leader]

    @staticmethod
    def _earlier(leader: Instance) -> str:
        return f"{socket.gethostname()}/{leader.pid}/0123abcd.1"

    def _write_lease(self, spec: dict[str, object]) -> None:
        self._api.patch("leases", LOCK, {"spec": spec}, NAMESPACE)

    def _change(self) -> None:
        self._over, self._met = threading.Event(), 0
        threading.Thread(target=self._change_until, args=(self._over,), name="changes", daemon=True).start()

    def _stop(self) -> None:
        self._over.set()

    def _change_until(self, over: threading.Event) -> None:
        """Change the nodes that wait for their cordons, each 50 times a second if the machine can."""
        while not over.wait(0.02):
            for node in self._busy():
                self._met += 1
                with suppress(ApiError, urllib3.exceptions.HTTPError):
                    beat = {"metadata": {"annotations": {"beat": str(time.monotonic())}}}
                    self._api.patch("nodes", node, beat)
