"""`hints`: what the scheduler and other tools see of a node with announced maintenance."""

from __future__ import annotations

from pydantic import Field

from reconciler.settings.sections.fields import Flag
from reconciler.settings.sections.section import Section


class Hints(Section):
    """Scheduling hints on nodes with an announced event that requires a drain."""

    taint: Flag = Field(
        default=False,
        description="Whether they get the taint `<keys.prefix>/maintenance` with `PreferNoSchedule`.",
    )
    label: Flag = Field(
        default=False,
        description="Whether they get the label `<keys.prefix>/deadline`, in seconds since 1970 (UTC), `0` "
        "if unknown. AKS Automatic denies it (docs/azure.md#9-aks-automatic).",
    )
