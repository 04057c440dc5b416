"""`pods`: for how long it is kept in the cluster which pods were moved."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from reconciler.settings.fields import Duration, Section
from reconciler.settings.schema import FeatureSection


class Pods(Section):
    """What is kept of pods that were moved, see docs/pods.md."""

    keep: Duration = Field(
        default=timedelta(days=7),
        description="How long the cluster keeps which pods were moved, for `reconciler pods` (docs/pods.md). "
        "0s: not at all.",
    )


PODS: FeatureSection[Pods] = FeatureSection(
    key="pods", type=Pods, default=Pods(), description="What is kept of pods that were moved (docs/pods.md)."
)

SECTIONS = (PODS,)
