"""What vCenter reports about an ESX host."""

from __future__ import annotations

from msgspec import Struct


class HostState(Struct, frozen=True):
    """A host that is in maintenance mode or enters it, or has alarms that the settings name.

    While it enters, vCenter waits for its VMs to go. `version` is that of ESX.
    """

    maintenance: bool = False
    alarms: tuple[str, ...] = ()
    version: str = ""
    entering: bool = False
