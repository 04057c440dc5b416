"""Each query of the dashboard, played by Prometheus' own program on what a real process shows."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

from reconciler.features.metrics.catalogue import PREFIX
from reconciler.features.metrics.metering import Meter
from tests.features.metrics.everything import full
from website.dashboard import dashboard

QUERIES = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]
VARIABLES = {"$__rate_interval": "5m", "$__range": "1h", "$node": ".*"}


def shown() -> Iterator[dict[str, str]]:
    """Yield each series of a process that has something in every family, for an hour; all of them grow."""
    meter = Meter()
    full(meter)
    for family in text_string_to_metric_families(meter.text().decode()):
        for sample in family.samples:
            if sample.name.startswith(PREFIX):
                labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
                yield {"series": f"{sample.name}{{{labels}}}", "values": f"{sample.value:.0f}+1x60"}


def filled_in(expression: str) -> str:
    """Return the expression with Grafana's variables replaced."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


def played(promtool: Path, folder: Path, series: list[dict[str, str]], queries: list[str]) -> tuple[int, str]:
    """Play the queries after an hour; each has to find something."""
    tests = [
        {"expr": f"count({query}) > bool 0", "eval_time": "1h", "exp_samples": [{"labels": "{}", "value": 1}]}
        for query in map(filled_in, queries)
    ]
    file = folder / "queries.yaml"
    test = {"interval": "1m", "input_series": series, "promql_expr_test": tests}
    file.write_text(yaml.safe_dump({"tests": [test]}), encoding="utf-8")
    command = [str(promtool), "test", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def test_each_query_finds_something_in_what_a_process_shows(promtool_program: Path, tmp_path: Path) -> None:
    code, said = played(promtool_program, tmp_path, list(shown()), QUERIES)

    assert code == 0, said
