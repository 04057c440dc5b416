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
        description="A node NotReady for longer, except during its maintenance.",
    )
    quarantined: Flag = Field(
        default=True,
        description="Nodes that a failed AKS upgrade quarantined, except in maintenance or at a start.",
    )


class Budget(Section):
    """How many nodes may be out of service at once.

    Out of service are nodes that are cordoned, NotReady, drained by the reconciler, or tainted by a tool that
    removes or repairs them: the cluster autoscaler, Karpenter, AKS's remediator, the cloud provider
    (shutdown), or `node.kubernetes.io/out-of-service`.
    """

    max_unavailable: Share = Field(
        default=Limit(10, percent=True),
        description="The most managed nodes out of service.",
    )
    per_zone: Share | None = Field(
        default=None,
        description="The same within each zone. Nodes without a zone, and AKS's zone `0`, have no such "
        "limit. Default: no limit.",
    )
    per_pool: Share | None = Field(
        default=None,
        description="The same within each node pool: the first of the labels `karpenter.sh/nodepool`, "
        "`kubernetes.azure.com/agentpool`, `agentpool`, `eks.amazonaws.com/nodegroup`, "
        "`cloud.google.com/gke-nodepool`, those of Cluster API, "
        "`hypershift.openshift.io/nodePool`; else the owner of its Machine (Cluster API, "
        "OpenShift). Nodes without a pool have no such limit. Default: no limit.",
    )
    spacing: Duration = Field(
        default=timedelta(), description="The least time between the starts of two drains."
    )
    reserve: Share = Field(
        default=Limit(0),
        description="Places that are kept for events that are announced at their deadline or later.",
    )
    exempt: tuple[Kind, ...] = Field(
        default=(Kind.PREEMPT, Kind.TERMINATE),
        description="Kinds that wait for no place and no `spacing` once they can't wait "
        "(docs/design.md#terms), because the VM is lost anyway. Their nodes count as out of "
        "service, and delay no others.",
    )
    ignore: Ignore = Field(default=Ignore(), description="Nodes that hold no place.")
