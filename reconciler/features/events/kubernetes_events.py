"""Writes notices as Kubernetes Events on the node, where `kubectl describe node` shows them."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Any

from reconciler.calendar.values import in_zone
from reconciler.http.retrying import Guard, read_only
from reconciler.kubernetes.connection import Connection, Request
from reconciler.kubernetes.paths import core
from reconciler.model.errors import ClusterError, Conflict
from reconciler.model.moments import to_text
from reconciler.model.plan import Notice
from reconciler.model.ports import Notification
from reconciler.report import safe

log = logging.getLogger(__name__)

COMPONENT = "node-maintenance-reconciler"
# core/v1 Event: validation refuses more (k8s.io/kubernetes, pkg/apis/core/validation/events.go).
LONGEST_MESSAGE = 1024
PATIENCE = 5.0
"""Seconds for the whole request: the pass waits for it."""
_LONGEST_REASON = 128
_LONGEST_NODE = 230  # An object's name may have 253 characters.


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
        """Write the Event once, and return whether that is settled; a failure is logged. Raises LockLost.

        What the server refuses for good, such as a missing permission, is settled too.
        """
        try:
            self.send(notification)
        except ClusterError as error:
            node, reason = notification.node, notification.notice.reason
            log.warning("an event was not written: node=%s reason=%s error=%s", node, reason, error)
            return not error.temporary
        return True

    def send(self, notification: Notification) -> None:
        """Write the Event once; raises LockLost and ClusterError."""
        self._guard()
        node, notice = notification.node, notification.notice
        uid = node if notice.named_as_node else notification.uid
        about = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
        # Events of cluster-wide objects are in the namespace "default", like those of the kubelet.
        metadata = {**_name(notification), "namespace": "default"}
        try:
            self._create(metadata, about, notice)
        except Conflict as error:
            # One with a name of its own was written before. A quota may conflict, too.
            if not notice.once or error.reason != "AlreadyExists":
                raise

    def send_about_config_map(self, namespace: str, name: str, notice: Notice) -> None:
        """Write an Event on a ConfigMap; raises LockLost and ClusterError."""
        self._guard()
        about = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace, "name": name}
        self._create({"generateName": f"{name}.", "namespace": namespace}, about, notice)

    def _create(self, metadata: dict[str, str], about: dict[str, str], notice: Notice) -> None:
        body = event_of(metadata, about, notice, self._zone, self._wall())
        path = core(metadata["namespace"]) / "events"
        self._connection.send(Request("POST", path, body=body, read_timeout=PATIENCE, total=PATIENCE))


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


def _name(notification: Notification) -> dict[str, str]:
    """Return the name: the API server makes one, unless the same notice must not be written twice."""
    node, notice = notification.node, notification.notice
    if not notice.once:
        return {"generateName": f"{node}."}
    identity = "|".join((notification.uid, notice.reason, notice.once))
    hashed = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()
    return {"name": f"{node[:_LONGEST_NODE]}.{hashed[:16]}"}
