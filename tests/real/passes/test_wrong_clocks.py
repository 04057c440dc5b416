"""A local clock that is wrong, or that somebody sets, keeps nobody from a drain and ends none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.passes.processes import Programs, Running
from tests.real.passes.scene import Scene

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
