"""Puts together what a pass is given from outside; `sweep`, `serve` and `report` all start here."""

from __future__ import annotations

from jobs.runtime.environment import Target, itself
from reconciler.clients.guard import Guard
from reconciler.clients.kubernetes.cluster import Cluster
from reconciler.clients.kubernetes.connection import Connection
from reconciler.clients.machine_providers import MachineProviders, Surroundings
from reconciler.clients.sources import SourceClients
from reconciler.model.outside import Outside, WritableOutside
from reconciler.model.ports import Drains
from reconciler.notifiers.registry import AllNotifiers, notifiers
from reconciler.settings.schema import Settings


class Wiring:
    """Makes each client when the settings first need it, and keeps it over passes with its tokens."""

    def __init__(self, connection: Connection, target: Target, guard: Guard | None = None) -> None:
        """Take the connection, and what raises LockLost where the lock is not ours.

        Without a guard nothing may be written.
        """
        self.cluster = Cluster(connection, guard=guard, namespace=target.namespace)
        self.itself = itself()
        self._connection = connection
        self._guard = guard
        self._sources = SourceClients(guard)
        self._made: tuple[Settings, MachineProviders, AllNotifiers] | None = None

    def to_read(self, settings: Settings) -> Outside:
        """Return what a rehearsal is given."""
        machines, _ = self._made_for(settings)
        return Outside(
            reader=self.cluster,
            clients=self._sources.of(settings),
            machines=machines,
            itself=self.itself,
        )

    def to_act(self, settings: Settings, drainer: Drains) -> WritableOutside:
        """Return what a pass that acts is given."""
        machines, notifier = self._made_for(settings)
        return WritableOutside(
            reader=self.cluster,
            writer=self.cluster,
            drainer=drainer,
            notifier=notifier,
            clients=self._sources.of(settings),
            machines=machines,
            itself=self.itself,
        )

    def _made_for(self, settings: Settings) -> tuple[MachineProviders, AllNotifiers]:
        """Return what is kept, with its tokens, until other settings are loaded."""
        if self._made is None or self._made[0] is not settings:
            machines = MachineProviders(Surroundings(self._connection, settings, self._guard))
            self._made = settings, machines, notifiers(self._connection, settings, self._guard)
        return self._made[1:]
