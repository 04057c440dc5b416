"""`replace`: how machines are replaced."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from reconciler.model.machine import AKS
from reconciler.settings.sections.fields import ClusterId, Flag
from reconciler.settings.sections.section import Section


class PoolCount(StrEnum):
    """How an AKS agent pool gets a new machine for the one that is deleted."""

    RESTORE = "Restore"
    TRUST_AUTOSCALER = "TrustAutoscaler"


class AksPools(Section):
    """AKS agent pools. Their machines are deleted only through ARM."""

    cluster: ClusterId | None = Field(
        default=None,
        description="The resource ID of the managed cluster, "
        "`/subscriptions/…/resourceGroups/…/providers/Microsoft.ContainerService/managedClusters/…`. "
        "Default: none, machines of agent pools are not replaced.",
    )
    count: PoolCount = Field(
        default=PoolCount.RESTORE,
        description="How a pool gets its new machine. Restore: the pool is scaled up by one before a machine "
        "is deleted. TrustAutoscaler: the cluster autoscaler scales the pool. A pool with autoscaling always "
        "behaves like TrustAutoscaler.",
    )


class Replacing(Section):
    """How machines are replaced, for the events with `replace: true`."""

    surge: Flag = Field(
        default=False,
        description="Whether the replacement is requested, and Ready, before the old node is drained. This "
        "happens where the MachineSet or agent pool allows it and the deadline leaves enough time.",
    )
    aks: AksPools = Field(default=AksPools(), description="AKS agent pools.")

    def restores(self, provider: str) -> bool:
        """Whether we scale up a pool of this provider before a deletion lowers it; the default is yes."""
        counts = {AKS: self.aks.count}
        return counts.get(provider, PoolCount.RESTORE) is PoolCount.RESTORE
