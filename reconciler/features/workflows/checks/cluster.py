"""Checks of the cluster: how many nodes, which versions, what Prometheus says."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial, total_ordering

from msgspec import Struct

from reconciler.features.workflows.check_types import (
    ClusterHealthyCheck,
    ClusterSemverCheck,
    KeylessCheck,
    MaxMaintenanceCheck,
    NodeCountCheck,
    PrometheusAlerts,
    PrometheusInstantCheck,
    StaggerCheck,
)
from reconciler.features.workflows.reading import Needs
from reconciler.features.workflows.services import PrometheusQuery
from reconciler.features.workflows.situation import Fleet, Member, WorkflowSituation, check_type
from reconciler.features.workflows.value_expression import ValueExpressionError, parse_value_expression
from reconciler.model import limits
from reconciler.model.holds import NOBODY, SETTINGS
from reconciler.model.leases import LeaseRef, LeaseTake
from reconciler.model.limits import count_of
from reconciler.model.moments import shifted, to_text
from reconciler.model.plan import Verdict
from reconciler.profiles.checks.starts import budget_left
from reconciler.profiles.vocabulary import CheckResult, failed, passed, unknown


@check_type(
    "budget",
    KeylessCheck,
    who=f"whoever can bring these nodes back into service; or {SETTINGS}: `budget`",
    by_itself=True,
)
def budget(_config: KeylessCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when one more node may be out of service, the node holds a place, or it is lost anyway."""
    platform = situation.platform
    if platform is None:
        return unknown("the budget of the settings is not read")
    answer = budget_left.ask(platform)
    return answer if answer.reason else passed("the budget has a place for the node")


@check_type(
    "nodeCount",
    NodeCountCheck,
    who=f"whoever can add nodes to the cluster; or {SETTINGS}: `count` of the check",
)
def node_count(config: NodeCountCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when the cluster has at least so many nodes, managed or not."""
    count = len(situation.members)
    if count < config.count:
        return failed(f"the cluster has {count_of(count, 'node')}, and needs {config.count}")
    return passed(f"the cluster has {count_of(count, 'node')}")


@check_type(
    "maxMaintenance",
    MaxMaintenanceCheck,
    needs=lambda config: Needs(labels=frozenset(config.labels)),
    who=f"{NOBODY} when the other nodes are back; or {SETTINGS}: `max` of the check",
    by_itself=True,
)
def max_maintenance(config: MaxMaintenanceCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass while fewer than `max` nodes are in maintenance, of those that count.

    A node counts whatever profile it is in maintenance for. With `profile` it has to have that profile, with
    `groupBy` the labels of this node. With `skipAfter` it stops counting that long after its last transition.
    """
    group = {key: value for key in config.labels if (value := situation.node.labels.get(key))}
    key = ("maxMaintenance", config.max, config.profile, config.skip_after, situation.now, *group.items())
    return situation.members.once(key, partial(_answer, config, group, situation))


def _answer(
    config: MaxMaintenanceCheck, group: Mapping[str, str], situation: WorkflowSituation
) -> CheckResult:
    busy = situation.members.once("inMaintenance", partial(_in_maintenance, situation.members))
    counted = {
        member.node.name: ends
        for member in busy
        if (not config.profile or config.profile in member.profiles)
        and all(member.node.labels.get(key) == value for key, value in group.items())
        and ((ends := _ends(member, config)) is None or situation.now < ends)
    }
    scope = f" with {', '.join(f'{key}={value}' for key, value in group.items())}" if group else ""
    if config.profile:
        scope += f" with the profile {config.profile}"
    names = f" ({limits.first_of(sorted(counted))})" if counted else ""
    said = f"nodes{scope} in maintenance: {len(counted)}{names}, the limit is {config.max}"
    if len(counted) < config.max:
        return passed(said)
    # As many have to stop counting as there are too many.
    stops = sorted(ends for ends in counted.values() if ends is not None)
    many = len(counted) - config.max
    return failed(said, stops[many] if config.max and many < len(stops) else None)


def _in_maintenance(members: Fleet) -> tuple[Member, ...]:
    return tuple(member for member in members if member.in_maintenance)


def _ends(member: Member, config: MaxMaintenanceCheck) -> datetime | None:
    profiles = member.data.profiles
    chosen = [profiles[config.profile]] if config.profile in profiles else []
    moments = [one.transition for one in (chosen if config.profile else profiles.values())]
    if not config.skip_after or not moments:
        return None
    return shifted(max(moments), config.skip_after)


_AFTER = timedelta(microseconds=1)


def _refs(config: StaggerCheck) -> tuple[LeaseRef, ...]:
    return tuple(LeaseRef(*place) for place in config.leases)


def _free(config: StaggerCheck, situation: WorkflowSituation) -> LeaseRef | None:
    """Return the first Lease that a node may take: it does not exist, was never taken, or has expired."""
    for ref in _refs(config):
        if ref not in situation.read.leases:
            continue
        seen = situation.read.leases[ref]
        if seen is None or seen.until is None or seen.until < situation.now:
            return ref
    return None


def _take(config: StaggerCheck, situation: WorkflowSituation) -> LeaseTake | None:
    ref = _free(config, situation)
    if ref is None:
        return None
    return LeaseTake(ref, situation.node.name, situation.now, config.duration, situation.read.leases[ref])


@check_type(
    "stagger",
    StaggerCheck,
    needs=lambda config: Needs(leases=frozenset(_refs(config))),
    takes=_take,
    who=f"{NOBODY} when a Lease ends; or {SETTINGS}: `duration` and `parallel` of the check",
    by_itself=True,
)
def stagger(config: StaggerCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when a Lease is free. The node takes it only if the transition really happens."""
    free = _free(config, situation)
    if free is not None:
        return passed(f"the Lease {free} is free")
    unread = [
        f"{ref}: {situation.read.unread_leases.get(ref, 'it was not read')}"
        for ref in _refs(config)
        if ref not in situation.read.leases
    ]
    held = [(seen.until, ref, seen) for ref in _refs(config) if (seen := situation.read.leases.get(ref))]
    taken = [one for one in held if one[0] is not None]
    first = min((until for until, _, _ in taken if until is not None), default=None)
    until = first + _AFTER if first is not None else None
    if unread:
        return unknown(f"a Lease can't be read: {unread[0]}", until)
    _, ref, seen = min(taken, key=lambda one: (one[0] is None, one[0], one[1]))
    shown = f", until {to_text(first)}" if first is not None else ""
    return failed(f"node {seen.holder or 'unknown'} has taken the Lease {ref}{shown}", until)


FIRING = 'ALERTS{alertstate="firing"}'
"""The query for the alerts that fire."""


def _cluster_healthy_needs(config: ClusterHealthyCheck) -> Needs:
    queries = (
        frozenset({PrometheusQuery(config.alerts.url, FIRING)}) if config.alerts is not None else frozenset()
    )
    return Needs(queries=queries, all_pods=config.max_pending is not None)


@check_type(
    "clusterHealthy",
    ClusterHealthyCheck,
    needs=_cluster_healthy_needs,
    who="whoever can repair what the reason names: `kubectl get nodes,pods -A`",
)
def cluster_healthy(config: ClusterHealthyCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when few enough nodes are NotReady, few enough pods wait for long, and no alert fires.

    Only what is configured is checked. Nodes in maintenance and cordoned nodes do not count as NotReady:
    maintenance makes them so.
    """
    nodes = partial(_nodes, config, situation.members)
    parts = [situation.members.once(("clusterHealthy", config.max_not_ready), nodes)]
    if config.max_pending is not None:
        parts.append(_pods(config, config.max_pending, situation))
    if config.alerts is not None:
        parts.append(_alerts(config.alerts, situation))
    for verdict, answer in ((Verdict.FAILED, failed), (Verdict.UNKNOWN, unknown)):
        if found := [one.reason for one in parts if one.verdict is verdict]:
            return answer("; ".join(found))
    return passed("; ".join(one.reason for one in parts))


def _nodes(config: ClusterHealthyCheck, members: Fleet) -> CheckResult:
    serving = [one.node for one in members if not one.in_maintenance and not one.node.unschedulable]
    broken = sorted(node.name for node in serving if not node.ready)
    most = config.max_not_ready.of(len(serving))
    if len(broken) > most:
        return failed(f"NotReady nodes: {len(broken)} ({_some_names(broken)}), at most {most} may be")
    return passed(f"NotReady nodes: {len(broken)}")


def _pods(config: ClusterHealthyCheck, most: int, situation: WorkflowSituation) -> CheckResult:
    if situation.read.unread_pods:
        return unknown(f"the pods can't be read: {situation.read.unread_pods}")
    key = ("clusterHealthy", config.pending_for, config.namespaces, situation.now)
    waiting = situation.read.of_pods(key, partial(_waiting, config, situation))
    if len(waiting) > most:
        return failed(f"Pending pods: {len(waiting)} ({_some_names(waiting)}), at most {most} may be")
    return passed(f"Pending pods: {len(waiting)}")


def _waiting(config: ClusterHealthyCheck, situation: WorkflowSituation) -> list[str]:
    before = shifted(situation.now, -config.pending_for)
    return sorted(
        pod.key
        for pods in situation.read.pods.values()
        for pod in pods
        if pod.phase == "Pending"
        and pod.deleting_until is None
        and (not config.namespaces or pod.namespace in config.namespaces)
        and pod.created is not None
        and pod.created <= before
    )


def _alerts(config: PrometheusAlerts, situation: WorkflowSituation) -> CheckResult:
    answer = situation.read.answer(PrometheusQuery(config.url, FIRING))
    if answer.problem:
        return unknown(f"the alerts of Prometheus: {answer.problem}")
    names = {one.labels.get("alertname", "an alert without a name") for one in answer.samples}
    firing = sorted(names.difference(config.ignore))
    if firing:
        return failed(f"alerts that fire: {_some_names(firing)}")
    return passed("no alert fires")


def _some_names(names: list[str]) -> str:
    return limits.text(limits.first_of(names), 300)


_NUMBER = r"(?:0|[1-9][0-9]{0,18})"
_WORD = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_WORD}(?:\.{_WORD})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_LONGEST = 63


@total_ordering
class Version(Struct, frozen=True):
    """A version by semver.org 2.0.0, without its build metadata, which has no order."""

    numbers: tuple[int, int, int]
    before_release: tuple[str, ...] = ()

    def __lt__(self, other: Version) -> bool:
        """Compare by precedence (semver.org, 11)."""
        if self.numbers != other.numbers:
            return self.numbers < other.numbers
        if not self.before_release or not other.before_release:
            return bool(self.before_release) and not other.before_release
        return _ranks(self.before_release) < _ranks(other.before_release)


def _ranks(words: Sequence[str]) -> list[tuple[bool, int, str]]:
    # Numbers come before words.
    return [(False, int(word), "") if word.isdigit() else (True, 0, word) for word in words]


_LOWEST = Version((0, 1, 0))
"""maintenance-controller compares with this version, too."""


def version(text: str) -> Version | None:
    """Return the version, None for any other text, such as `v1.2.3`."""
    found = _VERSION.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    numbers = (int(found[1]), int(found[2]), int(found[3]))
    return Version(numbers, tuple(found[4].split(".")) if found[4] else ())


@check_type(
    "clusterSemver",
    ClusterSemverCheck,
    needs=lambda config: Needs(labels=frozenset({config.key})),
    who=f"{NOBODY} when a node with a newer version joins",
    by_itself=True,
)
def cluster_semver(config: ClusterSemverCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when the node's version is below the newest one of the cluster, or of the nodes with the profile.

    Labels of other nodes that are no version are ignored. One of this node makes the answer unknown.
    """
    text = situation.node.labels.get(config.key)
    if text is None:
        return unknown(f"the node has no label {config.key} with its version")
    own = version(text)
    if own is None:
        return unknown(f"the label {config.key} is {text!r}, which is no version like 1.34.7")
    scope = situation.profile if config.profile_scoped else ""
    key = ("clusterSemver", config.key, scope)
    newest, shown = situation.members.once(key, partial(_newest, config.key, scope, situation.members))
    if own < newest:
        return passed(f"{config.key} is {text}, and {shown} is newer")
    return failed(f"no node has a newer {config.key} than {text}")


def _newest(key: str, profile: str, members: Fleet) -> tuple[Version, str]:
    chosen = (member for member in members if not profile or profile in member.profiles)
    labels = {member.node.labels.get(key, "") for member in chosen}
    found = [(one, label) for label in sorted(labels) if (one := version(label)) is not None]
    return max((*found, (_LOWEST, "0.1.0")), key=lambda one: one[0])


_SHOWN = 200
"""Characters of a query in the reason of an answer."""


def _prometheus_instant_query(config: PrometheusInstantCheck) -> PrometheusQuery:
    return PrometheusQuery(config.url.strip(), config.query)


def _prometheus_instant_needs(config: PrometheusInstantCheck) -> Needs:
    return Needs() if config.unusable else Needs(queries=frozenset({_prometheus_instant_query(config)}))


@check_type(
    "prometheusInstant",
    PrometheusInstantCheck,
    needs=_prometheus_instant_needs,
    who=f"whoever can change what the query measures; or {SETTINGS}: `expr` of the check",
)
def prometheus_instant(config: PrometheusInstantCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when the expression is true for the only sample.

    It is unknown without an answer, or when the configuration can't be used.
    """
    if config.unusable:
        # What is wrong with a URL may have a password in it.
        keys = ", ".join(key for key, _ in config.unusable)
        return unknown(f"Prometheus is not asked, because of {keys}: see reconciler check-config")
    answer = situation.read.answer(_prometheus_instant_query(config))
    said = f"Prometheus, {limits.text(config.query, _SHOWN)}"
    if answer.problem:
        return unknown(f"{said}: {answer.problem}")
    if len(answer.samples) != 1:
        return unknown(f"{said}: the query returns {len(answer.samples)} samples, not exactly one")
    value = answer.samples[0].value
    if math.isnan(value):
        return unknown(f"{said}: the value is NaN, which is no number")
    try:
        holds = parse_value_expression(config.expr).holds(value)
    except ValueExpressionError as error:
        return unknown(f"{said}: {config.expr} has no answer for {value:g}: {error}")
    found = f"{said}: the value is {value:g}, and {config.expr} is {'true' if holds else 'false'}"
    return passed(found) if holds else failed(found)
