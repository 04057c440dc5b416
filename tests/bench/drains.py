"""Drains side by side on a real API server: ours, `kubectl drain`, and two bare loops.

    python -m tests.bench.drains [--rounds N] [--pods 20,100,250] [--nodes 50] [--fleet-rounds N]

`ours` is the drainer, `command` is `reconciler drain`, measured from its first write to the node on. `floor`
evicts everything at once, and `loop` one pod per budget at a time.

Every row starts from the same: one cordoned node, pods of as many Deployments as there are budgets (each with
maxUnavailable 10 %), replacements ready after 0.2 s, pods gone 0.6 s after their deletion. Rows alternate
within each round. Requests are counted from the API server's audit log by user agent. While each runs, the
pods are watched, and each budget's ready pods are counted against what it asks for.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import statistics
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from reconciler import USER_AGENT
from reconciler.drain.drainer import Drainer
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.scale.evictions import SharedEvictions
from reconciler.model.drains import DrainOptions, DrainOrder, Phase
from tests.bench import bare
from tests.support.controlplane.api import Api
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.workloads import budget, deployment
from tests.support.fakes.clock import SystemClock

_POOL = Pool("np")
_PATIENCE = 600.0
_FLAGS = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", f"--timeout={_PATIENCE:.0f}s")
_TURNS = itertools.count()


@dataclass(frozen=True, slots=True)
class Result:
    """One drain: seconds, seconds of our processors, requests, how often a budget was seen overdrawn."""

    seconds: float
    cpu: float
    requests: int
    overdrawn: int


@dataclass(frozen=True, slots=True)
class Row:
    """One way to drain nodes, and its user agent in the audit log."""

    drain: Callable[[ControlPlane, list[str]], None]
    user_agent: str


def main() -> None:
    """Run all rows and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pods", default="20,100,250")
    parser.add_argument("--nodes", type=int, default=50, help="drained at once in the end, 10 pods each")
    parser.add_argument("--fleet-rounds", type=int, default=1)
    asked = parser.parse_args()
    with ControlPlane(ready_after=0.2, deleted_after=0.6) as plane:
        lines = [
            "| nodes | pods | row | seconds | by round | CPU s | requests | overdrawn | of loop | of floor |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        sizes = [(1, int(text), 20, asked.rounds) for text in asked.pods.split(",") if text]
        sizes += [(asked.nodes, asked.nodes * 10, 50, asked.fleet_rounds)] if asked.nodes else []
        for nodes, pods, budgets, rounds in sizes:
            results = _measure(plane, rounds, pods=pods, budgets=budgets, nodes=nodes)
            lines += _lines(nodes, pods, results)
        print("\n".join(lines))


def _measure(
    plane: ControlPlane, rounds: int, *, pods: int, budgets: int, nodes: int
) -> dict[str, list[Result]]:
    results: dict[str, list[Result]] = defaultdict(list)
    for number in range(rounds):
        # The first one has cold caches, so each has its turn.
        names = list(_ROWS)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            leaving = _prepare(plane, pods, budgets=budgets, nodes=nodes)
            results[name].append(_run(plane, _ROWS[name], leaving))
            print(f"{pods} pods, {name}: {results[name][-1].seconds:.2f} s", file=sys.stderr, flush=True)
    return results


def _lines(nodes: int, pods: int, results: dict[str, list[Result]]) -> list[str]:
    medians = {name: statistics.median(one.seconds for one in runs) for name, runs in results.items()}
    lines = []
    for name, runs in results.items():
        shown = [nodes, pods, name, f"{medians[name]:.2f}", " ".join(f"{one.seconds:.2f}" for one in runs)]
        shown += [f"{statistics.median(run.cpu for run in runs):.1f}"]
        shown += [f"{statistics.median(run.requests for run in runs):.0f}"]
        shown += [sum(run.overdrawn for run in runs)]
        shown += [f"{medians[name] / medians.get(other, math.nan):.2f}" for other in ("loop", "floor")]
        lines.append(f"| {' | '.join(map(str, shown))} |")
    return lines


def _prepare(plane: ControlPlane, pods: int, *, budgets: int, nodes: int) -> list[str]:
    """Put so many pods under so many budgets on cordoned nodes; others have room for all of them."""
    api = plane.api
    plane.clean()
    leaving = [api.create("nodes", _POOL.node(number))["metadata"]["name"] for number in range(nodes)]
    # The disruption controller may keep the former ReplicaSet of a name, and then counts no pods.
    turn = next(_TURNS)
    apps = {f"app{number}x{turn}": len(range(number, pods, budgets)) for number in range(min(pods, budgets))}
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda app: api.create("deployments", _deployment(app, apps[app])), apps))
        wait_for(
            "ready pods",
            lambda: sum(map(_is_ready, api.list("pods", "default"))) >= pods,
            seconds=300,
            every=0.2,
        )
        budgeted = [budget(app, max_unavailable="10%") for app in apps]
        list(threads.map(partial(api.create, "poddisruptionbudgets"), budgeted))
    wait_for("counted budgets", lambda: _settled(api, apps), seconds=300, every=0.2)
    for node in leaving:
        api.patch("nodes", node, {"spec": {"unschedulable": True}})
    for number in range(nodes, nodes + max(4, nodes)):
        api.create("nodes", _POOL.node(number))
    return leaving


def _deployment(app: str, replicas: int) -> dict[str, object]:
    made = deployment(app, replicas)
    made["spec"]["template"]["spec"].pop("topologySpreadConstraints", None)
    return made


def _is_ready(pod: dict[str, object]) -> bool:
    status: dict[str, list[dict[str, str]]] = pod["status"]  # type: ignore[assignment]  # JSON
    return any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", []))


def _settled(api: Api, apps: dict[str, int]) -> bool:
    """Whether every budget has counted all of its pods, and allows a tenth of them, rounded up."""
    listed = api.list("poddisruptionbudgets", "default")
    found = {each["metadata"]["name"]: each.get("status", {}) for each in listed}
    allowed = {app: found[app].get("disruptionsAllowed", 0) for app in apps}
    return all(allowed[app] == math.ceil(count / 10) for app, count in apps.items())


class Sampler:
    """Counts how often a budget was seen with fewer healthy pods than it asks for, while a row runs."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._desired = {
            one["metadata"]["name"]: one["status"]["desiredHealthy"]
            for one in plane.api.list("poddisruptionbudgets", "default")
        }
        self._over = threading.Event()
        self.overdrawn = 0
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def stop(self) -> int:
        """End it and return the count."""
        self._over.set()
        self._thread.join()
        return self.overdrawn

    def _sample(self) -> None:
        with Api(self._plane.kubeconfig, user_agent="bench-sampler") as api:
            while not self._over.wait(0.25):
                healthy: dict[str, int] = defaultdict(int)
                for pod in api.list("pods", "default"):
                    gone = "deletionTimestamp" in pod["metadata"]
                    healthy[pod["metadata"]["labels"]["app"]] += _is_ready(pod) and not gone
                self.overdrawn += sum(healthy[app] < desired for app, desired in self._desired.items())


def _run(plane: ControlPlane, row: Row, nodes: list[str]) -> Result:
    since = datetime.now(UTC)
    sampler = Sampler(plane)
    cpu = _cpu()
    row.drain(plane, nodes)
    cpu = _cpu() - cpu
    until = datetime.now(UTC)
    overdrawn = sampler.stop()
    left = [pod for node in nodes for pod in plane.api.list("pods", fields=f"spec.nodeName={node}")]
    assert not left, f"{len(left)} pods are left"
    # The log is written a moment after the answer.
    requests = plane.audit_entries(user_agent=row.user_agent, since=since)
    if row.drain is _command:
        # Its start is measured by tests.bench.start.
        since = min(entry.timestamp for entry in requests if entry.verb == "patch")
    return Result((until - since).total_seconds(), cpu, len(requests), overdrawn)


def _cpu() -> float:
    """Return the seconds of processors that this process and its ended children have used."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _ours(plane: ControlPlane, nodes: list[str]) -> None:
    connection = Connection(str(plane.kubeconfig))
    evictor = SharedEvictions(connection, guard=lambda: None, prefix="node-maintenance.dev")
    uids = {node: plane.api.get("nodes", node)["metadata"]["uid"] for node in nodes}
    drainer = Drainer(evictor, SystemClock())
    options = DrainOptions(evict_empty_dir=True, evict_unmanaged=True)
    for node in nodes:
        drainer.start(DrainOrder(node, uids[node], datetime.now(UTC), timedelta(seconds=_PATIENCE), options))
    while any((one := drainer.progress().get(node)) is None or one.phase is Phase.RUNNING for node in nodes):
        assert drainer.wait(_PATIENCE), "no end"
    phases = {one.phase for one in drainer.progress().values()}
    assert phases == {Phase.DRAINED}, phases
    drainer.close()
    connection.close()


def _command(plane: ControlPlane, nodes: list[str]) -> None:
    command = [sys.executable, "-m", "jobs", "drain", *nodes, *_FLAGS]
    environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    subprocess.run(command, env=environment, check=True, capture_output=True)


def _kubectl(plane: ControlPlane, nodes: list[str]) -> None:
    command = [str(plane.kubectl), f"--kubeconfig={plane.kubeconfig}", "drain", *nodes, *_FLAGS]
    subprocess.run(command, check=True, capture_output=True)


_OURS = USER_AGENT.split("/")[0]
_ROWS: dict[str, Row] = {
    "ours": Row(_ours, _OURS),
    "command": Row(_command, _OURS),
    "loop": Row(bare.loop, bare.LOOP),
    "floor": Row(bare.floor, bare.FLOOR),
    "kubectl": Row(_kubectl, "kubectl"),
}


if __name__ == "__main__":
    main()
