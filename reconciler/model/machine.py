"""The machine of a node, and the requests to its provider."""

from __future__ import annotations

from msgspec import Struct

AKS = "AKS"
KARPENTER = "Karpenter"
OPENSHIFT = "OpenShift"
"""The names of providers, of which the settings have the first."""

OPENSHIFT_MACHINE = "machine.openshift.io/machine"
"""The annotation that names the Machine of a node, as `namespace/name`."""


class MachineRef(Struct, frozen=True):
    """A node's machine as the node itself names it, before a request to its provider.

    `provider` is the provider's name in `machines/registry.py`. For Karpenter `name` is the node's own,
    because its NodeClaim is found by the node. For AKS it is the machine's name in its agent pool, `pool`,
    which is the node's name as well. `provider_id` is the node's `spec.providerID`. All of this is what the
    node says of itself, so the provider compares it with its own list before it changes anything. `drained`
    is whether its deletion may be next; only then the provider looks for what would keep it from ending.
    """

    node: str
    uid: str
    provider: str
    name: str
    namespace: str = ""
    pool: str = ""
    provider_id: str = ""
    drained: bool = False


class Pool(Struct, frozen=True):
    """What keeps a number of machines: a MachineSet, a MachineDeployment, an agent pool.

    `wanted` is the desired number of machines, `ready` the number of Ready ones; both are None if it keeps no
    number (a NodePool). `revision` is the version that a change of the number names (a resourceVersion, an
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


class ScaleUp(Struct, frozen=True):
    """Scale a pool up by one machine, to `wanted` machines."""

    node: str
    machine: Machine
    wanted: int


class Remove(Struct, frozen=True):
    """Delete a machine.

    With `lower`, its pool was scaled up for it before. The pool is then scaled down again, this machine
    first, so that no third one is created. Without it, the provider creates a new one by itself.
    """

    node: str
    machine: Machine
    lower: int | None = None
