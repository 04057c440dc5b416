"""`publish`, `history` and `hints`: what other tools see of a maintenance."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct
from pydantic import Field

from reconciler.model.node import LIFECYCLE
from reconciler.settings.fields import Duration, Flag, Section
from reconciler.settings.mistakes import Mistake
from reconciler.settings.schema import FeatureSection, Settings


class Hints(Section):
    """Scheduling hints on nodes with an announced event that requires a drain."""

    taint: Flag = Field(
        default=False,
        description="Whether they get the taint `<keys.prefix>/maintenance` with `PreferNoSchedule`.",
    )
    label: Flag = Field(
        default=False,
        description="Whether they get the label `<keys.prefix>/deadline`, in seconds since 1970 (UTC), `0` "
        "if unknown. AKS Automatic denies it.",
    )


class Sign(StrEnum):
    """How the state of a node's maintenance is published for other tools."""

    DRAINSAFE = "drainsafe"
    """drainsafe's annotations."""

    NODE_CONDITIONS = "node-conditions"
    """The lifecycle conditions of KEP-5683."""

    NODE_MAINTENANCES = "nodemaintenances"
    """One NodeMaintenance object per node and event."""


class EnabledSigns(Struct, frozen=True):
    """Which signs and hints the settings enable, under which prefix, at which moment (aware, UTC)."""

    signs: tuple[Sign, ...]
    prefix: str
    now: datetime
    hints: Hints = Hints()


class _Publish(FeatureSection[tuple[Sign, ...]], frozen=True, kw_only=True):
    def mistakes(self, settings: Settings) -> Iterator[Mistake]:
        ours = settings.condition_types() & {*LIFECYCLE}
        if ours and Sign.NODE_CONDITIONS in self.of(settings):
            message = (
                f"names {min(ours)}, which `publish` writes to drained nodes: they would stay drained forever"
            )
            yield Mistake(("conditions",), message)


PUBLISH = _Publish(
    key="publish",
    type=tuple[Sign, ...],
    default=(),
    description="How maintenance is published (docs/publishing.md): annotations of drainsafe, "
    "KEP-5683, or an object per node and event. Default: none.",
)
HISTORY: FeatureSection[timedelta] = FeatureSection(
    key="history",
    type=Duration,
    default=timedelta(days=7),
    description="How long NodeMaintenance objects are kept.",
)
HINTS: FeatureSection[Hints] = FeatureSection(
    key="hints",
    type=Hints,
    default=Hints(),
    description="Hints (docs/publishing.md#scheduling-hints) on announced nodes.",
)

SECTIONS = (PUBLISH, HISTORY, HINTS)
