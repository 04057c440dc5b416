"""Azure takes a VM for good: its place in the budget is given on, and its Pods live elsewhere."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from tests.nodes.cluster import Cluster, Object, await_, moment
from tests.nodes.node import Node
from tests.nodes.scene import SETTLE, WORK, controller, enforcing, namespace, prefer, without_replica
from tests.nodes.workloads import pod_spec
from tests.support.controlplane.workloads import budget

NOTICE = 30
"""Seconds, all that Azure gives."""

ENDS = 2
PODS = 4
PLACE = 30
"""Seconds until the next node has the place at the latest, which is the time between two passes."""


def play(cluster: Cluster) -> str:
    """Take one node for good, while another one waits for the only place of the budget."""
    with enforcing(cluster) as replicas:
        leader = cluster.leader()
        homes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in replicas}
        lost = without_replica(cluster, replicas)
        # The lock has a scenario of its own, so the leader stays where it is.
        waits = next(node for node in cluster.nodes if node.name not in (lost.name, homes.get(str(leader))))
        with cluster.applied(_workloads(lost)):
            await_("Pods that run", lambda: len(cluster.ready_pods(WORK)) == PODS, seconds=60)
            return _judge(cluster, lost, waits)


def _judge(cluster: Cluster, lost: Node, waits: Node) -> str:
    before = {life.uid for life in cluster.lives(WORK)}
    elsewhere = [life.pod for life in cluster.lives(WORK) if life.node != lost.name]
    assert not elsewhere, f"{elsewhere} are not on {lost.name}"
    announced = datetime.now(UTC)
    cluster.announce(lost, "Preempt", announced + timedelta(seconds=NOTICE), event_id="D1")
    await_("a cordon", lambda: cluster.cordoned(lost), seconds=20)
    cluster.announce(waits, "Redeploy", announced + timedelta(minutes=10), event_id="D2")
    web = [life.uid for life in cluster.lives(WORK) if life.pod.startswith("web")]
    await_(
        "the end of what can end",
        lambda: all(life.end for life in cluster.lives(WORK) if life.uid in web),
        seconds=NOTICE,
    )
    while time.time() < announced.timestamp() + NOTICE:
        assert not cluster.cordoned(waits), "two nodes have the place of one"
        time.sleep(0.5)
    lost.kill()
    struck = time.time()
    await_("NotReady", lambda: not cluster.ready(lost), seconds=60)
    await_("the next node's turn", lambda: cluster.cordoned(waits), seconds=60)
    ready = next(each for each in cluster.read(lost)["status"]["conditions"] if each["type"] == "Ready")
    await_("what it says of the Pods", lambda: cluster.said(lost, "MaintenanceMissed"), seconds=PLACE)
    # What Azure's cloud controller does with a VM that is gone.
    cluster.api.delete("nodes", lost.name)
    await_(
        "Pods elsewhere",
        lambda: (
            len(pods := cluster.ready_pods(WORK)) == PODS
            and not any(pod["spec"]["nodeName"] in (lost.name, waits.name) for pod in pods)
        ),
        seconds=150,
    )
    await_("the end of the drain", lambda: cluster.said(waits, "MaintenanceDrained"), seconds=90)
    cluster.call_off(waits)
    await_("the uncordon", lambda: not cluster.cordoned(waits), seconds=SETTLE + 60)

    (first,), (second,) = cluster.cordons(lost), cluster.cordons(waits)
    given = second.timestamp.timestamp() - moment(ready["lastTransitionTime"])
    # Times of conditions have whole seconds.
    assert -1 <= given <= PLACE, f"the place was given on {given:.1f} s after the node was NotReady"
    lives = [life for life in cluster.lives(WORK) if life.uid in before]
    for life in lives:
        if life.pod.startswith("web"):
            assert life.end is not None, f"{life.pod} did not end in its own time"
        else:
            assert life.end is None
            assert life.last <= struck, f"{life.pod} lived on a node that is gone"
    same = [life for life in cluster.lives(WORK) if life.pod == "db-0"]
    assert len(same) == 2, f"db-0 has {len(same)} lives"
    assert same[0].last < same[1].start, "two Pods db-0 lived at once"
    assert not cluster.said(lost, "MaintenanceNoLongerMissed"), "a node that is gone was said to be in time"
    assert not cluster.cordons(lost, undone=True), "the node that is gone was uncordoned"
    assert not (refused := cluster.refused()), f"it was not allowed to ask {refused}"
    cordoned = (first.timestamp - announced).total_seconds()
    return (
        f"Cordoned after {cordoned:.2f} s; what can end in {NOTICE} s has moved. The node that waited got the"
        f" only place {given:.1f} s after the lost one was NotReady. All {PODS} Pods live elsewhere, also one"
        " that its budget had kept and one of a StatefulSet, never twice"
    )


def _workloads(node: Node) -> list[Object]:
    here = prefer(node)
    # It would need more time than the notice has.
    slow = pod_spec(ends_after=45, grace=60, **here)
    return [
        namespace(),
        controller("Deployment", "web", pod_spec(ends_after=ENDS, **here), replicas=2),
        controller("StatefulSet", "db", slow, replicas=1, serviceName="db"),
        controller("Deployment", "guarded", pod_spec(ends_after=ENDS, **here), replicas=1),
        budget("guarded", namespace=WORK, max_unavailable=0),
    ]
