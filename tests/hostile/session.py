"""`serve` on a real API server under one fault after the other, with hostile nodes, pods and budgets.

    python -m tests.hostile [--minutes 60] [--seed N] [--fault PATTERN] [--log FILE]

Two instances run. Each fault has notices while it lasts and after it: requests for maintenance of healthy
nodes, whose cordons are seen on the API server. None waits longer than `DURING` or `AFTER`. These nodes must
be drained and come back in time as well. Bystanders have no event, and neither they nor their pods may ever
be written to. The log file has a JSON line for everything that was tried.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from random import Random

import urllib3

from tests.hostile import attacks
from tests.hostile.faults import Fault, Faults
from tests.hostile.instances import Instances
from tests.real.passes.scene import Scene
from tests.support.controlplane import workloads
from tests.support.controlplane.api import Api, ApiError
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.fakes.proxy import Proxy

DURING = 5.0
"""Seconds: the longest that a notice waits during a fault that leaves nodes and ledger readable."""

AFTER = 10.0
"""Seconds: the longest that a notice waits after the end of a fault."""

IN_TIME = 120.0
"""Seconds: the longest that a healthy node may wait for its drain, or for its return."""

NOTICES = 3
"""During each fault, and after it."""

_POD = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/pods/(?P<name>[^/]+)")
_NODE = re.compile(r"/api/v1/nodes/(?P<name>[^/]+)(/status)?$")
_OWN = re.compile(r"/namespaces/[^/]+/(events|leases|configmaps)(/|$)")
_OF_FAULTS = ("can't start new thread", "Too many open files")
_UNREACHED = (ApiError, urllib3.exceptions.HTTPError)


@dataclass(slots=True)
class Notice:
    """A request for maintenance of a node; moments are seconds of a monotonic clock."""

    node: str
    given: float
    cordoned: float | None = None

    def waited(self, begin: float, end: float) -> float:
        """Return how long it waited between these moments."""
        return max(0.0, min(end, self.cordoned or end) - max(begin, self.given))


@dataclass(slots=True)
class Row:
    """What came of a fault."""

    readable: bool
    times: int = 0
    notices: int = 0
    during: float = 0.0
    after: float = 0.0
    met: int | None = None


@dataclass(slots=True)
class Result:
    """What a session came to; `wrong` is empty where everything holds."""

    seed: int
    tried: Counter[str] = field(default_factory=Counter)
    rows: dict[str, Row] = field(default_factory=dict)
    slowest: float = 0.0
    memory: int = 0
    wrong: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """Return the result in a table and a few lines."""
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.tried.items()))
        width = max((len(name) for name in self.rows), default=0)
        lines = [f"{'fault':{width}}  times  requests  notices  worst during  worst after"]
        for name, row in self.rows.items():
            during = f"{row.during:.1f} s" + ("" if row.readable else " *")
            met = "" if row.met is None else str(row.met)
            lines.append(
                f"{name:{width}}  {row.times:5}  {met:>8}  {row.notices:7}  {during:>12}  {row.after:9.1f} s"
            )
        notices = sum(row.notices for row in self.rows.values())
        lines += [
            "* no bound: nodes or ledger could not be read or written, or nobody could have the lock",
            f"seed {self.seed}: {sum(row.times for row in self.rows.values())} faults, {notices} notices",
            f"{self.tried.total()} attacks ({kinds})",
            f"slowest drain or return {self.slowest:.1f} s",
            f"peak memory {self.memory / 1024:.0f} MiB",
        ]
        return "\n".join([*lines, *(f"WRONG: {wrong}" for wrong in self.wrong)])


class Session:
    """One run against one control plane."""

    def __init__(
        self,
        controlplane: ControlPlane,
        folder: Path,
        seed: int,
        log: Path,
        *,
        slower: float = 0.0,
        brief: bool = False,
    ) -> None:
        """Use an empty control plane; `log` gets a line for everything that is tried.

        `slower`: seconds by which a notice may wait longer, where much else runs on the machine. `brief`: a
        fault that counts what it meets has one notice while it lasts and one after it, and ends once it has
        met a request.
        """
        self.api: Api = controlplane.api
        self.result = Result(seed)
        self._controlplane = controlplane
        self._folder = folder
        self._log = log.open("w", encoding="utf-8")
        self._seed = seed
        self._slower = slower
        self._brief = brief
        self._notices = 1 if brief else NOTICES
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._open: list[Notice] = []
        self._scene = Scene(controlplane)
        self.healthy = [self._scene.node(number, Pool("healthy")) for number in range(3 * self._notices)]
        self.bystanders = [self._scene.node(number, Pool("bystander")) for number in range(2)]
        self.stuck = self._scene.node(0, Pool("stuck"))
        """Its drain is blocked, so that passes always have pods and budgets to read."""
        self._pods = {
            node: self._scene.workload(node, node, annotations={"node": node})
            for node in (*self.healthy, *self.bystanders, self.stuck)
        }
        for node in self.healthy:
            self.api.create("poddisruptionbudgets", workloads.budget(node, max_unavailable=1))
        self.api.create("poddisruptionbudgets", workloads.budget(self.stuck, max_unavailable=0))
        self.hostile = [self._scene.node(number, Pool("hostile")) for number in range(5)]
        self.api.create_namespace(attacks.NAMESPACE)
        self._turns = cycle(self.healthy)

    def run(self, seconds: float, chosen: str = "") -> Result:
        """Play faults for so long, each at least once; with `chosen` those whose names match it."""
        with (
            Proxy(self._controlplane.kubeconfig) as proxy,
            Instances(proxy.write_kubeconfig(self._folder / "proxy"), self._folder, self.api) as instances,
        ):
            faults = Faults(self._seed, proxy, self._controlplane, instances, self._waiting, self._tried)
            helpers = [
                threading.Thread(target=each, name=each.__name__, daemon=True)
                for each in (self._attack, self._watch)
            ]
            for helper in helpers:
                helper.start()
            try:
                self._request(self.stuck, "stuck")
                wait_for("the cordon of the node that is stuck", lambda: self._scene.cordoned(self.stuck))
                self._play(faults, seconds, chosen, instances)
            except AssertionError as error:
                self.result.wrong.append(str(error)[:500])
            finally:
                self._stopped.set()
                for helper in helpers:
                    helper.join(60)
            self._check(instances, proxy)
        self._log.close()
        self._scene.close()
        return self.result

    def _play(self, faults: Faults, seconds: float, chosen: str, instances: Instances) -> None:
        end, number = time.monotonic() + seconds, 0
        while number == 0 or time.monotonic() < end:
            played = [fault for fault in faults.of_round(number) if re.search(chosen, fault.name)]
            Random(f"order {self._seed} {number}").shuffle(played)
            for fault in played:
                if number and time.monotonic() >= end:
                    return
                self._suffer(fault, instances)
            number += 1

    def _suffer(self, fault: Fault, instances: Instances) -> None:
        """Let one fault happen, with notices while it lasts and after it; then wait for their nodes."""
        row = self.result.rows.setdefault(fault.name, Row(fault.readable))
        ended = len(instances.ended)
        self._note("fault", fault.name, "begins")
        fault.begin()
        began = time.monotonic()
        turns = range(self._notices)
        notices = [self._notice(began + 0.5 + fault.lasts / self._notices * number) for number in turns]
        if fault.readable:
            self._await(lambda: not self._waiting(), IN_TIME)
        if self._brief:
            self._await(fault.met, IN_TIME)
        else:
            self._stopped.wait(max(0.0, began + fault.lasts - time.monotonic()))
        fault.end()
        end = time.monotonic()
        self._note("fault", fault.name, "ends")
        # Who goes back in time forgets requests.
        notices = [each for each in notices if each and (each.cordoned or self._requested(each.node))]
        with self._lock:
            self._open = [each for each in self._open if each in notices]
        notices += [self._notice(end + 2 * number) for number in turns]
        self._await(lambda: not self._waiting(), IN_TIME)
        self._settle(fault, instances)
        for notice in filter(None, notices):
            row.notices += 1
            row.during = max(row.during, notice.waited(began, end))
            row.after = max(row.after, notice.waited(end, time.monotonic()))
            if notice.cordoned is None:
                self._wrong(f"{fault.name}: {notice.node}: not cordoned within {IN_TIME:.0f} s")
        row.times += 1
        if (met := fault.met()) is not None:
            row.met = (row.met or 0) + met
        if fault.readable and row.during > DURING + self._slower:
            self._wrong(f"{fault.name}: a notice waited {row.during:.1f} s during it")
        if row.after > AFTER + self._slower:
            self._wrong(f"{fault.name}: a notice waited {row.after:.1f} s after it")
        if not fault.ends:
            for instance in instances.ended[ended:]:
                self._wrong(f"{fault.name}: serve ended with {instance.process.returncode}")
        self._note("row", fault.name, str(row))
        self.result.memory = max(self.result.memory, *(each.peak_memory for each in instances.running))

    def _notice(self, at: float) -> Notice | None:
        """Give a notice at this moment, for the next healthy node; None without an API server."""
        self._stopped.wait(max(0.0, at - time.monotonic()))
        notice = Notice(next(self._turns), time.monotonic())
        try:
            self._request(notice.node, f"{notice.given:.0f}")
        except _UNREACHED:
            return None
        with self._lock:
            self._open.append(notice)
        return notice

    def _watch(self) -> None:
        """Look at the healthy nodes all the time, for the cordons that notices wait for."""
        while not self._stopped.wait(0.1):
            with suppress(*_UNREACHED):
                nodes = self.api.list("nodes", labels="agentpool=healthy")
                now = time.monotonic()
                cordoned = {
                    each["metadata"]["name"] for each in nodes if each["spec"].get("unschedulable", False)
                }
                with self._lock:
                    for notice in [each for each in self._open if each.node in cordoned]:
                        notice.cordoned = now
                        self._open.remove(notice)

    def _waiting(self) -> list[str]:
        with self._lock:
            return [notice.node for notice in self._open]

    def _settle(self, fault: Fault, instances: Instances) -> None:
        """Wait until all nodes with requests are drained and, without these, back."""
        self._in_time(f"{fault.name}: drained", lambda: not any(map(self._undrained, self.healthy)))
        for node in self.healthy:
            self._request(node, None)
        self._in_time(f"{fault.name}: back", lambda: not any(map(self._scene.cordoned, self.healthy)))
        self._in_time(
            f"{fault.name}: in use", lambda: all(self._scene.ready(each, 1) for each in self.healthy)
        )
        self._in_time(f"{fault.name}: both instances at work", lambda: instances.at_work)
        with self._lock:
            self._open.clear()

    def _undrained(self, node: str) -> bool:
        """Whether a node with a request has a pod of its Deployment."""
        pods = self.api.list("pods", labels=f"app={node}")
        return any("nodeName" in pod["spec"] for pod in pods) and self._requested(node)

    def _requested(self, node: str) -> bool:
        return attacks.KEYS.request in self.api.get("nodes", node)["metadata"].get("annotations", {})

    def _request(self, node: str, name: str | None) -> None:
        text = None if name is None else json.dumps({"kind": "Reboot", "id": f"healthy-{name}"})
        self.api.patch("nodes", node, {"metadata": {"annotations": {attacks.KEYS.request: text}}})

    def _await(self, done: Callable[[], object], seconds: float) -> bool:
        try:
            wait_for("", done, seconds=seconds)
        except TimeoutError:
            return False
        return True

    def _in_time(self, what: str, done: Callable[[], bool]) -> None:
        began = time.monotonic()
        if not self._await(done, IN_TIME):
            self._wrong(f"{what}: not within {IN_TIME:.0f} s")
        self.result.slowest = max(self.result.slowest, time.monotonic() - began)

    def _wrong(self, what: str) -> None:
        """Keep what is wrong, and say it at once: a session takes long."""
        self._note("wrong", what, "")
        self.result.wrong.append(what)
        print(f"WRONG: {what}", flush=True)

    # The hostile objects.

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
            except _UNREACHED as error:
                # The server refuses some of it, which is as good.
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

    def _tried(self, what: str, on: str, how: object) -> None:
        with self._lock:
            self.result.tried[what] += 1
        self._note(what, on, json.dumps(how)[:2000])

    def _note(self, what: str, on: str, how: str) -> None:
        line = json.dumps({"at": time.time(), "what": what, "on": on, "how": how})
        with self._lock:
            self._log.write(f"{line}\n")

    # The checks.

    def _check(self, instances: Instances, proxy: Proxy) -> None:
        wrong = self.result.wrong
        if not self.result.memory:
            wrong.append("the memory of serve was not measured")
        for serve in instances.running:
            if serve.process.poll() is not None:
                wrong.append(f"serve ended with {serve.process.returncode}")
        # The proxy sees every request of serve, however long the session.
        treated = {*self.healthy, *self.hostile, self.stuck}
        wrong += [f"was written: {write}" for write in proxy.writes if not self.allowed(write, treated)]
        for node in self.bystanders:
            if self._scene.ready(node, 1) != self._pods[node]:
                wrong.append(f"{node}: its pod was taken")
        said = [(each.pid, line) for each in instances.started for line in each.everything().splitlines()]
        for pid, line in said:
            self._note("said", str(pid), line)
            text = json.loads(line) if line.startswith("{") else {"event": "not JSON", "traceback": line}
            if "traceback" in text and not any(part in text["traceback"] for part in _OF_FAULTS):
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
