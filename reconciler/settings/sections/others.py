"""`adopt` and `coexist`: how the reconciler works together with other tools."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from reconciler.model.event import AWS, REQUEST, Kind, MaintenanceEvent
from reconciler.model.node import Node
from reconciler.model.record import KnownEvent
from reconciler.settings.sections.section import Section


class Adoptable(StrEnum):
    """Tools whose cordons the reconciler can adopt."""

    MECHANIC = "mechanic"


class AksRemediator(StrEnum):
    """What to do with a node on which AKS's remediator is working."""

    SHARE = "Share"
    LEAVE = "Leave"


class Karpenter(Section):
    """Nodes of Karpenter, which AKS calls node auto-provisioning."""

    leave: tuple[Kind, ...] | None = Field(
        default=None,
        description="Kinds that are left to Karpenter on its nodes. Default: what `aws` reports, on nodes "
        "that Karpenter has begun to replace.",
    )

    def leaves(self, event: MaintenanceEvent | KnownEvent, node: Node) -> bool:
        """Whether an event of this node is left to Karpenter.

        By default, these are the scheduled events of EC2 (karpenter-provider-aws,
        pkg/controllers/nodeclaim/instancestatus), once it has begun to replace the node. It does not know the
        requests in our own annotation. A node that is cordoned is in a maintenance that began before, such as
        ours, and Karpenter taints it too when we delete its NodeClaim.
        """
        if not node.is_karpenter:
            return False
        if self.leave is not None:
            return event.kind in self.leave
        of_ec2 = AWS in event.sources and REQUEST not in event.sources
        return of_ec2 and node.is_disrupted and not node.unschedulable

    def __str__(self) -> str:
        """Return in words what is left to Karpenter."""
        if self.leave is None:
            return "events of EC2 on nodes that it replaces"
        return ", ".join(self.leave) or "nothing"


class Coexist(Section):
    """How the reconciler works together with other tools that drain nodes."""

    aks_remediator: AksRemediator = Field(
        default=AksRemediator.SHARE,
        description="What to do with nodes with the taint of AKS's remediator. Share: drain them, and "
        "uncordon them after it is gone. Leave: hold them.",
    )
    karpenter: Karpenter = Field(
        default=Karpenter(), description="Nodes of Karpenter (AKS: node auto-provisioning)."
    )
