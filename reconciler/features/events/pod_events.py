"""Writes an Event for each workload whose pods a drain moves, where its people look for a reason.

A thread of its own sends them, a while behind the first eviction, so no drain waits. They are few, so that a
drain makes hardly more requests than it has pods, and lost with the process: nothing depends on them. A
namespace that refuses an Event, for example because it terminates, delays no other one.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection
from datetime import UTC, datetime, tzinfo
from typing import Any

from msgspec import Struct, field

from reconciler.features.events.deployments import TEMPLATE_HASH, Deployments
from reconciler.features.events.kubernetes_events import create, event_of
from reconciler.http.retrying import Guard
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.events import COMPONENT
from reconciler.model.drains import DrainOrder
from reconciler.model.errors import ClusterError, Conflict, Forbidden, LockLost, NotFound, NoThread
from reconciler.model.plan import Notice
from reconciler.model.pod import Owner, Pod
from reconciler.threads import start

log = logging.getLogger(__name__)

EVICTED = "MaintenanceEvicted"
"""The reason of an Event on a pod without an owner that was evicted."""

DELETED = "MaintenanceDeleted"
"""The reason of an Event where pods are deleted, without regard to their PodDisruptionBudgets."""

MOVES = "MaintenanceMovesPods"
"""The reason of an Event on the owner of pods."""

PER_DRAIN = 100
"""Events of one drain at most."""

PER_DRAIN_IN_ONE = 3
"""Events of one drain in one namespace at most."""

WAITING = 1000
"""Events that wait at most, in all namespaces."""

WAITING_IN_ONE = 100
"""Events that wait at most in one namespace: the pods of one tenant take no room from those of others."""

BEHIND = 30.0
"""Seconds after which an Event is sent. The queue's end does not wait for that."""

PER_SECOND = 20.0
"""Requests in one second at most. Others have requests to the API server, too."""

CLOSED_FOR = 600.0
"""Seconds for which nothing is sent to a namespace that has refused an Event."""

_TRIES = 3
FIRST_PAUSE = 5.0
"""Seconds after the first of failures in a row. Each further pause is twice as long."""

_LONGEST_PAUSE = 60.0
_MOST_DRAINS = 500
_LONGEST_NAME = 230  # An object's name may have 253 characters.
_LONGEST_KIND = 63


class _QueuedEvent(Struct):
    """One Event that was not sent yet, and how often it was tried.

    `owner` is what it is about, until the Deployment of that was searched for, and `template` the hash of its
    pods' template. `attempt` is the attempt to drain the node, `due` when it is sent (monotonic, seconds).
    """

    namespace: str
    body: dict[str, Any]
    owner: Owner | None = None
    template: str = ""
    attempt: str = ""
    due: float = 0.0
    tries: int = 0


class _Drain(Struct):
    """What was said about one attempt to drain a node: about whom, and how often in each namespace."""

    since: datetime
    said: set[str] = field(default_factory=set)
    namespaces: Counter[str] = field(default_factory=Counter)

    def has_room(self, namespace: str) -> bool:
        """Whether it may have one more Event there."""
        return len(self.said) < PER_DRAIN and self.namespaces[namespace] < PER_DRAIN_IN_ONE


class _Queues:
    """The Events that wait, a queue for each namespace; and how many were left out."""

    def __init__(self) -> None:
        self.by_namespace: dict[str, deque[_QueuedEvent]] = {}
        self.count = self.dropped = 0

    def of(self, namespace: str) -> Collection[_QueuedEvent]:
        return self.by_namespace.get(namespace, ())

    def put(self, event: _QueuedEvent, *, first: bool = False) -> None:
        queue = self.by_namespace.setdefault(event.namespace, deque())
        queue.insert(0 if first else len(queue), event)
        self.count += 1

    def take(self, namespace: str) -> _QueuedEvent:
        queue = self.by_namespace.pop(namespace)
        event = queue.popleft()
        self.count -= 1
        if queue:
            self.by_namespace[namespace] = queue
        return event

    def leave_out(self, namespace: str) -> None:
        """Drop what waits for this namespace."""
        left = self.by_namespace.pop(namespace, ())
        self.count -= len(left)
        self.dropped += len(left)

    def leave_out_all(self) -> None:
        self.dropped += self.count
        self.by_namespace.clear()
        self.count = 0


class PodEvents:
    """Sends Events about evictions from a thread of its own; safe for threads."""

    def __init__(
        self,
        connection: Connection,
        guard: Guard,
        zone: Callable[[], tzinfo] = lambda: UTC,
        *,
        warn: Callable[[str], None] = log.warning,
        per_second: float = PER_SECOND,
        behind: float = BEHIND,
    ) -> None:
        """Use this connection; `guard` raises LockLost if the lock is not ours. Nothing runs until `evicted`.

        The moments of the messages are in the zone that `zone` returns. `warn` gets a sentence when Events
        can't be written, also from the queue's thread.
        """
        self._connection, self._guard = connection, guard
        self._deployments = Deployments(connection, warn)
        self._zone, self._warn, self._apart, self._behind = zone, warn, 1.0 / per_second, behind
        self._changed = threading.Condition()
        self._queues = _Queues()
        self._drains: OrderedDict[str, _Drain] = OrderedDict()
        self._refused: dict[str, float] = {}
        self._failures = 0
        self._until = 0.0
        self._closing = False
        self._thread: threading.Thread | None = None

    def evicted(self, order: DrainOrder, pod: Pod, deleted: bool = False) -> None:
        """Put an Event about the owner of an evicted or deleted pod into the queue; wait for no request.

        An owner has one for each attempt to drain a node. A pod without an owner has one itself. What does
        not fit is left out.
        """
        with self._changed:
            drain = self._drains.get(order.uid)
            if drain is None or drain.since != order.since:
                drain = self._drains[order.uid] = _Drain(order.since)
            self._drains.move_to_end(order.uid)
            if len(self._drains) > _MOST_DRAINS:
                self._drains.popitem(last=False)
            key, event = self._about(order, pod, deleted)
            if key not in drain.said and self._add(drain, event):
                drain.said.add(key)
                drain.namespaces[pod.namespace] += 1
            self.go_on()

    def go_on(self) -> None:
        """Send what waits from a thread that runs; if none can start now, the next call tries it again."""
        with self._changed:
            runs = self._thread is not None and self._thread.is_alive()
            if self._queues.count and not runs:
                try:
                    self._thread = start("pod-events", self._run)
                except NoThread as error:
                    log.info("events about pods wait: %s", error)
            self._changed.notify_all()

    def close(self, patience: float) -> None:
        """Send what waits, for at most so many seconds; the rest is left out."""
        ends = time.monotonic() + patience
        with self._changed:
            self._closing = True
            self.go_on()
        if self._thread is not None:
            self._thread.join(max(0.0, ends - time.monotonic()))
        with self._changed:
            self._queues.leave_out_all()
            if self._queues.dropped:
                log.info("events about pods were left out: count=%d", self._queues.dropped)

    def _about(self, order: DrainOrder, pod: Pod, deleted: bool) -> tuple[str, _QueuedEvent]:
        why = f": {order.why}" if order.why else ""
        done, owner, due = "deleted" if deleted else "evicted", pod.owner, time.monotonic() + self._behind
        # A tenant writes any owner. One that is a Node has its Events elsewhere.
        if owner is None or not owner.named or owner.kind == "Node":
            reason = DELETED if deleted else EVICTED
            notice = Notice(reason, f"{done} from node {order.node} by {COMPONENT}{why}")
            about = {"apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name}
            body = self._event({**about, "uid": pod.uid}, notice, pod.uid)
            return f"{reason}|{pod.uid}", _QueuedEvent(pod.namespace, body, due=due)
        reason = DELETED if deleted else MOVES
        notice = Notice(reason, f"pods are {done} from node {order.node} by {COMPONENT}{why}")
        about, attempt = _reference(pod.namespace, owner), f"{order.uid}|{order.since.isoformat()}"
        body = self._event(about, notice, _identity(about, attempt))
        template = pod.labels.get(TEMPLATE_HASH, "")
        waiting = _QueuedEvent(pod.namespace, body, owner, template, attempt, due)
        return f"{reason}|{_identity(about)}", waiting

    def _event(self, about: dict[str, str], notice: Notice, identity: str) -> dict[str, Any]:
        return event_of(_metadata(about, notice.reason, identity), about, notice, self._zone(), time.time())

    def _add(self, drain: _Drain, event: _QueuedEvent) -> bool:
        queues, namespace = self._queues, event.namespace
        refused = self._refused.get(namespace, 0.0) > time.monotonic()
        full = queues.count >= WAITING or len(queues.of(namespace)) >= WAITING_IN_ONE
        if self._closing or refused or full or not drain.has_room(namespace):
            queues.dropped += 1
            return False
        queues.put(event)
        return True

    # The thread.

    def _run(self) -> None:
        try:
            while (event := self._next()) is not None:
                self._send(event)
        except Exception:
            # The next call of `go_on` begins another one.
            log.exception("the queue of events about pods has ended")

    def _next(self) -> _QueuedEvent | None:
        """Wait until an Event is due, and take it; None at the end. The namespaces take turns."""
        with self._changed:
            while True:
                now = time.monotonic()
                due = {name: queue[0].due for name, queue in self._queues.by_namespace.items()}
                namespace = next((name for name, at in due.items() if self._closing or at <= now), None)
                if namespace is not None and (self._closing or self._until <= now):
                    break
                if self._closing:
                    return None
                self._changed.wait(max(self._until, min(due.values())) - now if due else None)
            self._until = time.monotonic() + self._apart
            return self._queues.take(namespace)

    def _send(self, event: _QueuedEvent) -> None:
        try:
            self._move_to_deployment(event)
            self._guard()
            create(self._connection, event.body)
        except LockLost:
            # Another process drains now.
            with self._changed:
                self._queues.dropped += 1
                self._queues.leave_out_all()
        except Conflict as error:
            if error.reason != "AlreadyExists":
                self._again(event, error)
        except ClusterError as error:
            if error.temporary:
                self._again(event, error)
            else:
                self._refuse(event.namespace, error)
        else:
            self._failures = 0

    def _move_to_deployment(self, event: _QueuedEvent) -> None:
        """Put an Event about a ReplicaSet on its Deployment; raises ClusterError if that can't be found now.

        It is tried once: after an error the Event stays where it is.
        """
        if event.owner is None:
            return
        owner, event.owner = event.owner, None
        with self._changed:
            self._until += self._apart
            waiting = self._queues.of(event.namespace)
            wanted = {other.owner: other.template for other in waiting if other.owner is not None}
        deployment = self._deployments.of(event.namespace, owner, {**wanted, owner: event.template})
        if deployment is not None:
            about = _reference(event.namespace, deployment)
            metadata = _metadata(about, event.body["reason"], _identity(about, event.attempt))
            event.body = {**event.body, "metadata": metadata, "involvedObject": about}

    def _again(self, event: _QueuedEvent, error: ClusterError) -> None:
        """Send nothing for a while, then this Event again. After three tries, or at the end, leave it out."""
        with self._changed:
            event.tries += 1
            self._failures += 1
            if self._failures == 1:
                self._warn(f"events about pods can't be written now: {error}")
            pause = max(FIRST_PAUSE * 2 ** min(self._failures - 1, 4), error.retry_after or 0.0)
            self._until = time.monotonic() + min(pause, _LONGEST_PAUSE)
            if event.tries >= _TRIES or self._closing:
                self._queues.dropped += 1
                return
            self._queues.put(event, first=True)

    def _refuse(self, namespace: str, error: ClusterError) -> None:
        """Send nothing to this namespace for a while, unless only this Event was refused."""
        with self._changed:
            if not isinstance(error, Forbidden | NotFound):
                # A tenant writes any owner: the server may not accept an Event about it.
                self._queues.dropped += 1
                return
            now = time.monotonic()
            self._refused = {name: at for name, at in self._refused.items() if at > now}
            if not self._refused:
                because = error.because
                self._warn(f"events about pods are not written in the namespace {namespace}: {because}")
            self._refused[namespace] = now + CLOSED_FOR
            self._queues.dropped += 1
            self._queues.leave_out(namespace)


def _reference(namespace: str, owner: Owner) -> dict[str, str]:
    """Return what an Event has about an owner, which may be any text."""
    return {
        "apiVersion": owner.api_version[:_LONGEST_NAME],
        "kind": owner.kind[:_LONGEST_KIND],
        "namespace": namespace,
        "name": owner.name,
        "uid": owner.uid[:_LONGEST_NAME],
    }


def _identity(about: dict[str, str], *more: str) -> str:
    return "|".join((*about.values(), *more))


def _metadata(about: dict[str, str], reason: str, identity: str) -> dict[str, str]:
    """Return the namespace and the name, which is the same in every process: so the Event is there once."""
    hashed = hashlib.sha256(f"{reason}|{identity}".encode("utf-8", "replace")).hexdigest()
    name = f"{about['name'][:_LONGEST_NAME].rstrip('.-')}.{hashed[:16]}"
    return {"name": name, "namespace": about["namespace"]}
