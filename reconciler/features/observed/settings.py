"""`observed`: for how long the cluster keeps what would have been done in mode Observe."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from reconciler.settings.fields import Duration, Section
from reconciler.settings.schema import FeatureSection


class Observed(Section):
    """What is kept of passes in mode Observe, see docs/first-weeks.md."""

    keep: Duration = Field(
        default=timedelta(days=30),
        description="How long is kept what would have been done in mode Observe (docs/first-weeks.md). "
        "0s: not at all, and mode Observe writes nothing.",
    )


OBSERVED_SECTION: FeatureSection[Observed] = FeatureSection(
    key="observed",
    type=Observed,
    default=Observed(),
    description="What is kept of passes in mode Observe (docs/first-weeks.md).",
)

SECTIONS = (OBSERVED_SECTION,)
