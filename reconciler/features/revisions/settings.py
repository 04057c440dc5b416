"""`revisions`: how many earlier texts of the settings are kept in the cluster."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reconciler.features.revisions.revisions import MOST
from reconciler.settings.fields import Section
from reconciler.settings.schema import FeatureSection


class Revisions(Section):
    """Which earlier settings `reconciler settings` can show."""

    keep: Annotated[int, Field(ge=0, le=MOST)] = Field(
        default=20,
        description="How many texts of the settings `serve` keeps in the ConfigMap "
        "`node-maintenance-settings` (docs/revisions.md). With 0 it keeps none, and says nothing of changes.",
    )


REVISIONS: FeatureSection[Revisions] = FeatureSection(
    key="revisions",
    type=Revisions,
    default=Revisions(),
    description="Which earlier settings are kept (docs/revisions.md).",
)

SECTIONS = (REVISIONS,)
