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

    namespaces: tuple[Text, ...] = Field(default=(), description="Their namespaces. Default: all.")
    selector: Selector = Field(default=EVERYTHING, description="The labels of the pods. Default: all.")


class DrainRule(Section):
    """What a drain does with the selected pods, and in which order."""

    name: Text = Field(description="Its name in reports.")
    pods: Selector = Field(default=EVERYTHING, description="The labels of the pods. Default: all.")
    namespaces: Namespaces = Field(
        default=EVERYTHING,
        description="Names of namespaces, or a selector for their labels. Default: all.",
    )
    behavior: Behavior = Field(
        default=Behavior.DRAIN,
        description="Drain: they are evicted. Skip: they stay. WaitCompleted: the drain waits until they "
        "have completed.",
    )
    order: Whole = Field(
        default=0,
        description="Lower orders are evicted first; the next one starts when they are gone.",
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
        description="Whether the rest is deleted, without regard to PodDisruptionBudgets, when only its "
        "grace period is left.",
    )
    force_delete_stuck_after: Duration | None = Field(
        default=None,
        description="When pods that terminate on an unreachable node are deleted with a grace period of 0. "
        "Two of a StatefulSet may then have one name. Default: never.",
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
        description="The most nodes whose drains make progress at once. Blocked drains, and due events of "
        "`budget.exempt`, need no place.",
    )
    ignore_daemon_sets: Flag = Field(
        default=True,
        description="Whether pods of DaemonSets stay.",
    )
    max_grace_period: Duration | None = Field(
        default=None,
        description="The limit for the grace period of pods. Default: none.",
    )
    pods_may_wait: Duration = Field(
        default=timedelta(hours=1),
        description="How long a drain waits for pods that ask to finish first (docs/draining.md). Rules "
        "have no such limit.",
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
        default=(),
        description="What is done with pods, and in which order. The first match applies.",
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
    pod_events: Flag = Field(
        default=True,
        description="Whether the owner of evicted pods gets an Event (docs/operating.md#events-on-pods).",
    )
    parallel_per_node: Count = Field(
        default=20,
        description="The most evictions in flight for a node.",
    )
    parallel: Count = Field(
        default=50,
        description="The same for all nodes.",
    )
