"""Warns of a rejected settings file with an Event on the Pod in which we run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from jobs.runtime.environment import Target, itself
from reconciler.features.events.own_pod import OwnPodEvents
from reconciler.kubernetes.connection import Connection
from reconciler.model.errors import SettingsError
from reconciler.model.plan import Notice, NoticeType

log = logging.getLogger(__name__)

REJECTED = "SettingsRejected"
"""The reason of the Event, also in alerts of people."""

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
        if self._notify(Notice(REJECTED, mistake, NoticeType.WARNING)):
            self._written = mistake


def warn_of_no_settings(error: SettingsError, target: Target) -> None:
    """Write the Event about settings without which `serve` can't start; outside a Pod, write nothing.

    The process is about to end with `error`, so a failure is only logged.
    """
    here = itself()
    if here.pod is None:
        return
    message = f"serve does not start: the settings can't be used, and there are no last good ones: {error}"
    try:
        connection = Connection(target.kubeconfig, target.context)
        try:
            OwnPodEvents(connection, here).notify(Notice(REJECTED, message, NoticeType.WARNING))
        finally:
            connection.close()
    except Exception as failure:  # noqa: BLE001 - the mistakes in the settings are what the process reports
        log.warning("the Event %s was not written: %s: %s", REJECTED, type(failure).__name__, failure)
