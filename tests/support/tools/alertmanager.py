"""A real Alertmanager on a free port of loopback, without peers and receivers."""

from __future__ import annotations

import json
import socket
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import urllib3

from reconciler.model.moments import to_text
from tests.support.controlplane.waiting import wait_for

CONFIG = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"


class RunningAlertmanager:
    """Runs inside the context, in a folder of its own."""

    def __init__(self, program: Path, folder: Path) -> None:
        """Use this program."""
        self._program, self._folder = program, folder
        self._pool = urllib3.PoolManager()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it, and wait until it is ready."""
        config = self._folder / "alertmanager.yml"
        config.write_text(CONFIG, encoding="utf-8")
        arguments = [
            f"--config.file={config}",
            f"--storage.path={self._folder / 'data'}",
            f"--web.listen-address={self.url.removeprefix('http://')}",
            "--cluster.listen-address=",
        ]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen([str(self._program), *arguments], stdout=log, stderr=log)
        wait_for("Alertmanager", self._is_ready)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
        self._pool.clear()

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

    def _is_ready(self) -> bool:
        try:
            answer = self._pool.request("GET", f"{self.url}/-/ready", retries=False, timeout=1)
        except urllib3.exceptions.HTTPError:
            if self._process is not None and self._process.poll() is not None:
                raise AssertionError((self._folder / "log").read_text(encoding="utf-8")) from None
            return False
        return answer.status == 200

    def _get(self, path: str) -> Any:
        return json.loads(self._pool.request("GET", f"{self.url}/api/v2/{path}").data)

    def _post(self, path: str, body: object) -> None:
        answer = self._pool.request("POST", f"{self.url}/api/v2/{path}", json=body)
        assert answer.status == 200, answer.data
