"""How long nodes wait for the next leader, whatever has become of the one before.

`pytest -s tests/real/passes/test_takeover.py` prints the seconds. docs/reliability.md has those of one run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from jobs.commands.serve import Serving
from jobs.runtime import acting as acting_module
from jobs.runtime.environment import Target, this_process
from jobs.runtime.process import Companion
from jobs.runtime.supervised import Ending
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.lease import Sighting
from reconciler.kubernetes.reconcilers import LOCK
from tests.real.passes.processes import ENFORCE, ROOT, Programs, Running
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.proxy import Proxy

STANDS_STILL = """
import sys, threading, time
from pathlib import Path

def change():
    while not hasattr(sys.modules.get("jobs.runtime.acting"), "Yields"):
        time.sleep(0.02)
    from jobs.runtime import acting, watchdog
    run = acting.run_pass

    def run_pass(*given):
        while Path({file!r}).exists():
            time.sleep(0.05)
        return run(*given)

    acting.run_pass = run_pass
    watchdog.LONGEST = {longest}

threading.Thread(target=change, daemon=True).start()
"""
"""Passes stand still before they read anything, as long as there is a file."""


def holder(scene: Scene) -> str:
    lease = scene.api.find("leases", LOCK, "node-maintenance")
    return str(lease["spec"].get("holderIdentity") or "") if lease else ""


@contextmanager
def measured(what: str, within: float) -> Iterator[None]:
    """Print how long it took. The bound is what the processes wait for, and more for slow machines."""
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    print(f"\n{what}: {took:.1f} s")
    assert took < within


def started(programs: Programs, *, kubeconfig: Path | None = None, **pod: str) -> Running:
    programs.configure(f"{ENFORCE}budget: {{maxUnavailable: 100%}}\n")
    return programs.start("serve", "--every", "30s", kubeconfig=kubeconfig, pod=pod)


@pytest.mark.slow
def test_after_a_kill(scene: Scene, programs: Programs) -> None:
    node = scene.node()
    leader = started(programs)
    leader.wait_for("leading")
    standby = started(programs)
    standby.wait_for("standing by")

    leader.kill()
    with measured("from the kill of the leader to a cordon", 60):
        scene.condition_tells(node)
        standby.does("cordon", lambda: scene.cordoned(node))


@pytest.mark.slow
def test_after_passes_that_stand_still(scene: Scene, programs: Programs, tmp_path: Path) -> None:
    first, second = scene.node(0), scene.node(1)
    still = tmp_path / "still"
    longest = float(os.environ.get("TAKEOVER_LONGEST", "3"))
    code = STANDS_STILL.format(file=str(still), longest=longest)
    (tmp_path / "sitecustomize.py").write_text(code, encoding="utf-8")
    with (
        Proxy(programs.kubeconfig) as proxy,
        Programs(proxy.write_kubeconfig(tmp_path / "proxy.kubeconfig"), tmp_path) as fresh,
    ):
        leader = started(fresh, PYTHONPATH=str(tmp_path))
        leader.wait_for("leading")
        standby = started(programs)
        standby.wait_for("standing by")

        still.touch()
        with measured("from the notice at which a pass stands still to a cordon", longest + 60):
            scene.condition_tells(first)
            standby.does("cordon", lambda: scene.cordoned(first), seconds=longest + 60)
        assert "is not renewed, so that another process can act" in leader.everything()

        # What the old leader does once its pass goes on: it finds out that the lock is lost.
        writes = list(proxy.writes)
        still.unlink()
        leader.wait_for("standing by")
        scene.condition_tells(second)
        standby.does("another cordon", lambda: scene.cordoned(second))
        assert proxy.writes == writes
        assert len(leader.said("leading")) == 1


def test_after_a_signal_while_evictions_hang(scene: Scene, programs: Programs, tmp_path: Path) -> None:
    first, second = scene.node(0), scene.node(1)
    scene.workload("web", first)
    hangs, over = threading.Event(), threading.Event()

    def hang(method: str, path: str) -> bytes | None:
        if not path.endswith("/eviction"):
            return None
        hangs.set()
        over.wait(120)
        return b""

    with Proxy(programs.kubeconfig) as proxy:
        proxy.instead = hang
        leader = started(programs, kubeconfig=proxy.write_kubeconfig(tmp_path / "proxy.kubeconfig"))
        leader.wait_for("leading")
        standby = started(programs)
        standby.wait_for("standing by")
        scene.condition_tells(first)
        assert hangs.wait(60)
        try:
            with measured("from a signal while an eviction hangs to a cordon", 30):
                leader.signal(signal.SIGTERM)
                standby.wait_for("leading")
                scene.condition_tells(second)
                standby.does("cordon", lambda: scene.cordoned(second))
            # The eviction has no answer yet.
            assert leader.wait(60).code == 0
            assert not over.is_set()
        finally:
            over.set()


def test_after_a_signal_while_a_pass_stands_still(scene: Scene, programs: Programs, tmp_path: Path) -> None:
    node, still = scene.node(), tmp_path / "still"
    code = STANDS_STILL.format(file=str(still), longest=60)
    (tmp_path / "sitecustomize.py").write_text(code, encoding="utf-8")
    still.touch()
    with Programs(programs.kubeconfig, tmp_path) as fresh:
        leader = started(fresh, PYTHONPATH=str(tmp_path))
        leader.wait_for("leading")
        standby = started(programs)
        standby.wait_for("standing by")
        scene.condition_tells(node)
        with measured("from a signal while a pass stands still to a cordon", 30):
            leader.signal(signal.SIGTERM)
            standby.does("cordon", lambda: scene.cordoned(node))
        assert leader.wait(60).code == 0


def test_nobody_reads_what_it_says(scene: Scene, programs: Programs) -> None:
    node = scene.node()
    theirs, ours = os.pipe()
    os.set_blocking(ours, False)
    with suppress(BlockingIOError):
        while True:
            os.write(ours, b"x" * 4096)
    os.set_blocking(ours, True)
    command = [sys.executable, "-m", "jobs", "serve", "--every", "1s", "--config", str(programs.config)]
    leader = subprocess.Popen(
        [*command, "--kubeconfig", str(programs.kubeconfig)], stdout=ours, stderr=ours, cwd=ROOT
    )
    os.close(ours)
    try:
        wait_for("the lock", lambda: str(leader.pid) in holder(scene).split("/"), seconds=60)
        scene.condition_tells(node)
        wait_for("the cordon", lambda: scene.cordoned(node), seconds=60)
        leader.send_signal(signal.SIGTERM)
        assert leader.wait(60) == 0
        assert holder(scene) == ""
    finally:
        leader.kill()
        leader.wait(60)
        os.close(theirs)


class FailsOnce(Companion):
    """Raises the first time that a pass begins."""

    def __init__(self, error: Exception) -> None:
        self.errors = [error]

    def before(self, settings: object) -> None:
        if self.errors:
            raise self.errors.pop()


@contextmanager
def serving(scene: Scene, programs: Programs) -> Iterator[Serving]:
    """`serve` in this process."""
    connection = Connection(str(programs.kubeconfig))
    target = Target(str(programs.kubeconfig))
    server = Serving(connection, target, programs.config, timedelta(seconds=30), Ending())
    try:
        with server:
            yield server
    finally:
        connection.close()


@pytest.mark.parametrize(
    "error", [OSError(24, "Too many open files"), RuntimeError("can't start new thread")]
)
def test_after_a_takeover_that_failed(
    scene: Scene, programs: Programs, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, companion = scene.node(), FailsOnce(error)
    monkeypatch.setattr(acting_module, "companions_of", lambda _: [companion])
    with serving(scene, programs) as server:
        scene.condition_tells(node)
        wait_for("the cordon", lambda: scene.cordoned(node), seconds=60)
        assert companion.errors == []
        wait_for("readiness", lambda: not server.unready(), seconds=60)
        assert holder(scene).startswith(this_process())


def test_an_earlier_run_of_the_same_container_is_no_leader(
    scene: Scene, programs: Programs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = this_process().rpartition("/")[0]
    scene.api.create_namespace("node-maintenance")
    old = {"holderIdentity": f"{place}/0123abcd.1", "leaseDurationSeconds": 20}
    scene.api.create("leases", {"metadata": {"name": LOCK, "namespace": "node-maintenance"}, "spec": old})
    silence, said = Sighting.silence, list[str]()
    monkeypatch.setattr(Sighting, "silence", lambda self, lease: silence(self, lease) + 30 * bool(said))
    with serving(scene, programs) as server:
        wait_for("a pass", lambda: "an earlier run of this container" in capsys.readouterr().out)
        assert server.unready()
        said.append("it is over")
        wait_for("readiness", lambda: not server.unready(), seconds=60)
        assert holder(scene).startswith(this_process())
