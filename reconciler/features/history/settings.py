"""`audit`: for how long the cluster keeps the cases that ended, and what people did."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from reconciler.settings.fields import Duration, Section
from reconciler.settings.schema import FeatureSection


class Audit(Section):
    """What the cluster keeps of cases and of people, see docs/audit.md."""

    keep: Duration = Field(
        default=timedelta(days=90),
        description="How long the cluster keeps the cases that ended and what people did, for "
        "`reconciler history` without a file (docs/audit.md). 0s: not at all.",
    )


AUDIT: FeatureSection[Audit] = FeatureSection(
    key="audit",
    type=Audit,
    default=Audit(),
    description="What the cluster keeps of cases and of people (docs/audit.md).",
)

SECTIONS = (AUDIT,)
