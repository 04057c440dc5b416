"""The order for a drain: how it treats pods, from the events that require it and the settings."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciler.model.drains import (
    Behavior,
    DrainOptions,
    DrainOrder,
    Escalation,
    Grace,
    PodRule,
    PodWaits,
    Refusals,
    WaitLimit,
)
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.record import KnownEvent
from reconciler.model.selector import LabelSelector
from reconciler.model.snapshot import Snapshot
from reconciler.model.values import replace
from reconciler.settings.draining import EscalationSettings
from reconciler.settings.policies import NodePolicies, Treatment
from reconciler.settings.schema import Settings

LATEST_WARNING = timedelta(minutes=5)
EARLIEST_WARNING = timedelta(seconds=10)
"""Even where no time is left: before it, the pods of any drain are still there."""


def drain_options(events: Iterable[KnownEvent], settings: Settings, policies: NodePolicies) -> DrainOptions:
    """Return how a drain for these events treats pods; a pod that one event allows to evict is evicted.

    `policies` are those of the node.
    """
    known = tuple(events)
    found = (policies[event.kind, event.condition] for event in known)
    meant = [policy for policy in found if policy is not None]
    drain = settings.drain

    def remedy(field: str) -> str:
        setting = evicting_setting(known, policies, field)
        if not setting:
            return "it stays, because the settings have no policy for an event of the node"
        return f"to evict it, set {setting}"

    return DrainOptions(
        ignore_daemonsets=drain.ignore_daemon_sets,
        evict_empty_dir=any(policy.empty_dir is Treatment.EVICT for policy in meant),
        evict_unmanaged=any(policy.unmanaged_pods is Treatment.EVICT for policy in meant),
        grace=Grace(longest=drain.max_grace_period),
        rules=pod_rules(settings),
        prefix=settings.keys.prefix,
        refusals=Refusals(
            empty_dir=f"has local storage ({remedy('empty_dir')})",
            unmanaged=f"has no controller ({remedy('unmanaged_pods')})",
        ),
    )


def evicting_setting(events: Iterable[KnownEvent], policies: NodePolicies, field: str) -> str:
    """Return which setting evicts the pods that `field` (`empty_dir`, `unmanaged_pods`) keeps.

    For example `events.Reboot.emptyDir: Evict`. Empty if the settings have no policy for these events on the
    node.
    """
    kinds = tuple(dict.fromkeys((event.kind, event.condition) for event in events))
    paths = [path for kind in kinds if (path := policies.path(*kind, field))]
    return " or ".join(f"{path}: {Treatment.EVICT}" for path in paths)


def pod_rules(settings: Settings) -> tuple[PodRule, ...]:
    """Return the rules for `drain.skipPods`, then `drain.rules`, in the order of the settings."""
    skips = tuple(
        PodRule(
            name=f"drain.skipPods[{number}]",
            pods=chosen.selector,
            namespaces=frozenset(chosen.namespaces) or None,
            behavior=Behavior.SKIP,
        )
        for number, chosen in enumerate(settings.drain.skip_pods or ())
    )
    rules = tuple(
        PodRule(
            name=rule.name,
            pods=rule.pods,
            namespaces=frozenset(rule.namespaces) if isinstance(rule.namespaces, tuple) else None,
            namespace_selector=rule.namespaces
            if isinstance(rule.namespaces, LabelSelector) and not rule.namespaces.selects_all
            else None,
            behavior=rule.behavior,
            order=rule.order,
        )
        for rule in settings.drain.rules
    )
    return (*skips, *rules)


def drain_order(
    node: Node,
    events: tuple[KnownEvent, ...],
    since: datetime,
    settings: Settings,
    snapshot: Snapshot,
    *,
    begun: datetime | None = None,
) -> DrainOrder:
    """Return the order for one node's drain; its deadline is the earliest `not_before` of its events.

    `since` is when this attempt began, `begun` when the node's maintenance did (UTC; None: the same).
    """
    escalation = settings.drain.escalation or EscalationSettings()
    deadline = min((event.not_before for event in events if event.not_before), default=None)
    began, held = begun or since, settings.held_pods
    own_wait = WaitLimit(began, settings.drain.pods_may_wait, _lost_from(events, began, settings))
    policies = settings.policies(node.labels)
    waits = PodWaits(own_wait)
    if held is not None:
        # Held pods may wait until the drain for the first of the events has to start.
        latest: datetime | None = None
        for event in events:
            lost, policy = _lost_from((event,), began, settings), policies[event.kind, event.condition]
            if lost is not None:
                starts = lost - (policy.lead_time if policy is not None else timedelta())
                latest = min(starts, latest or starts)
        waits = PodWaits(own_wait, WaitLimit(began, held.longest, latest), held.called)
    warn_after = escalation.warn_after
    if warn_after is None:
        left = (deadline - since) / 2 if deadline is not None else LATEST_WARNING
        warn_after = max(EARLIEST_WARNING, min(left, LATEST_WARNING))
    return DrainOrder(
        node=node.name,
        uid=node.uid,
        since=since,
        timeout=settings.drain.timeout,
        options=replace(drain_options(events, settings, policies), waits=waits),
        escalation=Escalation(
            warn_after=warn_after,
            delete_before_deadline=escalation.delete_before_deadline,
            deadline=deadline,
            force_stuck_after=escalation.force_delete_stuck_after,
        ),
        restart_singletons=settings.drain.restart_singletons,
        node_ready=node.ready,
        own_pod=snapshot.itself.pod,
        namespaces=snapshot.for_settings.namespaces,
        may_be_denied=settings.drain.webhooks_may_deny,
        why=why_drained(events),
    )


def why_drained(events: Iterable[KnownEvent]) -> str:
    """Return for which events a node is drained, with their dates: `Redeploy at 2026-11-23T22:00:00Z`.

    Owners of pods read it, so it has nothing that a source or a person wrote. Empty without events.
    """
    words = (
        f"the condition {event.condition}"
        if event.condition
        else f"{event.kind} at {to_text(event.not_before)}"
        if event.not_before is not None
        else f"{event.kind} without a date"
        for event in events
    )
    return " and ".join(dict.fromkeys(words))


def _lost_from(events: Iterable[KnownEvent], begun: datetime, settings: Settings) -> datetime | None:
    """Return when the platform takes the node at the earliest (UTC), None if no event has a date.

    Without a date, an event of `budget.exempt` takes the node at any moment, so no pod may wait.
    """
    dates = [event.not_before for event in events if event.not_before is not None]
    undated = any(event.not_before is None and event.kind in settings.budget.exempt for event in events)
    return min([*dates, *([begun] if undated else [])], default=None)
