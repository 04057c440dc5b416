"""Keeps each text of the settings once a pass has used it, and says what has changed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from jobs.runtime.process import Companion, LastGood, Leading, Process
from reconciler.features.revisions import KEPT_IN

if TYPE_CHECKING:
    from threading import Thread

    from reconciler.features.revisions.keeping import Used
    from reconciler.kubernetes.connection import Connection
    from reconciler.model.outcome import Outcome
    from reconciler.model.plan import Plan
    from reconciler.model.ports import Notifier

AGAIN = 60.0
"""Seconds until a revision that could not be written is tried again."""

LOOKS_AGAIN = 600.0
"""Seconds until it is seen whether a revision is still there: somebody may have deleted or changed it."""

ENDS_WITHIN = 2.0
"""Seconds for which the end of a process waits for a write that runs."""


class _Keeping(Companion):
    """Writes in a thread of its own: no pass waits for it."""

    def __init__(self, leading: Leading) -> None:
        self._leading = leading
        self._kept = ""
        """The hash of the settings whose revision was written."""
        self._managed: int | None = None
        self._due = self._looks = 0.0
        self._thread: Thread | None = None
        self._trouble = ""
        """Why the last write failed, which is said once."""

    def after(self, plan: Plan, outcomes: tuple[Outcome, ...], notifier: Notifier) -> Sequence[str]:
        """Begin to write a revision if the pass has used other settings than the last one.

        From time to time it is seen whether the revision is still there.
        """
        from reconciler.features.revisions.keeping import Used
        from reconciler.features.revisions.settings import REVISIONS
        from reconciler.model.errors import NoThread
        from reconciler.threads import start

        settings = self._leading.settings() if self._leading.settings is not None else None
        if settings is None or settings.version is None or not REVISIONS.of(settings).keep:
            return ()
        known = settings.version.hash == self._kept
        if known:
            self._managed = plan.managed
        runs, now = self._thread is not None and self._thread.is_alive(), time.monotonic()
        if runs or now < (self._looks if known else self._due):
            return ()
        self._due, self._looks = now + AGAIN, now + LOOKS_AGAIN
        used = Used(settings, plan.now, plan.managed, self._managed)
        # Without a thread, a later pass tries again.
        with suppress(NoThread):
            self._thread = start("revisions of the settings", partial(self._keep, used))
        return ()

    def close(self) -> None:
        """Wait for a write that runs, for a short time."""
        if self._thread is not None:
            self._thread.join(ENDS_WITHIN)

    def _keep(self, used: Used) -> None:
        from reconciler.features.revisions.keeping import keep, log
        from reconciler.model.errors import ClusterError, LockLost

        try:
            keep(self._leading, used)
        except LockLost:
            return
        except ClusterError as error:
            if error.because != self._trouble:
                place = f"{self._leading.target.namespace}/{KEPT_IN}"
                log.warning(
                    "revisions of the settings are not kept in the ConfigMap %s: %s", place, error.because
                )
            self._trouble = error.because
            return
        except Exception:  # noqa: BLE001 - nothing of it may end the process
            log.exception("the revision of the settings was not written, and is tried again")
            return
        self._kept, self._due, self._trouble = used.hash, 0.0, ""


def _companion(leading: Leading) -> Companion | None:
    return _Keeping(leading) if leading.settings is not None and leading.goes_on else None


def _last_good(connection: Connection, namespace: str) -> LastGood | str:
    from reconciler.features.revisions.client import RevisionStore
    from reconciler.http.retrying import read_only
    from reconciler.model.errors import ClusterError
    from reconciler.model.moments import to_text

    store, place = RevisionStore(connection, namespace, read_only), f"configmap/{namespace}/{KEPT_IN}"
    try:
        newest = store.load().newest
    except ClusterError as error:
        needs = f" (needs {error.needs})" if error.needs else ""
        return f"{place} can't be read{needs}, so the last good ones are not known: {error}"
    except ValueError as error:
        return store.unreadable(error)
    if newest is None:
        return f"no last good ones are kept in {place}"
    name = f"revision {newest.number} of {to_text(newest.at)}"
    try:
        return LastGood(newest.content(), name)
    except ValueError as error:
        return f"the last good ones are {name}, and {error}"


PROCESS = Process(companion=_companion, config_maps=(KEPT_IN,), last_good=_last_good)
