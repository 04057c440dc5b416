"""Keeps lines in the cluster, from a thread of its own: no drain and no pass waits for it."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from reconciler.kubernetes.kept_lines import KeptInCluster, KeptLines, Line
from reconciler.model.errors import ClusterError, Conflict, LockLost, NoThread
from reconciler.model.moments import shifted
from reconciler.threads import start

log = logging.getLogger(__name__)

Item = TypeVar("Item")

EVERY = 60.0
"""Seconds between two writes, and from an item to the write that has it."""

WAITING = 10_000
"""Items that wait for a write at most; the oldest are left out, as they would be in the ConfigMap."""

LAST = 3.0
"""Seconds at the end of the process in which what waits is written."""


class Keeper(Generic[Line, Item]):
    """Writes lines while this process has the lock; safe for threads."""

    def __init__(
        self,
        place: KeptInCluster[Line],
        now: Callable[[], datetime],
        keep: Callable[[], timedelta],
        fold: Callable[[KeptLines[Line], Sequence[Item], datetime], KeptLines[Line]],
        *,
        known: KeptLines[Line] | None = None,
        written: Callable[[], None] = lambda: None,
        every: float = EVERY,
    ) -> None:
        """Write there; `now` is the clock (aware), and `keep` how long a line is kept. Nothing runs yet.

        `fold` returns what is kept with these items, without lines from before a moment (UTC). It is called
        again if that could not be written, and `written` once it is. `known` is what `place` has read; None:
        that is read before the first write.
        """
        self._place, self._now, self._keep, self._every = place, now, keep, every
        self._fold, self._written = fold, written
        self._changed = threading.Condition()
        self._waiting: deque[Item] = deque(maxlen=WAITING)
        self._known = known
        self._thread: threading.Thread | None = None
        self._due = 0.0
        self._closing = False
        self._trouble = ""

    def add(self, item: Item) -> None:
        """Keep an item with the next write; wait for nothing."""
        with self._changed:
            if self._closing or not self._keep():
                return
            if not self._waiting:
                self._due = max(self._due, time.monotonic() + self._every)
            self._waiting.append(item)
            if self._thread is None:
                try:
                    self._thread = start(self._place.kind.name, self._run)
                except NoThread as error:
                    # The next item tries it again.
                    log.info("%s are not kept yet: %s", self._place.kind.what, error)
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
                # Once the settings keep nothing, the right to write may be gone, and what waits is left out.
                items, last = list(self._waiting) if self._keep() else [], self._closing
                self._waiting.clear()
            trouble = self._write(items) if items else ""
            with self._changed:
                self._due = time.monotonic() + self._every
                if trouble and not last:
                    self._waiting.extendleft(reversed(items[: max(WAITING - len(self._waiting), 0)]))
                if trouble and trouble != self._trouble:
                    what, name = self._place.kind.what, self._place.name
                    log.warning("%s are not kept in the ConfigMap %s: %s", what, name, trouble)
                self._trouble = trouble
                if last:
                    return

    def _write(self, items: Sequence[Item]) -> str:
        """Add these items to what is kept; return why that failed, empty if it did not."""
        try:
            try:
                self._fold_in(items)
            except Conflict:
                # Another process has written it since it was read, such as a replica in mode Observe.
                self._known = None
                self._fold_in(items)
            self._written()
        except (ClusterError, LockLost) as error:
            # An answer may be lost: it is read again.
            self._known = None
            return error.because if isinstance(error, ClusterError) else str(error)
        except Exception as error:
            self._known = None
            log.exception("%s are not kept", self._place.kind.what)
            return type(error).__name__
        return ""

    def _fold_in(self, items: Sequence[Item]) -> None:
        now = self._now()
        if self._known is None:
            self._known = self._read() or KeptLines(now)
        kept = self._fold(self._known, items, shifted(now, -self._keep()))
        if kept != self._known:
            self._place.write(kept)
        self._known = kept

    def _read(self) -> KeptLines[Line] | None:
        try:
            return self._place.read()
        except ValueError as error:
            log.warning("the ConfigMap %s can't be read, and begins again: %s", self._place.name, error)
            return None
