"""`drain`: how nodes are emptied."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from reconciler.model.drains import Behavior
from reconciler.model.selector import EVERYTHING
from reconciler.settings.sections.fields import Count, Duration, Flag, Namespaces, Selector, Text, Whole
from reconciler.settings.sections.section import Section


class PodSelector(Section):
    """Some pods."""

    namespaces: tuple[Text, ...] = Field(
        default=(), description="The namespaces' names. Default: all of them."
    )
    selector: Selector = Field(default=EVERYTHING, description="The pods' labels. Default: all pods.")


class DrainRule(Section):
    """What a drain does with some pods, and in which order."""

    name: Text = Field(description="What reports call it. No default: every rule has one.")
    pods: Selector = Field(default=EVERYTHING, description="The pods' labels. Default: all pods.")
    namespaces: Namespaces = Field(
        default=EVERYTHING, description="The namespaces, by a list of names or by their labels. Default: all."
    )
    behavior: Behavior = Field(
        default=Behavior.DRAIN,
        description="Drain: the pod is evicted in the rule's order. Skip: it stays. WaitCompleted: it is "
        "left to finish, and waited for.",
    )
    order: Whole = Field(
        default=0,
        description="Lower goes first; a drain goes on to the next only when all of one order have gone.",
    )


class EscalationSettings(Section):
    """What happens when a drain doesn't finish; each stage is off unless it is set."""

    warn_after: Duration | None = Field(
        default=None, description="After so long, what blocks is named loudly. Default: never."
    )
    delete_before_deadline: Flag = Field(
        default=False,
        description="Whether pods are deleted, which asks no PodDisruptionBudget, once only their grace "
        "period is left before the platform's own time. Default: false: a budget is somebody's word.",
    )
    force_delete_stuck_after: Duration | None = Field(
        default=None,
        description="Pods that have been terminating for so long on an unreachable node are deleted without "
        "grace. Default: never: two pods of one StatefulSet may then run at once.",
    )


class Drain(Section):
    """How nodes are emptied."""

    timeout: Duration = Field(
        default=timedelta(minutes=30),
        description="For one node; what blocks is then named, and tried again by the next pass.",
    )
    max_concurrent_nodes: Count = Field(default=10, description="How many nodes are drained at once.")
    ignore_daemon_sets: Flag = Field(
        default=True,
        description="Whether DaemonSets' pods stay: their controller would put them back at once.",
    )
    max_grace_period: Duration | None = Field(
        default=None, description="Caps the pods' own grace periods. Default: no cap."
    )
    skip_pods: tuple[PodSelector, ...] | None = Field(
        default=None, description="Pods that stay, as a list of selectors. Default: none."
    )
    rules: tuple[DrainRule, ...] = Field(
        default=(),
        description="What is done with which pods, in which order; the first rule that fits counts.",
    )
    escalation: EscalationSettings | None = Field(
        default=None,
        description="What happens when a drain doesn't finish. Default: nothing but to try again.",
    )
    restart_singletons: Flag = Field(
        default=False,
        description="Whether a Deployment of one replica that a budget protects is restarted, so that its "
        "new pod comes up elsewhere first. Default: false; it changes what somebody deployed.",
    )
    parallel_per_node: Count = Field(
        default=20,
        description="Eviction requests under way at once for one node. As much as one watch keeps up with.",
    )
    parallel: Count = Field(
        default=50,
        description="Eviction requests under way at once for all nodes: a small part of what an API server "
        "admits (200 changes at once).",
    )
