"""The readiness of the fleet for the page of a process that makes passes: read when somebody asks for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING

from jobs.runtime.readiness_read import for_page
from reconciler.model.structs import replace
from reconciler.settings.schema import Settings

if TYPE_CHECKING:
    from reconciler.features.page.facts import KnownReadiness
    from reconciler.features.page.readiness import ReadinessPart
    from reconciler.model.readiness import Readiness

APART = 15 * 60.0
"""Seconds between the starts of two reads at least, also if a read fails."""

BEING_READ = "Readiness is being read. Load the page again in a moment."


def _in_a_thread(work: Callable[[], None]) -> None:
    """Do the work in a thread of its own, which does not keep the process from its end."""
    Thread(target=work, name="readiness", daemon=True).start()


class LiveReadiness:
    """Reads readiness when it is asked for, in a thread of its own, and keeps what the page shows of it."""

    def __init__(
        self,
        read: Callable[[Settings], Readiness],
        *,
        clock: Callable[[], float] = time.monotonic,
        start: Callable[[Callable[[], None]], None] = _in_a_thread,
    ) -> None:
        """Call `read` at most every 15 minutes; it may raise anything. `clock` is in seconds.

        `start` starts the work that it is given, and returns at once.
        """
        self._read, self._clock, self._start = read, clock, start
        self._began: float | None = None
        self._reading = False
        self._known: KnownReadiness | None = None

    def known(self, settings: Settings) -> KnownReadiness:
        """Return what is known now, and read it again by these settings if it is old. Raises nothing.

        The same object is returned until something changes. Call it from one thread at a time.
        """
        from reconciler.features.page.facts import KnownReadiness

        now = self._clock()
        old = self._began is None or now - self._began >= APART
        if self._known is None or (old and not self._reading):
            self._began, self._reading = now, True
            before = self._known.part if self._known is not None else None
            self._known = KnownReadiness(before, BEING_READ)
            try:
                self._start(partial(self._work, settings, before))
            except RuntimeError as error:
                # The process may start no more threads.
                self._known = KnownReadiness(before, f"Readiness can't be read: {error}.")
                self._reading = False
        return self._known

    def _work(self, settings: Settings, before: ReadinessPart | None) -> None:
        found = for_page(partial(self._read, settings))
        self._known = found if found.part is not None else replace(found, part=before)
        self._reading = False
