"""`reconciler request`: each node is reported, also where a write to one of them fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from tests.support.builders import REQUEST
from tests.support.stub import Answer, Asked, Stub, json_answer, status

NODES = "/api/v1/nodes"


@dataclass
class Cluster:
    """Three nodes, the patches that were tried, and how the server answers them (None: it accepts)."""

    kubeconfig: Path
    patches: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refuse: Callable[[str], Answer | None] = lambda _: None

    def run(self, *arguments: str) -> int:
        return main(["request", "a", "b", "c", *arguments, "--kubeconfig", str(self.kubeconfig)])

    @property
    def tried(self) -> list[str]:
        return [name for name, _ in self.patches]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    nodes: dict[str, dict[str, Any]] = {
        name: {
            "kind": "Node",
            "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "7", "annotations": {}},
            "spec": {},
            "status": {},
        }
        for name in "abc"
    }

    def answer(asked: Asked) -> Answer:
        name = asked.path.removeprefix(f"{NODES}/")
        if asked.path == NODES:
            items = list(nodes.values())
            return json_answer({"kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": items})
        if name not in nodes:
            return status(404, "NotFound", "nothing is here")
        if asked.method == "PATCH":
            made.patches.append((name, json.loads(asked.body)))
            refusal = made.refuse(name)
            if refusal is not None:
                # Somebody was faster.
                nodes[name]["metadata"]["annotations"][REQUEST] = '{"kind":"Redeploy"}'
                return refusal
        return json_answer(nodes[name])

    stub = Stub(answer)
    made = Cluster(stub.write_kubeconfig(tmp_path / "kubeconfig"))
    yield made
    stub.close()


def test_each_node_is_written_as_it_was_read(cluster: Cluster) -> None:
    assert cluster.run("--kind", "Reboot") == 0
    assert cluster.tried == ["a", "b", "c"]
    assert cluster.patches[0][1] == {
        "metadata": {"uid": "uid-a", "resourceVersion": "7", "annotations": {REQUEST: '{"kind": "Reboot"}'}}
    }


def test_a_node_that_somebody_changed_is_not_written_and_the_others_are(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.refuse = lambda name: status(409, "Conflict", "changed") if name == "b" else None

    code = cluster.run("--kind", "Reboot")

    told = capsys.readouterr()
    assert code == 1
    assert cluster.tried == ["a", "b", "c"]
    assert told.out.splitlines()[1:] == ["a: requested: Reboot", "c: requested: Reboot"]
    assert "b: not written: node b is not as it was seen: someone changed the keys of" in told.err
    assert told.err.endswith("; run the command again\n")


def test_after_a_refusal_of_the_credentials_no_other_node_is_tried(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.refuse = lambda name: status(401, "Unauthorized", "no") if name == "b" else None

    code = cluster.run("--kind", "Reboot")

    told = capsys.readouterr()
    assert (code, told.out.splitlines()[1:]) == (1, ["a: requested: Reboot"])
    assert "c" not in cluster.tried
    assert told.err.splitlines()[-1] == "c: not written"
