"""The machines behind nodes, what names them, and what their platforms say."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Protocol, runtime_checkable

from msgspec import Struct

from reconciler.model.outcome import ActionKind
from reconciler.model.tasks import Clients, NotHere, Port

CONDITION = "condition:"
"""What the name of a source begins with that is a node condition."""


class Scope(Struct, frozen=True, order=True):
    """The VMs that one request to Azure covers: a scale set, all other VMs of a subscription, or one VM.

    Everything is casefolded, because providerIDs and Azure's own answers spell names differently. Without
    `scale_set` and `vm`, it is the subscription, and then `group` is empty too: its VMs are in many groups.
    """

    subscription: str
    group: str = ""
    scale_set: str = ""
    vm: str = ""

    def limits(self, other: Scope) -> bool:
        """Whether no call may be sent for the other scope while this one is refused for too many calls.

        Azure's limits are those of a subscription in one region, and a group of nodes is in one region.
        """
        return self.subscription == other.subscription and self.group in ("", other.group)

    def __str__(self) -> str:
        """Return it in words."""
        if self.scale_set:
            return f"scale set {self.group}/{self.scale_set}"
        if self.vm:
            return f"VM {self.group}/{self.vm}"
        return f"VMs of subscription {self.subscription}"


class Vm(Struct, frozen=True, order=True):
    """One VM: its scope, and its name in the scope (an instance ID, or `group/name`), casefolded."""

    scope: Scope
    name: str


@runtime_checkable
class PlatformWriter(Protocol):
    """A source's client that also sends requests; checks the lock first, as ClusterWriter does."""

    def perform(self, request: Any, /) -> None:
        """Send a request of the source's own type, and wait for no end. Raises CloudError."""


def platform(source: str, clients: Clients) -> PlatformWriter:
    """Return the client of a source that sends requests; raises NotHere without one."""
    client = clients(source)
    if not isinstance(client, PlatformWriter):
        raise NotHere("this process does not talk to the cloud")
    return client


# What Azure allows in a name (learn.microsoft.com, "Naming rules for Azure resources"), casefolded, because
# names from a providerID become parts of paths. A subscription has the characters and length of a GUID.
_SUBSCRIPTION = r"([0-9a-z-]{1,36})"
_GROUP = r"([-\w.()]{0,89}[-\w()])"
_NAME = r"([0-9a-z_](?:[0-9a-z_.-]{0,78}[0-9a-z_])?)"
_INSTANCE = r"([0-9]{1,10})"
_PLACE = rf"azure:/{{1,3}}subscriptions/{_SUBSCRIPTION}/resourcegroups/{_GROUP}/providers/microsoft\.compute"
_UNIFORM = re.compile(rf"{_PLACE}/virtualmachinescalesets/{_NAME}/virtualmachines/{_INSTANCE}")
_SINGLE = re.compile(rf"{_PLACE}/virtualmachines/{_NAME}")
_LONGEST = 512


def vm_of(provider_id: str) -> Vm | None:
    """Return the VM of a Node's providerID, None if it is not Azure's, or no VM can have it.

    A VM of a flexible scale set, of a VirtualMachines pool, of node auto-provisioning, or on its own has
    the same form of providerID, and the same request. Node names are never decoded.
    """
    if len(provider_id) > _LONGEST:
        return None
    text = provider_id.casefold()
    if uniform := _UNIFORM.fullmatch(text):
        return Vm(Scope(uniform[1], uniform[2], uniform[3]), uniform[4])
    if single := _SINGLE.fullmatch(text):
        return Vm(Scope(single[1]), f"{single[2]}/{single[3]}")
    return None


AKS = "AKS"
KARPENTER = "Karpenter"
OPENSHIFT = "OpenShift"
CLUSTER_API = "Cluster API"
"""The names of providers, of which the settings have the first."""

OPENSHIFT_MACHINE = "machine.openshift.io/machine"
"""The annotation that names the Machine of a node, as `namespace/name`."""

CLUSTER_API_MACHINE = "cluster.x-k8s.io/machine"
CLUSTER_API_NAMESPACE = "cluster.x-k8s.io/cluster-namespace"
"""The annotations that name the Machine of a node, and its namespace."""


class MachineRef(Struct, frozen=True):
    """A node's machine as the node itself names it, before a request to its provider.

    `provider` is the provider's name in `machines/feature.py`. For Karpenter `name` is the node's own,
    because its NodeClaim is found by the node. For AKS it is the machine's name in its agent pool, `pool`,
    which is the node's name as well. `provider_id` is the node's `spec.providerID`. All of this is what the
    node says of itself, so the provider compares it with its own list before it changes anything. `drained`
    is whether its deletion may be next; only then the provider looks for what would keep it from ending.
    `asked` is whether its deletion was requested.
    """

    node: str
    uid: str
    provider: str
    name: str
    namespace: str = ""
    pool: str = ""
    provider_id: str = ""
    drained: bool = False
    asked: bool = False


class Pool(Struct, frozen=True):
    """What keeps a number of machines: a MachineSet, a MachineDeployment, an agent pool.

    `wanted` is the desired number of machines, `ready` the number of Ready ones; both are None if it keeps no
    number (a NodePool). `revision` is what a change of the number names besides the number before (a UID, an
    ETag). `scales` is whether we may scale it up: not while an autoscaler does. `busy` says why it accepts no
    request now, and is empty if it does. `lowered_by_deletion` is whether the deletion of a machine lowers
    the number by one, so that no new machine is created.
    """

    kind: str
    name: str
    namespace: str = ""
    wanted: int | None = None
    ready: int | None = None
    revision: str = ""
    scales: bool = False
    busy: str = ""
    lowered_by_deletion: bool = False

    def __str__(self) -> str:
        """Return the pool's name in messages."""
        return f"{self.kind} {self.name}"


class Machine(Struct, frozen=True):
    """The machine of a node as its provider shows it now.

    `pool` is what creates a new machine after this one, None if nothing does. `uid` is the object's own; for
    AKS it is the resource ID of the VM, as in the list of its pool. `deleting` is whether it is being
    deleted. `stalls` says why a deletion would begin and never end; it is known once the node is drained.
    `control_plane` is whether it runs a control plane. A `problem` says why the machine can't be replaced
    now; nothing else is known then.
    """

    ref: MachineRef
    name: str = ""
    uid: str = ""
    pool: Pool | None = None
    deleting: bool = False
    stalls: str = ""
    control_plane: bool = False
    problem: str = ""


class MachineWriter(Protocol):
    """Writes to machines; each checks the lock first, as ClusterWriter does.

    Both methods do nothing if an earlier pass has already done the same, for example one that was killed
    right after it. Both raise ClusterError or CloudError, and wait for nothing.
    """

    def scale_up(self, action: ScaleUp) -> None:
        """Scale the machine's pool to `wanted` machines, or do nothing if it has as many.

        Conflict if the pool has changed since it was read.
        """

    def remove(self, action: Remove) -> None:
        """Delete the machine, or do nothing if it is gone or being deleted."""


MACHINES: Port[MachineWriter] = Port("machines", "this process does not replace machines")
RAISE_POOL = ActionKind("raise pool", "scale its pool up by one machine", most=1)
REPLACE_MACHINE = ActionKind(
    "replace machine", "delete its machine, so that its pool creates a new one", most=1, deletes=True
)


class ScaleUp(Struct, frozen=True):
    """Scale a pool up by one machine, to `wanted` machines. It is a Task."""

    action: ClassVar[ActionKind] = RAISE_POOL

    node: str
    machine: Machine
    wanted: int

    @property
    def what(self) -> tuple[str, ...]:
        """What it is about."""
        return (MACHINES.name, self.action.name, self.node)

    def perform(self, clients: Clients) -> None:
        """Ask the machine provider; raises ClusterError or CloudError."""
        MACHINES.of(clients).scale_up(self)


class Remove(Struct, frozen=True):
    """Delete a machine. It is a Task.

    With `lower`, its pool was scaled up for it before. The pool is then scaled down again, this machine
    first, so that no third one is created. Without it, the provider creates a new one by itself.
    `replaced_already`: the new machine is there, so the node is not missed.
    """

    action: ClassVar[ActionKind] = REPLACE_MACHINE

    node: str
    machine: Machine
    lower: int | None = None
    replaced_already: bool = False

    @property
    def what(self) -> tuple[str, ...]:
        """What it is about."""
        return (MACHINES.name, self.action.name, self.node)

    def perform(self, clients: Clients) -> None:
        """Ask the machine provider; raises ClusterError or CloudError."""
        MACHINES.of(clients).remove(self)
