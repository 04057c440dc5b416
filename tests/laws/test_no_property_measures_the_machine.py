"""A property plays the same on a slow machine: its verdict does not depend on how long an example takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROPERTIES = ("tests/kubernetes/scale/test_glances.py", "tests/kubernetes/test_paths.py")
FAST_CLOCK = """
import time

seconds = time.perf_counter
time.perf_counter = lambda: 5000 * seconds()
"""


@pytest.mark.heavy
def test_properties_pass_where_each_example_takes_seconds(tmp_path: Path) -> None:
    (tmp_path / "fast_clock.py").write_text(FAST_CLOCK)
    command = (sys.executable, "-m", "pytest", "-q", "-p", "fast_clock", "-p", "no:cacheprovider")
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    played = subprocess.run(
        (*command, *PROPERTIES),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "LAWS_PROFILE": "quick"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert played.returncode == 0, played.stdout[-3000:]
