"""`replace`: how machines are replaced."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from reconciler.settings.sections.fields import ClusterId, Flag
from reconciler.settings.sections.section import Section


class PoolCount(StrEnum):
    """How an AKS agent pool gets back the machine that was deleted from it."""

    RESTORE = "Restore"
    TRUST_AUTOSCALER = "TrustAutoscaler"


class AksPools(Section):
    """AKS's agent pools, whose machines are deleted through ARM and in no other way."""

    cluster: ClusterId | None = Field(
        default=None,
        description="The resource id of the managed cluster, "
        "`/subscriptions/…/resourceGroups/…/providers/Microsoft.ContainerService/managedClusters/…`. "
        "Default: none, and no machine of an agent pool is replaced.",
    )
    count: PoolCount = Field(
        default=PoolCount.RESTORE,
        description="Restore: the pool is asked for one machine more before one is deleted. TrustAutoscaler: "
        "it is left to the cluster autoscaler, as it always is in a pool that has one.",
    )


class Replacing(Section):
    """How machines are replaced, for the events that say `replace: true`."""

    surge: Flag = Field(
        default=False,
        description="Whether the replacement is asked for, and Ready, before the old node is drained, where "
        "its MachineSet or agent pool allows it and the deadline leaves the time.",
    )
    aks: AksPools = Field(default=AksPools(), description="AKS's agent pools.")
