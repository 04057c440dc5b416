"""Warns of a rejected settings file with an Event on the Pod in which we run."""

from __future__ import annotations

import time
from collections.abc import Callable

from reconciler.model.plan import Notice, NoticeType

REPEAT = 3600.0
"""Seconds until the same warning is written again. An API server keeps an Event for an hour by default."""

APART = 60.0
"""Seconds between two Events, also if the file keeps changing or an Event can't be written."""


class SettingsWarning:
    """Writes one Event for each mistake, and repeats it while the mistake stays."""

    def __init__(
        self, notify: Callable[[Notice], bool], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """`notify` writes an Event, and returns whether it was written; `monotonic` is a clock in seconds."""
        self._notify, self._monotonic = notify, monotonic
        self._written = ""
        self._tried: float | None = None

    def report(self, mistake: str) -> None:
        """Write a warning if there is one to write; an empty text says that nothing is wrong."""
        if not mistake:
            self._written = ""
            return
        now = self._monotonic()
        wait = REPEAT if mistake == self._written else APART
        if self._tried is not None and now - self._tried < wait:
            return
        self._tried = now
        if self._notify(Notice("SettingsRejected", mistake, NoticeType.WARNING)):
            self._written = mistake
