"""Azure moves the VM of the reconciler's leader: its Pod goes last, and the other replica ends the case."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.nodes.cluster import NAMESPACE, Cluster, await_, moment
from tests.nodes.scene import LATE, SETTLE, WORK, controller, enforcing, namespace, prefer
from tests.nodes.workloads import pod_spec

ENDS = 4
"""Seconds that the other Pods of the node take to end: the reconciler's must wait for them."""


def play(cluster: Cluster) -> str:
    """Announce a Redeploy of the leader's node, and follow the lock."""
    with enforcing(cluster) as replicas:
        leader = cluster.leader()
        node = cluster.node(
            next(pod["spec"]["nodeName"] for pod in replicas if pod["metadata"]["name"] == leader)
        )
        work = controller("Deployment", "web", pod_spec(ends_after=ENDS, **prefer(node)), replicas=3)
        with cluster.applied([namespace(), work]):
            await_("Pods that run", lambda: len(cluster.ready_pods(WORK)) == 3, seconds=60)
            here = [life for life in cluster.lives(WORK) if life.node == node.name]
            assert here, f"no Pod of web on {node.name}"
            lease = cluster.api.get("leases", "reconciler-lock", NAMESPACE)["spec"]
            cluster.announce(node, "Redeploy", datetime.now(UTC) + timedelta(minutes=10), event_id="B1")
            successor = await_(
                "another leader",
                lambda: name if (name := cluster.leader()) not in (leader, None) else None,
                seconds=90,
            )
            taken = cluster.api.get("leases", "reconciler-lock", NAMESPACE)["spec"]
            await_("the end of the drain", lambda: cluster.said(node, "MaintenanceDrained"), seconds=90)
            await_("two replicas", lambda: len(cluster.ready_pods(NAMESPACE)) == 2, seconds=60)
            ended = datetime.now(UTC)
            cluster.call_off(node)
            await_("the uncordon", lambda: not cluster.cordoned(node), seconds=SETTLE + 60)
            await_("the end of the case", lambda: not cluster.in_maintenance(node), seconds=30)

            *others, own = [
                entry
                for entry in cluster.audit(verbs=["create"])
                if entry.subresource == "eviction" and entry.code == 201
            ]
            assert own.name == leader, f"the last eviction was that of {own.name}, not of {leader}"
            assert {entry.name for entry in others} == {life.pod for life in here}
            gone = max(life.last for life in cluster.lives(WORK) if life.pod in {each.pod for each in here})
            assert gone <= own.timestamp.timestamp() + LATE, "the reconciler went before other Pods had ended"
            waited = moment(taken["acquireTime"]) - own.timestamp.timestamp()
            assert waited <= lease["leaseDurationSeconds"], f"nobody led for {waited:.1f} s"
            assert not (refused := cluster.refused()), f"it was not allowed to ask {refused}"
            (uncordon,) = cluster.cordons(node, undone=True)
    settled = (uncordon.timestamp - ended).total_seconds()
    # Times of conditions have whole seconds.
    assert settled >= SETTLE - 1, f"uncordoned {settled:.1f} s after the end of the event"
    warm = successor in {pod["metadata"]["name"] for pod in replicas}
    return (
        f"The reconciler's Pod went last, {own.timestamp.timestamp() - gone:.1f} s after the others."
        f" {'The other replica' if warm else 'A new replica'} led {waited:.1f} s later (lease:"
        f" {lease['leaseDurationSeconds']} s), ended the drain, and uncordoned the node {settled:.0f} s after"
        " the end of the event"
    )
