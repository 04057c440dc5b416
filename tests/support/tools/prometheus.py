"""A real Prometheus on a free port of loopback, which scrapes one address and evaluates rules each second."""

from __future__ import annotations

from typing import Any

import yaml

from tests.support.tools.running import RunningOfPrometheus


class RunningPrometheus(RunningOfPrometheus):
    """Runs inside the context, in a folder of its own."""

    name = "Prometheus"
    patience = 60.0

    def configure(self, target: str, rules: dict[str, Any], *, honor_labels: bool, **labels: str) -> None:
        """Scrape this address, give what it shows these labels, and evaluate these rules."""
        (self._folder / "rules.yaml").write_text(yaml.safe_dump(rules), encoding="utf-8")
        job = {
            "job_name": "job",
            "honor_labels": honor_labels,
            "static_configs": [{"targets": [target], "labels": labels}],
        }
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [job],
        }
        (self._folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")

    def arguments(self) -> list[str]:
        """Return its arguments; `configure` has written the files."""
        return [
            f"--config.file={self._folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address={self.address}",
        ]

    def rules(self) -> list[dict[str, Any]]:
        """Return every rule with its state and its alerts."""
        answer = self._pool.request("GET", f"{self.url}/api/v1/rules", timeout=10)
        groups: list[dict[str, Any]] = answer.json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def raised(self) -> set[str]:
        """Return the names of the alerts that are pending or fire."""
        return {rule["name"] for rule in self.rules() if rule["alerts"]}
