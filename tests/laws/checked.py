"""What a state may not be, one definition for each law: for the properties, and for `tests.explore`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from reconciler.calendar.values import Limit
from reconciler.drain.filters import survey
from reconciler.model.azure import vm_name
from reconciler.model.errors import RecordUnreadable
from reconciler.model.event import Kind, Status
from reconciler.model.node import Node
from reconciler.model.plan import JudgedEvent, NodePlan
from reconciler.model.record import CaseRecord, State, from_annotation
from reconciler.profiles.case import allowed
from reconciler.profiles.orders import drain_options
from reconciler.settings.policies import OutsideWindow
from reconciler.settings.schema import Settings
from reconciler.simulation.cluster import SimulatedCluster
from tests.support.builders import ACKNOWLEDGE, IMDS, RECORD


def case_of(node: Node) -> CaseRecord:
    """Return what the default profile remembers of a node, nothing where its record can't be read."""
    return _case(node.annotations.get(RECORD, "null"), node.uid)


@lru_cache(maxsize=4096)
def _case(text: str, uid: str) -> CaseRecord:
    try:
        found = from_annotation(text, uid)
    except RecordUnreadable:
        return CaseRecord()
    return found.case("default") if found is not None else CaseRecord()


def in_our_hands(node: Node) -> bool:
    """Return whether the node's record says that it is in maintenance; a broken record does not."""
    return case_of(node).state is State.IN_MAINTENANCE


def long_gone(node: Node, policy: Settings, now: datetime) -> bool:
    """Return whether the node is down for so long that it holds no place, or has lost its VM for good."""
    if node.ready:
        return False
    case = case_of(node)
    taken = case.state is State.IN_MAINTENANCE and any(
        one.kind in (Kind.PREEMPT, Kind.TERMINATE)
        and (one.not_before is None or one.not_before <= (case.quiet_since or now))
        and (one.not_before is None or one.not_before <= now)
        for one in allowed(case)
    )
    changed = node.ready_changed
    return taken or (changed is not None and now - changed >= policy.budget.ignore.not_ready_for)


def tainted(node: Node) -> bool:
    """Return whether another tool took the node out of service by a taint."""
    keys = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "remediator.kubernetes.azure.com/")
    return any(taint.key.startswith(keys) for taint in node.taints)


def in_upgrade(node: Node) -> bool:
    """Return whether AKS upgrades the node, as its documentation words it."""
    reason = "kubernetes.azure.com/azure-cluster-autoscaler-scale-down-disabled-reason"
    disabled = node.annotations.get("cluster-autoscaler.kubernetes.io/scale-down-disabled")
    return disabled == "true" and node.annotations.get(reason) == "upgrade"


def _quarantined(node: Node, policy: Settings) -> bool:
    return policy.budget.ignore.quarantined and node.is_quarantined


def _down(node: Node) -> bool:
    return node.unschedulable or not node.ready or tainted(node) or in_upgrade(node)


def out(nodes: Iterable[Node], policy: Settings, now: datetime) -> set[str]:
    """Return the names of the nodes that are out of service and hold a place."""
    return {
        node.name
        for node in nodes
        if (in_our_hands(node) or (_down(node) and not _quarantined(node, policy)))
        and not long_gone(node, policy, now)
    }


def exempt(plan: NodePlan, node: Node, policy: Settings, now: datetime) -> bool:
    """Return whether the node waits for no place: an exempt event is due, or the platform has started one."""
    return any(
        one.asks
        and one.starts
        and (
            (one.event.kind in policy.budget.exempt and _is_due(one, node, policy, now))
            or one.event.status is Status.STARTED
        )
        for one in plan.events
    )


def _is_due(one: JudgedEvent, node: Node, policy: Settings, now: datetime) -> bool:
    event, meaning = one.event, policy.policies(node.labels).of_kind(one.event.kind)
    dated = event.status is Status.SCHEDULED and event.not_before is not None
    at_once = meaning.outside_window is OutsideWindow.IMMEDIATELY
    lead = max(meaning.lead_time, timedelta(minutes=15)) if at_once else meaning.lead_time
    return not dated or event.not_before is None or now >= event.not_before - lead


def full(limit: Limit | None, out: set[str], among: set[str]) -> bool:
    """Return whether the nodes that are out take every place of a limit among these nodes."""
    return limit is not None and len(out & among) >= limit.of(len(among))


def deadline_lets(one: JudgedEvent, node: Node, policy: Settings, now: datetime) -> bool:
    """Return what the deadline rule says, as the settings file words it."""
    event, meaning = one.event, policy.policies(node.labels).of_kind(one.event.kind)
    if policy.calendar.at(now, node.labels).absolute or meaning.outside_window is OutsideWindow.NEVER:
        return False
    if meaning.outside_window is OutsideWindow.IMMEDIATELY or event.date_unreadable:
        return True
    if event.status is Status.STARTED and not event.kind.is_pause:
        return True
    return event.not_before is not None and now >= event.not_before - meaning.lead_time


def acknowledged(cluster: SimulatedCluster) -> dict[str, list[str]]:
    """Return what the agents of the nodes are asked to acknowledge, by node."""
    return {
        name: json.loads(node.annotations[ACKNOWLEDGE])
        for name, node in cluster.nodes.items()
        if ACKNOWLEDGE in node.annotations
    }


def wrongly_acknowledged(cluster: SimulatedCluster, policy: Settings, now: datetime) -> list[str]:
    """Return what is acknowledged and must not be (law 12), each with the reason."""
    return [
        f"{name}: {event_id}: {why}"
        for name, ids in acknowledged(cluster).items()
        for event_id in ids
        if (why := _why_not(event_id, cluster, policy, now))
    ]


def _why_not(event_id: str, cluster: SimulatedCluster, policy: Settings, now: datetime) -> str:
    published = {
        name: [one for one in _published(node) if one["EventId"].casefold() == event_id.casefold()]
        for name, node in cluster.nodes.items()
        # What an unready agent published earlier no longer counts.
        if name not in cluster.agents.not_ready
    }
    named = {str(vm).casefold() for some in published.values() for one in some for vm in one["Resources"]}
    if not named:
        return "it names nobody"
    for vm in sorted(named):
        nodes = [
            node for node in cluster.nodes.values() if (vm_name(node.provider_id) or "").casefold() == vm
        ]
        if len(nodes) != 1:
            return f"VM {vm} is {[node.name for node in nodes]}"
        node = nodes[0]
        if why := _not_ready_for_it(node, published.get(node.name, []), policy):
            return f"{node.name} {why}"
        # No pod goes for an event for which the drain may not begin yet.
        options = drain_options(allowed(case_of(node)), policy, policy.policies(node.labels))
        left = survey(cluster.pods_on(node.name), options, now=now)
        if not left.drained:
            return f"{node.name} still has {[one.pod.key for one in (*left.to_go, *left.waiting)]}"
    return ""


def _published(node: Node) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = json.loads(node.annotations.get(IMDS, '{"events":[]}'))["events"]
    except (ValueError, TypeError, KeyError):
        return []
    return found


def _not_ready_for_it(node: Node, published: list[dict[str, Any]], policy: Settings) -> str:
    if not published:
        return "has not reported it"
    if any(one["EventStatus"] != "Scheduled" for one in published):
        return "is being worked on"
    kinds = [Kind(one["EventType"]) for one in published]
    if not all(policy.policies(node.labels).of_kind(kind).says("acknowledge") for kind in kinds):
        return "is not to be acknowledged by its settings"
    record = case_of(node)
    if record.state is not State.IN_MAINTENANCE:
        return "is not in maintenance"
    if not node.unschedulable:
        return "is open"
    if record.drain is None or record.drain.done is None:
        return "is not drained"
    return ""
