"""Every notifier. To add one, add its file in this folder and its line in NOTIFIERS."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from reconciler.features.events.kubernetes_events import KubernetesEvents
from reconciler.http.retrying import Guard
from reconciler.kubernetes.connection import Connection
from reconciler.model.errors import LockLost
from reconciler.model.ports import Notification, Notifier
from reconciler.settings.schema import Settings

log = logging.getLogger(__name__)

NotifierFactory = Callable[[Connection, Settings, Guard | None], Notifier | None]
"""Creates a notifier, or returns None if the settings do not enable it."""


def _kubernetes_events(connection: Connection, settings: Settings, guard: Guard | None) -> Notifier:
    return KubernetesEvents(connection, guard=guard, zone=settings.time_zone)


NOTIFIERS: Mapping[str, NotifierFactory] = {
    "kubernetesEvents": _kubernetes_events,
}


class AllNotifiers:
    """Gives each notification to every notifier; a failure of one notifier does not affect the others."""

    def __init__(self, notifiers: Mapping[str, Notifier]) -> None:
        """Use these notifiers, by name, in this order."""
        self._notifiers = notifiers

    def notify(self, notification: Notification) -> bool:
        """Notify all, and return whether that is settled for each. Raises LockLost, and nothing else.

        An unexpected error is logged with the notifier's name. It counts as settled, because the same notice
        would fail again.
        """
        settled = True
        for name, notifier in self._notifiers.items():
            try:
                settled = notifier.notify(notification) and settled
            except LockLost:
                raise
            except Exception:
                log.exception("a notifier failed: notifier=%s node=%s", name, notification.node)
        return settled


def notifiers(connection: Connection, settings: Settings, guard: Guard | None) -> AllNotifiers:
    """Return the notifiers that the settings enable."""
    made = {name: make(connection, settings, guard) for name, make in NOTIFIERS.items()}
    return AllNotifiers({name: notifier for name, notifier in made.items() if notifier is not None})
