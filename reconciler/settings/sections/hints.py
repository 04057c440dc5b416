"""`hints`: what the scheduler and other tools see of a node with announced maintenance."""

from __future__ import annotations

from pydantic import Field

from reconciler.settings.sections.fields import Flag
from reconciler.settings.sections.section import Section


class Hints(Section):
    """Scheduling hints on nodes with an announced event that requires a drain."""

    taint: Flag = Field(
        default=False,
        description="Whether such a node gets the taint `<keys.prefix>/maintenance` with the effect "
        "`PreferNoSchedule`, so that the scheduler prefers other nodes for new pods.",
    )
    label: Flag = Field(
        default=False,
        description="Whether such a node gets the label `<keys.prefix>/deadline`, with the deadline of its "
        "drain in seconds since 1970 (UTC), and `0` if none is known. AKS Automatic denies changes of node "
        "labels, see docs/azure.md#9-aks-automatic.",
    )
