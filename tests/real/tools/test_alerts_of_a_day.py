"""A day with twelve events, of which one can't be served for three hours, raises alerts about that one."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.monitoring.day import scraped
from tests.monitoring.rules import spec
from tests.real.tools.test_alerts import promtool

pytestmark = pytest.mark.slow

LATE = 'node="aks-spot-31415926-vmss000005"'
WEB = 'node="aks-web-31415926-vmss000000",severity="critical"'
BLOCKED, HOPELESS = (
    f'{{alertname="NodeMaintenance{name}",{WEB}}}' for name in ("DrainBlocked", "WillBeMissed")
)
WARNING, CRITICAL = (
    f'{{alertname="NodeMaintenanceWillBeMissed",{LATE},severity="{severity}"}}'
    for severity in ("warning", "critical")
)


def firing(time: str, *alerts: str, range_: str = "") -> dict[str, object]:
    """What fires at a time after 08:00, or has fired in a range before it."""
    found = 'ALERTS{alertstate="firing"}'
    found = f"max_over_time({found}[{range_}])" if range_ else found
    return {
        "expr": f"count by (alertname, severity, node) ({found})",
        "eval_time": time,
        "exp_samples": [{"labels": one, "value": 1} for one in alerts],
    }


def test_only_what_needs_a_person_raises_an_alert(promtool_program: Path, tmp_path: Path) -> None:
    checks = [
        # Announced at 16:00 for 20:30, with two others.
        firing("8h"),
        firing("8h20m", WARNING),
        firing("9h", CRITICAL),
        # Somebody helps at 19:00.
        firing("11h5m"),
        # A budget never allows an eviction: known at 17:00 for 17:30, with a drain from 17:15 on.
        firing("9h5m", CRITICAL, HOPELESS),
        firing("9h19m", CRITICAL, HOPELESS),
        # Somebody helps at 17:22.
        firing("9h22m", CRITICAL, BLOCKED),
        firing("9h30m", CRITICAL),
        # Other drains, spot nodes that go, and reboots raise none.
        firing("16h", WARNING, CRITICAL, HOPELESS, BLOCKED, range_="16h"),
    ]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(spec()), encoding="utf-8")
    test = {"interval": "1m", "input_series": scraped(), "promql_expr_test": checks}
    file = tmp_path / "day.yaml"
    day = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    file.write_text(yaml.safe_dump(day), encoding="utf-8")

    code, said = promtool(promtool_program, "test", "rules", str(file))

    assert code == 0, said
