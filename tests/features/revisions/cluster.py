"""A stub of a cluster with settings that are refused, and revisions of earlier ones."""

from __future__ import annotations

from pathlib import Path

from reconciler.features.revisions import KEPT_IN
from reconciler.features.revisions.client import KEY
from reconciler.features.revisions.revisions import Kept, to_text
from tests.jobs.stub_cluster import StubCluster, node
from tests.support.builders import NOW
from tests.support.stub import Answer, Asked, json_answer, status

REFUSED = "mode: Sometimes\nkeys: {prefix: 7}\n"
OURS = "ours.example.com"
GOOD = f"mode: Enforce\ntimeZone: Europe/Berlin\nkeys: {{prefix: {OURS}}}\n".encode()


class Cluster(StubCluster):
    """One node, settings that are refused, and what is kept as their revisions; None: nothing."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, node("n"))
        self.kept: str | None = to_text(Kept().with_text(GOOD, NOW, "helm", 1, 20))
        self.policy = REFUSED
        self.forbidden = False

    def instead(self, asked: Asked) -> Answer | None:
        if asked.path.endswith("/configmaps/maintenance-policy"):
            found = {"metadata": {"name": "maintenance-policy"}, "data": {"maintenance.yaml": self.policy}}
            return json_answer(found)
        if asked.path.endswith(f"/configmaps/{KEPT_IN}"):
            if self.forbidden:
                return status(403, "Forbidden", "no")
            if self.kept is not None:
                return json_answer({"metadata": {"name": KEPT_IN}, "data": {KEY: self.kept}})
        if asked.path == "/apis/coordination.k8s.io/v1/leases":
            return json_answer({"metadata": {}, "items": []})
        return None
