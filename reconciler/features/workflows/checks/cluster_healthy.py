"""clusterHealthy: whether the cluster is well enough to lose one more node."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from reconciler.features.workflows.input import CheckInput, Fleet
from reconciler.features.workflows.plugins import check_type
from reconciler.model import limits
from reconciler.model.check_reads import Needs, PrometheusQuery
from reconciler.model.moments import shifted
from reconciler.model.plan import Verdict
from reconciler.profiles.plugins import CheckResult, failed, passed, unknown
from reconciler.settings.sections.check_types import ClusterHealthyCheck, PrometheusAlerts

FIRING = 'ALERTS{alertstate="firing"}'
"""The query for the alerts that fire."""

_NAMED_AT_MOST = 3


def _query(alerts: PrometheusAlerts) -> PrometheusQuery:
    return PrometheusQuery(alerts.url, FIRING)


def _needs(config: ClusterHealthyCheck) -> Needs:
    queries = frozenset({_query(config.alerts)}) if config.alerts is not None else frozenset()
    return Needs(queries=queries, all_pods=config.max_pending is not None)


@check_type("clusterHealthy", ClusterHealthyCheck, _needs)
def cluster_healthy(config: ClusterHealthyCheck, given: CheckInput) -> CheckResult:
    """Pass when few enough nodes are NotReady, few enough pods wait for long, and no alert fires.

    Only what is configured is checked. Nodes in maintenance and cordoned nodes do not count as NotReady:
    maintenance makes them so.
    """
    nodes = partial(_nodes, config, given.members)
    parts = [given.members.once(("clusterHealthy", config.max_not_ready), nodes)]
    if config.max_pending is not None:
        parts.append(_pods(config, config.max_pending, given))
    if config.alerts is not None:
        parts.append(_alerts(config.alerts, given))
    for verdict, answer in ((Verdict.FAILED, failed), (Verdict.UNKNOWN, unknown)):
        if found := [one.reason for one in parts if one.verdict is verdict]:
            return answer("; ".join(found))
    return passed("; ".join(one.reason for one in parts))


def _nodes(config: ClusterHealthyCheck, members: Fleet) -> CheckResult:
    serving = [one.node for one in members if not one.in_maintenance and not one.node.unschedulable]
    broken = sorted(node.name for node in serving if not node.ready)
    most = config.max_not_ready.of(len(serving))
    if len(broken) > most:
        return failed(f"NotReady nodes: {len(broken)} ({_named(broken)}), at most {most} may be")
    return passed(f"NotReady nodes: {len(broken)}")


def _pods(config: ClusterHealthyCheck, most: int, given: CheckInput) -> CheckResult:
    if given.read.unread_pods:
        return unknown(f"the pods can't be read: {given.read.unread_pods}")
    key = ("clusterHealthy", config.pending_for, config.namespaces, given.now)
    waiting = given.read.of_pods(key, partial(_waiting, config, given))
    if len(waiting) > most:
        return failed(f"Pending pods: {len(waiting)} ({_named(waiting)}), at most {most} may be")
    return passed(f"Pending pods: {len(waiting)}")


def _waiting(config: ClusterHealthyCheck, given: CheckInput) -> list[str]:
    """Return the pods that are Pending for longer than they may be, sorted."""
    before = shifted(given.now, -config.pending_for)
    return sorted(
        pod.key
        for pods in given.read.pods.values()
        for pod in pods
        if pod.phase == "Pending"
        and pod.deleting_until is None
        and (not config.namespaces or pod.namespace in config.namespaces)
        and _is_older(pod.created, before)
    )


def _is_older(created: datetime | None, before: datetime) -> bool:
    return created is not None and created <= before


def _alerts(config: PrometheusAlerts, given: CheckInput) -> CheckResult:
    answer = given.read.answer(_query(config))
    if answer.problem:
        return unknown(f"the alerts of Prometheus: {answer.problem}")
    names = {one.labels.get("alertname", "an alert without a name") for one in answer.samples}
    firing = sorted(names.difference(config.ignore))
    if firing:
        return failed(f"alerts that fire: {_named(firing)}")
    return passed("no alert fires")


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
    return limits.text(f"{', '.join(names[:_NAMED_AT_MOST])}{more}", 300)
