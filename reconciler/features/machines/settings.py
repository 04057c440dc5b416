"""`replace`: how machines are replaced, and for which events and conditions."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from reconciler.model.machine import AKS
from reconciler.settings.fields import ClusterId, Flag, Section
from reconciler.settings.policies import EventPolicy
from reconciler.settings.schema import FeatureSection, PolicyKey, PolicyWords, Settings


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


REPLACE: FeatureSection[Replacing] = FeatureSection(
    key="replace",
    type=Replacing,
    default=Replacing(),
    description="How machines are replaced, with `replace: true`. See docs/replacing.md.",
    after="uncordon",
)


class _Replaces(PolicyKey[bool], frozen=True, kw_only=True):
    def words(self, policy: EventPolicy, settings: Settings) -> PolicyWords:
        if not self.in_policy(policy):
            return PolicyWords()
        return PolicyWords(
            then="Once drained the machine is replaced.",
            ends="replaced",
            but=""
            if REPLACE.of(settings).aks.cluster
            else "AKS agent pools are not replaced without replace.aks.cluster.",
        )


REPLACES = _Replaces(
    key="replace",
    type=Flag,
    default=False,
    description="Whether the machine is replaced (docs/replacing.md) once the node is drained.",
    conditions=True,
    after="unmanaged_pods",
)

SECTIONS = (REPLACE, REPLACES)
