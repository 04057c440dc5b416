"""Sends Events behind the passes of `serve`: in a burst, no cordon waits for the Events about others."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

from reconciler.model.errors import Late, LockLost, NoThread
from reconciler.model.ports import Beside, Notification, Notifier
from reconciler.threads import start

log = logging.getLogger(__name__)

MOST = 5000
"""Notifications that wait at most. Beyond that, a pass sends them itself."""

FAILED = 3
"""After so many failures in a row, what waits is dropped: each one may take seconds."""

LAST = 5.0
"""Seconds in which what waits is sent at the end."""


class OnceBeside:
    """A notifier whose notices with `once` go beside the pass, which waits a moment for them.

    The next pass sends again what has not been sent by then.
    """

    def __init__(self, notifier: Notifier, beside: Beside) -> None:
        """Send with this notifier, which does not wait for other notices."""
        self._notifier, self._beside = notifier, beside

    def notify(self, notification: Notification) -> bool:
        """Send the notice, and return whether that is settled: one with `once` is not, if it is late."""
        once = notification.notice.once
        if not once:
            return self._notifier.notify(notification)
        send = partial(self._notifier.notify, notification)
        try:
            return self._beside.write(("notice", notification.node, once), send)
        except Late:
            return False


class Behind:
    """A notifier that sends later what is sent once at most, in order, in a thread of its own.

    What a later pass would send again is sent at once, because the record notes that it was sent.
    """

    def __init__(self, first: Callable[[], object]) -> None:
        """Call `first` before each Event; it may wait for what goes before."""
        self._first = first
        self._notifier: Notifier | None = None
        self._waiting: deque[Notification] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = self._sending = False

    def over(self, notifier: Notifier) -> Behind:
        """Return itself, which sends with this notifier from now on."""
        with self._changed:
            self._notifier = notifier
        return self

    def notify(self, notification: Notification) -> bool:
        """Send the notice, or keep it to be sent later; return whether that is settled."""
        with self._changed:
            notifier = self._notifier
            assert notifier is not None
            full = self._closing or len(self._waiting) >= MOST
            if not (notification.notice.once or full) and self._runs():
                self._waiting.append(notification)
                self._changed.notify_all()
                return True
        return notifier.notify(notification)

    def close(self) -> None:
        """Send what waits, for a short time, and end."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._waiting or self._sending), LAST)
            self._closing = True
            self._changed.notify_all()

    def _runs(self) -> bool:
        """Whether the thread runs, which starts when it is needed; if it can't, the pass sends Events."""
        if self._thread is None:
            try:
                self._thread = start("events", self._send)
            except NoThread as error:
                log.warning("the pass sends its events itself: %s", error)
        return self._thread is not None

    def _send(self) -> None:
        failed = 0
        while (taken := self._next()) is not None:
            notification, notifier = taken
            try:
                self._first()
                failed = 0 if notifier.notify(notification) else failed + 1
            except LockLost:
                failed = FAILED
            except Exception:
                log.exception("an event was not written: node=%s", notification.node)
                failed += 1
            with self._changed:
                if failed >= FAILED and self._waiting:
                    log.warning("%d events were not written, after others that failed", len(self._waiting))
                    self._waiting.clear()
                self._sending = False
                self._changed.notify_all()

    def _next(self) -> tuple[Notification, Notifier] | None:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting) or self._closing)
            if self._closing or self._notifier is None:
                return None
            self._sending = True
            return self._waiting.popleft(), self._notifier
