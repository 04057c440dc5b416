"""The lock, a Lease in our namespace: two passes never act at once.

A process takes it over only after it has seen no renewal of the Lease for its whole duration, by its own
clock; it trusts no time that is written in the Lease. Before each write the holder checks how long ago its
last successful renewal began, by a clock that counts through suspend. So a process that was stopped for long
notices before it writes. Only a request that it sent before it was stopped can still arrive.

The lock is renewed only while passes end. A process whose passes stand still loses it to another one.

Renewals do not wait for each other, because an API server may take longer for an answer than the time between
two of them. Each is a patch that the server applies only while the Lease names us as its holder.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Any, Self

from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import CORE, JSON_PATCH, ApiPath, Connection, Request, api
from reconciler.kubernetes.json_patch import Patch
from reconciler.kubernetes.reconcilers import LOCK, Lease, made_at, passes_in
from reconciler.kubernetes.server_time import boottime
from reconciler.kubernetes.wire.shapes import decode
from reconciler.model import limits
from reconciler.model.coverage import SettingsSeen
from reconciler.model.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    LockHeld,
    LockLost,
    NotFound,
    NoThread,
    Rejected,
    Unauthorized,
    Unreachable,
)
from reconciler.model.moments import to_micro_text
from reconciler.model.reconciler import PASSES, Passes, passes_text
from reconciler.model.values import replace
from reconciler.threads import start

# The attributes have the names of the API, so that no table of names is needed.

log = logging.getLogger(__name__)

DURATION = 20.0
RENEW_EVERY = 2.0
TRUSTED = 0.6
"""The share of the duration for which a renewal counts; the rest is for a write that is in flight.

So the lock is kept, and a write is over before another process acts, while answers come within 8 s.
"""

LONGEST = 60.0
"""Seconds without a renewal after which the lock is free, whatever duration is written in the Lease."""

TRANSITIONS = 1 << 31
"""The API server refuses this number of changes of the holder, and all above it."""

TRIES = 5
"""How often the lock is read again at once after another process has changed it."""


class LeaseClient:
    """The Lease of a lock on the API server, as one process reads and writes it."""

    def __init__(
        self,
        connection: Connection,
        path: ApiPath,
        identity: str,
        *,
        duration: float,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Use the Lease at this path under this identity; `duration` is seconds, `wall` Unix time."""
        self.identity = identity
        self.duration = duration
        self.trusted = duration * TRUSTED
        self.connection = connection
        self.path = path
        *_, self.namespace, _, self._name = path.segments
        self.title = f"{self.namespace}/{self._name}"
        self._place = ApiPath(*path.segments[:-1])
        self._wall = wall
        self.since: datetime | None = None
        """When the Lease was made (UTC), None before it is ours."""
        self.passes = Passes()
        """What the next write says of the passes of the holder."""
        self._begin: Callable[[Passes], Passes] = lambda before: before

    def says(self, begin: Callable[[Passes], Passes]) -> None:
        """Let the holder of the Lease say what `begin` returns for what the holder before it has said."""
        self._begin = begin

    def say(self, change: Callable[[Passes], Passes]) -> None:
        """Change what the next write says of the passes of the holder; one thread does that."""
        self.passes = change(self.passes)

    def read(self) -> Lease | None:
        """Return the Lease as it is now, None without one; raises the errors of ClusterError."""
        return objects.find(self.connection, self.path, Lease)

    def create(self) -> None:
        """Create the Lease, and its namespace if there is none; Conflict if there is one by now."""
        self.passes = self._begin(Passes())
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "annotations": self._annotations()},
            "spec": self._spec(0),
        }
        request = Request("POST", self._place, body=body, total=self.trusted)
        try:
            made = self.connection.send(request)
        except NotFound:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
            # A conflict: another pass created it in this moment.
            with suppress(Conflict):
                self.connection.send(Request("POST", CORE / "namespaces", body=namespace))
            made = self.connection.send(request)
        self.since = made_at(decode(Lease, made))

    def take(self, lease: Lease) -> None:
        """Become the holder of the Lease; Rejected if it was renewed or taken since it was seen.

        Other changes of it keep nobody from taking it.
        """
        self.passes, self.since = self._begin(passes_in(lease)), made_at(lease)
        patch = Patch(lease.metadata.uid)
        patch.expect(lease.spec.holderIdentity, "spec", "holderIdentity")
        patch.expect(lease.spec.renewTime, "spec", "renewTime")
        patch.put(self._spec(((lease.spec.leaseTransitions or 0) + 1) % TRANSITIONS), "spec")
        patch.put(self._annotations(), "metadata", "annotations")
        self._send(patch.body)

    def patch(self, holder: str) -> None:
        """Renew the Lease, or name another holder; Rejected if we are no longer its holder."""
        changes = [
            {"op": "test", "path": "/spec/holderIdentity", "value": self.identity},
            {"op": "replace", "path": "/spec/holderIdentity", "value": holder},
            {"op": "replace", "path": "/spec/renewTime", "value": self._time()},
            # Also where somebody has removed all annotations.
            {"op": "add", "path": "/metadata/annotations", "value": self._annotations()},
        ]
        self._send(changes)

    def renew(self) -> str:
        """Renew the Lease; return why it can't be, empty if it was. Raises ClusterError without an answer."""
        try:
            self.patch(self.identity)
        except NotFound:
            return "somebody deleted it"
        except Rejected:
            found = decode(Lease, self.connection.send(Request("GET", self.path)))
            if found.spec.holderIdentity == self.identity:
                raise
            return "another process took it"
        return ""

    def _send(self, changes: Any) -> None:
        self.connection.send(
            Request("PATCH", self.path, body=changes, content_type=JSON_PATCH, total=self.trusted)
        )

    def _annotations(self) -> dict[str, str]:
        return {PASSES: passes_text(self.passes)}

    def _time(self) -> str:
        return to_micro_text(datetime.fromtimestamp(self._wall(), UTC))

    def _spec(self, transitions: int) -> dict[str, Any]:
        now = self._time()
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self.duration),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }


class Sighting:
    """Since when the holder of a Lease gives no sign, by a clock of our own. It is kept from try to try."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Use this clock, which must not run faster than time."""
        self._clock = clock
        self._signs: tuple[str | None, ...] | None = None
        self._since = 0.0
        self._renewed = False

    def silence(self, lease: Lease) -> float:
        """Return for how many seconds the Lease, as it was read just now, has been seen without a renewal.

        Annotations, labels and other numbers are no sign: everybody may change them.
        """
        spec, now = lease.spec, self._clock()
        signs = (lease.metadata.uid, spec.holderIdentity, spec.acquireTime, spec.renewTime)
        if signs != self._signs:
            self._renewed = self._signs is not None
            self._signs, self._since = signs, now
        return now - self._since

    def alive(self, within: float) -> bool:
        """Whether the holder was seen to renew the Lease in the last `within` seconds."""
        return self._renewed and self._clock() - self._since < within

    def forget(self) -> None:
        """Begin again: the lock is ours."""
        self._signs, self._renewed = None, False


class Holding:
    """Whether the lock is ours, and since which renewal; safe for threads."""

    def __init__(self, title: str, trusted: float, clock: Callable[[], float]) -> None:
        """A renewal counts for `trusted` seconds by this clock, which must count through suspend."""
        self.clock = clock
        self._title = title
        self._trusted = trusted
        self._state = threading.Lock()
        self._held = self._ended = False
        self._renewed = -math.inf
        self._lost = self._failure = ""

    def forget(self) -> None:
        """Forget earlier renewals, before new ones begin."""
        self._renewed = -math.inf

    def begin(self, began: float) -> bool:
        """The lock is ours by a write that began at this time, or by a later renewal; False after `end`."""
        with self._state:
            if not self._ended:
                self._held, self._renewed, self._lost = True, max(self._renewed, began), ""
            return not self._ended

    def end(self) -> bool:
        """The lock is not ours any more, and does not become ours; return whether it was until now."""
        with self._state:
            self._ended = True
            held, self._held = self._held and not self._lost, False
            self._lost = self._lost or "it was given back"
            return held

    def check(self, *, only_held: bool = False) -> None:
        """Raise LockLost unless the lock stays ours for long enough; with `only_held` only after `begin`."""
        with self._state:
            if self._held or not only_held:
                self._check()

    def failed(self, error: ClusterError) -> None:
        """A renewal got no answer."""
        self._failure = str(error)

    def renewed(self, began: float, loss: str, ended: threading.Event) -> None:
        """A renewal that began at this time is done, or shows why the lock is lost."""
        with self._state, suppress(LockLost):
            if ended.is_set():
                return
            if self._held:
                # A process that slept finds that out here, too, before the renewal counts.
                self._check()
                self._lost = loss
            if not loss:
                self._renewed, self._failure = max(self._renewed, began), ""

    def _check(self) -> None:
        if not self._held:
            raise LockLost(f"the lock {self._title} is not ours: {self._lost or 'never was'}")
        age = self.clock() - self._renewed
        if not self._lost and age >= self._trusted:
            # For good: a process that slept must not go on because a renewal came first when it woke up.
            why = f": {self._failure}" if self._failure else ""
            self._lost = f"not renewed for {age:.1f} s{why}"
        if self._lost:
            raise LockLost(f"the lock {self._title} is lost: {self._lost}")


class Lock:
    """The lock of one process; a context manager that acquires, renews in a thread, and releases.

    It is acquired once: after `release` it never becomes ours, also not by an answer that comes later.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        identity: str,
        process: str = "",
        namespace: str = "node-maintenance",
        name: str = LOCK,
        duration: float = DURATION,
        renew_every: float = RENEW_EVERY,
        sighting: Sighting | None = None,
        stands_still: Callable[[], str] = str,
        held_clock: Callable[[], float] = boottime,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Use an identity that no other lock ever has, such as the pod's name and a random part.

        `process` is how the identities of all locks of this process begin. If the Lease names one of them,
        nobody else acts, and this lock takes its place at once.
        `duration` and `renew_every` are seconds. `sighting` is what this process has seen of other holders.
        `stands_still` returns why passes do not end, empty while they do: until then the lock is not renewed.
        `held_clock` must count through suspend; `wall` (Unix time) is for the times that people read.
        """
        path = api("coordination.k8s.io", "v1", namespace) / "leases" / name
        self._lease = LeaseClient(connection, path, identity, duration=duration, wall=wall)
        self._holding = Holding(self._lease.title, self._lease.trusted, held_clock)
        self._process = process
        self._renew_every = renew_every
        self._sighting = sighting or Sighting()
        self._stands_still = stands_still
        self._ended = threading.Event()
        self._renewer: threading.Thread | None = None
        self._soon = threading.Event()
        self._has_passed = False
        self._last_moment = math.inf
        self._under_way = threading.BoundedSemaphore(math.ceil(self._lease.trusted / renew_every))

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

        A free lock is taken at once, and so is one that was not renewed for its whole duration, as the tries
        so far have seen. Else this raises LockHeld, which says when to try again; it waits for nothing but
        answers. Raises Unauthorized if we may not use the Lease or create its namespace, Unreachable if the
        server does not answer, LockLost if the lock was released in the meantime.
        """
        try:
            for _ in range(TRIES):
                lease = self._lease.read()
                if lease is not None:
                    self._refuse_held(lease)
                if self._take(lease):
                    self._sighting.forget()
                    return
                # It was released, deleted, or taken by another process just now: read it again.
            raise Conflict(f"the lock {self._lease.title} changed {TRIES} times while it was taken")
        except Forbidden as error:
            raise Unauthorized(
                f"no lock: {error}; the ServiceAccount needs get, create and patch of leases"
                f" in namespace {self._lease.namespace}, which must exist",
                status=error.status,
                reason=error.reason,
            ) from error

    def check(self) -> None:
        """Raise LockLost unless the lock stays ours for long enough to write something."""
        self._holding.check()

    def says(self, begin: Callable[[Passes], Passes]) -> None:
        """Let each renewal write what `begin` makes of the passes so far; call it before `acquire`."""
        self._lease.says(begin)

    @property
    def since(self) -> datetime | None:
        """When the Lease was made (UTC), None before it is ours."""
        return self._lease.since

    @property
    def seen(self) -> SettingsSeen | None:
        """What the passes before knew of their settings, None if that is not known."""
        return self._lease.passes.seen

    def passed(
        self, now: datetime, mode: str, seen: SettingsSeen | None = None, every: timedelta | None = None
    ) -> None:
        """Say with the next renewal that a pass has ended `now` (aware); the first one is said at once.

        `seen` is what the pass knows of its settings. `every` is the longest time from this pass of
        `serve` to the next, None for a sweep.
        """
        self._lease.say(lambda passes: passes.passed(now, mode, seen, every))
        if not self._has_passed:
            self._has_passed = True
            self._soon.set()

    def renew(self) -> None:
        """Renew the lock, and wait for the answer; do nothing while too many renewals wait for theirs."""
        if self._under_way.acquire(blocking=False):
            self._renew(self._ended)

    def turns_to(self, mode: str) -> None:
        """Say with the next write that the settings have this mode now."""
        self._lease.say(lambda passes: replace(passes, mode=mode))

    def release(self) -> None:
        """Release the lock if it is still ours. A failure is logged; the lock then expires by itself."""
        self._end_renewals()
        self._give_back()

    def release_within(self, seconds: float) -> None:
        """Release the lock after so many seconds at the latest, whatever keeps the caller from `release`."""
        self._last_moment = min(self._last_moment, time.monotonic() + seconds)
        self._soon.set()

    def _give_back(self) -> None:
        if not self._holding.end():
            return
        try:
            self._lease.patch(holder="")
        except ClusterError as error:
            log.warning("the lock was not given back: lease=%s error=%s", self._lease.title, error)

    def _refuse_held(self, lease: Lease) -> None:
        """Raise LockHeld unless the Lease is free, ours, or was not renewed for its whole duration.

        A duration that is written in it may be any number: it can only lengthen ours, to `LONGEST` at most.
        """
        holder, ours = lease.spec.holderIdentity or "", self._lease.duration
        if not holder or (self._process and holder.startswith(self._process)):
            return
        lasts = max(ours, min(float(lease.spec.leaseDurationSeconds or 0), LONGEST))
        left = lasts - self._sighting.silence(lease)
        if left > 0:
            alive = self._sighting.alive(self._lease.trusted)
            raise LockHeld(limits.text(holder, limits.NAME), again=left, alive=alive)

    def _take(self, lease: Lease | None) -> bool:
        """Try to become the holder, and renew from now on; return False if another process was faster."""
        began = self._holding.clock()
        # Before the answer: a late one must not leave a lock that is nearly too old.
        self._ended, self._has_passed = threading.Event(), False
        self._soon = threading.Event()
        self._holding.forget()
        self._renewer = start("lock", partial(self._renew_until, self._ended, self._soon))
        taken = False
        try:
            taken = self._is_taken(lease)
        finally:
            if not taken:
                self._end_renewals()
        if taken and not self._holding.begin(began):
            self._end_renewals()
            with suppress(ClusterError):
                self._lease.patch(holder="")
            raise LockLost(f"the lock {self._lease.title} was taken while the process ends, and given back")
        return taken

    def _is_taken(self, lease: Lease | None) -> bool:
        try:
            if lease is None:
                self._lease.create()
            else:
                self._lease.take(lease)
        except Conflict:
            return False
        except (Rejected, Unreachable) as error:
            # The write may have happened, or the Lease is no longer as it was seen: it shows its holder.
            now = self._lease.read()
            if now is not None and now.spec.holderIdentity == self._lease.identity:
                return True
            if lease is not None and now == lease and isinstance(error, Rejected):
                raise
            return False
        return True

    def _end_renewals(self) -> None:
        """Begin no other renewal. One that is under way does no harm, and may take long to end."""
        self._ended.set()
        self._soon.set()
        renewer, self._renewer = self._renewer, None
        if renewer is not None:
            renewer.join()

    def _renew_until(self, ended: threading.Event, soon: threading.Event) -> None:
        stood_still = False
        while not ended.is_set():
            if soon.wait(max(0.0, min(self._renew_every, self._last_moment - time.monotonic()))):
                soon.clear()
            if ended.is_set():
                return
            if time.monotonic() >= self._last_moment:
                self._give_back()
                return
            try:
                self._holding.check(only_held=True)
            except LockLost as error:
                log.warning("%s", error)
                return
            if because := self._stands_still():
                if not stood_still:
                    log.warning("the lock is not renewed, so that another process can act: %s", because)
                stood_still = True
                continue
            stood_still = False
            # A server that answers nothing does not get more and more requests.
            if self._under_way.acquire(blocking=False):
                try:
                    start("renewal", partial(self._renew, ended))
                except NoThread:
                    # This thread sends it. The next renewal then waits for its answer.
                    self._renew(ended)

    def _renew(self, ended: threading.Event) -> None:
        """Renew once, and keep when the renewal began, or why the lock is lost."""
        began = self._holding.clock()
        try:
            loss = self._lease.renew()
        except ClusterError as error:
            log.info("the lock was not renewed: error=%s", error)
            self._holding.failed(error)
            return
        finally:
            self._under_way.release()
        self._holding.renewed(began, loss, ended)
