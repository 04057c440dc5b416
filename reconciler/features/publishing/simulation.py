"""NodeMaintenance objects of a simulated cluster."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.features.publishing.objects import MAINTENANCES, UPDATE, Maintenance, MaintenanceWrite
from reconciler.model.errors import NotFound
from reconciler.simulation.api import SimulatedApi
from reconciler.simulation.clock import Actor

KIND = "nodemaintenances"
"""The kind, as `ObjectStore.others` has it. Without an entry there, the CRD is not installed."""


class SimulatedMaintenances:
    """Maintenances over a simulated cluster. Reads and writes call the hooks of its API."""

    def __init__(self, api: SimulatedApi) -> None:
        """Install the CRD."""
        self._api = api
        api.cluster.others[KIND] = {}

    def read(self, prefix: str) -> tuple[Maintenance, ...] | None:
        """Return all objects; None without the CRD."""
        del prefix
        self._api.begin_read("maintenances")
        stored: Mapping[str, Maintenance] | None = self._api.cluster.others.get(KIND)
        return tuple(stored[name] for name in sorted(stored)) if stored is not None else None

    def write(self, write: MaintenanceWrite) -> None:
        """Create, change or delete an object; NotFound unless `exists` of the write is true."""
        call = self._api.begin_write("write_maintenance", write.node, write.name, write)
        stored: Mapping[str, Maintenance] | None = self._api.cluster.others.get(KIND)
        if stored is None:
            raise NotFound("the server could not find the requested resource", status=404)
        if write.wanted is not None and write.exists is not (write.name in stored):
            raise NotFound(f"{KIND} {write.name!r}: exists is {not write.exists}", status=404)
        others = {name: maintenance for name, maintenance in stored.items() if name != write.name}
        changed = {**stored, write.name: write.wanted} if write.wanted is not None else others
        self._api.cluster.others[KIND] = changed
        self._api.cluster.note(Actor.US, UPDATE.name, write.node, write.name)
        self._api.end_write(call)


SIMULATED = {MAINTENANCES.name: SimulatedMaintenances}
