"""Every machine provider, for tests of their clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from jobs.runtime.machines import MachineClient, MachineProviders
from reconciler.features.machines.process import CLIENTS, Surroundings
from reconciler.kubernetes.connection import Connection
from reconciler.settings.schema import Settings
from tests.support.builders import settings

REPLACES = settings("events: {Redeploy: {replace: true}}")


def all_machines(
    connection: Connection,
    *,
    guard: Callable[[], None] | None = None,
    chosen: Settings = REPLACES,
    clients: Mapping[str, Callable[[Surroundings], MachineClient]] = CLIENTS,
) -> MachineProviders:
    """Every machine provider of the registry; without a guard they only read."""
    around = Surroundings(connection, chosen, guard)
    return MachineProviders({provider: partial(make, around) for provider, make in clients.items()})
