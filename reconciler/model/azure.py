"""What Azure says of VMs in whatever reports its events: their names, and which events mean failing hardware.

The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

import re

from reconciler.model.event import Initiator, Kind

_SCALE_SET_VM = re.compile(r"/virtualMachineScaleSets/([^/]+)/virtualMachines/([^/]+)/?$", re.IGNORECASE)
_VM = re.compile(r"/virtualMachines/([^/]+)/?$", re.IGNORECASE)


def vm_name(provider_id: str) -> str | None:
    """Return the name in scheduled events of the VM of a Node's providerID; None if it is not Azure's."""
    if not provider_id.casefold().startswith("azure:"):
        return None
    if uniform := _SCALE_SET_VM.search(provider_id):
        return f"{uniform[1]}_{uniform[2]}"
    single = _VM.search(provider_id)
    return single[1] if single else None


def is_degraded(kind: Kind, initiator: Initiator | None) -> bool:
    """Whether Azure moves the VM because its hardware fails.

    No field says so. A Redeploy is announced minutes ahead, which leaves no choice of the start, or up to
    days ahead if Azure predicts a failure: the higher the risk, the shorter. It advises to move then at once.
    """
    return kind is Kind.REDEPLOY and initiator is not Initiator.USER
