"""Writes Kubernetes Events: on nodes, on a ConfigMap, and on the Pod in which this process runs.

`kubectl describe` shows them.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from reconciler.calendar.values import in_zone
from reconciler.http.retrying import Guard, read_only
from reconciler.kubernetes.connection import Connection, Request, core
from reconciler.kubernetes.events import COMPONENT
from reconciler.model.errors import ClusterError, Conflict, LockLost
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.moments import to_text
from reconciler.model.plan import Notice
from reconciler.model.ports import Notification
from reconciler.model.snapshot import Self
from reconciler.report import safe

log = logging.getLogger(__name__)

CLUSTER = f"{DEFAULT_PREFIX}/cluster"
"""The annotation of an Event with the name of the cluster, the same for all prefixes."""

# core/v1 Event: validation refuses more (k8s.io/kubernetes, pkg/apis/core/validation/events.go).
LONGEST_MESSAGE = 1024
PATIENCE = 5.0
"""Seconds for the whole request: the pass waits for it."""
_LONGEST_REASON = 128
_LONGEST_NAME = 230  # An object's name may have 253 characters.


class KubernetesEvents:
    """A notifier that writes core/v1 Events, one for each notice."""

    def __init__(
        self,
        connection: Connection,
        *,
        guard: Guard | None = None,
        zone: tzinfo = UTC,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Use this connection; `guard` raises LockLost if the lock is not ours.

        Without a guard nothing can be written. Messages are for people, so their moments are in `zone`.
        `wall` (Unix time, seconds) gives the Event's time.
        """
        self._connection = connection
        self._guard = guard or read_only
        self._zone = zone
        self._wall = wall

    def notify(self, notification: Notification) -> bool:
        """Write the Event once, and return whether that is settled; a failure is logged.

        Raises LockLost, and nothing else. What the server refuses for good, such as a missing permission, is
        settled too, and so is an unexpected error: the same Event would fail again.
        """
        node, reason = notification.node, notification.notice.reason
        try:
            self.send(notification)
        except ClusterError as error:
            log.warning("an event was not written: node=%s reason=%s error=%s", node, reason, error)
            return not error.temporary
        except LockLost:
            raise
        except Exception:
            log.exception("an event was not written: node=%s reason=%s", node, reason)
        return True

    def send(self, notification: Notification) -> None:
        """Write the Event once; raises LockLost and ClusterError."""
        self._guard()
        node, notice = notification.node, notification.notice
        uid = node if notice.named_as_node else notification.uid
        about = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
        # Events of cluster-wide objects are in the namespace "default", like those of the kubelet.
        self._create(node, "default", about, notice, notification.uid)

    def send_about_config_map(self, namespace: str, name: str, notice: Notice) -> None:
        """Write an Event on a ConfigMap, once for a notice with `once`; raises LockLost and ClusterError."""
        self._guard()
        about = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace, "name": name}
        self._create(name, namespace, about, notice)

    def _create(
        self, name: str, namespace: str, about: dict[str, str], notice: Notice, uid: str = ""
    ) -> None:
        """Write an Event about the object `name`, with its `uid` if that is known, in this namespace."""
        metadata = {"generateName": f"{name}.", "namespace": namespace}
        if notice.once:
            # A name of its own keeps the same notice from being written twice.
            identity = "|".join((uid, notice.reason, notice.once))
            hashed = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()
            metadata = {"name": f"{name[:_LONGEST_NAME]}.{hashed[:16]}", "namespace": namespace}
        try:
            create(self._connection, event_of(metadata, about, notice, self._zone, self._wall()))
        except Conflict as error:
            # One with a name of its own was written before. A quota may conflict, too.
            if not notice.once or error.reason != "AlreadyExists":
                raise


class OwnPodEvents:
    """Writes core/v1 Events on our own Pod. It needs no lock: no other process writes about this Pod."""

    def __init__(self, connection: Connection, itself: Self) -> None:
        """Use this connection; `itself` names the Pod."""
        self._connection, self._itself = connection, itself

    def notify(self, notice: Notice, zone: tzinfo = UTC) -> bool:
        """Write the Event once, and return whether it was written; a failure is logged.

        The moments of the message are written in `zone`. Outside a cluster there is no Pod: nothing is
        written, and nothing is left to write.
        """
        if self._itself.pod is None:
            return True
        namespace, _, name = self._itself.pod.partition("/")
        pod = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name}
        if self._itself.pod_uid:
            # `kubectl describe pod` shows only the Events with this UID.
            pod["uid"] = self._itself.pod_uid
        metadata = {"generateName": f"{name}.", "namespace": namespace}
        try:
            create(self._connection, event_of(metadata, pod, notice, zone, time.time()))
        except ClusterError as error:
            log.warning("an event was not written: pod=%s reason=%s error=%s", name, notice.reason, error)
            return False
        return True


def create(connection: Connection, event: Mapping[str, Any]) -> None:
    """Write an Event in the namespace of its metadata, with the cluster's name; raises ClusterError.

    Programs that collect the Events of many clusters tell them apart by that.
    """
    path = core(event["metadata"]["namespace"]) / "events"
    if connection.known_cluster:
        named = {CLUSTER: connection.known_cluster}
        event = {**event, "metadata": {**event["metadata"], "annotations": named}}
    connection.send(Request("POST", path, body=event, read_timeout=PATIENCE, total=PATIENCE))


def event_of(
    metadata: dict[str, str], about: dict[str, str], notice: Notice, zone: tzinfo, wall: float
) -> dict[str, Any]:
    """Return the Event about an object; `wall` (Unix time, seconds) is its time.

    Messages are for people, so their moments are in `zone`.
    """
    now = to_text(datetime.fromtimestamp(wall, UTC))
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": about,
        "type": notice.type.value,
        "reason": notice.reason[:_LONGEST_REASON],
        "message": safe.line(in_zone(notice.message, zone))[:LONGEST_MESSAGE],
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
