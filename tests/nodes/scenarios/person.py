"""A person drains a node with kubectl, and by the plugin lets the reconciler drain the next one."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.nodes import plugin
from tests.nodes.cluster import Cluster, await_
from tests.nodes.scene import SETTLE, WORK, controller, enforcing, longest_without, namespace, without_replica
from tests.nodes.shell import Shell, commands
from tests.nodes.workloads import pod_spec
from tests.support.controlplane.workloads import budget
from tests.support.tools.building import find_tool

REPLICAS = 6

SPREAD = {
    "topologyKey": "kubernetes.io/hostname",
    "maxSkew": 1,
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
"""So that each node has some of them."""


def play(cluster: Cluster) -> str:
    """Let both drain at once Pods of one budget, and see who writes to which node."""
    shell = _with_plugin(cluster)
    with enforcing(cluster, 2) as replicas:
        places = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in replicas}
        ours = without_replica(cluster, replicas)
        leader = cluster.leader()
        # With a replica of the reconciler, which goes to the third node.
        theirs = cluster.node(next(place for name, place in places.items() if name != leader))
        spec = pod_spec(serves=True, ends_after=1, topologySpreadConstraints=[SPREAD])
        web = controller("Deployment", "web", spec, replicas=REPLICAS)
        with cluster.applied([namespace(), web, budget("web", namespace=WORK, max_unavailable=1)]):
            await_("Pods that run", lambda: len(cluster.ready_pods(WORK)) == REPLICAS, seconds=60)
            first = {life.pod: life.node for life in cluster.lives(WORK)}
            assert {ours.name, theirs.name} <= set(first.values()), f"the Pods are on {set(first.values())}"
            shell.run(f"kubectl maintenance hold {ours.name} --reason 'not before mine'")
            cluster.announce(ours, "Redeploy", datetime.now(UTC) + timedelta(minutes=10), event_id="P1")
            held = shell.run(f"kubectl maintenance explain {ours.name}")
            assert "not before mine" in held, f"the hold is not in:\n{held}"
            assert not cluster.cordoned(ours), "a node was drained that a person holds"
            began = datetime.now(UTC)
            with ThreadPoolExecutor(1) as hands:
                drain = ["drain", theirs.name, "--ignore-daemonsets", "--delete-emptydir-data"]
                by_hand = hands.submit(cluster.kubectl, *drain, "--timeout=100s")
                shell.run(f"kubectl maintenance resume {ours.name}")
                await_("the end of the drain", lambda: cluster.said(ours, "MaintenanceDrained"), seconds=120)
                by_hand.result()
            took = (datetime.now(UTC) - began).total_seconds()
            report = json.loads(shell.run("kubectl maintenance report --output json"))
            states = {row["name"]: row["state"] for row in report["nodes"]}
            assert states[ours.name] == "in-maintenance", f"the report has {states}"
            await_("new Pods", lambda: len(cluster.ready_pods(WORK)) == REPLICAS, seconds=60)
            cluster.call_off(ours)
            await_("the uncordon", lambda: not cluster.cordoned(ours), seconds=SETTLE + 60)
            await_("the end of the case", lambda: not cluster.in_maintenance(ours), seconds=30)

            assert cluster.cordoned(theirs), "the reconciler took away a cordon that a person made"
            writes = [
                entry
                for entry in cluster.audit(verbs=["patch", "update"])
                if entry.resource == "nodes" and entry.name == theirs.name and entry.code < 300
            ]
            assert not writes, f"the reconciler wrote to {theirs.name}: {writes}"
            evicted = {
                entry.name
                for entry in cluster.audit(verbs=["create"])
                if entry.subresource == "eviction" and entry.code == 201 and entry.namespace == WORK
            }
            wrong = {pod for pod in evicted if first.get(pod) == theirs.name}
            assert not wrong, f"the reconciler evicted Pods of the person's node: {wrong}"
            away = longest_without(cluster, "web")
            assert away == 0, f"no Pod of web lived for {away:.1f} s, in spite of its budget"
            assert not (refused := cluster.refused()), f"it was not allowed to ask {refused}"
            cluster.kubectl("uncordon", theirs.name)
    moved = sum(1 for place in first.values() if place in (ours.name, theirs.name))
    return (
        f"Both drains ended within {took:.0f} s, {moved} Pods with one budget of 1. The reconciler wrote"
        " nothing to the person's node, and uncordoned only its own, which the person had held until then by"
        " the plugin that krew installed from its archive"
    )


def _with_plugin(cluster: Cluster) -> Shell:
    """Return a shell in which the plugin is installed by the command of docs/kubectl.md."""
    # The archive has the packages for the Python of the tests.
    programs = {"kubectl-krew": find_tool("krew"), "python3": Path(sys.executable).resolve()}
    shell = Shell(cluster, "person", programs)
    plugin.put(cluster.plugin, shell.folder)
    (install,) = [each for each in commands("kubectl.md", "Install it") if "krew" in each]
    shell.run(install.replace("linux-amd64", plugin.PLATFORM))
    return shell
