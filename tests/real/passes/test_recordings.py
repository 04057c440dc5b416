"""`reconciler record` with the permissions of a reader, and `reconciler replay` of its file elsewhere."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.cli import main
from tests.real.manifests.applying import applied, built
from tests.real.passes.accounts import account, once_permitted
from tests.real.passes.processes import ENFORCE, Programs
from tests.real.passes.scene import EMPTY_DIR, Scene, cover
from tests.real.passes.test_writing_nothing import writes

pytestmark = pytest.mark.slow

SETTINGS = f"""{ENFORCE}windows: [{{name: payday, start: 2020-01-01, end: 2020-01-02}}]
notify: [{{name: oncall, slack: {{webhook: https://hooks.example.com/very-secret}}}}]
"""


def test_a_recorded_node_is_replayed_without_the_cluster_and_without_its_names(
    scene: Scene, programs: Programs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node, (role,) = scene.node(0), built("report")
    (web,) = scene.workload("webshop", node)
    scene.workload("redis", node, volumes=EMPTY_DIR)
    cover(scene, "webshop")
    scene.annotate(
        node,
        "request",
        '{"kind": "Redeploy", "notBefore": "2026-01-01T00:00:00Z", "id": "CHG-4711", "reason": "Alice asks"}',
    )
    config, file = str(programs.configure(SETTINGS)), tmp_path / "case.yaml"
    began = datetime.now(UTC)
    with applied(scene.controlplane, "report"), account(scene, role["metadata"]["name"]) as kubeconfig:
        recorded = once_permitted(
            lambda: programs.run(
                "record",
                node,
                "--out",
                str(file),
                "--show-replaced",
                "--config",
                config,
                kubeconfig=kubeconfig,
            )
        )
        explained = programs.run("explain", node, "-o", "json", "--config", config, kubeconfig=kubeconfig)
    # This process knows no cluster.
    code = main(["replay", str(file), "-o", "json"])
    replayed = capsys.readouterr()

    assert recorded.code == 0, recorded.err
    assert "note: left out of the settings: notify\n" in recorded.err
    assert recorded.out == ""
    assert writes(scene, began) == []
    assert code == 0, replayed.err
    found, real = json.loads(replayed.out), explained.document
    assert (found["differs"], found["incomplete"]) == ([], [])
    same = ("actions", "state", "stateBefore", "cordoned")
    assert {key: found["node"][key] for key in same} == {key: real["node"][key] for key in same}
    assert [hold["check"] for hold in found["node"]["holds"]] == [
        hold["check"] for hold in real["node"]["holds"]
    ]
    assert sorted(pod["action"] for pod in found["node"]["drainNow"]["pods"]) == sorted(
        pod["action"] for pod in real["node"]["drainNow"]["pods"]
    )
    text = file.read_text(encoding="utf-8").casefold()
    for hidden in (node, web, "webshop", "redis", "payday", "chg-4711", "alice", "very-secret"):
        assert hidden.casefold() not in text
    assert f"  {node}\n" in recorded.err
