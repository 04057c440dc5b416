"""A node, reduced to the fields that we read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model import limits

ZONE_LABEL = "topology.kubernetes.io/zone"
OS_LABEL = "kubernetes.io/os"
# AKS writes both; the short one is older and is what its documentation's selectors use.
POOL_LABELS = ("kubernetes.azure.com/agentpool", "agentpool")
SPOT_LABEL = "kubernetes.azure.com/scalesetpriority"
UPGRADE_STATUS_LABEL = "kubernetes.azure.com/upgrade-status"
KARPENTER_LABEL = "karpenter.sh/nodepool"
CAPACITY_TYPE_LABEL = "karpenter.sh/capacity-type"
# The second one is older. OpenShift still writes it beside the first.
CONTROL_PLANE_LABELS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
MECHANIC_LABEL = "mechanic.cordoned"
# Every label that this file or a check reads by name.
READ_LABELS = frozenset(
    {
        ZONE_LABEL,
        OS_LABEL,
        *POOL_LABELS,
        SPOT_LABEL,
        UPGRADE_STATUS_LABEL,
        KARPENTER_LABEL,
        CAPACITY_TYPE_LABEL,
        *CONTROL_PLANE_LABELS,
        MECHANIC_LABEL,
    }
)
AUTOSCALER_TAINT = "ToBeDeletedByClusterAutoscaler"
REMEDIATOR_TAINT = "remediator.kubernetes.azure.com/unschedulable"


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint as the API has it."""

    key: str
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """A node condition; `heartbeat` and `transition` are UTC, None if the object has none.

    A time outside of the limits becomes None, and `unreadable` names its field. Code that depends on the time
    must not treat it as absent.
    """

    type: str
    status: str
    reason: str = ""
    message: str = ""
    heartbeat: datetime | None = None
    transition: datetime | None = None
    unreadable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Replace times outside of the limits by None."""
        for name, moment in (("heartbeat", self.heartbeat), ("transition", self.transition)):
            if moment is not None and not limits.is_moment(moment):
                object.__setattr__(self, name, None)
                object.__setattr__(self, "unreadable", (*self.unreadable, name))


@dataclass(frozen=True, slots=True)
class Node:
    """A node as one consistent read showed it.

    It has only the annotations under our own prefix and the wanted ones, and only the wanted conditions;
    `allocatable` (quantities as text) is there only for a preview.
    """

    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    provider_id: str = ""
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    conditions: tuple[Condition, ...] = ()
    boot_id: str = ""
    allocatable: Mapping[str, str] = field(default_factory=dict)

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
    def zone(self) -> str:
        """The zone, empty if unknown."""
        return self.labels.get(ZONE_LABEL, "")

    @property
    def pool(self) -> str:
        """The node pool: AKS's, else Karpenter's; empty if unknown."""
        for label in (*POOL_LABELS, KARPENTER_LABEL):
            if label in self.labels:
                return self.labels[label]
        return ""

    @property
    def is_spot(self) -> bool:
        """Whether it is a spot VM, which the platform may reclaim."""
        return self.labels.get(SPOT_LABEL) == "spot" or self.labels.get(CAPACITY_TYPE_LABEL) == "spot"

    @property
    def is_windows(self) -> bool:
        """Whether the node runs Windows, for which AKS has no node-problem-detector and we have no agent."""
        return self.labels.get(OS_LABEL) == "windows"

    @property
    def is_karpenter(self) -> bool:
        """Whether Karpenter, or AKS node auto-provisioning, created the node and replaces it."""
        return KARPENTER_LABEL in self.labels

    @property
    def is_quarantined(self) -> bool:
        """Whether an AKS upgrade failed to drain the node and left it cordoned."""
        return self.labels.get(UPGRADE_STATUS_LABEL) == "Quarantined"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which parts of each node a list keeps; everything else is dropped while it is read.

    `labels` None keeps all labels. Labels and annotations under `annotation_prefix`, and the annotations in
    `annotations`, are always kept.
    """

    conditions: frozenset[str]
    annotation_prefix: str
    capacity: bool = False
    annotations: frozenset[str] = frozenset()
    labels: frozenset[str] | None = None

    def keeps_label(self, key: str) -> bool:
        """Whether a label of that key is kept."""
        return self.labels is None or key in self.labels or key.startswith(f"{self.annotation_prefix}/")
