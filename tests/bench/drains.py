"""Drains side by side on a real API server: ours, `kubectl drain`, and a bare loop that is the floor.

    python -m tests.bench.drains [--rounds N] [--pods 20,100,250] [--nodes 50] [--fleet-rounds N]

Every row starts from the same: one cordoned node, pods of as many Deployments as there are budgets (each with
maxUnavailable 10 %), replacements ready after 0.2 s, pods gone 0.6 s after their deletion. Rows alternate
within each round. Requests are counted from the API server's audit log by user agent. While each runs, the
pods are watched, and each budget's ready pods are counted against what it asks for.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import urllib3

from reconciler import USER_AGENT
from reconciler.clients.kubernetes.connection import Connection
from reconciler.clients.kubernetes.eviction import Evictions
from reconciler.drainer import Drainer
from reconciler.model.drains import DrainOptions, DrainOrder, Phase
from tests.support.controlplane.api import Api, ApiError
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.waiting import wait_for
from tests.support.controlplane.workloads import budget, deployment
from tests.support.fakes.clock import SystemClock

_POOL = Pool("np")
_FLOOR = "bench-floor"
_PATIENCE = 600.0


@dataclass(frozen=True, slots=True)
class Result:
    """One drain: seconds, requests, how many times a budget was seen overdrawn."""

    seconds: float
    requests: int
    overdrawn: int


def main() -> None:
    """Run all rows and print the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pods", default="20,100,250")
    parser.add_argument("--nodes", type=int, default=50, help="drained at once in the end, 10 pods each")
    parser.add_argument("--fleet-rounds", type=int, default=1)
    parser.add_argument("--without", default="", help="rows to leave out, comma-separated")
    asked = parser.parse_args()
    rows = {name: row for name, row in _ROWS.items() if name not in asked.without.split(",")}
    with ControlPlane(ready_after=0.2, deleted_after=0.6) as plane:
        print("| nodes | pods | row | seconds (median) | by round | requests | overdrawn | of the floor |")
        print("|---|---|---|---|---|---|---|---|")
        for pods in (int(text) for text in asked.pods.split(",") if text):
            _print(1, pods, _measure(plane, rows, asked.rounds, pods=pods, budgets=20))
        if asked.nodes:
            pods = asked.nodes * 10
            results = _measure(plane, rows, asked.fleet_rounds, pods=pods, budgets=50, nodes=asked.nodes)
            _print(asked.nodes, pods, results)


def _measure(
    plane: ControlPlane, rows: dict[str, Row], rounds: int, *, pods: int, budgets: int, nodes: int = 1
) -> dict[str, list[Result]]:
    results: dict[str, list[Result]] = defaultdict(list)
    for number in range(rounds):
        # The first one has cold caches, so each has its turn.
        names = list(rows)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            leaving = _prepare(plane, pods, budgets=budgets, nodes=nodes)
            results[name].append(_run(plane, rows[name], leaving))
    return results


def _print(nodes: int, pods: int, results: dict[str, list[Result]]) -> None:
    floor = statistics.median(one.seconds for one in results["floor"]) if "floor" in results else math.nan
    for name, runs in results.items():
        seconds = statistics.median(one.seconds for one in runs)
        requests = statistics.median(one.requests for one in runs)
        spread = " ".join(f"{one.seconds:.2f}" for one in runs)
        overdrawn = sum(one.overdrawn for one in runs)
        share = f"{seconds / floor:.2f}"
        reported = [nodes, pods, name, f"{seconds:.2f}", spread, f"{requests:.0f}", overdrawn, share]
        print(f"| {' | '.join(map(str, reported))} |", flush=True)


def _prepare(plane: ControlPlane, pods: int, *, budgets: int, nodes: int) -> list[str]:
    """Put so many pods under so many budgets on cordoned nodes; others have room for all of them."""
    api = plane.api
    plane.clean()
    leaving = [api.create("nodes", _POOL.node(number))["metadata"]["name"] for number in range(nodes)]
    apps = {f"app{number}": len(range(number, pods, budgets)) for number in range(min(pods, budgets))}
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda app: api.create("deployments", _deployment(app, apps[app])), apps))
        list(
            threads.map(
                lambda app: api.create("poddisruptionbudgets", budget(app, max_unavailable="10%")), apps
            )
        )
    wait_for(
        "ready pods",
        lambda: _ready(api) >= pods and _settled(api, apps),
        seconds=300,
        every=0.2,
    )
    for node in leaving:
        api.patch("nodes", node, {"spec": {"unschedulable": True}})
    for number in range(nodes, nodes + max(4, nodes)):
        api.create("nodes", _POOL.node(number))
    return leaving


def _deployment(app: str, replicas: int) -> dict[str, object]:
    made = deployment(app, replicas)
    made["spec"]["template"]["spec"].pop("topologySpreadConstraints", None)
    return made


def _ready(api: Api) -> int:
    return sum(_is_ready(pod) for pod in api.list("pods", "default"))


def _is_ready(pod: dict[str, object]) -> bool:
    status: dict[str, list[dict[str, str]]] = pod["status"]  # type: ignore[assignment]  # JSON
    return any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", []))


def _settled(api: Api, apps: dict[str, int]) -> bool:
    """Whether every budget has counted all of its pods, and allows a tenth of them, rounded up."""
    found = {
        one["metadata"]["name"]: one.get("status", {}) for one in api.list("poddisruptionbudgets", "default")
    }
    return all(
        found[app].get("disruptionsAllowed", 0) == math.ceil(count / 10) for app, count in apps.items()
    )


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


Row = Callable[[ControlPlane, list[str]], None]


def _run(plane: ControlPlane, row: Row, nodes: list[str]) -> Result:
    since = datetime.now(UTC)
    sampler = Sampler(plane)
    begin = time.perf_counter()
    row(plane, nodes)
    seconds = time.perf_counter() - begin
    overdrawn = sampler.stop()
    left = [pod for node in nodes for pod in plane.api.list("pods", fields=f"spec.nodeName={node}")]
    assert not left, f"{len(left)} pods are left"
    agent = _AGENTS[row]
    # The log is written a moment after the answer.
    count = len(plane.audit_entries(user_agent=agent, since=since))
    return Result(seconds, count, overdrawn)


def _ours(plane: ControlPlane, nodes: list[str]) -> None:
    connection = Connection(str(plane.kubeconfig))
    evictor = Evictions(connection, guard=lambda: None, prefix="node-maintenance.dev")
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


def _kubectl(plane: ControlPlane, nodes: list[str]) -> None:
    flags = ["--ignore-daemonsets", "--delete-emptydir-data", "--force", f"--timeout={_PATIENCE:.0f}s"]
    command = [str(plane.kubectl), f"--kubeconfig={plane.kubeconfig}", "drain", *nodes, *flags]
    subprocess.run(command, check=True, capture_output=True)


def _floor(plane: ControlPlane, nodes: list[str]) -> None:
    """All evictions at once, a refused one again when its budget allows one; then until all are gone."""
    with Api(plane.kubeconfig, user_agent=_FLOOR, connections=60) as api:
        left: dict[str, str] = {}
        for node in nodes:
            for pod in api.list("pods", fields=f"spec.nodeName={node}"):
                left[pod["metadata"]["name"]] = pod["metadata"]["labels"]["app"]
        changed = threading.Condition()
        refused: dict[str, set[str]] = defaultdict(set)
        allows: dict[str, int] = defaultdict(int)
        over = threading.Event()
        threads = ThreadPoolExecutor(50)

        def evict(name: str) -> None:
            try:
                api.evict(name)
            except ApiError as error:
                if error.status == 404:
                    return
                if error.status != 429:
                    raise
                with changed:
                    app = left[name]
                    refused[app].add(name)
                again(app)

        def on_budget(event: dict[str, dict[str, dict[str, str]]]) -> None:
            app = event["object"]["metadata"]["name"]
            allows[app] = int(event["object"].get("status", {}).get("disruptionsAllowed", 0))
            again(app)

        def again(app: str) -> None:
            with changed:
                waiting = refused[app]
                now = [waiting.pop() for _ in range(min(allows[app], len(waiting)))]
                allows[app] -= len(now)
            for pod in now:
                threads.submit(evict, pod)

        def on_pod(event: dict[str, dict[str, dict[str, str]]]) -> None:
            if str(event["type"]) == "DELETED":
                with changed:
                    left.pop(event["object"]["metadata"]["name"], None)
                    changed.notify_all()

        names = list(left)
        watches = [_Watch(api, "apis/policy/v1/poddisruptionbudgets", on_budget, over)]
        watches += [
            _Watch(api, f"api/v1/pods?fieldSelector=spec.nodeName%3D{node}", on_pod, over) for node in nodes
        ]
        for name in names:
            threads.submit(evict, name)
        with changed:
            assert changed.wait_for(lambda: not left, _PATIENCE)
        over.set()
        for watch in watches:
            watch.close()
        threads.shutdown()


class _Watch:
    """A plain watch from now on."""

    def __init__(
        self,
        api: Api,
        path: str,
        on_event: Callable[[dict[str, dict[str, dict[str, str]]]], None],
        over: threading.Event,
    ) -> None:
        joint = "&" if "?" in path else "?"
        self._over = over
        self._on_event = on_event
        self._response = api._pool.request(
            "GET",
            f"{api.url}/{path}{joint}watch=true",
            preload_content=False,
            timeout=urllib3.Timeout(_PATIENCE),
        )
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def close(self) -> None:
        """Leave it."""
        self._response.shutdown()
        self._thread.join()
        self._response.close()

    def _follow(self) -> None:
        rest = b""
        try:
            while chunk := self._response.read1(1 << 16):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._on_event(json.loads(line))
        except urllib3.exceptions.HTTPError:
            if not self._over.is_set():
                raise


_ROWS: dict[str, Row] = {"ours": _ours, "floor": _floor, "kubectl": _kubectl}
_AGENTS: dict[Row, str] = {_ours: USER_AGENT.split("/")[0], _floor: _FLOOR, _kubectl: "kubectl"}


if __name__ == "__main__":
    main()
