"""A kubeconfig that checks no certificate is named once by each command, and once in the log of `serve`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.real.passes.processes import ENFORCE, Programs
from tests.real.passes.scene import Scene

pytestmark = pytest.mark.slow

SAID = "has insecure-skip-tls-verify: anybody on the way can read and change what is sent"


@pytest.fixture
def insecure(programs: Programs, tmp_path: Path) -> Path:
    """The kubeconfig of the server, without its authority."""
    document = yaml.safe_load(programs.kubeconfig.read_text(encoding="utf-8"))
    for entry in document["clusters"]:
        server = entry["cluster"]["server"]
        entry["cluster"] = {"server": server, "insecure-skip-tls-verify": True}
    path = tmp_path / "insecure"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def test_each_command_says_it_in_one_line(scene: Scene, programs: Programs, insecure: Path) -> None:
    node = scene.node()

    for command in (
        ("report", "-o", "json"),
        ("plan",),
        ("explain", node),
        ("readiness",),
        ("windows",),
        ("hold", node),
        ("approve", "--all"),
        ("sweep", "--output", "json"),
        ("drain", node),
        ("release", node),
    ):
        done = programs.run(*command, kubeconfig=insecure)
        warned = [line for line in done.err.splitlines() if "nsecure" in line]
        assert len(warned) == 1, (command, done.err)
        assert warned[0].startswith("warning: ")
        assert warned[0].endswith(SAID)
        assert SAID not in done.out


def test_the_log_of_serve_says_it_once_and_stays_json(
    scene: Scene, programs: Programs, insecure: Path
) -> None:
    node = scene.node()
    scene.condition_tells(node)
    programs.configure(ENFORCE)
    serve = programs.start("serve", "--every", "1s", kubeconfig=insecure)
    serve.does("drain", lambda: scene.cordoned(node))
    serve.kill()

    lines = [json.loads(line) for line in serve.everything().splitlines()]
    assert len([line for line in lines if SAID in json.dumps(line)]) == 1
