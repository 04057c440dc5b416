"""`drain.podEvents`: whether the owners of evicted pods get Events."""

from __future__ import annotations

from reconciler.settings.fields import Flag
from reconciler.settings.schema import FeatureSection

POD_EVENTS: FeatureSection[bool] = FeatureSection(
    key="pod_events",
    type=Flag,
    default=True,
    description="Whether the owner of evicted pods gets an Event (docs/operating.md#events-on-pods).",
    below="drain",
    after="restart_singletons",
)

SECTIONS = (POD_EVENTS,)
