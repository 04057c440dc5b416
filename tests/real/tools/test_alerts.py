"""The alerts, evaluated by Prometheus' own program on series of each case."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.monitoring.rules import Case, cases, spec, with_summaries_only


def promtool(program: Path, *arguments: str) -> tuple[int, str]:
    command = [str(program), *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def test_prometheus_accepts_the_rules(promtool_program: Path, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(spec()), encoding="utf-8")

    code, said = promtool(promtool_program, "check", "rules", "--lint=all", "--lint-fatal", str(file))

    assert code == 0, said


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.title)
def test_an_alert_fires_when_it_has_to(case: Case, promtool_program: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(with_summaries_only()), encoding="utf-8")
    file = tmp_path / "case.yaml"
    file.write_text(yaml.safe_dump(case.for_promtool("rules.yaml")), encoding="utf-8")

    code, said = promtool(promtool_program, "test", "rules", str(file))

    assert code == 0, said
