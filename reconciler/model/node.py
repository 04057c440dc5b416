"""A node, reduced to the fields that we read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import force_setattr

from reconciler.model import limits
from reconciler.model.clocks import OwnTimes
from reconciler.model.keys import keys_of
from reconciler.model.problems import Faults
from reconciler.model.values import Annotations, Labels, replace

ZONE_LABEL = "topology.kubernetes.io/zone"
_OLD_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"
OS_LABEL = "kubernetes.io/os"
# AKS writes both; the short one is older and is what its documentation's selectors use.
AGENT_POOL_LABELS = ("kubernetes.azure.com/agentpool", "agentpool")
SPOT_LABEL = "kubernetes.azure.com/scalesetpriority"
UPGRADE_STATUS_LABEL = "kubernetes.azure.com/upgrade-status"
# AKS writes both while it upgrades the node (azure-aks-docs, node-auto-repair.md). The first one alone may be
# somebody else's.
SCALE_DOWN_ANNOTATION = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SCALE_DOWN_REASON_ANNOTATION = "kubernetes.azure.com/azure-cluster-autoscaler-scale-down-disabled-reason"
UPGRADE_ANNOTATIONS = frozenset({SCALE_DOWN_ANNOTATION, SCALE_DOWN_REASON_ANNOTATION})
KARPENTER_LABEL = "karpenter.sh/nodepool"
# Karpenter replaces the node. The second one is of versions before 1.0.
DISRUPTED_TAINT = "karpenter.sh/disrupted"
_DISRUPTED_TAINTS = (DISRUPTED_TAINT, "karpenter.sh/disruption")
# In the order in which they are read. Karpenter is first, because node auto-provisioning of AKS writes the
# labels of an agent pool too. Cluster API has the labels on Machines, and on nodes where it copies them.
POOL_LABELS = (
    KARPENTER_LABEL,
    *AGENT_POOL_LABELS,
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "topology.cluster.x-k8s.io/deployment-name",
    "cluster.x-k8s.io/deployment-name",
    "cluster.x-k8s.io/pool-name",
    "cluster.x-k8s.io/set-name",
    "hypershift.openshift.io/nodePool",
    "ccloud.sap.com/nodepool",
)
# What the Machine belongs to (Cluster API), and the Machine as `namespace/name` (OpenShift).
OWNER_ANNOTATION = "cluster.x-k8s.io/owner-name"
OPENSHIFT_MACHINE_ANNOTATION = "machine.openshift.io/machine"
POOL_ANNOTATIONS = frozenset({OWNER_ANNOTATION, OPENSHIFT_MACHINE_ANNOTATION})
CAPACITY_TYPE_LABEL = "karpenter.sh/capacity-type"
# The second one is older. OpenShift still writes it beside the first.
CONTROL_PLANE_LABELS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
MECHANIC_LABEL = "mechanic.cordoned"
# AKS Automatic runs system pods on nodes that AKS manages itself, and denies others every change of them.
HOSTED_LABEL = "kubernetes.azure.com/hostedvm"
# With the value virtual-kubelet: a node that is no VM.
TYPE_LABEL = "type"
# Every label that this file or a check reads by name.
READ_LABELS = frozenset(
    {
        ZONE_LABEL,
        _OLD_ZONE_LABEL,
        OS_LABEL,
        *POOL_LABELS,
        SPOT_LABEL,
        UPGRADE_STATUS_LABEL,
        CAPACITY_TYPE_LABEL,
        *CONTROL_PLANE_LABELS,
        MECHANIC_LABEL,
        HOSTED_LABEL,
        TYPE_LABEL,
    }
)
BY_OTHERS = "cordoned by others"
"""Why a node is out of service that somebody else has cordoned."""

CORDON_TAINT = "node.kubernetes.io/unschedulable"
"""The taint of a cordoned node, with the effect NoSchedule."""

AUTOSCALER_TAINT = "ToBeDeletedByClusterAutoscaler"
# AKS's remediator works on the node. The second one is older (Azure/AKS#2976).
REMEDIATOR_TAINT = "remediator.kubernetes.azure.com/unschedulable"
_REMEDIATOR_TAINTS = (REMEDIATOR_TAINT, "remediator.aks.microsoft.com/unschedulable")
# Taints that take a node out of service without a cordon. `DeletionCandidateOfClusterAutoscaler` is none of
# them: the node still takes pods, and the autoscaler often keeps it.
OUT_OF_SERVICE_TAINTS = frozenset(
    {
        AUTOSCALER_TAINT,
        *_REMEDIATOR_TAINTS,
        *_DISRUPTED_TAINTS,
        "node.kubernetes.io/out-of-service",
        "node.cloudprovider.kubernetes.io/shutdown",
        "cloud.google.com/impending-node-termination",
    }
)
PREFERENCE = "PreferNoSchedule"
_FAULT_DOMAIN = "0"


class Taint(Struct, frozen=True):
    """A taint as the API has it."""

    key: str
    value: str = ""
    effect: str = ""


class Condition(Struct, frozen=True):
    """A node condition; `heartbeat` and `transition` are UTC, None if the object has none.

    A time outside of the limits becomes None, and `unreadable` names its field. Code that depends on the time
    must not treat it as absent.
    """

    type: str
    status: str
    reason: str = ""
    message: Annotated[str, Meta(max_length=limits.MESSAGE)] = ""
    heartbeat: datetime | None = None
    transition: datetime | None = None
    unreadable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Replace times outside of the limits by None."""
        for name, moment in (("heartbeat", self.heartbeat), ("transition", self.transition)):
            if moment is not None and not limits.is_moment(moment):
                force_setattr(self, name, None)
                force_setattr(self, "unreadable", (*self.unreadable, name))

    def believed(self, times: OwnTimes) -> Condition:
        """Return the condition without a transition in the future, which would delay what waits for its age.

        A clock that is ahead writes the heartbeat, too, so the time between the two is right. If the clock
        was set back since, nothing says when the condition changed: the transition becomes None.
        """
        changed, beat = self.transition, self.heartbeat
        if changed is None or changed <= times.latest:
            return self
        if beat is None or beat < changed:
            return replace(self, transition=None)
        return replace(self, transition=max(times.now - (beat - changed), limits.EARLIEST))


US = "us"


class Node(Struct, frozen=True):
    """A node as one consistent read showed it.

    It has only the annotations under our own prefix and the wanted ones, and only the wanted conditions;
    `allocatable` (quantities as text) is there only for a preview, `system_uuid` only where it is wanted.
    `cordon_of` is only set if the node has no record: the tool whose cordon a pass takes over, or `US`, if a
    pass has cordoned it, and somebody removed the record. `uncordoned_by` is the field manager that set
    `spec.unschedulable` on a node that a pass has cordoned and somebody has uncordoned, empty if it is not
    known. `copied_labels` and `copied_annotations` are those of ours that are about another node, see
    `without_copies`; `labels` and `annotations` do not have them. `tainted_since` is when the first
    taint came of a cordon or of `OUT_OF_SERVICE_TAINTS` (UTC), None if none of them says so.
    """

    name: str
    uid: str
    resource_version: str
    labels: Labels = field(default_factory=dict)
    annotations: Annotations = field(default_factory=dict)
    provider_id: str = ""
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    conditions: tuple[Condition, ...] = ()
    boot_id: str = ""
    allocatable: Mapping[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    kubelet_version: str = ""
    cordon_of: str = ""
    uncordoned_by: str = ""
    system_uuid: str = ""
    copied_labels: Labels = field(default_factory=dict)
    copied_annotations: Annotations = field(default_factory=dict)
    tainted_since: datetime | None = None

    @property
    def copied(self) -> tuple[str, ...]:
        """All keys of ours that are about another node, sorted."""
        return tuple(sorted({*self.copied_labels, *self.copied_annotations}))

    def without_copies(self, prefix: str) -> Node:
        """Return the node without our labels and annotations that were copied from another node.

        All that passes and commands write on a node is about the node whose UID is beside it. `prefix` is
        that of the installation. Without a UID, they were written by hand, and are about this node.
        """
        keys = keys_of(prefix)
        if self.annotations.get(keys.uid, self.uid) == self.uid:
            return self
        bound = keys.bound
        return replace(
            self,
            labels={key: text for key, text in self.labels.items() if key not in bound},
            annotations={key: text for key, text in self.annotations.items() if key not in bound},
            copied_labels={key: text for key, text in self.labels.items() if key in bound},
            copied_annotations={key: text for key, text in self.annotations.items() if key in bound},
        )

    def uid_change(self, prefix: str) -> Mapping[str, str | None]:
        """Return what a pass changes of the UID beside our annotations, because somebody wrote by hand.

        An annotation without a UID gets that of the node. A UID without annotations is removed.
        """
        keys = keys_of(prefix)
        bound = keys.uid in self.annotations
        if not bound and not keys.of_people.isdisjoint(self.annotations):
            return {keys.uid: self.uid}
        if bound and self.annotations.keys().isdisjoint(keys.bound - {keys.uid}):
            return {keys.uid: None}
        return {}

    @property
    def cordoned_by_us(self) -> bool:
        """Whether a pass has cordoned it, and somebody removed the record."""
        return self.cordon_of == US

    def believed(self, times: OwnTimes) -> Node:
        """Return the node without transitions of conditions in the future."""
        conditions = tuple(condition.believed(times) for condition in self.conditions)
        return self if conditions == self.conditions else replace(self, conditions=conditions)

    def condition(self, condition_type: str) -> Condition | None:
        """Return the condition of that type, None if the node has none."""
        return next((found for found in self.conditions if found.type == condition_type), None)

    def has_taint(self, key: str) -> bool:
        """Whether the node has a taint with that key, with any value and effect."""
        return any(taint.key == key for taint in self.taints)

    @property
    def ready(self) -> bool:
        """Whether the condition Ready is True; Unknown and missing are not."""
        condition = self.condition("Ready")
        return condition is not None and condition.status == "True"

    @property
    def ready_changed(self) -> datetime | None:
        """When Ready last changed, UTC."""
        condition = self.condition("Ready")
        return condition.transition if condition else None

    @property
    def out_of_service(self) -> str:
        """Why no new pod can run on it, or soon can't; empty if it is in service.

        An upgrade by AKS, a cordon, NotReady, or a taint.
        """
        if self.in_upgrade:
            return "upgraded by AKS"
        if self.unschedulable:
            return BY_OTHERS
        if not self.ready:
            return "NotReady"
        keys = {taint.key for taint in self.taints if taint.effect != PREFERENCE}
        found = min(keys & OUT_OF_SERVICE_TAINTS, default="")
        return f"taint {found}" if found else ""

    @property
    def out_of_service_since(self) -> datetime | None:
        """Since when no new pod can run on it, as far as the node says so (UTC)."""
        down = None if self.ready else self.ready_changed
        return min((one for one in (self.tainted_since, down) if one is not None), default=None)

    @property
    def zone(self) -> str:
        """The zone, empty if unknown.

        Azure writes the fault domain 0 on every VM of a scale set without zones. That is no zone.
        """
        found = self.labels.get(ZONE_LABEL) or self.labels.get(_OLD_ZONE_LABEL, "")
        if found != _FAULT_DOMAIN:
            return found
        of_azure = self.agent_pool or self.provider_id.casefold().startswith("azure:")
        return "" if of_azure else found

    @property
    def agent_pool(self) -> str:
        """The agent pool of AKS; empty if it has none."""
        return next((found for label in AGENT_POOL_LABELS if (found := self.labels.get(label))), "")

    @property
    def pool(self) -> str:
        """The node pool, by the first of `POOL_LABELS`, else by its Machine; empty if unknown."""
        for label in POOL_LABELS:
            if found := self.labels.get(label):
                return found
        if owner := self.annotations.get(OWNER_ANNOTATION):
            return owner
        # A Machine has the name of its MachineSet and a suffix.
        machine = self.annotations.get(OPENSHIFT_MACHINE_ANNOTATION, "").rpartition("/")[2]
        return machine.rpartition("-")[0]

    @property
    def is_windows(self) -> bool:
        """Whether the node runs Windows, for which AKS has no node-problem-detector and we have no agent."""
        return self.labels.get(OS_LABEL) == "windows"

    @property
    def runs_no_agent(self) -> bool:
        """Whether the agent's DaemonSet leaves the node out, because there is nothing for an agent to do."""
        return HOSTED_LABEL in self.labels or self.labels.get(TYPE_LABEL) == "virtual-kubelet"

    @property
    def is_karpenter(self) -> bool:
        """Whether Karpenter, or AKS node auto-provisioning, created the node and replaces it."""
        return KARPENTER_LABEL in self.labels

    @property
    def remediator_taint(self) -> str:
        """The taint by which AKS's remediator works on the node, empty if it does not."""
        return next(filter(self.has_taint, _REMEDIATOR_TAINTS), "")

    @property
    def is_disrupted(self) -> bool:
        """Whether Karpenter has begun to replace the node."""
        return any(map(self.has_taint, _DISRUPTED_TAINTS))

    @property
    def is_quarantined(self) -> bool:
        """Whether an AKS upgrade failed to drain the node and left it cordoned."""
        return self.labels.get(UPGRADE_STATUS_LABEL) == "Quarantined"

    @property
    def in_upgrade(self) -> bool:
        """Whether AKS upgrades the node now. One that it left undrained is not upgraded any more."""
        reason = self.annotations.get(SCALE_DOWN_REASON_ANNOTATION)
        return (
            reason == "upgrade"
            and self.annotations.get(SCALE_DOWN_ANNOTATION) == "true"
            and not self.is_quarantined
        )


class Wanted(Struct, frozen=True):
    """Which parts of each node a list keeps; everything else is dropped while it is read.

    `labels` None keeps all labels. Labels and annotations under `annotation_prefix`, and the annotations in
    `annotations`, are always kept; those whose name is in `names` are kept under any prefix.
    `system_uuid` is whether the UUID of the machine is kept.
    """

    conditions: frozenset[str]
    annotation_prefix: str
    capacity: bool = False
    annotations: frozenset[str] = frozenset()
    labels: frozenset[str] | None = None
    names: frozenset[str] = frozenset()
    system_uuid: bool = False

    def keeps_label(self, key: str) -> bool:
        """Whether a label of that key is kept."""
        return self.labels is None or key in self.labels or key.startswith(f"{self.annotation_prefix}/")


PLANNED = "MaintenancePlanned"
IN_PROGRESS = "MaintenanceInProgress"
DRAINING = "DrainInProgress"
DRAINED = "Drained"

LIFECYCLE = (PLANNED, IN_PROGRESS, DRAINING, DRAINED)


def upgraded_pools(nodes: Iterable[Node], faults: Faults) -> frozenset[str]:
    """Return the agent pools with a node that AKS upgrades now.

    A node whose data ends in an error is one of `faults`, and its pool counts as not upgraded.
    """
    what = "whether AKS upgrades it is not known"
    return frozenset(faults.of(node.name, what, partial(_pool_in_upgrade, node), "") for node in nodes) - {""}


def upgrade_on(node: Node, pools: Collection[str]) -> str:
    """Return in words what AKS upgrades that concerns the node, empty if nothing; `pools` are in upgrades."""
    pool = node.agent_pool
    return upgrade_of(pool) if node.in_upgrade or pool in pools else ""


def upgrade_of(pool: str) -> str:
    """Return in words that AKS upgrades this pool, or a node without a pool."""
    return f"AKS upgrades pool {pool}" if pool else "AKS upgrades the node"


def _pool_in_upgrade(node: Node) -> str:
    return node.agent_pool if node.in_upgrade else ""
