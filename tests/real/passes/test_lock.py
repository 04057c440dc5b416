"""Two of us never act at once: the one that has the lock acts, the other says who has it."""

from __future__ import annotations

import signal
from pathlib import Path

from reconciler.kubernetes.reconcilers import LOCK
from tests.real.passes.processes import Programs, Running
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.workloads import budget
from tests.support.fakes.proxy import Proxy

SLEEPS = """
import time
from pathlib import Path

real = time.clock_gettime
time.clock_gettime = lambda clock: real(clock) + 60 * Path({file!r}).exists()
"""
"""The clock that counts through suspend is a minute ahead once there is a file."""


def holder(scene: Scene) -> str:
    lease = scene.api.find("leases", LOCK, "node-maintenance")
    return str(lease["spec"].get("holderIdentity") or "") if lease else ""


def blocked(scene: Scene) -> str:
    """A node whose drain goes on until its budget is taken away."""
    node = scene.node()
    scene.workload("web", node)
    scene.api.create("poddisruptionbudgets", budget("web", min_available=1))
    scene.condition_tells(node)
    return node


def is_held_by(scene: Scene, process: Running) -> bool:
    return str(process.pid) in holder(scene).split("/")


def test_of_two_sweeps_one_acts_and_the_other_says_who_has_the_lock(scene: Scene, programs: Programs) -> None:
    node = blocked(scene)
    first = programs.start("sweep", "--for", "60s")
    first.does("cordon", lambda: scene.cordoned(node))
    assert is_held_by(scene, first)

    both = programs.start("sweep"), programs.start("sweep", "--output", "json")
    second, as_json = (process.wait() for process in both)

    assert second.code == as_json.code == 0
    assert second.out == f"another pass holds the lock: {holder(scene)}; nothing was done\n"
    assert as_json.document["lockedBy"] == holder(scene)
    assert first.process.poll() is None

    done = first.terminate()

    assert done.code == 0, done.err
    assert holder(scene) == ""
    assert scene.pods_on(node) == ["web"]


def test_a_standby_takes_over_when_the_leader_ends(scene: Scene, programs: Programs) -> None:
    node = blocked(scene)
    leader = programs.start("serve", "--every", "1h")
    leader.wait_for("leading")
    standby = programs.start("serve", "--every", "1h")
    (line,) = standby.wait_for("standing by")
    assert line["holder"] == holder(scene)
    assert is_held_by(scene, leader)

    assert leader.terminate().code == 0

    standby.wait_for("leading")
    scene.api.delete("poddisruptionbudgets", "web", "default")
    wait_for("the end of the drain", lambda: scene.pods_on(node) == [], seconds=60)


def test_a_leader_whose_own_node_is_drained_gives_the_lock_back_and_calls_that_no_failure(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    (name,) = scene.workload("web", node)
    uid = scene.api.get("pods", name, "default")["metadata"]["uid"]
    pod = {"POD_NAME": name, "POD_NAMESPACE": "default", "POD_UID": uid, "NODE_NAME": node}
    leader = programs.start("serve", "--every", "1s", pod=pod)
    leader.wait_for("leading")
    standby = programs.start("serve", "--every", "1s")
    standby.wait_for("standing by")

    scene.condition_tells(node)
    leader.wait_for("lock given back")
    standby.wait_for("leading", seconds=30)
    wait_for("the end of the drain", lambda: scene.pods_on(node) == [], seconds=60)

    assert leader.terminate().code == 0
    assert leader.said("pass failed") == []


def test_a_holder_that_was_stopped_finds_the_lock_lost_and_writes_nothing(
    scene: Scene, programs: Programs, tmp_path: Path
) -> None:
    node = blocked(scene)
    slept = tmp_path / "slept"
    (tmp_path / "sitecustomize.py").write_text(SLEEPS.format(file=str(slept)), encoding="utf-8")
    with (
        Proxy(programs.kubeconfig) as proxy,
        Programs(proxy.write_kubeconfig(tmp_path / "proxy.kubeconfig"), tmp_path) as fresh,
    ):
        stopped = fresh.start("sweep", "--for", "10m", pod={"PYTHONPATH": str(tmp_path)})
        wait_for("an eviction", lambda: any(one.endswith("/eviction") for one in proxy.writes), seconds=60)
        stopped.signal(signal.SIGSTOP)
        slept.touch()
        scene.free_lock()

        other = programs.start("serve", "--every", "1h")
        other.wait_for("leading")
        before, leader = len(proxy.writes), holder(scene)
        stopped.signal(signal.SIGCONT)
        # From now on there is a pod to evict.
        scene.api.delete("poddisruptionbudgets", "web", "default")
        done = stopped.wait()

        # A renewal that was on its way is refused, because the lock has changed since.
        assert [each for each in proxy.writes[before:] if not each.endswith("/leases/reconciler-lock")] == []
        assert holder(scene) == leader
    assert done.code == 1
    assert "the lock node-maintenance/reconciler-lock is" in done.err
    assert "Traceback" not in done.err
    assert is_held_by(scene, other)
    wait_for("the other one's drain", lambda: scene.pods_on(node) == [], seconds=60)
