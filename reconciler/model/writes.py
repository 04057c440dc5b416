"""What a pass writes to the cluster, and the port that writes it.

A `Publication` only shows something to other tools; no decision depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import Struct, field

from reconciler.model.check_reads import LeaseTake
from reconciler.model.hypervisor import HypervisorWrite
from reconciler.model.keys import keys_of
from reconciler.model.maintenance import Maintenance
from reconciler.model.node import Condition, Taint
from reconciler.model.outcome import ActionName
from reconciler.model.snapshot import Ledger


class ListChanges(Struct, frozen=True):
    """Entries of a node's lists to add and to remove; all others stay as they are when it is written.

    A taint replaces one with the same key and effect. One that is removed needs only these two.
    """

    finalizers: tuple[str, ...] = ()
    gone_finalizers: tuple[str, ...] = ()
    taints: tuple[Taint, ...] = ()
    gone_taints: tuple[Taint, ...] = ()

    @property
    def any(self) -> bool:
        """Whether there is any change."""
        return self != ListChanges()

    def of_finalizers(self, before: Iterable[str]) -> tuple[str, ...]:
        """Return the finalizers after the change."""
        kept = [one for one in before if one not in self.gone_finalizers]
        return tuple(dict.fromkeys((*kept, *self.finalizers)))

    def of_taints(self, before: Iterable[Taint]) -> tuple[Taint, ...]:
        """Return the taints after the change."""
        changed = {(one.key, one.effect) for one in (*self.taints, *self.gone_taints)}
        kept = [one for one in before if one in self.taints or (one.key, one.effect) not in changed]
        return tuple(dict.fromkeys((*kept, *self.taints)))


class NodeWrite(Struct, frozen=True):
    """One patch of one node, with the state of the node that it was decided for.

    It names only keys under our own prefix, labels of adopted tools, annotations of publishers, and what the
    triggers of workflows change. A value of None removes the key; `unschedulable` None does not change it.
    `seen_by_checks` are the labels and annotations of others that the checks of workflows read, with None for
    a key that the node did not have.
    """

    node: str
    uid: str
    resource_version: str
    seen_unschedulable: bool
    seen_own: Mapping[str, str]
    own_prefix: str
    unschedulable: bool | None = None
    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    lists: ListChanges = ListChanges()
    seen_by_checks: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def only_shows(self) -> bool:
        """Whether it changes only what other tools see."""
        keys = keys_of(self.own_prefix)
        ours = any(map(keys.owns, self.annotations)) or bool(self.labels.keys() - {keys.deadline})
        return self.unschedulable is None and not ours and not self.lists.any


class Publication(Protocol):
    """One such write about one node; `act` sends it after everything else."""

    @property
    def node(self) -> str:
        """The node that it is about."""

    @property
    def action(self) -> ActionName:
        """Its name in reports and outcomes."""

    def send(self, writer: ClusterWriter) -> str | None:
        """Send the write, and return what people should know; raises ClusterError and LockLost."""


class ConditionsWrite(Struct, frozen=True):
    """Conditions to add to a node's status, and the types of conditions to remove.

    A `transition` of None keeps the existing moment. It is a Publication.
    """

    node: str
    uid: str
    put: tuple[Condition, ...] = ()
    gone: tuple[str, ...] = ()

    @property
    def action(self) -> ActionName:
        """Its name in reports and outcomes."""
        return ActionName.CONDITIONS

    def send(self, writer: ClusterWriter) -> None:
        """Write the conditions; raises ClusterError and LockLost."""
        writer.patch_conditions(self)


class TaintWrite(Struct, frozen=True):
    """A taint of ours to add to a node, or to remove if it is not `wanted`. It is a Publication.

    Key and effect identify a taint. All other taints of the node stay as they are.
    """

    node: str
    uid: str
    taint: Taint
    wanted: bool

    @property
    def action(self) -> ActionName:
        """Its name in reports and outcomes."""
        return ActionName.TAINT

    def send(self, writer: ClusterWriter) -> str | None:
        """Write the taint, and return what people should know; raises ClusterError and LockLost."""
        return writer.patch_taint(self)


class MaintenanceWrite(Struct, frozen=True):
    """One object to create, to change (`exists`), or to delete (`wanted` is None). It is a Publication.

    `prefix` names the installation: two installations in one cluster ignore each other's objects.
    """

    name: str
    node: str
    prefix: str
    wanted: Maintenance | None
    exists: bool = False

    @property
    def action(self) -> ActionName:
        """Its name in reports and outcomes."""
        return ActionName.NODE_MAINTENANCE

    def send(self, writer: ClusterWriter) -> None:
        """Write the object; raises ClusterError and LockLost."""
        writer.write_maintenance(self)


class WriteAnswer(Struct, frozen=True):
    """What people should know of a patch that is done, and what of it did not stay (see `own.changes`)."""

    said: str
    lost: frozenset[str]


class ClusterWriter(Protocol):
    """Writes of one pass; each checks the lock first and raises LockLost if it is no longer ours."""

    def patch_node(self, write: NodeWrite) -> WriteAnswer | None:
        """Patch a node, naming the resourceVersion and UID seen; return what people should know, if anything.

        The answer is compared with what was sent. If something essential did not stay, what stayed is taken
        back, and NotKept is raised. After a 409 the node is read again, and the patch retried if UID,
        `unschedulable` and the keys that the decision used are unchanged. Raises Conflict if they have
        changed, NotFound if the node is gone.
        """

    def patch_conditions(self, write: ConditionsWrite) -> None:
        """Add conditions to a node's status, and remove others; Conflict if its UID is another one."""

    def patch_taint(self, write: TaintWrite) -> str | None:
        """Add or remove one taint of a node; return what people should know, if anything.

        The other taints stay, also those that another controller changes at the same time. Raises NotFound
        if the node is gone, also if another one has its name, and Conflict if others keep writing it.
        """

    def write_maintenance(self, write: MaintenanceWrite) -> None:
        """Create, change or delete a NodeMaintenance; deleting one that is gone succeeds."""

    def write_ledger(self, ledger: Ledger) -> None:
        """Write our ConfigMap, or create it."""

    def take_lease(self, take: LeaseTake) -> None:
        """Take a Lease, or create it; Conflict if it has changed since it was read.

        Taking it again, because an answer was lost, changes nothing.
        """

    def write_hypervisor(self, write: HypervisorWrite) -> None:
        """Set fields of a Hypervisor; Conflict if another one has its name by now, NotFound if it is gone."""
