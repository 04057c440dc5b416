"""A real Alertmanager on a free port of loopback, without peers and receivers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from reconciler.model.moments import to_text
from tests.support.tools.running import RunningOfPrometheus

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
