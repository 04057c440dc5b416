"""The image of another version is rolled out in the middle of a drain, and then the first one again."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from tests.nodes import images
from tests.nodes.cluster import NAMESPACE, Cluster, await_
from tests.nodes.node import Node
from tests.nodes.scene import SETTLE, WORK, controller, enforcing, namespace, prefer, without_replica
from tests.nodes.workloads import pod_spec
from tests.support.controlplane.audit import AuditEntry
from tests.support.controlplane.workloads import budget

NEXT = "0.9.0"
"""The other version, which `images` builds from the same checkout."""

STEPS = ("before", "during", "after")
"""Apps whose budget lets their Pods go before the rollout, between the two, and after the way back."""


def play(cluster: Cluster) -> str:
    """Let a third of a node's Pods go under each version, and see what the next one makes of the rest."""
    for each in cluster.nodes:
        each.add_image(cluster.next_image)
    with enforcing(cluster) as replicas:
        node = without_replica(cluster, replicas)
        spec = pod_spec(ends_after=2, **prefer(node))
        work = [controller("Deployment", app, spec, replicas=2) for app in STEPS]
        closed = [budget(app, namespace=WORK, max_unavailable=0) for app in STEPS]
        with cluster.applied([namespace(), *work, *closed]):
            await_("Pods that run", lambda: len(cluster.ready_pods(WORK)) == 2 * len(STEPS), seconds=60)
            return _judge(cluster, node)


def _judge(cluster: Cluster, node: Node) -> str:
    here = {life.pod for life in cluster.lives(WORK) if life.node == node.name}
    assert all(any(pod.startswith(app) for pod in here) for app in STEPS), f"only {here} on {node.name}"
    first = cluster.api.get("deployments", "reconciler", NAMESPACE)["spec"]["template"]["spec"]
    (image,) = {each["image"] for each in first["containers"]}
    cluster.announce(node, "Redeploy", datetime.now(UTC) + timedelta(minutes=10), event_id="V1")
    await_("a cordon", lambda: cluster.cordoned(node), seconds=20)
    before, during, after = STEPS
    _let_go(cluster, node, before)
    seconds = [_roll_out(cluster, f"{images.NAME}:{NEXT}")]
    _let_go(cluster, node, during)
    seconds.append(_roll_out(cluster, image))
    _let_go(cluster, node, after)
    await_("the end of the drain", lambda: cluster.said(node, "MaintenanceDrained"), seconds=60)
    assert cluster.cordoned(node)
    ended = datetime.now(UTC)
    cluster.call_off(node)
    await_("the uncordon", lambda: not cluster.cordoned(node), seconds=SETTLE + 60)
    await_("the end of the case", lambda: not cluster.in_maintenance(node), seconds=30)

    evicted = Counter(entry.name for entry in _evictions(cluster))
    assert evicted == Counter(here), f"evicted were {evicted}, and not each of {here} once"
    cordons, uncordons = cluster.cordons(node), cluster.cordons(node, undone=True)
    assert len(cordons) == 1, f"cordoned {len(cordons)} times"
    assert len(uncordons) == 1, f"uncordoned {len(uncordons)} times"
    settled = (uncordons[0].timestamp - ended).total_seconds()
    # Times of conditions have whole seconds.
    assert settled >= SETTLE - 1, f"uncordoned {settled:.1f} s after the end of the event"
    assert not (refused := cluster.refused()), f"it was not allowed to ask {refused}"
    return (
        f"{NEXT} was Ready after {seconds[0]:.0f} s, and the first version again after {seconds[1]:.0f} s."
        f" The node stayed cordoned, and each of {len(here)} Pods was evicted once, some by each version"
    )


def _let_go(cluster: Cluster, node: Node, app: str) -> None:
    """Open the budget of an app, and wait until no Pod of it is on the node."""
    cluster.api.patch("poddisruptionbudgets", app, {"spec": {"maxUnavailable": 1}}, WORK)

    def gone() -> bool:
        pods = cluster.pods(WORK, f"app={app}")
        return all(pod["spec"].get("nodeName") != node.name for pod in pods)

    await_(f"the move of {app}", gone, seconds=90)
    assert cluster.cordoned(node), f"the node was not cordoned any more after the move of {app}"


def _roll_out(cluster: Cluster, image: str) -> float:
    """Give the Deployment another image; return after how many seconds all of its Pods have it."""
    began = datetime.now(UTC)
    cluster.kubectl("--namespace", NAMESPACE, "set", "image", "deployment/reconciler", f"*={image}")

    def done() -> bool:
        pods = cluster.pods(NAMESPACE)
        ready = cluster.ready_pods(NAMESPACE)
        return len(pods) == len(ready) == 2 and {
            each["image"] for pod in pods for each in pod["spec"]["containers"]
        } == {image}

    await_(f"two replicas of {image}", done, seconds=120)
    await_("a leader", cluster.leader, seconds=60)
    return (datetime.now(UTC) - began).total_seconds()


def _evictions(cluster: Cluster) -> list[AuditEntry]:
    return [
        entry
        for entry in cluster.audit(verbs=["create"])
        if entry.subresource == "eviction" and entry.code == 201 and entry.namespace == WORK
    ]
