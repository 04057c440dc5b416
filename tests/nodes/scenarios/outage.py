"""Azure reboots a VM that is not empty yet: the node is away for a minute, and comes back as another boot."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from tests.nodes.cluster import Cluster, Object, await_, moment
from tests.nodes.node import Node
from tests.nodes.scene import (
    SETTLE,
    WORK,
    bare_pod,
    controller,
    enforcing,
    namespace,
    prefer,
    without_replica,
)
from tests.nodes.workloads import BEAT, pod_spec
from tests.support.controlplane.workloads import budget

AWAY = 60
"""Seconds without power."""

ENDS = 2
STRUCK = ("bare", "watcher", "guarded")
"""Nobody evicts a Pod without a controller or of a DaemonSet, nor the last one, against its budget."""


def play(cluster: Cluster) -> str:
    """Announce a Reboot, take the power away while a budget still keeps a Pod, and give it back."""
    with enforcing(cluster) as replicas:
        node = without_replica(cluster, replicas)
        with cluster.applied(_workloads(node)):
            await_(
                "Pods that run", lambda: len(cluster.ready_pods(WORK)) == 4 + len(cluster.nodes), seconds=60
            )
            return _judge(cluster, node)


def _judge(cluster: Cluster, node: Node) -> str:
    boot = _boot(cluster, node)
    here = _here(cluster, node)
    for app in (*STRUCK, "web"):
        assert any(pod.startswith(app) for pod in here), f"no Pod of {app} on {node.name}: {here}"
    cluster.announce(node, "Reboot", datetime.now(UTC) + timedelta(minutes=10), event_id="C1")
    await_("a cordon", lambda: cluster.cordoned(node), seconds=20)
    await_("the move", lambda: not any(pod.startswith("web") for pod in _here(cluster, node)), seconds=90)
    cluster.announce(node, "Reboot", status="Started", event_id="C1")
    struck = time.time()
    node.kill()
    await_("NotReady", lambda: not cluster.ready(node), seconds=AWAY)
    while time.time() < struck + AWAY:
        assert cluster.cordoned(node), "uncordoned while it was away"
        time.sleep(1)
    cluster.start(node)
    cluster.call_off(node)
    over = time.time()
    await_("Ready", lambda: cluster.ready(node), seconds=60)
    await_("the uncordon", lambda: not cluster.cordoned(node), seconds=SETTLE + 60)
    await_("the end of the case", lambda: not cluster.in_maintenance(node), seconds=30)
    await_("the Pods that it has kept", lambda: _all_again(cluster, node), seconds=60)

    assert _boot(cluster, node) != boot, "the node has the boot ID from before"
    for life in cluster.lives(WORK):
        if life.node == node.name and life.pod.startswith("web"):
            assert life.end is not None, f"{life.pod} did not end in its own time"
            assert life.end <= struck
        elif life.node == node.name:
            assert life.sigterm is None, f"{life.pod} was to end"
            (again,) = life.restarts
            assert again >= struck + AWAY - BEAT, f"{life.pod} ran on a node without power"
    (uncordon,) = cluster.cordons(node, undone=True)
    ready = moment(
        next(each for each in cluster.read(node)["status"]["conditions"] if each["type"] == "Ready")[
            "lastTransitionTime"
        ]
    )
    settled = uncordon.timestamp.timestamp() - max(ready, over)
    # Times of conditions have whole seconds.
    assert settled >= SETTLE - 1, f"uncordoned {settled:.1f} s after it was Ready and without an event"
    evicted = [entry for entry in cluster.audit(verbs=["create"]) if entry.subresource == "eviction"]
    late = [
        entry.name for entry in evicted if entry.code == 201 and entry.timestamp.timestamp() > struck + BEAT
    ]
    assert not late, f"evicted from a node without power: {late}"
    for reason in ("MaintenanceMissed", "MaintenanceDone"):
        assert cluster.said(node, reason), f"no Event {reason}, but a Pod was struck"
    assert not (refused := cluster.refused()), f"it was not allowed to ask {refused}"
    return (
        f"Without power for {AWAY} s, with a Pod that its budget kept: NotReady, cordoned all the time. Ready"
        f" {ready - struck - AWAY:.0f} s after that with another boot ID, uncordoned {settled:.0f} s later."
        f" {len(STRUCK)} Pods were struck and run again, the others had moved"
    )


def _workloads(node: Node) -> list[Object]:
    here = prefer(node)
    return [
        namespace(),
        controller("Deployment", "web", pod_spec(ends_after=ENDS, **here), replicas=2),
        controller("Deployment", "guarded", pod_spec(ends_after=ENDS, **here), replicas=1),
        budget("guarded", namespace=WORK, max_unavailable=0),
        controller("DaemonSet", "watcher", pod_spec(tolerations=[{"operator": "Exists"}])),
        bare_pod("bare", pod_spec(**here)),
    ]


def _boot(cluster: Cluster, node: Node) -> str:
    return str(cluster.read(node)["status"]["nodeInfo"]["bootID"])


def _here(cluster: Cluster, node: Node) -> set[str]:
    """Return the Pods on a node, those that end included."""
    pods = (pod for pod in cluster.pods(WORK) if pod["spec"].get("nodeName") == node.name)
    return {pod["metadata"]["name"] for pod in pods}


def _all_again(cluster: Cluster, node: Node) -> bool:
    struck = [life for life in cluster.lives(WORK) if life.node == node.name and life.sigterm is None]
    assert len(struck) == len(STRUCK), f"{len(struck)} Pods were on {node.name}"
    return all(life.restarts for life in struck)
