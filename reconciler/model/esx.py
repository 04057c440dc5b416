"""What vCenter reports about an ESX host."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostState:
    """A host that is in maintenance mode, or has alarms that the settings name; `version` is that of ESX."""

    maintenance: bool = False
    alarms: tuple[str, ...] = ()
    version: str = ""
