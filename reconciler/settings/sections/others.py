"""`adopt`, `publish` and `coexist`: how others who tend nodes are lived with."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from reconciler.model.event import Kind
from reconciler.settings.sections.section import Section


class Adoptable(StrEnum):
    """Tools whose cordons can become ours."""

    MECHANIC = "mechanic"


class Sign(StrEnum):
    """What of a node's case is shown to others."""

    DRAINSAFE = "drainsafe"
    """drainsafe's annotations."""

    NODE_CONDITIONS = "node-conditions"
    """The lifecycle conditions of KEP-5683."""

    NODE_MAINTENANCES = "nodemaintenances"
    """A NodeMaintenance object per node and event."""


class AksRemediator(StrEnum):
    """How AKS's own remediator is lived with."""

    SHARE = "Share"
    LEAVE = "Leave"


class Karpenter(Section):
    """How Karpenter (AKS: node auto-provisioning) is lived with."""

    leave: tuple[Kind, ...] = Field(
        default=(Kind.PREEMPT,), description="Kinds of events on its nodes that are left to it."
    )


class Coexist(Section):
    """How others who drain nodes are lived with."""

    aks_remediator: AksRemediator = Field(
        default=AksRemediator.SHARE,
        description="Share: drain too, never touch its taint, uncordon after it has gone. Leave: hold the "
        "nodes that it has tainted.",
    )
    karpenter: Karpenter = Field(default=Karpenter(), description="Karpenter, on AKS node auto-provisioning.")
