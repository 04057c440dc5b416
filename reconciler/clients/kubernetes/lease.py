"""The lock, a Lease in our namespace: two passes never act at once.

A process takes it over only after it has seen the Lease unchanged for its whole duration, by its own clock;
it trusts no time that is written in the Lease. Before each write the holder checks how long ago its last
successful renewal began, by a clock that counts through suspend. So a process that was stopped for long
notices before it writes. Only a request that it sent before it was stopped can still arrive.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import msgspec

from reconciler.clients.kubernetes.connection import Connection, Request
from reconciler.clients.kubernetes.paths import CORE, api
from reconciler.clients.kubernetes.watching import events
from reconciler.clients.kubernetes.wire.shapes import ObjectMeta, decode
from reconciler.clients.retrying import patiently
from reconciler.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    LockHeld,
    LockLost,
    NotFound,
    Unauthorized,
    Unreachable,
)
from reconciler.model.moments import to_micro_text

# The attributes have the names of the API, so that no table of names is needed.
# ruff: noqa: N815

log = logging.getLogger(__name__)

NAME = "reconciler-lock"
DURATION = 15.0
RENEW_EVERY = 5.0
TRUSTED = 2 / 3
"""The share of the duration for which a renewal counts; the rest is for a write that is in flight."""


def boottime() -> float:
    """Return the seconds since boot, including those in which the machine or the process slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaseSpec(msgspec.Struct):
    """coordination.k8s.io/v1 LeaseSpec; its times are for people, and never read."""

    holderIdentity: str | None = None
    leaseDurationSeconds: int | None = None
    leaseTransitions: int | None = None


class Lease(msgspec.Struct):
    """coordination.k8s.io/v1 Lease."""

    metadata: ObjectMeta
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


class Lock:
    """The lock of one process; a context manager that acquires, renews in a thread, and releases."""

    def __init__(
        self,
        connection: Connection,
        *,
        identity: str,
        namespace: str = "node-maintenance",
        name: str = NAME,
        duration: float = DURATION,
        renew_every: float = RENEW_EVERY,
        held_clock: Callable[[], float] = boottime,
        watch_clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Use an identity that no other process ever has, such as the pod's name and a random part.

        `duration` and `renew_every` are seconds. `held_clock` must count through suspend; `watch_clock`
        must not run faster than time; `wall` (Unix time) is for the times that people read.
        """
        self._connection = connection
        self._identity = identity
        self._namespace = namespace
        self._name = name
        self._title = f"{namespace}/{name}"
        self._duration = duration
        self._renew_every = renew_every
        self._held_clock = held_clock
        self._watch_clock = watch_clock
        self._wall = wall
        self._place = api("coordination.k8s.io", "v1", namespace) / "leases"
        self._state = threading.Lock()
        self._lease: Lease | None = None
        self._renewed = 0.0
        self._lost = ""
        self._ended = threading.Event()
        self._renewer: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Acquire the lock; raises what `acquire` raises."""
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the lock."""
        self.release()

    def acquire(self) -> None:
        """Acquire the lock, and renew it in a thread from now on.

        A free lock is taken at once. If another process holds it, this waits until the holder renews it
        (LockHeld), or until it has not changed for its whole duration. Raises Unauthorized if we may not use
        the Lease or create its namespace, Unreachable if the server does not answer.
        """
        try:
            self._acquire()
        except Forbidden as error:
            raise Unauthorized(
                f"no lock: {error}; the ServiceAccount needs get, watch, create and update of leases in"
                f" namespace {self._namespace}, which must exist",
                status=error.status,
                reason=error.reason,
            ) from error
        self._ended.clear()
        self._renewer = threading.Thread(target=self._renew_until_ended, name="lock", daemon=True)
        self._renewer.start()

    def check(self) -> None:
        """Raise LockLost unless the lock stays ours for long enough to write something."""
        with self._state:
            self._check()

    def release(self) -> None:
        """Release the lock if it is still ours. A failure is logged; the lock then expires by itself."""
        self._ended.set()
        if self._renewer is not None:
            self._renewer.join()
            self._renewer = None
        with self._state:
            lease, self._lease = self._lease, None
            lost, self._lost = self._lost, "it was given back"
        if lease is None or lost:
            return
        try:
            self._put(lease, holder="", transitions=lease.spec.leaseTransitions or 0)
        except ClusterError as error:
            log.warning("the lock was not given back: lease=%s error=%s", self._title, error)

    def _check(self) -> None:
        if self._lease is None:
            raise LockLost(f"the lock {self._title} is not ours: {self._lost or 'never was'}")
        age = self._held_clock() - self._renewed
        if not self._lost and age >= self._duration * TRUSTED:
            # For good: a process that slept must not go on because a renewal came first when it woke up.
            self._lost = f"not renewed for {age:.1f} s"
        if self._lost:
            raise LockLost(f"the lock {self._title} is lost: {self._lost}")

    def _acquire(self) -> None:
        while True:
            lease = self._read()
            if lease is None:
                if self._take(None):
                    return
            elif (not lease.spec.holderIdentity or self._outlived(lease)) and self._take(lease):
                return
            # Otherwise it was released, deleted, or taken by another process just now: read it again.

    def _read(self) -> Lease | None:
        request = Request("GET", self._place / self._name)
        try:
            body = patiently(lambda: self._connection.send(request), sleep=self._connection.sleep)
        except NotFound:
            return None
        return decode(Lease, body)

    def _outlived(self, seen: Lease) -> bool:
        """Watch the Lease; return True if it stays unchanged for its duration, False if it becomes free.

        Raises LockHeld as soon as its holder, or another one, renews it.
        """
        holder = seen.spec.holderIdentity or ""
        deadline = self._watch_clock() + float(seen.spec.leaseDurationSeconds or math.ceil(self._duration))
        while (left := deadline - self._watch_clock()) > 0:
            now = self._next_change(seen, left)
            if now.metadata.resourceVersion == seen.metadata.resourceVersion:
                # A server that ends watches at once must not be asked in a loop without a pause.
                self._connection.sleep(min(0.2, left))
                continue
            if now.metadata.uid != seen.metadata.uid or not now.spec.holderIdentity:
                return False
            raise LockHeld(now.spec.holderIdentity or holder)
        return True

    def _next_change(self, seen: Lease, seconds: float) -> Lease:
        """Wait up to `seconds` for an event of the Lease, and return it; without a UID if it was deleted."""
        query = {
            "watch": "true",
            "fieldSelector": f"metadata.name={self._name}",
            "resourceVersion": seen.metadata.resourceVersion,
            "timeoutSeconds": str(max(1, math.ceil(seconds))),
        }
        request = Request("GET", self._place, query=query, read_timeout=max(seconds, 0.1), total=seconds + 5)
        try:
            with self._connection.stream(request) as stream:
                for event in events(stream):
                    if event.type == "DELETED":
                        return Lease(ObjectMeta(), LeaseSpec())
                    if event.type in ("ADDED", "MODIFIED"):
                        return decode(Lease, event.object)
                    break
        except Unreachable:
            # No byte came in all that time, or the server went away: the Lease as it is now says which.
            pass
        return self._read() or Lease(ObjectMeta(), LeaseSpec())

    def _take(self, lease: Lease | None) -> bool:
        """Try to become the holder; return False if another process was faster."""
        began = self._held_clock()
        try:
            if lease is None:
                taken = self._create()
            else:
                taken = self._put(lease, self._identity, (lease.spec.leaseTransitions or 0) + 1)
        except Conflict:
            return False
        except Unreachable:
            # The write may have happened: the Lease shows its holder.
            found = self._read()
            if found is None or found.spec.holderIdentity != self._identity:
                return False
            taken = found
        with self._state:
            self._lease, self._renewed, self._lost = taken, began, ""
        return True

    def _create(self) -> Lease:
        try:
            return self._post()
        except NotFound:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}
            # A conflict: another pass created it in this moment.
            with suppress(Conflict):
                self._connection.send(Request("POST", CORE / "namespaces", body=namespace))
            return self._post()

    def _post(self) -> Lease:
        body = self._body({"name": self._name}, self._identity, 0)
        return decode(Lease, self._connection.send(Request("POST", self._place, body=body)))

    def _put(self, lease: Lease, holder: str, transitions: int) -> Lease:
        """Replace the Lease as it was seen; Conflict if it has changed since then."""
        metadata = {
            "name": self._name,
            "uid": lease.metadata.uid,
            "resourceVersion": lease.metadata.resourceVersion,
        }
        request = Request(
            "PUT",
            self._place / self._name,
            body=self._body(metadata, holder, transitions),
            connect_timeout=self._renew_every / 2,
            read_timeout=self._renew_every / 2,
            total=self._renew_every / 2,
        )
        return decode(Lease, self._connection.send(request))

    def _body(self, metadata: dict[str, str], holder: str, transitions: int) -> dict[str, Any]:
        now = to_micro_text(datetime.fromtimestamp(self._wall(), UTC))
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": math.ceil(self._duration),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        }

    def _renew_until_ended(self) -> None:
        pause = self._renew_every
        while not self._ended.wait(pause):
            try:
                pause = self._renew_every if self._renew() else min(1.0, self._renew_every / 5)
            except LockLost as error:
                log.warning("%s", error)
                return

    def _renew(self) -> bool:
        """Renew once; return False if no answer came. Raises LockLost if the lock is lost for good."""
        with self._state:
            self._check()
            lease = self._lease
        assert lease is not None
        began = self._held_clock()
        renewed: Lease | None = None
        loss = "another process took it"
        try:
            renewed = self._put_or_found(lease)
        except NotFound:
            loss = "somebody deleted it"
        except ClusterError as error:
            log.info("the lock was not renewed: error=%s", error)
            return False
        with self._state:
            self._check()
            if renewed is None:
                self._lost = loss
                self._check()
            self._lease, self._renewed = renewed, began
        return True

    def _put_or_found(self, lease: Lease) -> Lease | None:
        """Return the Lease as renewed, None if another process has it. Raises ClusterError.

        What changed it may be our own renewal, whose answer was lost.
        """
        try:
            return self._put(lease, self._identity, lease.spec.leaseTransitions or 0)
        except Conflict:
            found = decode(Lease, self._connection.send(Request("GET", self._place / self._name)))
        return found if found.spec.holderIdentity == self._identity else None
