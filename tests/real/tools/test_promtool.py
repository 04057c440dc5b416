"""What a process shows, judged by Prometheus' own rules for names, types, units and help texts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jobs.agent.figures import Figures
from jobs.runtime.metering import Meter
from tests.metrics.everything import full

pytestmark = pytest.mark.tools


def check(promtool: Path, text: bytes) -> tuple[int, str]:
    command = [str(promtool), "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, timeout=60, check=False)
    return done.returncode, (done.stdout + done.stderr).decode()


def test_prometheus_has_nothing_to_say_about_our_metrics(promtool_program: Path) -> None:
    meter = Meter()
    full(meter)

    assert check(promtool_program, meter.text()) == (0, "")


def test_prometheus_has_nothing_to_say_about_the_agents_metrics(promtool_program: Path) -> None:
    figures = Figures()
    figures.answered(1.7e9, 2)

    assert check(promtool_program, figures.document().body) == (0, "")


def test_promtool_refuses_what_breaks_its_rules(promtool_program: Path) -> None:
    code, said = check(promtool_program, b"# TYPE requests counter\nrequests 1\n")

    assert code != 0
    assert "_total" in said
