"""`serve` on a real API server under hostile nodes, pods, budgets and answers, beside healthy nodes.

    python -m tests.hostile [--minutes 10] [--seed N] [--log FILE]

Healthy nodes get one request after another, and must be cordoned and come back in time. Bystanders have no
event, and must never be written to. The log file has a JSON line for everything that was tried.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.hostile import attacks
from tests.real.passes.processes import ENFORCE, Programs, Running
from tests.real.passes.scene import Scene
from tests.support.controlplane.api import Api, ApiError
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.server import ControlPlane
from tests.support.fakes.proxy import Proxy

IN_TIME = 120.0
"""Seconds: the longest that a healthy node may wait for its cordon, or for its return."""

MEMORY = 128 * 1024
"""KiB: the most that `serve` may ever hold."""

WRITES = ("create", "update", "patch", "delete")
_FAULTY = 0.02
_SETTINGS = ENFORCE + "budget: {maxUnavailable: 100%}\ndrain: {timeout: 5s}\n"


@dataclass(slots=True)
class Result:
    """What a session came to; `wrong` is empty where everything holds."""

    seed: int
    attacks: int = 0
    faults: int = 0
    cases: int = 0
    slowest: float = 0.0
    memory: int = 0
    wrong: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """Return the result in a few lines."""
        tried = f"seed {self.seed}: {self.attacks} attacks, {self.faults} broken answers"
        came = f"{self.cases} cases of healthy nodes, slowest step {self.slowest:.1f} s"
        memory = f"peak memory {self.memory / 1024:.0f} MiB"
        return "\n".join([tried, came, memory, *(f"WRONG: {one}" for one in self.wrong)])


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
        self.hostile = [self._scene.node(one, Pool("hostile")) for one in range(5)]
        self.api.create_namespace(attacks.NAMESPACE)

    def run(self, seconds: float) -> Result:
        """Attack for so long, then check; `result.wrong` says what does not hold."""
        with Proxy(self._controlplane.kubeconfig) as proxy, self._serving(proxy) as serve:
            proxy.instead = self._instead
            attacker = threading.Thread(target=self._attack, name="attacker", daemon=True)
            attacker.start()
            try:
                end, number = time.monotonic() + seconds, 0
                while time.monotonic() < end or number < len(self.healthy):
                    self._treat(self.healthy[number % len(self.healthy)], number, serve)
                    number += 1
            finally:
                self._stopped.set()
                self._calm.set()
                attacker.join(60)
            self._check(serve)
        self._log.close()
        self._scene.close()
        return self.result

    @contextmanager
    def _serving(self, proxy: Proxy) -> Iterator[Running]:
        kubeconfig = proxy.write_kubeconfig(self._folder / "proxy")
        with Programs(kubeconfig, self._folder) as programs:
            programs.configure(_SETTINGS)
            process = programs.start("serve", "--every", "5s", "--listen", "127.0.0.1:0")
            process.wait_for("leading")
            yield process

    # The hostile side.

    def _instead(self, method: str, path: str) -> bytes | None:
        """Return a broken answer to some requests, but to no watch: those are broken by the others."""
        with self._lock:
            if self._calm.is_set() or "watch=" in path or self._answers.random() >= _FAULTY:
                return None
            raw = attacks.answer(self._answers, patience=method == "GET")
            self.result.faults += 1
            self._note("answer", f"{method} {path}", raw[:60].decode("latin-1"))
        return raw

    def _attack(self) -> None:
        random, number = Random(f"attacks {self._seed}"), 0
        moves: list[Callable[[Random, int, str], None]] = [
            self._condition,
            self._annotation,
            self._pod,
            self._budget,
            self._flap,
        ]
        # A flapping node takes seconds, so it comes seldom.
        weights = (8, 8, 4, 1, 1)
        while not self._stopped.is_set():
            number += 1
            node, move = random.choice(self.hostile), random.choices(moves, weights)[0]
            try:
                move(random, number, node)
            except ApiError as error:
                # The server refuses some of it, which is as good.
                with self._lock:
                    self._note("refused", node, str(error)[:200])
            self.result.attacks += 1
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

    def _treat(self, node: str, number: int, serve: Running) -> None:
        """Request maintenance of a node; it must be drained, and come back once the request has gone."""
        request = json.dumps({"kind": "Reboot", "id": f"healthy-{number}"})
        self._request(node, request)
        self._in_time(f"{node}: cordoned", lambda: self._scene.cordoned(node), serve)
        self._request(node, None)
        self._in_time(f"{node}: back", lambda: not self._scene.cordoned(node), serve)
        self.result.cases += 1

    def _request(self, node: str, text: str | None) -> None:
        self.api.patch("nodes", node, {"metadata": {"annotations": {attacks.KEYS.request: text}}})

    def _in_time(self, what: str, done: Callable[[], bool], serve: Running) -> None:
        began = time.monotonic()
        try:
            serve.does(what, done, seconds=IN_TIME)
        except TimeoutError:
            self.result.wrong.append(f"{what}: not within {IN_TIME:.0f} s")
        self.result.slowest = max(self.result.slowest, time.monotonic() - began)

    # The checks.

    def _check(self, serve: Running) -> None:
        status = Path(f"/proc/{serve.pid}/status").read_text(encoding="ascii")
        self.result.memory = int(status.partition("VmHWM:")[2].split()[0])
        wrong = self.result.wrong
        if self.result.memory > MEMORY:
            wrong.append(f"serve held {self.result.memory} KiB, more than {MEMORY}")
        if serve.process.poll() is not None:
            wrong.append(f"serve ended with {serve.process.returncode}")
        touched = {
            entry.name
            for entry in self._scene.asked(*WRITES)
            if entry.resource == "nodes" and entry.name in self.bystanders
        }
        wrong += [f"{node} has no event and was written to" for node in sorted(touched)]
        for line in serve.everything().splitlines():
            text = json.loads(line) if line.startswith("{") else {"event": "not JSON", "traceback": line}
            if "traceback" in text:
                self._note("traceback", text["event"], str(text["traceback"]))
                wrong.append(f"{text['event']}: {str(text['traceback']).strip().splitlines()[-1][:200]}")
        self.result.wrong = list(dict.fromkeys(wrong))
