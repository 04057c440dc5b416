"""The agents of k8s/agent read IMDS from a fake on their nodes, which Azure preempts, and then reboots."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

from tests.nodes.agents import AGENTS, agents, event, fake_imds
from tests.nodes.cluster import Cluster, await_, moment
from tests.nodes.node import Node
from tests.nodes.scene import WORK, controller, namespace, prefer
from tests.nodes.workloads import pod_spec
from tests.support.fakes import imds
from tests.support.fakes.imds import FakeImds

ROUNDS = 3
SOON = 2
"""Seconds from IMDS to the cordon of a spot node."""

SETTLE, ENDS, PODS = 3, 4, 2
SPOT = "kubernetes.azure.com/scalesetpriority"


def play(cluster: Cluster) -> str:
    """Preempt a spot node again and again, each time called off, and reboot it with its agent."""
    node = cluster.nodes[-1]
    fakes: dict[str, FakeImds] = {}
    with ExitStack() as stack:
        for each in cluster.nodes:
            fakes[each.name] = stack.enter_context(fake_imds(each))
        _make_spot(cluster, node, "spot")
        stack.callback(_make_spot, cluster, node, None)
        stack.enter_context(
            cluster.reconciler(
                mode="Enforce", uncordon={"settle": f"{SETTLE}s"}, events={"Reboot": {"acknowledge": True}}
            )
        )
        stack.enter_context(cluster.applied(agents(cluster)))
        await_("agents", lambda: len(cluster.ready_pods(AGENTS)) == len(cluster.nodes), seconds=60)

        def announce(*events: imds.Event) -> None:
            # The document is that of the whole scale set.
            for fake in fakes.values():
                fake.announce(*events)

        seconds = sorted(_preempt(cluster, node, number, announce) for number in range(ROUNDS))
        stack.enter_context(
            cluster.applied(
                [
                    namespace(),
                    controller("Deployment", "web", pod_spec(ends_after=ENDS, **_home(node)), replicas=PODS),
                ]
            )
        )
        await_("Pods that run", lambda: len(cluster.ready_pods(WORK)) == PODS, seconds=60)
        reboot = event(node, "Reboot", "F9", timedelta(minutes=10))
        announce(reboot)
        fake = fakes[node.name]
        await_("an acknowledgement", lambda: fake.acknowledged, seconds=90)
        acknowledged = time.time()
        assert cluster.cordoned(node)
        first = [life for life in cluster.lives(WORK) if life.node == node.name]
        assert len(first) == PODS, f"{len(first)} Pods were on {node.name}"
        assert all(life.end for life in first), "acknowledged before the Pods had ended in their own time"
        # IMDS is on the host of the VM, but its socket is in the network of the node.
        fake.__exit__(None, None, None)
        node.kill()
        await_("NotReady", lambda: not cluster.ready(node), seconds=60)
        cluster.start(node)
        again = fakes[node.name] = stack.enter_context(fake_imds(node))
        again.announce(imds.started(reboot))
        await_("the agent", lambda: len(cluster.ready_pods(AGENTS)) == len(cluster.nodes), seconds=90)
        await_("a Ready node", lambda: cluster.ready(node), seconds=60)
        again.wait_for_requests(SETTLE)
        assert cluster.cordoned(node), "uncordoned although the event goes on"
        announce()
        over = time.time()
        await_("the uncordon", lambda: not cluster.cordoned(node), seconds=SETTLE + 60)
        await_("the end of the case", lambda: not cluster.in_maintenance(node), seconds=30)

        assert seconds[-1] <= SOON, f"cordoned {seconds} s after IMDS had a Preempt"
        (agent,) = [pod for pod in cluster.pods(AGENTS) if pod["spec"]["nodeName"] == node.name]
        assert agent["status"]["containerStatuses"][0]["restartCount"] == 1
        requests = cluster.audit(user=f"system:serviceaccount:{AGENTS}:")
        assert not (refused := [each for each in requests if each.code in (401, 403)]), f"refused: {refused}"
        written = [each for each in requests if each.verb == "patch"]
        assert {each.name for each in written} == {node.name}, "agents of other nodes have written"
        for asked in (*fakes.values(), fake):
            assert asked.requests
            assert not asked.violations, f"IMDS refused {asked.violations}"
        *_, uncordon = cluster.cordons(node, undone=True)
        settled = uncordon.timestamp.timestamp() - over
        # Times of conditions have whole seconds.
        assert settled >= SETTLE - 1, f"uncordoned {settled:.1f} s after the end of the event"
        assert not (refused := cluster.refused()), f"it was not allowed to ask {refused}"
        ready = moment(
            next(each for each in agent["status"]["conditions"] if each["type"] == "Ready")[
                "lastTransitionTime"
            ]
        )
    return (
        f"From IMDS to the cordon of a spot node: {', '.join(f'{each:.2f}' for each in seconds)} s, in"
        f" {ROUNDS} Preempts. A Reboot was acknowledged when the last Pod had ended; after the boot,"
        f" {ready - acknowledged:.0f} s later, the agent went on with the event that still was there, and the"
        f" node was uncordoned {settled:.0f} s after its end. {len(requests)} requests of agents, all allowed"
    )


def _preempt(cluster: Cluster, node: Node, number: int, announce: Callable[..., None]) -> float:
    """Return the seconds from IMDS to the cordon."""
    began = time.time()
    announce(event(node, "Preempt", f"F{number}", timedelta(seconds=30)))
    await_("a cordon", lambda: cluster.cordoned(node), seconds=20)
    announce()
    await_("the uncordon", lambda: not cluster.cordoned(node), seconds=SETTLE + 60)
    await_("the end of the case", lambda: not cluster.in_maintenance(node), seconds=30)
    return cluster.cordons(node)[-1].timestamp.timestamp() - began


def _make_spot(cluster: Cluster, node: Node, value: str | None) -> None:
    """Give a node the label and the taint of the spot nodes of AKS, or take them away."""
    # A patch replaces all taints.
    taints = [each for each in cluster.read(node)["spec"].get("taints", []) if each["key"] != SPOT]
    if value is not None:
        taints.append({"key": SPOT, "value": value, "effect": "NoSchedule"})
    body = {"metadata": {"labels": {SPOT: value}}, "spec": {"taints": taints}}
    cluster.api.patch("nodes", node.name, body)


def _home(node: Node) -> Any:
    """Return what a Pod's spec needs to begin on the spot node."""
    return {**prefer(node), "tolerations": [{"key": SPOT, "operator": "Exists"}]}
