"""`drain`: how nodes are drained."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from reconciler.model.drains import MAY_BE_DENIED, Behavior
from reconciler.model.selector import EVERYTHING
from reconciler.settings.sections.fields import Count, Duration, Flag, Namespaces, Selector, Text, Whole
from reconciler.settings.sections.section import Section


class PodSelector(Section):
    """A set of pods, selected by namespace and label."""

    namespaces: tuple[Text, ...] = Field(
        default=(), description="The names of the namespaces. Default: all namespaces."
    )
    selector: Selector = Field(
        default=EVERYTHING, description="A selector for the labels of the pods. Default: all pods."
    )


class DrainRule(Section):
    """What a drain does with the selected pods, and in which order."""

    name: Text = Field(description="The name of the rule in reports. Default: none, the key is required.")
    pods: Selector = Field(
        default=EVERYTHING, description="A selector for the labels of the pods. Default: all pods."
    )
    namespaces: Namespaces = Field(
        default=EVERYTHING,
        description="The namespaces of the pods: a list of names, or a selector for the labels of the "
        "namespaces. Default: all namespaces.",
    )
    behavior: Behavior = Field(
        default=Behavior.DRAIN,
        description="Drain: the pod is evicted in the order of the rule. Skip: the pod stays. WaitCompleted: "
        "the drain waits until the pod has completed.",
    )
    order: Whole = Field(
        default=0,
        description="Pods with a lower order are evicted first. The next order starts when all pods of the "
        "previous order are gone.",
    )


class EscalationSettings(Section):
    """What happens when a drain does not finish. Each stage but the warning is off unless it is set."""

    warn_after: Duration | None = Field(
        default=None,
        description="When a drain takes longer than this, the pods that block it are reported as warnings. "
        "Default: half of the time from the start of the drain to the date of its event, at most 5m.",
    )
    delete_before_deadline: Flag = Field(
        default=False,
        description="Whether the remaining pods are deleted when only their grace period is left before the "
        "platform takes the node. A deletion does not respect PodDisruptionBudgets.",
    )
    force_delete_stuck_after: Duration | None = Field(
        default=None,
        description="Pods on an unreachable node that are terminating for longer than this are deleted with "
        "a grace period of 0. Two pods of a StatefulSet with the same name may then run at once. "
        "Default: never.",
    )


class Drain(Section):
    """How nodes are drained."""

    timeout: Duration = Field(
        default=timedelta(minutes=30),
        description="How long the drain of a node may take. Then it ends, the pods that block it are "
        "reported, and the next pass tries again.",
    )
    max_concurrent_nodes: Count = Field(
        default=10,
        description="The largest number of nodes whose drains make progress at once. A drain that is "
        "blocked, for example by a PodDisruptionBudget, takes no place from others. It continues when it "
        "has a place again. A node with an event of `budget.exempt` that is due needs no place.",
    )
    ignore_daemon_sets: Flag = Field(
        default=True,
        description="Whether pods of DaemonSets stay. The DaemonSet controller would create them again on "
        "the same node.",
    )
    max_grace_period: Duration | None = Field(
        default=None,
        description="The upper limit for the termination grace period of the pods. Default: no limit.",
    )
    pods_may_wait: Duration = Field(
        default=timedelta(hours=1),
        description="How long the drain waits for pods that ask to finish first by a label or annotation "
        "of their own (`wait-completed`, `karpenter.sh/do-not-disrupt`, `safe-to-evict: on-completion`), "
        "counted from the start of the maintenance of the node. If an event has a date, the wait ends "
        "earlier, so that the grace period of the pod ends before that date. Then the pod is evicted. There "
        "is no wait for an event of `budget.exempt` without a date. Rules have no such limit. 0s: the drain "
        "does not wait.",
    )
    webhooks_may_deny: Duration = Field(
        default=MAY_BE_DENIED,
        description="How long an admission webhook or policy may deny the eviction of a pod before the pod "
        "counts as blocked. Meanwhile the drain keeps its place in `maxConcurrentNodes` and tries again. "
        "Some webhooks deny an eviction and then let a controller move the pod. 0s: the pod counts as "
        "blocked at once.",
    )
    groups_together: Duration = Field(
        default=timedelta(hours=1),
        description="Nodes with pods of one group (JobSet, LeaderWorkerSet, PodGroup) start together, if "
        "their planned starts are no further apart than this: all of them at the earliest of these "
        "starts, as far as windows and the budget allow it. The group is then disrupted once. 0s: each node "
        "starts at its own time.",
    )
    skip_pods: tuple[PodSelector, ...] | None = Field(
        default=None, description="Pods that stay on the node, as a list of selectors. Default: none."
    )
    rules: tuple[DrainRule, ...] = Field(
        default=(),
        description="Rules for selected pods: what is done with them, and in which order. The first rule "
        "that matches a pod applies.",
    )
    escalation: EscalationSettings | None = Field(
        default=None,
        description="What happens when a drain does not finish. Default: the next pass tries again.",
    )
    restart_singletons: Flag = Field(
        default=False,
        description="Whether a Deployment with one replica is restarted when a PodDisruptionBudget blocks "
        "the eviction of its pod. The new pod then starts on another node before the old one stops. The "
        "restart changes the pod template of the Deployment.",
    )
    pod_events: Flag = Field(
        default=True,
        description="Whether the owner of evicted pods, such as their Deployment, gets an Event with the "
        "reason and the date for each drain of a node. This needs the permission to create Events in all "
        "namespaces, which `k8s/base` grants. Without it, the drain goes on without these Events.",
    )
    parallel_per_node: Count = Field(
        default=20,
        description="The largest number of eviction requests in flight for one node. One watch can follow "
        "about this many.",
    )
    parallel: Count = Field(
        default=50,
        description="The largest number of eviction requests in flight for all nodes. An API server admits "
        "200 mutating requests at once by default.",
    )
