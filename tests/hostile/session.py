"""`serve` on a real API server under hostile nodes, pods, budgets and answers, beside healthy nodes.

    python -m tests.hostile [--minutes 10] [--seed N] [--log FILE]

Healthy nodes get one request after another, and must be cordoned, drained and come back in time. Bystanders
have no event, and neither they nor their pods may ever be written to. Two instances run, and the one that
leads is killed again and again. The log file has a JSON line for everything that was tried.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from reconciler.kubernetes import lease
from reconciler.kubernetes.cluster import NAMESPACE
from tests.hostile import attacks
from tests.hostile.streams import Bender
from tests.real.passes.processes import ENFORCE, Programs, Running
from tests.real.passes.scene import Scene
from tests.support.controlplane import workloads
from tests.support.controlplane.api import Api, ApiError
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.fakes.proxy import Proxy

IN_TIME = 120.0
"""Seconds: the longest that a healthy node may wait for its cordon, or for its return."""

KILLED_EVERY = 10
"""The leader is killed once in so many cases."""

_FAULTY = 0.02
_SLOW = 0.02
_BENT = 0.25
# A drain that stalls until its time-out is not in time.
_SETTINGS = ENFORCE + "budget: {maxUnavailable: 100%}\ndrain: {timeout: 30m}\n"
_POD = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/pods/(?P<name>[^/]+)")
_NODE = re.compile(r"/api/v1/nodes/(?P<name>[^/]+)(/status)?$")
_OWN = re.compile(r"/namespaces/[^/]+/(events|leases|configmaps)(/|$)")


@dataclass(slots=True)
class Result:
    """What a session came to; `wrong` is empty where everything holds."""

    seed: int
    tried: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    slowest: float = 0.0
    memory: int = 0
    wrong: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """Return the result in a few lines."""
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.tried.items()))
        tried = f"seed {self.seed}: {self.tried.total()} attacks ({kinds})"
        came = f"{self.cases} cases of healthy nodes, slowest step {self.slowest:.1f} s"
        memory = f"peak memory {self.memory / 1024:.0f} MiB"
        return "\n".join([tried, came, memory, *(f"WRONG: {one}" for one in self.wrong)])


class Instances:
    """The instances of `serve`: the two that run, and all that were started."""

    def __init__(self, programs: Programs, api: Api) -> None:
        """Start two, and wait until one leads."""
        self._programs, self._api = programs, api
        programs.configure(_SETTINGS)
        self.started: list[Running] = []
        self.running = [self._start(), self._start()]
        wait_for("an instance that leads", lambda: any(serve.said("leading") for serve in self.running))

    def kill_leader(self) -> None:
        """Kill the one that holds the lock, and start another one."""
        holder = self._api.get("leases", lease.NAME, NAMESPACE)["spec"]["holderIdentity"].split("/")[1]
        (leader,) = (serve for serve in self.running if str(serve.pid) == holder)
        leader.kill()
        self.running = [serve for serve in self.running if serve is not leader] + [self._start()]

    def _start(self) -> Running:
        self.started.append(self._programs.start("serve", "--every", "5s", "--listen", "127.0.0.1:0"))
        return self.started[-1]


class Session:
    """One run against one control plane."""

    def __init__(self, controlplane: ControlPlane, folder: Path, seed: int, log: Path) -> None:
        """Use an empty control plane; `log` gets a line for everything that is tried."""
        self.api: Api = controlplane.api
        self.result = Result(seed)
        self._controlplane = controlplane
        self._folder = folder
        self._log = log.open("w", encoding="utf-8")
        self._seed = seed
        self._stopped = threading.Event()
        self._calm = threading.Event()
        self._answers = Random(f"answers {seed}")
        self._lock = threading.Lock()
        self._scene = Scene(controlplane)
        self.healthy = [self._scene.node(one, Pool("healthy")) for one in range(3)]
        self.bystanders = [self._scene.node(one, Pool("bystander")) for one in range(2)]
        self._pods = {
            node: self._scene.workload(node, node, annotations={"node": node})
            for node in (*self.healthy, *self.bystanders)
        }
        for node in self.healthy:
            self.api.create("poddisruptionbudgets", workloads.budget(node, max_unavailable=1))
        self.hostile = [self._scene.node(one, Pool("hostile")) for one in range(5)]
        self.api.create_namespace(attacks.NAMESPACE)

    def run(self, seconds: float) -> Result:
        """Attack for so long, then check; `result.wrong` says what does not hold."""
        with Proxy(self._controlplane.kubeconfig) as proxy, ExitStack() as running:
            programs = Programs(proxy.write_kubeconfig(self._folder / "proxy"), self._folder)
            instances = Instances(running.enter_context(programs), self.api)
            proxy.instead = self._instead
            proxy.bend = Bender(self._seed, _BENT, self._bent, self._calm.is_set).bend
            attacker = threading.Thread(target=self._attack, name="attacker", daemon=True)
            attacker.start()
            try:
                end, number = time.monotonic() + seconds, 0
                while time.monotonic() < end or number < len(self.healthy):
                    self._treat(self.healthy[number % len(self.healthy)], number, instances)
                    self._measure(instances)
                    number += 1
            except AssertionError as error:
                self.result.wrong.append(str(error)[:500])
            finally:
                self._stopped.set()
                self._calm.set()
                attacker.join(60)
            self._check(instances, proxy)
        self._log.close()
        self._scene.close()
        return self.result

    # The hostile side.

    def _instead(self, method: str, path: str) -> bytes | None:
        """Return a broken answer to some requests, and answer others late. Open watches are bent instead."""
        with self._lock:
            if self._calm.is_set():
                return None
            chance = self._answers.random()
            if chance < _FAULTY and "watch=" not in path:
                raw = attacks.answer(self._answers, patience=method == "GET")
                self.result.tried["broken answer"] += 1
                self._note("answer", f"{method} {path}", raw[:60].decode("latin-1"))
                return raw
            slow = self._answers.uniform(1, 5) if chance >= 1 - _SLOW else 0
            if slow:
                self.result.tried["slow answer"] += 1
                self._note("slow", f"{method} {path}", f"{slow:.1f} s")
        self._calm.wait(slow)
        return None

    def _bent(self, kind: str) -> None:
        with self._lock:
            self.result.tried[f"watch {kind}"] += 1
            self._note("watch", kind, "")

    def _attack(self) -> None:
        random, number = Random(f"attacks {self._seed}"), 0
        moves: list[Callable[[Random, int, str], None]] = [
            self._condition,
            self._annotation,
            self._pod,
            self._budget,
            self._flap,
            self._change_budget,
        ]
        # A flapping node takes seconds, so it comes seldom.
        weights = (8, 8, 4, 1, 1, 2)
        while not self._stopped.is_set():
            number += 1
            node, move = random.choice(self.hostile), random.choices(moves, weights)[0]
            try:
                move(random, number, node)
                self.result.tried[move.__name__.strip("_")] += 1
            except ApiError as error:
                # The server refuses some of it, which is as good.
                with self._lock:
                    self._note("refused", node, str(error)[:200])
                    self.result.tried["refused by the server"] += 1
            except Exception as error:  # noqa: BLE001 - a session without attacks must not pass
                self.result.wrong.append(f"the attacker ended: {error!r}")
                return
            self._stopped.wait(random.uniform(0, 0.2))

    def _condition(self, random: Random, _: int, node: str) -> None:
        made = attacks.condition(random)
        self._tried("condition", node, made)
        self.api.patch("nodes", node, {"status": {"conditions": [made]}}, subresource="status")

    def _annotation(self, random: Random, _: int, node: str) -> None:
        uid = self.api.get("nodes", node)["metadata"]["uid"]
        made = attacks.our_annotations(random, uid)
        self._tried("annotation", node, made)
        self.api.patch("nodes", node, {"metadata": {"annotations": made}})

    def _pod(self, random: Random, number: int, node: str) -> None:
        # So many that they matter, and so few that the tests' own API server can hold them.
        made = attacks.pod(random, number % 20, node)
        self._tried("pod", node, made)
        self.api.create("pods", made)

    def _budget(self, _: Random, number: int, node: str) -> None:
        made = attacks.budget(number % 10)
        self._tried("budget", node, made)
        self.api.create("poddisruptionbudgets", made)

    def _change_budget(self, random: Random, _: int, __: str) -> None:
        """Change a budget of a healthy node's pods for a moment, and a hostile one for good."""
        node, name = random.choice(self.healthy), f"hostile-{random.randrange(10)}"
        self._tried("budget changes", node, {})
        try:
            for allowed in (0, 10**9 % 2**31, 1):
                self.api.patch("poddisruptionbudgets", node, {"spec": {"maxUnavailable": allowed}})
        finally:
            self.api.patch("poddisruptionbudgets", node, {"spec": {"maxUnavailable": 1}})
        self.api.delete("poddisruptionbudgets", name, namespace=attacks.NAMESPACE)

    def _flap(self, random: Random, number: int, node: str) -> None:
        self._tried("flap", node, {})
        for one in range(60):
            message = f"Freeze Scheduled {number} {one}"
            made = attacks.condition(random) | {"type": "VMEventScheduled", "message": message}
            self.api.patch("nodes", node, {"status": {"conditions": [made]}}, subresource="status")
            if self._stopped.wait(0.05):
                return

    def _tried(self, what: str, node: str, made: dict[str, Any]) -> None:
        with self._lock:
            self._note(what, node, json.dumps(made)[:2000])

    def _note(self, what: str, on: str, how: str) -> None:
        self._log.write(json.dumps({"at": time.time(), "what": what, "on": on, "how": how}) + "\n")

    # The healthy side.

    def _treat(self, node: str, number: int, instances: Instances) -> None:
        """Request maintenance of a node; it must be drained, and come back once the request has gone."""
        request = json.dumps({"kind": "Reboot", "id": f"healthy-{number}"})
        self._request(node, request)
        before = self._scene.ready(node, 1)
        self._in_time(f"{node}: cordoned", lambda: self._scene.cordoned(node))
        if number % KILLED_EVERY == 1:
            instances.kill_leader()
            self.result.tried["leader killed"] += 1
        self._in_time(f"{node}: drained", lambda: not self._left(node, before))
        self._request(node, None)
        self._in_time(f"{node}: back", lambda: not self._scene.cordoned(node))
        self._in_time(f"{node}: in use", lambda: bool(self._scene.ready(node, 1)))
        self.result.cases += 1

    def _left(self, node: str, before: list[str] | None) -> bool:
        return not {
            one["metadata"]["name"] for one in self.api.list("pods", labels=f"app={node}")
        }.isdisjoint(before or [])

    def _request(self, node: str, text: str | None) -> None:
        self.api.patch("nodes", node, {"metadata": {"annotations": {attacks.KEYS.request: text}}})

    def _in_time(self, what: str, done: Callable[[], bool]) -> None:
        began = time.monotonic()
        try:
            wait_for(what, done, seconds=IN_TIME)
        except TimeoutError:
            self.result.wrong.append(f"{what}: not within {IN_TIME:.0f} s")
        self.result.slowest = max(self.result.slowest, time.monotonic() - began)

    # The checks.

    def _measure(self, instances: Instances) -> None:
        """Read the peak memory; a process that has ended has none."""
        for serve in instances.running:
            with suppress(FileNotFoundError):
                status = Path(f"/proc/{serve.pid}/status").read_text(encoding="ascii")
                peak = re.search(r"VmHWM:\s*(\d+)", status)
                self.result.memory = max(self.result.memory, int(peak[1]) if peak else 0)

    def _check(self, instances: Instances, proxy: Proxy) -> None:
        wrong = self.result.wrong
        self._measure(instances)
        if not self.result.memory:
            wrong.append("the memory of serve was not measured")
        for serve in instances.running:
            if serve.process.poll() is not None:
                wrong.append(f"serve ended with {serve.process.returncode}")
        # The proxy sees every request of serve, however long the session.
        treated = {*self.healthy, *self.hostile}
        wrong += [f"was written: {write}" for write in proxy.writes if not self.allowed(write, treated)]
        for node in self.bystanders:
            if self._scene.ready(node, 1) != self._pods[node]:
                wrong.append(f"{node}: its pod was taken")
        lines = "".join(serve.everything() for serve in instances.started).splitlines()
        for line in filter(str.strip, lines):
            text = json.loads(line) if line.startswith("{") else {"event": "not JSON", "traceback": line}
            if "traceback" in text:
                self._note("traceback", text["event"], str(text["traceback"]))
                wrong.append(f"{text['event']}: {str(text['traceback']).strip().splitlines()[-1][:200]}")
        self.result.wrong = list(dict.fromkeys(wrong))

    @staticmethod
    def allowed(write: str, treated: set[str]) -> bool:
        """Return whether `serve` may send this `METHOD path`: about treated nodes, their pods, or its own.

        A Deployment's pods have the name of their node, which begins their own.
        """
        path = write.partition(" ")[2]
        if node := _NODE.fullmatch(path):
            return node["name"] in treated
        if pod := _POD.match(path):
            return pod["namespace"] == attacks.NAMESPACE or any(
                pod["name"].startswith(f"{one}-") for one in treated
            )
        # It creates the namespace of its lock.
        return write == "POST /api/v1/namespaces" or _OWN.search(path) is not None
