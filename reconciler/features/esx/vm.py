"""Which VM a node is, and what was done with its power."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from reconciler.features.esx.source import VCENTER
from reconciler.model import limits
from reconciler.model.machine import platform
from reconciler.model.outcome import ActionKind
from reconciler.model.tasks import Clients
from reconciler.model.values import decoded, encoded, parsed

ON, OFF = "poweredOn", "poweredOff"
"""States of vCenter. The third one is `suspended`."""


class Vm(Struct, frozen=True):
    """A VM as vCenter shows it. `id` names it there, and `tools` is whether its guest tools run."""

    id: str
    name: str
    uuid: str = ""
    instance_uuid: str = ""
    state: str = ""
    tools: bool = False


class NodeVm(Struct, frozen=True):
    """The VM that a node is, or why that is not known."""

    vm: Vm | None = None
    problem: str = ""


class Named(Struct, frozen=True):
    """What a node says of its machine: its own name, the zone of its vCenter, and the UUID of the system."""

    node: str
    zone: str
    system_uuid: str = ""

    def may_be(self, vm: Vm) -> bool:
        """Whether the VM has the name of the node, or its UUID."""
        return self.is_named(vm) or self.has_uuid(vm)

    def is_named(self, vm: Vm) -> bool:
        """Whether the VM has the name of the node."""
        return vm.name.casefold() == self.node.casefold()

    def has_uuid(self, vm: Vm) -> bool:
        """Whether the node reports a UUID of the VM."""
        own = self.system_uuid.casefold()
        return bool(own) and own in (vm.uuid.casefold(), _swapped(vm.uuid), vm.instance_uuid.casefold())


def _swapped(text: str) -> str:
    """Return a UUID with the first three groups in the other order of bytes, as VMware's firmware has it."""
    try:
        return str(UUID(bytes_le=UUID(text).bytes))
    except ValueError:
        return ""


def identify(node: Named, vms: Iterable[Vm]) -> NodeVm:
    """Return which of these the node is: by its UUID and its name, without a UUID by the name alone."""
    found = [vm for vm in vms if node.may_be(vm)]
    named = [vm for vm in found if node.is_named(vm)]
    if not node.system_uuid:
        if len(named) == 1:
            return NodeVm(named[0])
        why = f"{len(named)} VMs have its name" if named else "no VM has its name"
        return NodeVm(problem=f"the node reports no UUID, and {why}")
    same = [vm for vm in found if node.has_uuid(vm)]
    if len(same) == 1 and same[0] in named:
        return NodeVm(same[0])
    if same:
        why = f"which the VM {' and the VM '.join(sorted(vm.name for vm in same))} has"
    elif named:
        why = f"and the VM of its name has {' and '.join(sorted(vm.uuid or 'none' for vm in named))}"
    else:
        why = "which no VM has"
    return NodeVm(problem=limits.text(f"the node reports the UUID {node.system_uuid}, {why}"))


class Power(Struct, frozen=True):
    """What was done with the power of a VM, as an annotation of the node keeps it; moments are UTC.

    `off` is when it was first seen off while its host waited, `on` when vCenter was last asked to switch it
    on again. `told` is when people were told that somebody else had done so.
    """

    off: datetime | None = None
    on: datetime | None = None
    told: datetime | None = None

    @property
    def text(self) -> str:
        """The annotation."""
        return json.dumps(encoded(self), separators=(",", ":"), sort_keys=True)


def power_of(text: str | None) -> Power | None:
    """Return what the annotation says, None without one. What can't be read counts as nothing done."""
    if text is None:
        return None
    try:
        return decoded(Power, parsed(text))
    except ValueError:
        return Power()


SHUT_DOWN = ActionKind("shut down", "shut down its guest", most=1)
POWER_OFF = ActionKind("power off", "power its VM off", most=1)
POWER_ON = ActionKind("power on", "power its VM on", most=1)


class Switch(Struct, frozen=True):
    """Shut down the guest of a node's VM, or switch it off or on. It is a Task."""

    named: Named
    vm: str
    action: ActionKind

    @property
    def node(self) -> str:
        """The node."""
        return self.named.node

    @property
    def what(self) -> tuple[str, ...]:
        """What it is about."""
        return (VCENTER, self.action.name, self.node)

    def perform(self, clients: Clients) -> None:
        """Ask the vCenter server; raises CloudError."""
        platform(VCENTER, clients).perform(self)
