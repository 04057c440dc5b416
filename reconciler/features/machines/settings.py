"""`replace`: how machines are replaced, and for which events and conditions."""

from __future__ import annotations

from reconciler.model import machine
from reconciler.settings.fields import Flag
from reconciler.settings.policies import EventPolicy
from reconciler.settings.replacing import Replacing
from reconciler.settings.schema import FeatureSection, PolicyKey, PolicyWords, Settings

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
    key=machine.REPLACE,
    type=Flag,
    default=False,
    description="Whether the machine is replaced (docs/replacing.md) once the node is drained.",
    conditions=True,
    after="unmanaged_pods",
)

SECTIONS = (REPLACE, REPLACES)
