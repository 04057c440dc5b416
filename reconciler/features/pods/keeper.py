"""Keeps in the cluster which pods were moved, from a thread of its own: no drain and no pass waits for it."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta

from reconciler.features.pods.kept import KeptInCluster, KeptPods
from reconciler.features.pods.moved import MovedPod
from reconciler.model.errors import ClusterError, LockLost, NoThread
from reconciler.model.moments import shifted
from reconciler.threads import start

log = logging.getLogger(__name__)

EVERY = 60.0
"""Seconds between two writes, and from a pod to the write that has it."""

WAITING = 10_000
"""Pods that wait for a write at most; the oldest are left out, as they would be in the ConfigMap."""

LAST = 3.0
"""Seconds at the end of the process in which what waits is written."""


class Keeper:
    """Writes the pods that were moved while this process has the lock; safe for threads."""

    def __init__(
        self,
        place: KeptInCluster,
        now: Callable[[], datetime],
        keep: Callable[[], timedelta],
        *,
        every: float = EVERY,
    ) -> None:
        """Write there; `now` is the clock (aware), and `keep` how long a pod is kept. Nothing runs yet."""
        self._place, self._now, self._keep, self._every = place, now, keep, every
        self._changed = threading.Condition()
        self._waiting: deque[MovedPod] = deque(maxlen=WAITING)
        self._known: KeptPods | None = None
        self._thread: threading.Thread | None = None
        self._due = 0.0
        self._closing = False
        self._trouble = ""

    def add(self, pod: MovedPod) -> None:
        """Keep a pod with the next write; wait for nothing."""
        with self._changed:
            if self._closing or not self._keep():
                return
            if not self._waiting:
                self._due = max(self._due, time.monotonic() + self._every)
            self._waiting.append(pod)
            if self._thread is None:
                try:
                    self._thread = start("moved-pods", self._run)
                except NoThread as error:
                    # The next pod tries it again.
                    log.info("moved pods are not kept yet: %s", error)
            self._changed.notify_all()

    def close(self) -> None:
        """Write what waits, for a short time; the rest is left out."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(LAST)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._closing and not (self._waiting and self._due <= time.monotonic()):
                    self._changed.wait(max(self._due - time.monotonic(), 0.0) if self._waiting else None)
                pods, last = list(self._waiting), self._closing
                self._waiting.clear()
            trouble = self._write(pods) if pods else ""
            with self._changed:
                self._due = time.monotonic() + self._every
                if trouble and not last:
                    self._waiting.extendleft(reversed(pods[: max(WAITING - len(self._waiting), 0)]))
                if trouble and trouble != self._trouble:
                    log.warning("moved pods are not kept in the ConfigMap %s: %s", self._place.name, trouble)
                self._trouble = trouble
                if last:
                    return

    def _write(self, pods: list[MovedPod]) -> str:
        """Add these pods to what is kept; return why that failed, empty if it did not."""
        now = self._now()
        try:
            if self._known is None:
                self._known = self._read() or KeptPods(pods[0].at)
            kept = self._known.with_pods(pods, shifted(now, -self._keep()))
            self._place.write(kept)
            self._known = kept
        except (ClusterError, LockLost) as error:
            # Somebody else may have written it, or an answer was lost: it is read again.
            self._known = None
            return error.because if isinstance(error, ClusterError) else str(error)
        except Exception as error:
            self._known = None
            log.exception("moved pods are not kept")
            return type(error).__name__
        return ""

    def _read(self) -> KeptPods | None:
        try:
            return self._place.read()
        except ValueError as error:
            log.warning("the ConfigMap %s can't be read, and begins again: %s", self._place.name, error)
            return None
