"""Azure moves a VM: the Pods of its node end in their own time, and only those that the policy moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.nodes.cluster import Cluster, Object, await_
from tests.nodes.node import Node
from tests.nodes.scene import (
    LATE,
    SETTLE,
    WORK,
    bare_pod,
    controller,
    enforcing,
    longest_without,
    namespace,
    prefer,
    without_replica,
)
from tests.nodes.workloads import BEAT, Life, pod_spec
from tests.support.controlplane.workloads import budget

STAY = ("bare", "watcher", "guarded")
"""A Pod without a controller, one of a DaemonSet, and one whose budget allows no disruption."""

MOVE = ("web", "db", "scratch", "batch", "slow")


def play(cluster: Cluster) -> str:
    """Announce a Redeploy of a node that has one of each, let it happen, and compare what they recorded."""
    with enforcing(cluster) as replicas:
        node = without_replica(cluster, replicas)
        with cluster.applied(workloads(node)):
            await_("Pods that run", lambda: len(_running(cluster)) == 10 + len(cluster.nodes), seconds=90)
            return _judge(cluster, node)


def _judge(cluster: Cluster, node: Node) -> str:
    placed = {life.pod for life in cluster.lives(WORK) if life.node == node.name}
    for app in (*STAY, *MOVE):
        assert any(pod.startswith(app) for pod in placed), f"no Pod of {app} on {node.name}: {placed}"
    announced = datetime.now(UTC)
    cluster.announce(node, "Redeploy", announced + timedelta(minutes=10), event_id="A1")
    await_("a cordon", lambda: cluster.cordoned(node), seconds=20)
    await_("the move", lambda: _apps(cluster, node) == set(STAY), seconds=120)
    await_("new Pods", lambda: len(_running(cluster)) == 10 + len(cluster.nodes), seconds=60)
    # A person who owns it lets the last one go.
    cluster.api.patch("poddisruptionbudgets", "guarded", {"spec": {"maxUnavailable": 1}}, WORK)
    await_("the move of the last", lambda: _apps(cluster, node) == set(STAY) - {"guarded"}, seconds=90)
    drained = datetime.now(UTC)
    await_("the end of the drain", lambda: cluster.said(node, "MaintenanceDrained"), seconds=60)
    cluster.announce(node, "Redeploy", status="Started", event_id="A1")
    ended = datetime.now(UTC)
    cluster.call_off(node)
    await_("the uncordon", lambda: not cluster.cordoned(node), seconds=SETTLE + 60)

    cordon = cluster.cordons(node)[0].timestamp
    evictions = [
        entry
        for entry in cluster.audit(verbs=["create"])
        if entry.subresource == "eviction" and entry.code == 201 and entry.namespace == WORK
    ]
    # Not by name alone: a StatefulSet's next Pod has the same.
    lives = {life.pod: life for life in cluster.lives(WORK) if life.node == node.name}
    evicted = {entry.name for entry in evictions}
    expected = {pod for pod in placed if not pod.startswith(STAY[:2])}
    assert evicted == expected, f"evicted were {evicted}, and not {expected}"
    assert cordon <= min(entry.timestamp for entry in evictions), "a Pod went before the cordon"
    for pod in placed - expected:
        assert lives[pod].sigterm is None, f"{pod} got SIGTERM"
        assert lives[pod].last >= ended.timestamp(), f"{pod} did not live on"
    for life in (lives[pod] for pod in expected):
        _ended_in_its_own_time(life)
    _never_two_of_one_name(cluster)
    away = longest_without(cluster, "web")
    assert away == 0, f"no Pod of web lived for {away:.1f} s, in spite of its budget"
    assert not (refused := cluster.refused()), f"it was not allowed to ask {refused}"
    (uncordon,) = cluster.cordons(node, undone=True)
    settled = (uncordon.timestamp - ended).total_seconds()
    # Times of conditions have whole seconds.
    assert settled >= SETTLE - 1, f"uncordoned {settled:.1f} s after the end of the event"
    cordoned = (cordon - announced).total_seconds()
    grace = lives[next(pod for pod in expected if pod.startswith("slow"))]
    assert grace.sigterm is not None
    took = (drained - announced).total_seconds()
    return (
        f"Cordoned after {cordoned:.2f} s, {len(expected)} Pods moved in {took:.0f} s in their own time,"
        f" {len(placed - expected)} stayed. The one that goes on after SIGTERM was killed"
        f" {grace.last - grace.sigterm:.1f} s after it (grace {SLOW_GRACE} s). Uncordoned {settled:.0f} s"
        " after the end of the event"
    )


HOOK, ENDS = 3, 2
SLOW_GRACE = 8


def workloads(node: Node) -> list[Object]:
    """Return one of each kind, which begin on this node and may go elsewhere."""
    here = prefer(node)
    patient: Any = {"hook": HOOK, "ends_after": ENDS, **here}
    disk: Any = {"volumes": [{"name": "scratch", "emptyDir": {}}]}
    return [
        namespace(),
        controller("Deployment", "web", pod_spec(serves=True, **patient), replicas=3),
        budget("web", namespace=WORK, min_available=1),
        controller(
            "StatefulSet",
            "db",
            pod_spec(ends_after=ENDS, **here),
            replicas=2,
            serviceName="db",
            podManagementPolicy="Parallel",
        ),
        controller("Deployment", "scratch", pod_spec(ends_after=ENDS, **disk, **here), replicas=1),
        controller("Deployment", "slow", pod_spec(ends_after=60, grace=SLOW_GRACE, **here), replicas=1),
        controller("Deployment", "guarded", pod_spec(ends_after=ENDS, **here), replicas=1),
        budget("guarded", namespace=WORK, max_unavailable=0),
        controller("DaemonSet", "watcher", pod_spec(tolerations=[{"operator": "Exists"}])),
        bare_pod("bare", pod_spec(**here)),
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "batch", "namespace": WORK},
            "spec": {
                "template": {
                    "metadata": {"labels": {"app": "batch"}},
                    "spec": pod_spec(ends_after=ENDS, restartPolicy="Never", **here),
                }
            },
        },
    ]


def _running(cluster: Cluster) -> list[Object]:
    return cluster.ready_pods(WORK)


def _apps(cluster: Cluster, node: Node) -> set[str]:
    """Return the apps that have a Pod on a node, one that ends included."""
    pods = (pod for pod in cluster.pods(WORK) if pod["spec"].get("nodeName") == node.name)
    return {pod["metadata"]["labels"]["app"] for pod in pods}


def _ended_in_its_own_time(life: Life) -> None:
    assert life.sigterm is not None, f"{life.pod} was killed without SIGTERM"
    if life.pod.startswith("web"):
        assert life.hook_began is not None
        assert life.hook_ended is not None, f"the hook of {life.pod} was cut off"
        assert life.hook_ended - life.hook_began + BEAT >= HOOK
        assert life.hook_ended <= life.sigterm + BEAT, f"{life.pod} got SIGTERM during its hook"
    took = life.last - life.sigterm
    if life.pod.startswith("slow"):
        assert took >= SLOW_GRACE - 3 * BEAT, f"{life.pod} was killed after {took:.1f} s"
        assert life.end is None
        assert took <= SLOW_GRACE + LATE
    else:
        assert life.end is not None, f"{life.pod} was killed {took:.1f} s after SIGTERM"
        assert took >= ENDS - BEAT


def _never_two_of_one_name(cluster: Cluster) -> None:
    lives = [life for life in cluster.lives(WORK) if life.pod.startswith("db-")]
    for name in {life.pod for life in lives}:
        same = [life for life in lives if life.pod == name]
        assert len(same) == 2, f"{name} has {len(same)} lives"
        assert same[0].last < same[1].start, f"two Pods {name} lived at once"
