"""`adopt`, `publish` and `coexist`: how the reconciler works together with other tools."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from reconciler.model.event import Kind
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

    leave: tuple[Kind, ...] = Field(
        default=(Kind.PREEMPT,),
        description="Kinds of events that the reconciler leaves to Karpenter on its nodes.",
    )


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
