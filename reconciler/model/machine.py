"""What owns the VM behind a node, and what its provider can be asked to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MachineRef:
    """A node's machine as the node itself names it, before its provider is asked.

    `provider` is the provider's name in `machines/registry.py`. For Karpenter `name` is the node's own,
    because its NodeClaim is found by the node. For AKS it is the machine's name in its agent pool, `pool`,
    which is the node's name as well. `provider_id` is the node's `spec.providerID`. All of this is what the
    node says of itself, so the provider compares it with its own list before it changes anything.
    """

    node: str
    uid: str
    provider: str
    name: str
    namespace: str = ""
    pool: str = ""
    provider_id: str = ""


@dataclass(frozen=True, slots=True)
class Pool:
    """What keeps a number of machines: a MachineSet, a MachineDeployment, an agent pool.

    `wanted` is how many machines it should have, `ready` how many are Ready; both are None where it keeps no
    number (a NodePool). `revision` is what a change of the number names as seen (a resourceVersion, an
    ETag). `scales` is whether we may scale it up: not while an autoscaler does. `busy` says why it can't be
    asked for anything now, and is empty where it can. `lowered_by_deletion` is whether the number falls by
    one when a machine is deleted, so that no new machine comes by itself.
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
        """Return the pool as messages name it."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine behind a node as its provider shows it now.

    `pool` is what brings a new machine after this one, None where nothing does. `uid` is the object's own;
    for AKS it is the resource ID of the VM, as the list of its pool has it. `deleting` is whether it is being
    deleted. `control_plane` is whether it runs a control plane. With a `problem` nothing else is known: it
    says why the machine can't be replaced now.
    """

    ref: MachineRef
    name: str = ""
    uid: str = ""
    pool: Pool | None = None
    deleting: bool = False
    control_plane: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """Ask a pool for one more machine: for `wanted` in all."""

    node: str
    machine: Machine
    wanted: int


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a machine.

    With `lower` its pool was scaled up for it before. The pool is then scaled down to that number again,
    this machine first, so that no third one comes. Without it, the provider brings a new one by itself.
    """

    node: str
    machine: Machine
    lower: int | None = None
