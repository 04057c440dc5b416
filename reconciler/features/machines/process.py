"""Reads and writes the machines of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from jobs.runtime.process import Ports, Process

if TYPE_CHECKING:
    from reconciler.settings.schema import Settings


def _ports(given: Ports) -> Callable[[Settings], Mapping[str, Any]]:
    from reconciler.features.machines.providers import MachineProviders, Surroundings

    return lambda settings: {
        "machines": MachineProviders(Surroundings(given.connection, settings, given.guard))
    }


PROCESS = Process(ports=_ports)
