"""What vCenter reports about an ESX host."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from reconciler.model import limits
from reconciler.model.codec import Name


class HostState(Struct, frozen=True):
    """A host that is in maintenance mode or enters it, or has alarms that the settings name.

    While it enters, vCenter waits for its VMs to go. `version` is that of ESX.
    """

    maintenance: bool = False
    alarms: Annotated[tuple[Name, ...], Meta(max_length=limits.INSTANCES)] = ()
    version: Name = ""
    entering: bool = False
