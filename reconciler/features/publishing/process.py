"""Reads and writes NodeMaintenance objects for passes, also those that are no longer published."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from jobs.runtime.process import PassPorts, Ports, Process

if TYPE_CHECKING:
    from reconciler.settings.schema import Settings


def _ports(given: Ports) -> Callable[[Settings], PassPorts]:
    from reconciler.features.publishing.client import Client
    from reconciler.features.publishing.objects import MAINTENANCES

    ports = PassPorts(clients={MAINTENANCES.name: Client(given.connection, given.guard)})
    return lambda settings: ports


PROCESS = Process(ports=_ports)
