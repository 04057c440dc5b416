"""What the stages need from outside, as protocols; clients and the simulation are two implementations.

Every call may raise the errors of `reconciler.errors.ClusterError`; reads are consistent ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Condition
from typing import Any, Protocol, runtime_checkable

from reconciler.model.azure import PerformMaintenance
from reconciler.model.drains import DrainOrder, DrainProgress
from reconciler.model.machine import Machine, MachineRef, Remove, ScaleUp
from reconciler.model.maintenance import Maintenance, MaintenanceWrite
from reconciler.model.node import Node, Wanted
from reconciler.model.notification import Notification
from reconciler.model.plan import ConditionsWrite, NodeWrite
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.snapshot import Agents, Ledger, Remediator


class ClusterReader(Protocol):
    """Reads of one pass."""

    def nodes(self, wanted: Wanted) -> tuple[Node, ...]:
        """Every node of the cluster, sorted by name."""

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """The pods of one node, or of all."""

    def budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """Every PodDisruptionBudget."""

    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of every namespace, by name."""

    def agents(self) -> Agents:
        """The node agent's DaemonSet, and its pods only when some are not ready."""

    def remediator(self) -> Remediator:
        """AKS's remediator-config, where there is one."""

    def ledger(self) -> Ledger:
        """Our ConfigMap; an empty ledger where there is none yet."""

    def maintenances(self, prefix: str) -> tuple[Maintenance, ...] | None:
        """Our NodeMaintenance objects, those of this prefix; None where the CRD is not installed."""

    def skew(self) -> timedelta | None:
        """Our clock minus the `Date` of the server's last answer, None before any."""


class ClusterWriter(Protocol):
    """Writes of one pass; each asks the lock first and raises LockLost where it is not ours any more."""

    def patch_node(self, write: NodeWrite) -> None:
        """Patch a node, naming the resourceVersion and UID seen.

        After a 409 the node is read again and the patch retried if UID, `unschedulable` and our own keys
        are as they were seen. Raises Conflict when they are not, NotFound when the node has gone.
        """

    def patch_conditions(self, write: ConditionsWrite) -> None:
        """Put conditions into a node's status, and take others away; Conflict where its UID is another."""

    def write_maintenance(self, write: MaintenanceWrite) -> None:
        """Make, change or delete a NodeMaintenance; deleting one that has gone is done already."""

    def write_ledger(self, ledger: Ledger) -> None:
        """Write our ConfigMap, making it where it is missing."""


class Notifier(Protocol):
    """Tells people what was done. Nothing waits for it, and nothing depends on it."""

    def notify(self, notification: Notification) -> None:
        """Pass the notice on. A failure is logged, not raised; raises LockLost where the lock is not ours."""


class SourceClient(Protocol):
    """The service that a polled source asks, such as a cloud's API."""

    def ask(self, scopes: Sequence[Any], /) -> tuple[Any, ...]:
        """Ask for each scope once, in order, and return what came of each.

        A scope and its answer are of the source's own types. Raises nothing and never waits: a failure is
        reported in its answer, and once the service asks for patience, the rest is not asked for.
        """


@runtime_checkable
class MaintenanceStarter(Protocol):
    """A source's client that can also start maintenance; asks the lock first, as ClusterWriter does."""

    def perform_maintenance(self, action: PerformMaintenance) -> None:
        """Start the maintenance that the platform offers, without waiting for its end. Raises CloudError."""


class MachineReader(Protocol):
    """Reads the machines behind nodes: objects in the cluster, or AKS agent pools."""

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Return each as it is now, in order; what can't be found out is its `problem`. Raises nothing."""


class MachineWriter(Protocol):
    """What is done to machines; asks the lock first, as ClusterWriter does.

    Both may be asked for what has been done already, by a pass that was killed right after: that does
    nothing. Both raise ClusterError or CloudError, and wait for nothing.
    """

    def scale_up(self, action: ScaleUp) -> None:
        """Ask the machine's pool for `wanted` machines; where it has as many, nothing. Conflict where it
        is not as it was seen.
        """

    def remove(self, action: Remove) -> None:
        """Have the machine deleted; where it is gone or going, nothing."""


class Machines(MachineReader, MachineWriter, Protocol):
    """Both: what owns the machines behind nodes, to read and to change."""


class Drains(Protocol):
    """The drainer: its drains go on by themselves, between passes too."""

    def start(self, order: DrainOrder) -> None:
        """Begin a drain, or take the new order for one that runs."""

    def stop(self, node: str) -> None:
        """Evict nothing more from a node."""

    def progress(self) -> Mapping[str, DrainProgress]:
        """Return every drain begun here, by node."""


@dataclass(frozen=True, slots=True)
class PodGone:
    """A watch says that the pod of this UID is no more."""

    uid: str


@dataclass(frozen=True, slots=True)
class BudgetGone:
    """A watch says that the budget `namespace/name` is no more."""

    key: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A watch has yielded everything that existed when it listed: at the start, and after each 410.

    Before it, it is unknown whether a node has no more pods, or a pod no budget.
    """


PodChange = Pod | PodGone | Listed
BudgetChange = PodDisruptionBudget | BudgetGone | Listed


class Clock(Protocol):
    """Time as something handed in: the system's in a job, a virtual one in the simulation and in tests."""

    def now(self) -> datetime:
        """The time, aware, UTC."""

    def wait(self, condition: Condition, timeout: float | None) -> None:
        """Wait on a condition that the caller holds until it is notified, or so many seconds at most."""


class Evictor(Protocol):
    """What the drainer needs of the cluster; writes ask the lock as ClusterWriter's do."""

    def node(self, name: str) -> Node | None:
        """One node as it is now, None where it has gone."""

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """The pods of one node, or of all."""

    def watch_pods(self, node: str) -> AbstractContextManager[Iterator[PodChange]]:
        """List, then watch the pods of one node.

        Yields each pod as it is listed, then `Listed`, then each change. Ends when the context is left from
        any thread. Reconnects by itself, and lists again after a 410: pods that this list misses are PodGone.
        """

    def watch_budgets(self) -> AbstractContextManager[Iterator[BudgetChange]]:
        """List, then watch every PodDisruptionBudget, in the same way."""

    def evict(self, pod: Pod, *, grace: int | None) -> None:
        """Evict by policy/v1 with the UID as precondition.

        Raises NotFound (gone), Conflict (another UID has the name), TooManyRequests (a budget refuses; its
        causes name it), Forbidden (reason NamespaceTerminating among others), Rejected (500: two budgets).
        """

    def delete(self, pod: Pod, *, grace: int | None) -> None:
        """Delete with the UID as precondition; raises as `evict` does, but for TooManyRequests."""

    def restart(self, pod: Pod, now: datetime) -> str:
        """Restart the Deployment that owns the pod as `kubectl rollout restart` does; returns its name.

        Raises Rejected with the reason where the workload does not fit.
        """

    def attachments(self, node: str) -> tuple[str, ...]:
        """The names of the VolumeAttachments that are still on the node."""
