"""Creates the Outside of a pass for `sweep`, `serve` and `report`."""

from __future__ import annotations

import time

from jobs.runtime.environment import Target, itself
from reconciler.drain.ahead import PodsAhead
from reconciler.features.calendars.reading import Calendars
from reconciler.features.events.registry import AllNotifiers, notifiers
from reconciler.features.hooks.runner import SettingsHooks
from reconciler.features.machines.providers import MachineProviders, Surroundings
from reconciler.features.workflows.kubernikus import Kubernikus
from reconciler.features.workflows.prometheus import Prometheus
from reconciler.http.retrying import Guard
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.model.ports import Drains, Outside, WritableOutside
from reconciler.run import PARTS
from reconciler.settings.schema import Settings
from reconciler.sources.clients import SourceClients


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
        self._guard = guard
        self._sources = SourceClients(polled, guard)
        self._prometheus = Prometheus()
        self._kubernikus = Kubernikus(connection)
        self._calendars = Calendars(connection)
        self._ahead = PodsAhead(self.cluster, seconds=time.monotonic)
        self._made: tuple[Settings, MachineProviders, AllNotifiers, SettingsHooks | None] | None = None

    def to_read(self, settings: Settings) -> Outside:
        """Return the Outside of a rehearsal."""
        machines, _, hooks = self._made_for(settings)
        return Outside(
            reader=self.cluster,
            clients=self._sources.of(settings),
            machines=machines,
            calendars=self._calendars,
            hooks=hooks,
            ahead=self._ahead,
            itself=self.itself,
            prometheus=self._prometheus,
            kubernikus=self._kubernikus,
        )

    def to_act(self, settings: Settings, drainer: Drains) -> WritableOutside:
        """Return the Outside of a pass that writes."""
        machines, notifier, hooks = self._made_for(settings)
        return WritableOutside(
            reader=self.cluster,
            writer=self.cluster,
            drainer=drainer,
            notifier=notifier,
            clients=self._sources.of(settings),
            machines=machines,
            calendars=self._calendars,
            hooks=hooks,
            ahead=self._ahead,
            itself=self.itself,
            prometheus=self._prometheus,
            kubernikus=self._kubernikus,
        )

    def _made_for(self, settings: Settings) -> tuple[MachineProviders, AllNotifiers, SettingsHooks | None]:
        """Return the kept clients, with their tokens, until other settings are loaded."""
        if self._made is None or self._made[0] is not settings:
            machines = MachineProviders(Surroundings(self.connection, settings, self._guard))
            hooks = SettingsHooks(self.connection, self.target.namespace, settings, self._guard)
            told = notifiers(self.connection, settings, self._guard)
            self._made = settings, machines, told, hooks if settings.hooks.configured else None
        return self._made[1:]
