"""Creates the Outside of a pass for `sweep`, `serve` and `report`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from jobs.runtime.clock import ServerClock
from jobs.runtime.environment import Target, itself
from jobs.runtime.process import Ports, first, processes
from jobs.runtime.source_clients import SourceClients
from reconciler.drain.ahead import PodsAhead
from reconciler.http.retrying import Guard
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.model.explanation import Examination
from reconciler.model.ports import Drains, Notification, Outside, WritableOutside
from reconciler.run import PARTS, examine
from reconciler.settings.schema import Settings


class _Nobody:
    """A notifier without a feature that writes Events: nobody is notified."""

    def notify(self, notification: Notification) -> bool:
        """See Notifier."""
        return True


class Wiring:
    """Creates each client when the settings first need it, and keeps it across passes with its tokens."""

    def __init__(self, connection: Connection, target: Target, guard: Guard | None = None) -> None:
        """Use this connection and this guard, which raises LockLost if the lock is not ours.

        Without a guard nothing can be written.
        """
        polled = PARTS.sources.polled
        self.cluster = Cluster(connection, guard=guard, namespace=target.namespace, memories=polled)
        self.itself = itself()
        self.connection, self.target = connection, target
        self._sources = SourceClients(polled, guard)
        ports = Ports(connection, target, guard)
        self._ports = [process.ports(ports) for process in processes() if process.ports]
        calendars = first("calendars")
        self._kept = {
            "reader": self.cluster,
            "calendars": calendars(connection) if calendars is not None else None,
            "ahead": PodsAhead(self.cluster, seconds=time.monotonic),
            "itself": self.itself,
        }
        self._made: tuple[Settings, Mapping[str, Any]] | None = None

    def to_read(self, settings: Settings) -> Outside:
        """Return the Outside of a rehearsal."""
        ports = {name: port for name, port in self._of(settings).items() if name in _READ}
        return Outside(**ports, clients=self._sources.of(settings))

    def to_act(self, settings: Settings, drainer: Drains, **ports: Any) -> WritableOutside:
        """Return the Outside of a pass that writes, with these ports besides."""
        ports = {"notifier": _Nobody(), **self._of(settings), **ports}
        return WritableOutside(
            **ports, writer=self.cluster, drainer=drainer, clients=self._sources.of(settings)
        )

    def _of(self, settings: Settings) -> Mapping[str, Any]:
        """Return the kept ports, with their tokens, until other settings are loaded."""
        if self._made is None or self._made[0] is not settings:
            of_features = {name: port for of in self._ports for name, port in of(settings).items()}
            self._made = settings, {**self._kept, **of_features}
        return self._made[1]


_READ = frozenset(Outside.__struct_fields__)


def examined(
    connection: Connection,
    target: Target,
    settings: Settings,
    *,
    with_preview: bool = False,
    also_pods: bool = False,
) -> Examination:
    """Return what a pass would do now, and what it has read; see `examine`. It writes nothing."""
    outside, now = Wiring(connection, target).to_read(settings), ServerClock(connection).now()
    return examine(outside, settings, now, with_preview=with_preview, also_pods=also_pods)
