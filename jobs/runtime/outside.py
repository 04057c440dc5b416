"""Puts together what a pass is given from outside; `sweep`, `serve` and `report` all start here."""

from __future__ import annotations

from collections.abc import Callable

from jobs.runtime.environment import Target, itself
from reconciler.clients.aws import ec2
from reconciler.clients.aws.ec2 import Aws
from reconciler.clients.azure.arm import Arm, connect
from reconciler.clients.kubernetes.cluster import Cluster
from reconciler.clients.kubernetes.connection import Connection
from reconciler.clients.machine_providers import MachineProviders, Surroundings
from reconciler.model.outside import Outside, WritableOutside
from reconciler.model.ports import Drains, SourceClient
from reconciler.notifiers.registry import notifiers
from reconciler.settings.schema import Settings

Guard = Callable[[], None]


class Wiring:
    """Makes each client when the settings first need it, and keeps it over passes with its tokens."""

    def __init__(self, connection: Connection, target: Target, guard: Guard | None = None) -> None:
        """Take the connection, and what raises LockLost where the lock is not ours.

        Without a guard nothing may be written. Such a process can't write the ledger either, so the
        sources' clients keep their answers in memory.
        """
        self.cluster = Cluster(connection, guard=guard, namespace=target.namespace)
        self.itself = itself()
        self._connection = connection
        self._guard = guard
        self._arm: dict[str, Arm] = {}
        self._aws: Aws | None = None
        self._providers: tuple[object, MachineProviders] | None = None

    def to_read(self, settings: Settings) -> Outside:
        """Return what a rehearsal is given."""
        return Outside(
            reader=self.cluster,
            clients=self._clients(settings),
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
            clients=self._clients(settings),
            machines=self._machines(settings),
            itself=self.itself,
        )

    def _clients(self, settings: Settings) -> dict[str, SourceClient]:
        """Return the clients of the polled sources that are switched on, by the source's name."""
        clients: dict[str, SourceClient] = {}
        if settings.sources.arm.enabled:
            clients["arm"] = self._of_arm(settings)
        if settings.sources.aws.enabled:
            clients["aws"] = self._of_aws(settings)
        return clients

    def _of_arm(self, settings: Settings) -> Arm:
        source = settings.sources.arm
        name = source.cloud.value
        if name not in self._arm:
            self._arm[name] = Arm(connect(name), guard=self._guard)
        found = self._arm[name]
        found.keep = 0.0 if self._guard else source.every.total_seconds()
        return found

    def _of_aws(self, settings: Settings) -> Aws:
        if self._aws is None:
            self._aws = Aws(ec2.connect())
        self._aws.keep = 0.0 if self._guard else settings.sources.aws.every.total_seconds()
        return self._aws

    def _machines(self, settings: Settings) -> MachineProviders:
        """Return the clients of all machine providers, kept while their settings stay the same."""
        made_for = (settings.replace, settings.sources.arm.cloud)
        if self._providers is None or self._providers[0] != made_for:
            around = Surroundings(self._connection, settings, self._guard)
            self._providers = made_for, MachineProviders(around)
        return self._providers[1]
