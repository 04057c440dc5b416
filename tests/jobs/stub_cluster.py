"""A cluster for one command, over a stub: nodes that take patches, empty lists, Events, and the ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jobs.cli import main
from tests.support.patches import answer_patch
from tests.support.stub import Answer, Asked, Stub, json_answer, status

NODES = "/api/v1/nodes"
LISTS = {
    NODES: "NodeList",
    "/api/v1/pods": "PodList",
    "/apis/policy/v1/poddisruptionbudgets": "PodDisruptionBudgetList",
    "/apis/storage.k8s.io/v1/volumeattachments": "VolumeAttachmentList",
    "/api/v1/namespaces": "NamespaceList",
    "/api/v1/persistentvolumes": "PersistentVolumeList",
}
_LEDGER = "node-maintenance-ledger"

OF_SETTINGS = {
    "report": ("report",),
    "plan": ("plan",),
    "explain": ("explain", "n"),
    "readiness": ("readiness",),
    "hold": ("hold", "n"),
    "windows": ("windows",),
}
"""Commands that read the settings, as they are typed for a node `n`."""

Object = dict[str, Any]


def node(name: str, **labels: str) -> Object:
    """A Node that is Ready."""
    found = {"name": name, "uid": f"uid-{name}", "resourceVersion": "7", "labels": labels, "annotations": {}}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {"kind": "Node", "metadata": found, "spec": {}, "status": ready}


def pod(namespace: str, name: str, on: str = "n") -> Object:
    """A pod that runs, of a ReplicaSet."""
    owner = {
        "kind": "ReplicaSet",
        "name": name.rpartition("-")[0],
        "apiVersion": "apps/v1",
        "uid": "u",
        "controller": True,
    }
    metadata = {"namespace": namespace, "name": name, "uid": f"uid-{name}", "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {"nodeName": on}, "status": {"phase": "Running"}}


class StubCluster:
    """The objects, what was written, and `run`; a subclass may give other answers in `instead`."""

    def __init__(self, folder: Path, *nodes: Object) -> None:
        """Serve these nodes; the kubeconfig is written to the folder."""
        self.nodes = {str(each["metadata"]["name"]): each for each in nodes}
        self.pods: list[Object] = []
        self.events: list[Object] = []
        self.ledger: dict[str, str] | None = None
        self.stub = Stub(self._answer)
        self.kubeconfig = self.stub.write_kubeconfig(folder / "kubeconfig")

    def close(self) -> None:
        """Stop serving."""
        self.stub.close()

    def run(self, *arguments: str) -> int:
        """Run a command; its exit code."""
        return main([*arguments, "--kubeconfig", str(self.kubeconfig)])

    def annotations(self, name: str = "n") -> dict[str, str]:
        """Those of a node, to be changed too."""
        found: dict[str, str] = self.nodes[name]["metadata"]["annotations"]
        return found

    def instead(self, asked: Asked) -> Answer | None:
        """Another answer than the cluster's, None for that."""
        del asked
        return None

    def _answer(self, asked: Asked) -> Answer:
        if asked.query.get("watch") == "true":
            return Answer(quiet=True)
        given = self.instead(asked)
        if given is not None:
            return given
        if asked.path in LISTS:
            items = {NODES: list(self.nodes.values()), "/api/v1/pods": self.pods}.get(asked.path, [])
            listed = {"kind": LISTS[asked.path], "metadata": {"resourceVersion": "1"}, "items": items}
            return json_answer(listed)
        if asked.path.endswith("/events") and asked.method == "GET":
            ours = asked.query["fieldSelector"].startswith("source=")
            items = [event for event in self.events if ours is ("source" in event)]
            return json_answer({"metadata": {}, "items": items})
        if asked.path.endswith("/events"):
            self.events.append(json.loads(asked.body))
            return json_answer(self.events[-1], 201)
        if "/configmaps" in asked.path:
            return self._config_map(asked)
        found = self.nodes.get(asked.path.removeprefix(f"{NODES}/"))
        if found is None:
            return status(404, "NotFound", "nothing is here")
        return answer_patch(found, asked) if asked.method == "PATCH" else json_answer(found)

    def _config_map(self, asked: Asked) -> Answer:
        if asked.method == "POST":
            self.ledger = json.loads(asked.body)["data"]
        elif self.ledger is None or not asked.path.endswith(f"/{_LEDGER}"):
            return status(404, "NotFound", "nothing is here")
        metadata = {"name": _LEDGER, "uid": "uid-ledger", "resourceVersion": "3"}
        found: Object = {"kind": "ConfigMap", "metadata": metadata, "data": self.ledger}
        if asked.method != "PATCH":
            return json_answer(found)
        answer = answer_patch(found, asked)
        self.ledger = found["data"]
        return answer
