"""`adopt`, `publish` and `coexist`: how the reconciler works together with other tools."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from reconciler.model.event import AWS, REQUEST, Kind, MaintenanceEvent
from reconciler.model.record import KnownEvent
from reconciler.settings.sections.section import Section


class Adoptable(StrEnum):
    """Tools whose cordons the reconciler can adopt."""

    MECHANIC = "mechanic"


class Sign(StrEnum):
    """How the state of a node's maintenance is published for other tools."""

    DRAINSAFE = "drainsafe"
    """drainsafe's annotations."""

    NODE_CONDITIONS = "node-conditions"
    """The lifecycle conditions of KEP-5683."""

    NODE_MAINTENANCES = "nodemaintenances"
    """One NodeMaintenance object per node and event."""


class AksRemediator(StrEnum):
    """What to do with a node on which AKS's remediator is working."""

    SHARE = "Share"
    LEAVE = "Leave"


class Karpenter(Section):
    """Nodes of Karpenter, which AKS calls node auto-provisioning."""

    leave: tuple[Kind, ...] | None = Field(
        default=None,
        description="Kinds of events that the reconciler leaves to Karpenter on its nodes. A list applies to "
        "events of all sources. Default: `Preempt`, and every event that the source `aws` reports, because "
        "Karpenter on AWS replaces nodes with scheduled events by itself.",
    )

    def leaves(self, event: MaintenanceEvent | KnownEvent) -> bool:
        """Whether an event of a node of Karpenter is left to it.

        By default, these are the events on which Karpenter acts by itself. On AWS these are the scheduled
        events of EC2 (karpenter-provider-aws, pkg/controllers/nodeclaim/instancestatus). It does not know the
        requests in our own annotation.
        """
        if self.leave is not None:
            return event.kind in self.leave
        return event.kind is Kind.PREEMPT or (AWS in event.sources and REQUEST not in event.sources)

    def __str__(self) -> str:
        """Return in words what is left to Karpenter."""
        if self.leave is None:
            return f"{Kind.PREEMPT} and the events of EC2"
        return ", ".join(self.leave) or "nothing"


class Coexist(Section):
    """How the reconciler works together with other tools that drain nodes."""

    aks_remediator: AksRemediator = Field(
        default=AksRemediator.SHARE,
        description="What to do with a node that has the taint of AKS's remediator. Share: drain it too, "
        "leave the taint alone, and uncordon the node after the taint is gone. Leave: hold the node.",
    )
    karpenter: Karpenter = Field(
        default=Karpenter(), description="Nodes of Karpenter, which AKS calls node auto-provisioning."
    )
