"""`reconciler request` and the report of some nodes, typed by a person who has just installed them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real.passes.accounts import account, once_permitted
from tests.real.passes.processes import ENFORCE, Done, Programs
from tests.real.passes.scene import PREFIX, Scene

pytestmark = pytest.mark.slow

LOOKS = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}]


def asked_of(scene: Scene, node: str) -> dict[str, Any] | None:
    """What the annotation of the node requests."""
    found = scene.api.get("nodes", node)["metadata"].get("annotations", {}).get(f"{PREFIX}/request")
    return None if found is None else dict(json.loads(found))


def ask(programs: Programs, *arguments: str, kubeconfig: Path | None = None) -> Done:
    return programs.run("request", *arguments, "--config", str(programs.config), kubeconfig=kubeconfig)


def test_a_request_is_written_carried_out_and_cancelled(scene: Scene, programs: Programs) -> None:
    node = scene.node()
    scene.workload("web", node)
    programs.configure(ENFORCE)

    asked = ask(programs, node, "--kind", "reboot", "--id", "CHG-42", "--reason", "new \x1b[31mfirmware")

    assert asked.code == 0, asked.err
    assert asked_of(scene, node) == {"kind": "Reboot", "id": "CHG-42", "reason": "new \x1b[31mfirmware"}
    assert f"{node}: requested: Reboot, id CHG-42, “new \\x1b[31mfirmware”" in asked.out
    assert "would     cordon, drain" in asked.out
    assert not scene.cordoned(node)

    assert programs.sweep().code == 0
    assert scene.cordoned(node)
    assert ask(programs, node, "--kind", "Reboot", "--id", "CHG-42").code == 1
    gone = ask(programs, node, "--cancel")

    assert (gone.code, asked_of(scene, node)) == (0, None)
    assert f"{node}: request removed" in gone.out
    assert programs.sweep().code == 0
    assert not scene.cordoned(node)
    assert f"{node}: has no request" in ask(programs, node, "--cancel").out


def test_without_the_permission_to_patch_nodes_it_is_named(scene: Scene, programs: Programs) -> None:
    node = scene.node()
    with account(scene, "looker", LOOKS) as kubeconfig:
        done = once_permitted(
            lambda: programs.run("request", node, "--kind", "Reboot", kubeconfig=kubeconfig)
        )

    assert done.code == 1
    assert f"{node}: not written: needs patch nodes" in done.err
    assert asked_of(scene, node) is None
