"""Sends the messages about passes while the process has the lock, and says what can't be sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from jobs.runtime.process import Companion, Leading, Process, Reported, own_pod_events
from reconciler.features.notices import MEMORY

if TYPE_CHECKING:
    from reconciler.features.notices.queue import NoticeQueue
    from reconciler.model.outcome import Outcome
    from reconciler.model.plan import Plan
    from reconciler.model.ports import Notifier, Outbox
    from reconciler.settings.schema import Settings

LAST_NOTICES = 10.0
"""Seconds that the end of a process waits for messages that are due."""


class _Sending(Companion):
    def __init__(self, leading: Leading) -> None:
        self._leading = leading
        self._queue: NoticeQueue | None = None
        self._settings: Settings | None = None
        self._sections: Mapping[str, str] = {}

    def before(self, settings: Settings) -> Outbox | None:
        """Begin to read what was sent before, so that it is there when the pass ends."""
        from reconciler.features.notices.settings import NOTIFY, entries_of, sections_of

        instances = settings.receivers
        if self._queue is None and (NOTIFY.of(settings) or instances):
            # Most clusters tell nobody, and need none of this.
            from reconciler.features.notices.memory import NoticeMemory
            from reconciler.features.notices.owners import PodOwners
            from reconciler.features.notices.queue import NoticeQueue
            from reconciler.features.notices.receivers import QueuePorts
            from reconciler.features.notices.silences import Silencer
            from reconciler.features.notices.transports.sending import Http
            from reconciler.features.notices.transports.table import Tools, transport_of
            from reconciler.kubernetes.turns import Turns

            leading = self._leading
            now = leading.settings or (lambda: settings)
            tools = Tools(Http(), Turns(leading.connection, leading.guard), leading.clock.now)
            self._queue = NoticeQueue(
                QueuePorts(
                    store=NoticeMemory(leading.connection, leading.target.namespace, leading.guard),
                    clock=leading.clock,
                    guard=leading.guard,
                    make=partial(transport_of, tools=tools),
                    silences=partial(Silencer, http=tools.http),
                    warn=own_pod_events(leading.connection, leading.itself, lambda: now().time_zone),
                    concerned=PodOwners(leading.connection, leading.cluster),
                    counted=leading.observers,
                )
            )
        if self._queue is not None:
            self._queue.start(
                entries_of(settings, self._leading.connection.known_cluster), settings.time_zone, instances
            )
            if settings is not self._settings:
                self._settings, self._sections = settings, sections_of(settings)
        return self._queue

    def after(self, plan: Plan, outcomes: tuple[Outcome, ...], notifier: Notifier) -> Sequence[str]:
        """Put the messages about a pass into the queue."""
        if self._queue is None:
            return ()
        from reconciler.features.notices.deriving import Policy

        return self._queue.after(plan, outcomes, plan.now, Policy(self._sections, self._leading.mistake()))

    def close(self) -> None:
        """Send the messages that are due, for a short time."""
        try:
            if self._queue is not None:
                self._queue.close(LAST_NOTICES)
        finally:
            self._leading.observers.waiting(None)


def _companion(leading: Leading) -> Companion | None:
    return _Sending(leading) if leading.settings is not None else None


def _notes(reported: Reported) -> tuple[str, ...]:
    """Return the notes about notices that can't be sent, as the process that sends them has saved them."""
    from reconciler.features.notices.settings import NOTIFY
    from reconciler.model.errors import ClusterError

    settings = reported.settings
    instances = settings.receivers
    if not NOTIFY.of(settings) and not instances:
        return ()
    from reconciler.features.notices.memory import NoticeMemory, failing, from_text

    try:
        memory = NoticeMemory(reported.connection, reported.target.namespace, guard=lambda: None)
        known = from_text(memory.load())
    except (ClusterError, ValueError) as error:
        why = error.because if isinstance(error, ClusterError) else error
        return (f"notices: whether they can be sent is not known: {why}",)
    return failing(known, NOTIFY.of(settings), instances)


PROCESS = Process(companion=_companion, notes=_notes, config_maps=(MEMORY,))
