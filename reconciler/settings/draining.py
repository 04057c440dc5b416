"""`budget`, `drain`, `adopt` and `coexist`: how many nodes at once, how, and beside which other tools."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from pydantic import Field

from reconciler.calendar.values import Limit
from reconciler.model.drains import MAY_BE_DENIED, Behavior
from reconciler.model.event import Kind, MaintenanceEvent
from reconciler.model.node import Node
from reconciler.model.record import KnownEvent
from reconciler.model.selector import EVERYTHING
from reconciler.settings.fields import (
    Count,
    Duration,
    Flag,
    Namespaces,
    Section,
    Selector,
    Share,
    Text,
    Whole,
)


class Ignore(Section):
    """Nodes that hold no place in the budget."""

    not_ready_for: Duration = Field(
        default=timedelta(minutes=30),
        description="A node that has been NotReady for longer, also during its maintenance.",
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
        default=Limit(10, percent=True), description="The most managed nodes out of service."
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
        description="Places that are kept free for events that are announced at their deadline or later.",
    )
    exempt: tuple[Kind, ...] = Field(
        default=(Kind.PREEMPT, Kind.TERMINATE),
        description="Kinds of events that take the VM in any case. Once such an event can't wait "
        "(docs/design.md#terms), its drain needs no free place and no `spacing`. Its node "
        "counts as out of service, and delays no other node.",
    )
    ignore: Ignore = Field(default_factory=Ignore, description="Nodes that hold no place.")


class PodSelector(Section):
    """A set of pods, selected by namespace and label."""

    namespaces: tuple[Text, ...] = Field(default=(), description="Their namespaces. Default: all.")
    selector: Selector = Field(default=EVERYTHING, description="The labels of the pods. Default: all.")


class DrainRule(Section):
    """What a drain does with the selected pods, and in which order."""

    name: Text = Field(description="Its name in reports.")
    pods: Selector = Field(default=EVERYTHING, description="The labels of the pods. Default: all.")
    namespaces: Namespaces = Field(
        default=EVERYTHING, description="Names of namespaces, or a selector for their labels. Default: all."
    )
    behavior: Behavior = Field(
        default=Behavior.DRAIN,
        description="Drain: they are evicted. Skip: they stay. WaitCompleted: the drain waits until they "
        "have completed.",
    )
    order: Whole = Field(
        default=0, description="Lower orders are evicted first; the next one starts when they are gone."
    )


class EscalationSettings(Section):
    """What happens when a drain does not finish. Each stage but the warning is off unless it is set."""

    warn_after: Duration | None = Field(
        default=None,
        description="When pods that block a drain are reported as warnings. Default: half of the time from "
        "its start to the date of its event, at most 5m.",
    )
    delete_before_deadline: Flag = Field(
        default=False,
        description="Whether pods that are left are deleted, without regard to PodDisruptionBudgets, "
        "when only their grace period is left until the date of the event.",
    )
    force_delete_stuck_after: Duration | None = Field(
        default=None,
        description="How long after their grace period pods on an unreachable node are deleted by "
        "force, with a grace period of 0. A StatefulSet may then have two pods with the "
        "same name. Default: never.",
    )


class Drain(Section):
    """How nodes are drained."""

    timeout: Duration = Field(
        default=timedelta(minutes=30),
        description="How long a drain may take. Then the pods that block it are reported, and it is tried "
        "again.",
    )
    max_concurrent_nodes: Count = Field(
        default=10,
        description="How many drains may make progress at once. Blocked drains don't count. Events of "
        "`budget.exempt` that are due don't wait for this.",
    )
    ignore_daemon_sets: Flag = Field(
        default=True,
        description="Whether pods of DaemonSets stay, whatever `drain.rules` say. `false`: each is "
        "evicted once, and the pod that comes back stays.",
    )
    max_grace_period: Duration | None = Field(
        default=None, description="The limit for the grace period of pods. Default: none."
    )
    pods_may_wait: Duration = Field(
        default=timedelta(hours=1),
        description="How long a drain waits for pods that ask to finish first (docs/draining.md). A "
        "wait by `drain.rules` has no such limit.",
    )
    webhooks_may_deny: Duration = Field(
        default=MAY_BE_DENIED,
        description="How long a webhook or policy may deny an eviction before the pod counts as blocked. "
        "0s: not at all.",
    )
    groups_together: Duration = Field(
        default=timedelta(hours=1),
        description="Nodes with pods of one group (JobSet, LeaderWorkerSet, PodGroup) start together if "
        "their planned starts are no further apart. 0s: each alone.",
    )
    skip_pods: tuple[PodSelector, ...] | None = Field(
        default=None, description="Pods that stay on the node. Default: none."
    )
    rules: tuple[DrainRule, ...] = Field(
        default=(), description="What is done with pods, and in which order. The first match applies."
    )
    escalation: EscalationSettings | None = Field(
        default=None,
        description="What happens when a drain does not finish. Default: the next pass tries again.",
    )
    restart_singletons: Flag = Field(
        default=False,
        description="Whether a Deployment with one replica is restarted, by its pod template, when a "
        "PodDisruptionBudget blocks its pod.",
    )
    parallel_per_node: Count = Field(default=20, description="The most evictions in flight for a node.")
    parallel: Count = Field(default=100, description="The same for all nodes.")


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
        description="Kinds that are left to Karpenter on its nodes for good. Default: none, but events that "
        "Karpenter reads itself wait on nodes that it has begun to replace, until the latest start.",
    )

    def leaves(self, event: MaintenanceEvent | KnownEvent, node: Node) -> bool:
        """Whether an event of this node is left to Karpenter for good."""
        return self.leave is not None and node.is_karpenter and event.kind in self.leave


class Coexist(Section):
    """How the reconciler works together with other tools that drain nodes."""

    aks_remediator: AksRemediator = Field(
        default=AksRemediator.SHARE,
        description="What to do with nodes that have the taint of AKS's remediator. Share: drain "
        "them, and uncordon them after the taint is gone. Leave: start no drain on them "
        "before their latest start.",
    )
    karpenter: Karpenter = Field(
        default_factory=Karpenter, description="Nodes of Karpenter (AKS: node auto-provisioning)."
    )
