"""Every machine provider, for tests of their clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reconciler.features.machines.providers import CLIENTS, MachineClient, MachineProviders, Surroundings
from reconciler.kubernetes.connection import Connection
from reconciler.settings.schema import Settings
from tests.support.cases import REPLACES


def all_machines(
    connection: Connection,
    *,
    guard: Callable[[], None] | None = None,
    chosen: Settings = REPLACES,
    clients: Mapping[str, Callable[[Surroundings], MachineClient]] = CLIENTS,
) -> MachineProviders:
    """Every machine provider of the registry; without a guard they only read."""
    return MachineProviders(Surroundings(connection, chosen, guard), clients)
