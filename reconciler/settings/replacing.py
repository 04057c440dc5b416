"""`replace`: how machines are replaced. A feature has the section; without it the defaults apply."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from reconciler.model.machine import AKS
from reconciler.settings.fields import ClusterId, Flag, Section
from reconciler.settings.schema import Settings


class PoolCount(StrEnum):
    """How an AKS agent pool gets a new machine for the one that is deleted."""

    RESTORE = "Restore"
    TRUST_AUTOSCALER = "TrustAutoscaler"


class AksPools(Section):
    """AKS agent pools. Their machines are deleted only through ARM."""

    cluster: ClusterId | None = Field(
        default=None,
        description="The resource ID of the managed cluster. Default: none, agent pools are left alone.",
    )
    count: PoolCount = Field(
        default=PoolCount.RESTORE,
        description="How a pool gets its new machine. Restore: scaled up by one before the deletion. "
        "TrustAutoscaler: by the cluster autoscaler, as always in its pools.",
    )


class Replacing(Section):
    """How machines are replaced, for the events with `replace: true`."""

    surge: Flag = Field(
        default=False,
        description="Whether the replacement must be Ready before the drain, where pool and deadline allow "
        "it.",
    )
    aks: AksPools = Field(default_factory=AksPools, description="AKS agent pools.")

    def restores(self, provider: str) -> bool:
        """Whether we scale up a pool of this provider before a deletion lowers it; the default is yes."""
        counts = {AKS: self.aks.count}
        return counts.get(provider, PoolCount.RESTORE) is PoolCount.RESTORE


def replacing_of(settings: Settings) -> Replacing:
    """Return how these settings replace machines; without the section, the defaults."""
    section: Replacing = getattr(settings, "replace", Replacing())
    return section
