"""Law 9 as processes: killed before or after any write, a later sweep ends in the same state.

Each way to die has a node, a settings file and a lock of its own. All are killed before the first is swept
again, and all are swept again at once: each sweep waits until the lock of the dead has run out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.kubernetes.connection import LEDGER
from reconciler.kubernetes.reconcilers import LOCK
from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene
from tests.support.fakes.proxy import Cut, Proxy

pytestmark = pytest.mark.slow

Object = dict[str, Any]

SETTINGS = """\
mode: Enforce
keys: {{prefix: lane-{lane}.example}}
nodeSelector: {{test/lane: "{lane}"}}
budget: {{maxUnavailable: 1, spacing: 1s}}
uncordon: {{settle: 0s}}
"""
TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
# Only the process that drains a node counts the pods that leave, and the count is lost with it.
MOVED = re.compile(r',"moved":\d+')
# More processes than this are not killed sooner. Those that finish only wait, so all of them run at once.
AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Lane:
    """One node with two pods, and the program's settings, keys and lock for it alone."""

    node: str
    namespace: str
    config: Path

    @property
    def prefix(self) -> str:
        return f"{self.namespace}.example"


def make_lane(scene: Scene, folder: Path, number: int, more: str) -> Lane:
    node = scene.node(number, labels={"test/lane": str(number)})
    scene.workload(f"app{number}", node, replicas=2)
    namespace = f"lane-{number}"
    scene.api.create("namespaces", {"metadata": {"name": namespace}})
    config = folder / f"lane-{number}.yaml"
    config.write_text(SETTINGS.format(lane=number) + more, encoding="utf-8")
    return Lane(node, namespace, config)


def make_lanes(scene: Scene, folder: Path, numbers: range, more: str) -> list[Lane]:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(lambda number: make_lane(scene, folder, number, more), numbers))


def sweep(programs: Programs, lane: Lane, folder: Path, cut: Cut | None = None) -> list[str]:
    """Run a sweep of the lane, to its end or to where it is cut; the writes that it tried."""
    with Proxy(programs.kubeconfig, cut) as proxy:
        kubeconfig = proxy.write_kubeconfig(folder / f"{lane.namespace}.kubeconfig")
        process = programs.start(
            "sweep",
            "--for",
            "60s",
            "--reconciler-namespace",
            lane.namespace,
            kubeconfig=kubeconfig,
            config=lane.config,
        )
        proxy.ends(process.kill)
        done = process.wait()
    assert done.code == (0 if cut is None else -9), (cut, done.code, done.out, done.err)
    return proxy.writes


def end_state(scene: Scene, lane: Lane) -> Object:
    """All that is ours in the lane, and the pods that are left; times, UIDs and counts of a process aside."""
    node = scene.api.get("nodes", lane.node)
    metadata = node["metadata"]
    ours = {
        key.removeprefix(f"{lane.prefix}/"): MOVED.sub("", TIME.sub("<time>", value))
        .replace(metadata["uid"], "<uid>")
        .replace(f'"lock":"{lane.namespace}"', '"lock":"<namespace>"')
        for key, value in {**metadata["labels"], **metadata["annotations"]}.items()
        if key.startswith(f"{lane.prefix}/")
    }
    lock = scene.api.get("leases", LOCK, lane.namespace)
    # What is kept of moved pods is not here: a process that is killed has not written its last pods.
    return {
        "ours": ours,
        "unschedulable": node["spec"].get("unschedulable", False),
        # After the uncordon the scheduler's pace decides.
        "pods": len(scene.pods_on(lane.node)) if node["spec"].get("unschedulable") else None,
        "holder": lock["spec"].get("holderIdentity", ""),
        "ledger": scene.api.find("configmaps", LEDGER, lane.namespace) is not None,
    }


def kinds(writes: list[str]) -> list[str]:
    """The writes by what they write, e.g. `PATCH nodes`."""
    return [f"{one.split()[0]} {re.split('/(?:api|apis)/', one)[1].split('/')[-2]}" for one in writes]


def killed_everywhere(
    scene: Scene, programs: Programs, folder: Path, lanes: list[Lane], cuts: list[Cut], expected: Object
) -> None:
    """Kill each lane's sweep at its cut, let the next one finish, and compare."""

    def killed(lane: Lane, cut: Cut) -> None:
        sweep(programs, lane, folder, cut)
        if scene.api.find("leases", LOCK, lane.namespace) is not None:
            scene.free_lock(lane.namespace)

    def finished(lane: Lane) -> Object:
        sweep(programs, lane, folder)
        return end_state(scene, lane)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(killed, lanes, cuts))
    with ThreadPoolExecutor(len(lanes)) as threads:
        ends = dict(zip(cuts, threads.map(finished, lanes), strict=True))
    assert {str(cut): end for cut, end in ends.items() if end != expected} == {}


def cuts_of(writes: list[str]) -> list[Cut]:
    """All ways to die: before the first write, and after each one, which is also before the next.

    No sweep reads Events, so each is as good as none.
    """
    return [
        Cut(1, True),
        *(Cut(number, False) for number, write in enumerate(writes, 1) if not write.endswith("/events")),
    ]


def killed_at_each_write(
    scene: Scene, programs: Programs, folder: Path, announce: Callable[[Lane], object], more: str = ""
) -> Object:
    """Kill the sweeps of a case at each of their writes, and compare; the state while the node is drained.

    `announce` says what the next sweep drains the node of a lane for. All lanes have `more` settings.
    """
    (model,) = make_lanes(scene, folder, range(100, 101), more)
    announce(model)
    draining = sweep(programs, model, folder)
    drained = end_state(scene, model)
    assert drained["pods"] == 0
    assert drained["unschedulable"] is True
    assert {"record", "state"} <= drained["ours"].keys()
    print(kinds(draining))
    scene.condition_silent(model.node)
    undoing = sweep(programs, model, folder)
    undone = end_state(scene, model)
    assert undone["ours"] == {}
    assert undone["unschedulable"] is False
    print(kinds(undoing))

    cuts = cuts_of(draining)
    lanes = make_lanes(scene, folder, range(len(cuts)), more)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(announce, lanes))
    killed_everywhere(scene, programs, folder, lanes, cuts, drained)

    cuts = cuts_of(undoing)
    assert 0 < len(cuts) <= len(lanes)
    for lane in lanes:
        scene.condition_silent(lane.node)
    killed_everywhere(scene, programs, folder, lanes[: len(cuts)], cuts, undone)
    return drained


def test_killed_at_any_write_the_next_sweep_ends_in_the_same_state(
    scene: Scene, programs: Programs, tmp_path: Path
) -> None:
    killed_at_each_write(scene, programs, tmp_path, lambda lane: scene.condition_tells(lane.node))
