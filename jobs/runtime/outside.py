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
from reconciler.notifiers.registry import notifiers
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
        self._providers: tuple[object, MachineProviders] | None = None

    def to_read(self, settings: Settings) -> Outside:
        """Return what a rehearsal is given."""
        return Outside(
            reader=self.cluster,
            clients=self._sources.of(settings),
            machines=self._machines(settings),
            itself=self.itself,
        )

    def to_act(self, settings: Settings, drainer: Drains) -> WritableOutside:
        """Return what a pass that acts is given."""
        return WritableOutside(
            reader=self.cluster,
            writer=self.cluster,
            drainer=drainer,
            notifier=notifiers(self._connection, settings, self._guard),
            clients=self._sources.of(settings),
            machines=self._machines(settings),
            itself=self.itself,
        )

    def _machines(self, settings: Settings) -> MachineProviders:
        """Return the clients of all machine providers, kept while their settings stay the same."""
        made_for = (settings.replace, settings.sources.arm.cloud)
        if self._providers is None or self._providers[0] != made_for:
            around = Surroundings(self._connection, settings, self._guard)
            self._providers = made_for, MachineProviders(around)
        return self._providers[1]
