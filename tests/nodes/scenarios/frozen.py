"""The host freezes the VM of the reconciler's leader: another one leads, and the first comes too late."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from tests.nodes.cluster import NAMESPACE, Cluster, await_, moment
from tests.nodes.scene import SETTLE, WORK, controller, enforcing, namespace, prefer, without_replica
from tests.nodes.workloads import pod_spec

FROZEN = 40
"""Seconds."""

NOTICED = 2
"""Seconds until a replica that stands by sees that the lock has run out."""

WRITES = ("create", "update", "patch", "delete")


def play(cluster: Cluster) -> str:
    """Freeze the leader's node, announce a Redeploy of another one, and let the first go on after it."""
    # A frozen node is NotReady, and has one of the two places.
    with enforcing(cluster, 2) as replicas:
        leader = cluster.leader()
        assert leader is not None
        places = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in replicas}
        node = without_replica(cluster, replicas)
        work = controller("Deployment", "web", pod_spec(ends_after=2, **prefer(node)), replicas=2)
        with cluster.applied([namespace(), work]):
            await_("Pods that run", lambda: len(cluster.ready_pods(WORK)) == 2, seconds=60)
            here = {life.pod for life in cluster.lives(WORK) if life.node == node.name}
            assert here, f"no Pod of web on {node.name}"
            frozen = cluster.node(places[leader])
            frozen.freeze()
            froze = time.time()
            cluster.announce(node, "Redeploy", datetime.now(UTC) + timedelta(minutes=10), event_id="F1")
            await_("another leader", lambda: cluster.leader() not in (leader, None), seconds=FROZEN)
            lease = cluster.api.get("leases", "reconciler-lock", NAMESPACE)["spec"]
            await_("a cordon", lambda: cluster.cordoned(node), seconds=20)
            while time.time() < froze + FROZEN:
                assert not cluster.cordoned(frozen), "a frozen node without an event was cordoned"
                time.sleep(1)
            frozen.thaw()
            await_("Ready", lambda: cluster.ready(frozen), seconds=60)
            await_("the end of the drain", lambda: cluster.said(node, "MaintenanceDrained"), seconds=60)
            await_("two replicas", lambda: len(cluster.ready_pods(NAMESPACE)) == 2, seconds=60)
            cluster.call_off(node)
            await_("the uncordon", lambda: not cluster.cordoned(node), seconds=SETTLE + 60)
            await_("the end of the case", lambda: not cluster.in_maintenance(node), seconds=30)

            taken = moment(lease["acquireTime"])
            waited = taken - froze
            longest = lease["leaseDurationSeconds"] + NOTICED
            assert waited <= longest, f"nobody led for {waited:.1f} s"
            late = [
                f"{entry.verb} {entry.resource} {entry.name} {entry.code}"
                for entry in cluster.audit(verbs=WRITES)
                if entry.pod == leader and entry.timestamp.timestamp() > taken and entry.code < 300
            ]
            assert not late, f"the first leader wrote after another one had the lock: {late}"
            evictions = [
                entry.name
                for entry in cluster.audit(verbs=["create"])
                if entry.subresource == "eviction" and entry.code == 201
            ]
            assert sorted(evictions) == sorted(here), f"evicted were {evictions}"
            assert not cluster.cordons(frozen), "the frozen node was cordoned"
            assert not (refused := cluster.refused()), f"it was not allowed to ask {refused}"
            (cordon,) = cluster.cordons(node)
    return (
        f"Frozen for {FROZEN} s: the other replica led {waited:.1f} s after it began (lease:"
        f" {lease['leaseDurationSeconds']} s), cordoned the node {cordon.timestamp.timestamp() - taken:.1f} s"
        " later, and drained it. The first leader went on, and wrote nothing"
    )
