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
        description="A node that is NotReady for longer than this holds no place. Otherwise a broken node "
        "would block the budget until someone deletes it. A node in maintenance holds its place as long as "
        "its maintenance lasts.",
    )
    quarantined: Flag = Field(
        default=True,
        description="Whether nodes that a failed AKS upgrade quarantined and cordoned hold no place. A node "
        "in maintenance, and a start on such a node, takes a place like any other.",
    )


class Budget(Section):
    """How many nodes may be out of service at once.

    Out of service are nodes that are cordoned, NotReady, drained by the reconciler, or tainted by a tool that
    removes or repairs them: the cluster autoscaler, Karpenter, AKS's remediator, the cloud provider
    (shutdown), or `node.kubernetes.io/out-of-service`.
    """

    max_unavailable: Share = Field(
        default=Limit(10, percent=True),
        description="The largest number of managed nodes that may be out of service at once, as a number or "
        "a percentage. A percentage is rounded up, so that a small cluster gets at least one.",
    )
    per_zone: Share | None = Field(
        default=None,
        description="The same limit within each zone. It does not limit nodes without a zone. On AKS the "
        "zone `0` is no zone. Default: no limit.",
    )
    per_pool: Share | None = Field(
        default=None,
        description="The same limit within each node pool. The pool is the first of these labels: "
        "`karpenter.sh/nodepool`, `kubernetes.azure.com/agentpool`, `agentpool`, "
        "`eks.amazonaws.com/nodegroup`, `cloud.google.com/gke-nodepool`, those of Cluster API, "
        "`hypershift.openshift.io/nodePool`; otherwise the owner of its Machine (Cluster API, OpenShift). It "
        "does not limit nodes without a pool, because they have nothing in common; `maxUnavailable` and "
        "`perZone` do. Default: no limit.",
    )
    spacing: Duration = Field(
        default=timedelta(), description="The minimum time between the starts of two drains."
    )
    reserve: Share = Field(
        default=Limit(0),
        description="How many of the places of `maxUnavailable` are kept for short notices: events that are "
        "announced at their deadline or later. Planned drains don't use them.",
    )
    exempt: tuple[Kind, ...] = Field(
        default=(Kind.PREEMPT, Kind.TERMINATE),
        description="Kinds of events that do not wait for a place or for `spacing` once they are due, "
        "because the VM is lost anyway. An event is due from its deadline (`notBefore` minus `leadTime`; "
        "from 15 minutes before `notBefore` at the latest if `outsideWindow` is `Immediately`), or "
        "at once if it has started or has no date. Before that it waits like any other. Its node still "
        "counts as out of service, and its start does not delay others by `spacing`.",
    )
    ignore: Ignore = Field(default=Ignore(), description="Nodes that hold no place in the budget.")
