"""`pods`: what the cluster keeps of pods that were moved, and who may read it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from pydantic import Field

from reconciler.model.grants import Grants
from reconciler.settings.fields import Duration, Flag, Section
from reconciler.settings.mistakes import Mistake
from reconciler.settings.schema import FeatureSection, Settings

MANIFESTS = "k8s/pods"
"""The folder with the permissions to publish."""


class Pods(Section):
    """What is kept of pods that were moved, see docs/pods.md."""

    keep: Duration = Field(
        default=timedelta(days=7),
        description="How long the cluster keeps which pods were moved, for `reconciler pods` (docs/pods.md). "
        "0s: not at all.",
    )
    publish: Flag = Field(
        default=False,
        description="Whether `serve` writes a ConfigMap into each namespace whose pods were moved, or are to "
        "be moved tonight (docs/pods.md#for-teams-without-the-right-to-read-nodes). It needs `k8s/pods`.",
    )


class _Pods(FeatureSection[Pods], frozen=True, kw_only=True):
    def mistakes(self, settings: Settings) -> Iterator[Mistake]:
        pods = self.of(settings)
        if pods.publish and not pods.keep:
            yield Mistake(("pods", "publish"), "needs what `pods.keep` keeps, and that is 0s")

    def grants(self, settings: Settings) -> Grants:
        return Grants(folders=(MANIFESTS,)) if self.of(settings).publish else Grants()


PODS = _Pods(
    key="pods", type=Pods, default=Pods(), description="What is kept of pods that were moved (docs/pods.md)."
)

SECTIONS = (PODS,)
