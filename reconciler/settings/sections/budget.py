"""`budget`: how many nodes may be out of service at once."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from reconciler.calendar.values import Limit
from reconciler.model.event import Kind
from reconciler.settings.sections.fields import Duration, Flag, Share
from reconciler.settings.sections.section import Section


class Ignore(Section):
    """Nodes that hold no place in the budget."""

    not_ready_for: Duration = Field(
        default=timedelta(minutes=30),
        description="A node NotReady for longer holds no place: nobody waits for it, and it would block "
        "the budget until somebody deletes it.",
    )
    quarantined: Flag = Field(
        default=True, description="Whether nodes set aside (by a taint of quarantine) hold no place."
    )


class Budget(Section):
    """Nodes out of service at once, whoever took them: cordoned, NotReady, or drained by us."""

    max_unavailable: Share = Field(
        default=Limit(10, percent=True),
        description="Of all nodes looked after: a number, or a percentage, rounded up so that a small "
        "cluster gets one.",
    )
    per_zone: Share | None = Field(
        default=None, description="The same for each zone by itself. Default: no limit."
    )
    per_pool: Share | None = Field(
        default=None, description="The same for each node pool by itself. Default: no limit."
    )
    spacing: Duration = Field(default=timedelta(), description="The least time between two starts.")
    exempt: tuple[Kind, ...] = Field(
        default=(Kind.PREEMPT, Kind.TERMINATE),
        description="Kinds that never wait for a place, since the VM is lost anyway; they are counted.",
    )
    ignore: Ignore = Field(default=Ignore(), description="Nodes that hold no place.")
