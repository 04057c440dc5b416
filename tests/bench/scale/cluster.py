"""A cluster with `serve` as a whole process, and what is seen of it from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle, product
from pathlib import Path
from typing import Self

import urllib3

from reconciler import USER_AGENT
from tests.bench.bare import METADATA, Changed, PlainWatch
from tests.support.controlplane.api import Api
from tests.support.controlplane.fill import Pool, fill, no_vm_event, patch_conditions, vm_event
from tests.support.controlplane.processes import _LAUNCH, wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.workloads import pod

PATIENCE = 900.0
"""Seconds."""

SETTLES = 3.0
"""Seconds after its first pass until `serve` is measured."""

LAUNCH = (sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()))
"""Before the command of a process that is to die with this one."""

SETTINGS = """\
mode: Enforce
budget: {{maxUnavailable: {budget}}}
drain: {{maxConcurrentNodes: 1000}}
events: {{Reboot: {{start: Early, unmanagedPods: Evict}}}}
"""


_KUBELETS = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")


class Serve:
    """`reconciler serve` from `with` to its end. It dies with its parent."""

    def __init__(self, kubeconfig: Path, settings: str, program: Sequence[str]) -> None:
        """`program` is what the interpreter is given, such as `-m jobs`. Files go beside the kubeconfig."""
        config = kubeconfig.with_name("maintenance.yaml")
        config.write_text(settings, encoding="utf-8")
        self._log = kubeconfig.with_name(f"serve-{time.monotonic_ns()}.log")
        command = [*LAUNCH, sys.executable, *program, "serve", "--config", str(config), "--kubeconfig"]
        self._command = [*command, str(kubeconfig), "--listen", "127.0.0.1:0"]

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def kill(self) -> None:
        """Kill it, so that it can do nothing more."""
        self._process.kill()
        self._process.wait()

    def wait_until_ready(self) -> None:
        """Wait until it leads, and a pass has succeeded; then a little, so that its watch stands."""

        def ready() -> bool:
            log = self._log.read_text(encoding="utf-8")
            if self._process.poll() is not None:
                raise SystemExit(f"serve ended with {self._process.returncode}: {log}")
            lines = [json.loads(line) for line in log.splitlines(keepends=True) if line.endswith("}\n")]
            address = next((line["address"] for line in lines if line["event"] == "listening"), "")
            leads = any(line["event"] == "leading" for line in lines)
            return leads and urllib3.request("GET", f"http://{address}/readyz", retries=False).status == 200

        wait_for("ready serve", ready, seconds=PATIENCE)
        time.sleep(SETTLES)

    @property
    def cpu(self) -> float:
        """Seconds of processors so far."""
        stat = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def peak(self) -> float:
        """Peak resident MiB since its start."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024


class Seen:
    """When each node was cordoned, and each pod deleted, in seconds of the monotonic clock."""

    def __init__(self, plane: ControlPlane) -> None:
        self.cordoned: dict[str, float] = {}
        self.states: dict[str, float] = {}
        self.deleted: dict[str, float] = {}
        self.open_again: set[str] = set()
        self._over = threading.Event()
        self._api = Api(plane.kubeconfig, user_agent="bench-watch")
        self._watches = [
            self._watch("nodes?fieldSelector=spec.unschedulable%3Dtrue", self._node),
            self._watch("pods", self._pod),
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for watch in self._watches:
            watch.close()
        self._api.close()

    def follow_states(self) -> None:
        """Note from now on when each node is no longer operational, by its label."""
        self._watches.append(self._watch("nodes", self._state))

    def wait_for(self, what: str, nodes: Collection[str], among: dict[str, float]) -> None:
        """Wait until all of these are among those that were seen."""
        wait_for(
            f"{len(nodes)} {what}",
            lambda: all(node in among for node in nodes),
            seconds=PATIENCE,
            every=0.05,
            instead=lambda: f"{sum(node in among for node in nodes)} of them",
        )

    def wrong(self, nodes: Collection[str]) -> str:
        """Say how the nodes that were cordoned differ from these; empty if they are the same."""
        missing, more = set(nodes) - set(self.cordoned), set(self.cordoned) - set(nodes)
        found = {"missing": missing, "too many": more, "uncordoned": self.open_again}
        return ", ".join(f"{len(names)} {what}" for what, names in found.items() if names)

    def _watch(self, what: str, on_event: object) -> PlainWatch:
        return PlainWatch(self._api, f"api/v1/{what}", on_event, self._over, METADATA)  # type: ignore[arg-type]

    def _node(self, event: Changed) -> None:
        name, kind = event["object"]["metadata"]["name"], str(event["type"])
        if kind == "DELETED":
            self.open_again.add(name)
        self.cordoned.setdefault(name, time.monotonic())

    def _state(self, event: Changed) -> None:
        labels: dict[str, str] = event["object"]["metadata"].get("labels", {})  # type: ignore[assignment]
        if any(key.endswith("state") and value != "operational" for key, value in labels.items()):
            self.states.setdefault(event["object"]["metadata"]["name"], time.monotonic())

    def _pod(self, event: Changed) -> None:
        if str(event["type"]) == "DELETED":
            self.deleted.setdefault(event["object"]["metadata"]["name"], time.monotonic())


class Cluster:
    """A control plane with AKS-shaped nodes of 25 KB, whose notices come all at once."""

    def __init__(self, plane: ControlPlane, program: Sequence[str]) -> None:
        self.plane, self._program = plane, program

    def empty(self) -> None:
        """Delete everything."""
        self.plane.clean()
        self.plane.api.create_namespace("node-maintenance")

    def nodes(self, pool: str, count: int, pods: int = 0, grace: int = 0) -> list[str]:
        """Make nodes without a notice, each with so many pods that have no controller; their names."""
        made = fill(self.plane.kubeconfig, nodes=count, pools=[Pool(pool)])
        bodies = [
            pod(f"{node}-{number}", node_name=node, grace=grace)
            for node, number in product(made, range(pods))
        ]
        self._in_parallel(lambda body: self.plane.api.create("pods", body), bodies)
        if bodies:
            running = partial(self.plane.api.list, "pods", fields="status.phase=Running", metadata_only=True)
            wait_for("running pods", lambda: len(running()) >= len(bodies), seconds=PATIENCE, every=1)
        return made

    def told(self, pool: str, nodes: Collection[str], kind: str = "Reboot") -> dict[str, str]:
        """Prepare a notice for each of the pool's nodes, for `tell`; they have none yet."""
        notice = vm_event(
            kind, datetime.now(UTC) + timedelta(hours=4), duration=9 if kind == "Freeze" else -1
        )
        self._in_parallel(lambda node: patch_conditions(self.plane.api, node, notice), nodes)
        with_notice = self.plane.objects.values(f"/registry/minions/{Pool(pool).scale_set}")
        self._in_parallel(lambda node: patch_conditions(self.plane.api, node, no_vm_event()), nodes)
        assert len(with_notice) == len(nodes)
        return with_notice

    def tell(self, notices: dict[str, str]) -> tuple[float, float]:
        """Report these notices all but at once, past the API server; return when that began and ended."""
        began = time.monotonic()
        self.plane.objects.put(notices)
        return began, time.monotonic()

    def beat(self, nodes: Sequence[str], a_second: float, over: threading.Event) -> None:
        """Patch the conditions of the nodes in turn, as kubelets do when nothing has changed."""
        path = "api/v1/nodes/{}/status"
        headers = {"Content-Type": "application/strategic-merge-patch+json", "Accept": METADATA}
        with Api(self.plane.kubeconfig, user_agent="bench-kubelets") as api:
            due = time.monotonic()
            for node in cycle(nodes):
                due += 1 / a_second
                if over.wait(max(0.0, due - time.monotonic())):
                    return
                now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
                beats = [{"type": kind, "lastHeartbeatTime": now} for kind in _KUBELETS]
                body = {"status": {"conditions": beats}}
                api.request("PATCH", path.format(node), body, headers=headers)

    @contextmanager
    def serving(self, budget: int, settings: str = SETTINGS) -> Iterator[tuple[Serve, Seen]]:
        """Run `serve` with a budget of so many nodes; it is ready."""
        with self.instance(budget, settings) as serve, Seen(self.plane) as seen:
            serve.wait_until_ready()
            yield serve, seen

    def instance(self, budget: int, settings: str = SETTINGS) -> Serve:
        """Return `serve`, which may stand by, for a `with`."""
        folder = self.plane.folder / "serve"
        folder.mkdir(exist_ok=True)
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(self.plane.kubeconfig.read_text())
        return Serve(kubeconfig, settings.format(budget=budget), self._program)

    def requests(self, since: datetime) -> Counter[str]:
        """The requests of `serve` that came later, by verb and resource."""
        entries = self.plane.audit_entries(USER_AGENT.split("/")[0], since=since)
        whole = (filter(None, (f"{entry.verb} {entry.resource}", entry.subresource)) for entry in entries)
        return Counter(map("/".join, whole))

    def _in_parallel(self, what: object, over: Collection[object]) -> None:
        with ThreadPoolExecutor(32) as threads:
            list(threads.map(what, over))  # type: ignore[arg-type]
