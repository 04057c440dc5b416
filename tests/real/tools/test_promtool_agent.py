"""What the node agent shows, judged by Prometheus' own rules for names, types, units and help texts."""

from __future__ import annotations

import subprocess
from pathlib import Path

from reconciler.sources.imds.agent.figures import Figures


def test_prometheus_has_nothing_to_say_about_its_metrics(promtool_program: Path) -> None:
    figures = Figures()
    figures.answered(1.7e9, 2)

    command = [str(promtool_program), "check", "metrics"]
    text = figures.document().body
    done = subprocess.run(command, input=text, capture_output=True, timeout=60, check=False)

    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
