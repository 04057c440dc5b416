"""Nodes of a stub for commands that write instructions of people, and what these print."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.moments import to_text
from tests.jobs.stub_cluster import StubCluster, node
from tests.support.builders import PREFIX, REQUEST
from tests.support.stub import Answer, Asked, json_answer, status

HOLD, DEFER = (f"{PREFIX}/{name}" for name in ("hold", "defer"))


class Cluster(StubCluster):
    """Nodes, of which one may be `broken`; `at_hold` is called as the ledger is made."""

    broken = ""
    policy: str | None = "mode: Enforce\nbudget: {maxUnavailable: 100%}"
    """The settings that are installed, None if none are."""
    user = ""
    """Who asks, as the API server sees it; empty if it does not say that."""

    def at_hold(self) -> None:
        """Nothing, unless a test sets it."""

    def said(self, name: str, key: str) -> Any:
        """The instruction on a node, None if it has none."""
        text = self.annotations(name).get(key)
        return None if text is None else json.loads(text)

    def instead(self, asked: Asked) -> Answer | None:
        if asked.path.endswith("/configmaps/maintenance-policy"):
            if self.policy is None:
                return status(404, "NotFound", "nothing is here")
            data = {"maintenance.yaml": self.policy}
            return json_answer({"metadata": {"name": "maintenance-policy"}, "data": data})
        if asked.path.endswith("/selfsubjectreviews") and self.user:
            return json_answer({"status": {"userInfo": {"username": self.user}}})
        if asked.path.endswith("/configmaps") and asked.method == "GET":
            return json_answer({"kind": "ConfigMapList", "metadata": {}, "items": []})
        if asked.path.endswith("/configmaps"):
            self.at_hold()
        if asked.method == "PATCH" and asked.path.endswith(f"/nodes/{self.broken}"):
            return status(403, "Forbidden", "no")
        return None


def three_nodes(tmp_path: Path) -> Cluster:
    """Two nodes of the pool `web`, and one of another."""
    web = [node(name, pool="web", agentpool="web") for name in "ab"]
    return Cluster(tmp_path, *web, node("c", agentpool="db"))


def below(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed below the line that says who acts on the nodes; default settings are named above."""
    above, line, rest = capsys.readouterr().out.partition("reconciler: none has acted in this cluster yet")
    assert line
    assert not above or above.startswith("default settings: ")
    return rest.partition("\n")[2]


def announced(cluster: Cluster, name: str, hours: float) -> None:
    """Request a redeploy in so many hours."""
    date = to_text(datetime.now(UTC).replace(microsecond=0) + timedelta(hours=hours))
    cluster.nodes[name]["metadata"]["annotations"][REQUEST] = f'{{"kind":"Redeploy","notBefore":"{date}"}}'
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    cluster.nodes[name]["status"] = {"conditions": [ready]}
