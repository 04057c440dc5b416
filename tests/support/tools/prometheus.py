"""A real Prometheus on a free port of loopback, which scrapes one address and evaluates rules each second."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import urllib3
import yaml

from tests.support.controlplane.waiting import wait_for


class RunningPrometheus:
    """Runs inside the context, in a folder of its own."""

    def __init__(self, program: Path, folder: Path) -> None:
        """Use this program."""
        self._program, self._folder = program, folder
        self._pool = urllib3.PoolManager()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        self._process: subprocess.Popen[bytes] | None = None

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

    def __enter__(self) -> Self:
        """Start it, and wait until it is ready."""
        arguments = [
            f"--config.file={self._folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address={self.url.removeprefix('http://')}",
        ]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen([str(self._program), *arguments], stdout=log, stderr=log)
        wait_for("Prometheus", self._is_ready, seconds=60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
        self._pool.clear()

    def rules(self) -> list[dict[str, Any]]:
        """Return every rule with its state and its alerts."""
        answer = self._pool.request("GET", f"{self.url}/api/v1/rules", timeout=10)
        groups: list[dict[str, Any]] = answer.json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def raised(self) -> set[str]:
        """Return the names of the alerts that are pending or fire."""
        return {rule["name"] for rule in self.rules() if rule["alerts"]}

    def _is_ready(self) -> bool:
        try:
            answer = self._pool.request("GET", f"{self.url}/-/ready", retries=False, timeout=1)
        except urllib3.exceptions.HTTPError:
            if self._process is not None and self._process.poll() is not None:
                raise AssertionError((self._folder / "log").read_text(encoding="utf-8")) from None
            return False
        return answer.status == 200
