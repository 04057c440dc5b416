"""Programs of others that serve HTTP on a free port of loopback: those of Prometheus, and their base."""

from __future__ import annotations

import json
import socket
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import urllib3
import yaml

from reconciler.model.moments import to_text
from tests.support.controlplane.processes import wait_for


class Running:
    """Runs inside the context; what it prints goes to a file."""

    name = ""
    """What a person calls the program."""

    patience = 20.0
    """Seconds in which it must serve."""

    def __init__(self, program: Path, log: Path) -> None:
        """Use this program, and a port that is free now."""
        self._program, self._log = program, log
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.url = f"http://{self.address}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        command = [str(self._program), *self.arguments()]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_for(self.name, self._is_ready, seconds=self.patience)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def arguments(self) -> list[str]:
        """Return its arguments, and write the files that they name."""
        raise NotImplementedError

    def serves(self) -> bool:
        """Whether it answers now."""
        raise NotImplementedError

    def _is_ready(self) -> bool:
        if self.serves():
            return True
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(self._log.read_text(encoding="utf-8"))
        return False


class RunningOfPrometheus(Running):
    """One of the programs of the Prometheus project, in a folder of its own."""

    def __init__(self, program: Path, folder: Path) -> None:
        super().__init__(program, folder / "log")
        self._folder = folder
        self._pool = urllib3.PoolManager()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._pool.clear()

    def serves(self) -> bool:
        """Whether it says that it is ready."""
        try:
            answer = self._pool.request("GET", f"{self.url}/-/ready", retries=False, timeout=1)
        except urllib3.exceptions.HTTPError:
            return False
        return answer.status == 200


CONFIG = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"


class RunningAlertmanager(RunningOfPrometheus):
    """Runs inside the context, in a folder of its own."""

    name = "Alertmanager"

    def arguments(self) -> list[str]:
        """Return its arguments, with a configuration that sends nothing."""
        config = self._folder / "alertmanager.yml"
        config.write_text(CONFIG, encoding="utf-8")
        return [
            f"--config.file={config}",
            f"--storage.path={self._folder / 'data'}",
            f"--web.listen-address={self.address}",
            "--cluster.listen-address=",
        ]

    def silences(self, state: str = "active") -> list[dict[str, Any]]:
        """Return the silences in this state."""
        found: list[dict[str, Any]] = self._get("silences")
        return [one for one in found if one["status"]["state"] == state]

    def silence(self, **labels: str) -> None:
        """Create a silence as another author."""
        matchers = [{"name": key, "value": value, "isRegex": False} for key, value in labels.items()]
        now = datetime.now(UTC)
        body = {
            "matchers": matchers,
            "startsAt": to_text(now),
            "endsAt": to_text(now.replace(year=now.year + 1, day=1)),
            "createdBy": "ops",
            "comment": "node a (uid uid-a): by hand",
        }
        self._post("silences", body)

    def alert(self, **labels: str) -> None:
        """Fire an alert with these labels."""
        self._post("alerts", [{"labels": {"alertname": "Down", **labels}}])

    def is_silenced(self, **labels: str) -> bool:
        """Whether the alert with these labels is silenced."""
        found: list[dict[str, Any]] = self._get("alerts")
        (alert,) = [one for one in found if labels.items() <= one["labels"].items()]
        return bool(alert["status"]["silencedBy"])

    def _get(self, path: str) -> Any:
        return json.loads(self._pool.request("GET", f"{self.url}/api/v2/{path}").data)

    def _post(self, path: str, body: object) -> None:
        answer = self._pool.request("POST", f"{self.url}/api/v2/{path}", json=body)
        assert answer.status == 200, answer.data


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
