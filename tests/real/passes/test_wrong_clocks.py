"""Clocks that are wrong, or that somebody sets: the local one, and those of API servers that disagree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.passes.processes import Programs, Running
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.proxy import Proxy, faces

pytestmark = pytest.mark.slow

WRONG = """
import pathlib, time
real, ahead = time.time, pathlib.Path({file!r})
time.time = lambda: real() + float(ahead.read_text())
"""


class WrongClock:
    """Starts the program with a local clock that is off by as many seconds as a file says."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "ahead"
        (folder / "sitecustomize.py").write_text(WRONG.format(file=str(self._file)), encoding="utf-8")
        self._folder = folder

    def set(self, seconds: float) -> None:
        fresh = self._folder / "fresh"
        fresh.write_text(str(seconds), encoding="utf-8")
        fresh.rename(self._file)

    def start(self, programs: Programs, *arguments: str) -> Running:
        command = [*arguments, "--config", str(programs.config), "--kubeconfig", str(programs.kubeconfig)]
        return Running(command, {"PYTHONPATH": str(self._folder)})


def test_with_a_local_clock_an_hour_ahead_an_event_that_is_due_is_served(
    scene: Scene, programs: Programs, tmp_path: Path
) -> None:
    node = scene.node()
    scene.workload("web", node)
    scene.condition_tells(node, minutes=5)
    clock = WrongClock(tmp_path)
    clock.set(3600)

    sweep = clock.start(programs, "sweep", "--for", "60s", "--output", "json")
    try:
        done = sweep.wait()
    finally:
        sweep.kill()

    assert done.code == 0, done.err
    assert scene.cordoned(node)
    assert scene.pods_on(node) == []


CLOSED = "mode: Enforce\nwindows: [{schedule: '0 0 29 2 *', duration: 1m}]\n"


@pytest.mark.parametrize("ahead", [(0.0, 6.0), (6.0, 0.0), (0.0, -6.0)])
def test_between_two_api_servers_whose_clocks_differ_a_deadline_is_kept_and_both_times_are_said(
    scene: Scene, programs: Programs, tmp_path: Path, ahead: tuple[float, float]
) -> None:
    """The deadline is reached by one of the clocks; by the other one it is not."""
    node = scene.node()
    scene.workload("web", node)
    programs.configure(CLOSED)
    with Proxy(programs.kubeconfig) as proxy:
        proxy.dates = faces(*ahead)
        through = proxy.write_kubeconfig(tmp_path / "proxy.kubeconfig")
        # Six minutes before the deadline by the slower clock, and a minute after it by the faster one.
        scene.condition_tells(node, minutes=15 + 5 + min(ahead))
        serving = programs.start("serve", "--every", "5s", kubeconfig=through)
        serving.wait_for("leading")
        wait_for("the cordon", lambda: scene.cordoned(node), seconds=60)
        wait_for("the drain", lambda: scene.pods_on(node) == [], seconds=60)
        # Else the turns of the two servers are shared with another reader, and it may get most of one's.
        serving.kill()
        report = programs.run("report", kubeconfig=through)

    assert "the clocks of the API servers disagree by 3" in report.out
    assert "Deadlines go by the faster clock, windows and ends by the slower one" in " ".join(
        report.out.split()
    )


def test_between_two_api_servers_whose_clocks_differ_nothing_starts_early(
    scene: Scene, programs: Programs, tmp_path: Path
) -> None:
    late = scene.node()
    due = scene.node(1)
    programs.configure(CLOSED)
    with Proxy(programs.kubeconfig) as proxy:
        proxy.dates = faces(0.0, 6.0)
        scene.condition_tells(late, minutes=60)
        scene.condition_tells(due, minutes=20)
        serving = programs.start(
            "serve", "--every", "5s", kubeconfig=proxy.write_kubeconfig(tmp_path / "proxy.kubeconfig")
        )
        serving.wait_for("leading")
        wait_for("the cordon of the node that is due", lambda: scene.cordoned(due), seconds=60)

    assert not scene.cordoned(late)
