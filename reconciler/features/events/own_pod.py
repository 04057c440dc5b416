"""Writes notices about this process as Kubernetes Events on the Pod in which it runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, tzinfo

from reconciler.features.events.kubernetes_events import PATIENCE, event_of
from reconciler.kubernetes.connection import Connection, Request
from reconciler.kubernetes.paths import core
from reconciler.model.errors import ClusterError
from reconciler.model.plan import Notice
from reconciler.model.snapshot import Self

log = logging.getLogger(__name__)


class OwnPodEvents:
    """Writes core/v1 Events on our own Pod. It needs no lock: no other process writes about this Pod."""

    def __init__(self, connection: Connection, itself: Self, wall: Callable[[], float] = time.time) -> None:
        """Use this connection; `itself` names the Pod. `wall` (Unix time, seconds) gives the Event's time."""
        self._connection, self._itself, self._wall = connection, itself, wall

    def notify(self, notice: Notice, zone: tzinfo = UTC) -> bool:
        """Write the Event once, and return whether it was written; a failure is logged.

        The moments of the message are written in `zone`.

        Outside a cluster there is no Pod: nothing is written, and nothing is left to write.
        """
        if self._itself.pod is None:
            return True
        namespace, _, name = self._itself.pod.partition("/")
        pod = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name}
        if self._itself.pod_uid:
            # `kubectl describe pod` shows only the Events with this UID.
            pod["uid"] = self._itself.pod_uid
        metadata = {"generateName": f"{name}.", "namespace": namespace}
        body = event_of(metadata, pod, notice, zone, self._wall())
        try:
            path = core(namespace) / "events"
            request = Request("POST", path, body=body, read_timeout=PATIENCE, total=PATIENCE)
            self._connection.send(request)
        except ClusterError as error:
            log.warning("an event was not written: pod=%s reason=%s error=%s", name, notice.reason, error)
            return False
        return True
