"""What a process shows, judged by Prometheus' own rules for names, types, units and help texts."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import yaml

from reconciler.features.metrics.catalogue import FAMILIES, PREFIX
from reconciler.features.metrics.metering import Meter
from tests.features.metrics.everything import full


def check(promtool: Path, text: bytes) -> tuple[int, str]:
    command = [str(promtool), "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, timeout=60, check=False)
    return done.returncode, (done.stdout + done.stderr).decode()


def test_prometheus_has_nothing_to_say_about_our_metrics(promtool_program: Path) -> None:
    meter = Meter()
    full(meter)

    assert check(promtool_program, meter.text()) == (0, "")


def test_the_queries_of_the_docs_can_be_asked_and_name_metrics_that_exist(
    promtool_program: Path, tmp_path: Path
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
    queries = re.findall(r"^```promql\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    rules = [{"record": f"query:{place}", "expr": query} for place, query in enumerate(queries)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "docs", "rules": rules}]}), encoding="utf-8")
    command = [str(promtool_program), "check", "rules", str(file)]

    done = subprocess.run(command, capture_output=True, timeout=60, check=False, encoding="utf-8")

    assert (done.returncode, len(queries)) == (0, 5), done.stdout + done.stderr
    named = set(re.findall(rf"{PREFIX}\w+", " ".join(queries)))
    assert {one.removesuffix("_bucket") for one in named} <= {family.name for family in FAMILIES}
