"""`replace`: how machines are replaced."""

from __future__ import annotations

from reconciler.settings.replacing import Replacing
from reconciler.settings.schema import FeatureSection

REPLACE: FeatureSection[Replacing] = FeatureSection(
    key="replace",
    type=Replacing,
    default=Replacing(),
    description="How machines are replaced, with `replace: true`. See docs/replacing.md.",
    after="uncordon",
)

SECTIONS = (REPLACE,)
