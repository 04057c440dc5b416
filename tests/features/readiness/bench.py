"""How long readiness takes to judge a large cluster, and how much memory.

`python -m tests.features.readiness.bench [--nodes 5000] [--pods 50000]` makes up a cluster without an API
server: ten pods per workload and one PodDisruptionBudget for each, a quarter of them with volumes of one
zone, a third bound to a pool. The time is that of the judgement and of the report. `roomy` nodes have much
free CPU; on `full` nodes hundreds of workloads have no room, which is the slow case.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime

from reconciler.features.readiness.judging import ClusterState, judge_nodes, summed_up
from reconciler.features.readiness.report import as_text
from reconciler.model.node import ZONE_LABEL, Condition, Node
from reconciler.model.pod import Owner, Placement, Pod, PodDisruptionBudget, PodSpec, Volume
from reconciler.model.selector import LabelSelector, Requirement
from reconciler.settings.load import parse_settings

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
CPU = {"roomy": "8", "full": "1500m"}
PER_WORKLOAD = 10
NAMESPACES, POOLS, ZONES = 200, 5, 3


def node(number: int, cpu: str) -> Node:
    """One node."""
    labels = {ZONE_LABEL: f"z{number % ZONES}", "agentpool": f"p{number % POOLS}"}
    room = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    ready = (Condition("Ready", "True"),)
    return Node(f"n{number:05}", f"u{number}", "1", labels=labels, conditions=ready, allocatable=room)


def cluster(nodes: int, pods: int, cpu: str) -> ClusterState:
    """Return the made-up cluster."""
    workloads = max(pods // PER_WORKLOAD, 1)
    made: list[Pod] = []
    volumes: list[Volume] = []
    for number in range(pods):
        workload, on = number % workloads, number * 7 % nodes
        namespace, stateful = f"ns{workload % NAMESPACES}", workload % 4 == 0
        request = {"cpu": f"{100 + workload % 50 * 10}m", "memory": f"{128 + workload % 37}Mi"}
        pool = {"agentpool": f"p{workload % POOLS}"} if workload % 3 == 0 else {}
        made.append(
            Pod(
                namespace,
                f"w{workload}-{number}",
                f"uid{number}",
                f"n{on:05}",
                labels={"app": f"w{workload}", "pod-template-hash": "abc"},
                owner=Owner("ReplicaSet", f"w{workload}-abc", "apps/v1", "uid"),
                phase="Running",
                ready=True,
                spec=PodSpec(empty_dir=workload % 9 == 0, claims=(f"c{number}",) if stateful else ()),
                placement=Placement(requests=(request,), node_selector=pool),
            )
        )
        if stateful:
            zone = Requirement(ZONE_LABEL, "In", (f"z{on % ZONES}",))
            volumes.append(Volume(f"pv{number}", namespace, f"c{number}", ((zone,),)))
    budgets = tuple(
        PodDisruptionBudget(
            f"ns{number % NAMESPACES}",
            f"w{number}",
            LabelSelector.of({"app": f"w{number}"}),
            allowed=number % 5,
            desired=9,
            healthy=10,
            expected=10,
        )
        for number in range(workloads)
    )
    return ClusterState(
        tuple(node(number, cpu) for number in range(nodes)), tuple(made), budgets, {}, tuple(volumes)
    )


def measure(nodes: int, pods: int, kind: str) -> None:
    """Judge one cluster in this process, and print a row."""
    seen, settings = cluster(nodes, pods, CPU[kind]), parse_settings("", "")
    began = time.monotonic()
    judged = judge_nodes(seen, settings, NOW)
    found = summed_up(seen, judged, settings, NOW)
    as_text(found, 80)
    seconds = time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"| {nodes:,} | {pods:,} | {kind} | {len(judged.found):,} | {seconds:.1f} | {peak} |", flush=True)


def main() -> None:
    """Measure each kind of cluster in a process of its own, because the peak of a process only grows."""
    parser = argparse.ArgumentParser(prog="python -m tests.features.readiness.bench", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--kind", choices=CPU, help="measure this one, in this process")
    asked = parser.parse_args()
    if asked.kind is not None:
        measure(asked.nodes, asked.pods, asked.kind)
        return
    print("| nodes | pods | cluster | findings | seconds | peak MiB |\n|---|---|---|---|---|---|", flush=True)
    for kind in CPU:
        size = ["--nodes", str(asked.nodes), "--pods", str(asked.pods)]
        subprocess.run(
            [sys.executable, "-m", "tests.features.readiness.bench", *size, "--kind", kind], check=True
        )


if __name__ == "__main__":
    main()
