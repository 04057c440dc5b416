"""The commands of the section Uninstall, on a real API server: what we wrote is gone, or it is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.keys import keys_of
from tests.real.manifests.applying import applied, kubectl
from tests.real.passes.processes import Programs
from tests.real.passes.scene import PREFIX, Scene
from tests.support.controlplane.processes import wait_for
from tests.support.of_features import annotations_of_signs

pytestmark = pytest.mark.slow
POLICY = """
mode: Enforce
uncordon: {settle: 0s}
budget: {maxUnavailable: 1, spacing: 1m}
hints: {taint: true, label: true}
publish: [drainsafe, node-conditions, nodemaintenances]
"""
PAGE = Path(__file__).parents[3] / "docs" / "install.md"
KEYS = keys_of(PREFIX)
SIGNS = annotations_of_signs()


def commands() -> list[str]:
    """The commands of the section."""
    section = PAGE.read_text(encoding="utf-8").partition("## Uninstall\n")[2]
    (block,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return str(block).splitlines()


def keys_on(scene: Scene, node: str) -> set[str]:
    """The keys of ours, and those by which features show a case, on a node."""
    found: dict[str, Any] = scene.api.get("nodes", node)
    meta, taints = found["metadata"], found["spec"].get("taints", ())
    keys = {*meta.get("labels", {}), *meta.get("annotations", {}), *(one["key"] for one in taints)}
    return {key for key in keys if KEYS.owns(key) or key in SIGNS}


def test_after_the_documented_uninstall_no_object_has_a_key_that_we_wrote(
    scene: Scene, programs: Programs
) -> None:
    programs.configure(POLICY)
    drained, held, asked, quiet = (scene.node(number) for number in range(4))
    scene.workload("web", drained)
    with applied(scene.controlplane, "crd"), applied(scene.controlplane, "base"):
        wait_for("the kind", lambda: scene.serves("nodemaintenances"))
        scene.condition_tells(drained)
        scene.condition_tells(held)
        assert programs.run("hold", held, "--reason", "disk copy").code == 0
        programs.sweep()
        for command in (
            ("resume", held),
            ("hold", held, "--reason", "disk copy"),
            ("defer", held, "--until", "+1h"),
            ("request", asked, "--kind", "Reboot", "--not-before", "+30d"),
            ("hold", "--all", "--reason", "freeze"),
        ):
            done = programs.run(*command)
            assert done.code == 0, done.err
        kubectl(scene.controlplane, "label", "node", quiet, KEYS.ignore + "=true")
        scene.imds_tells(3)
        written = set().union(*(keys_on(scene, node) for node in (drained, held, asked)))
        assert {
            KEYS.record,
            KEYS.hold,
            KEYS.defer,
            KEYS.said_before,
            KEYS.request,
            KEYS.maintenance,
        } <= written
        assert scene.api.list("nodemaintenances")

        outputs = []
        for line in commands():
            words = line.split()
            if words[0] == "reconciler":
                done = programs.run(*words[1:])
                assert done.code == 0, done.out + done.err
                outputs.append(done.out)
            elif "-k" not in words:
                # The folder of the page is that of a reader; here the manifests go at the end of the test.
                kubectl(scene.controlplane, *words[1:])
        (printed,) = outputs

        left = {node: keys_on(scene, node) for node in (drained, held, asked, quiet)}
        assert left == {drained: set(), held: set(), asked: set(), quiet: {KEYS.ignore}}
        assert not scene.cordoned(drained)
        assert scene.api.list("nodemaintenances") == []
        assert f"left on 1 node ({quiet}): {KEYS.ignore}; written by hand" in printed
        assert f"{held}: released, without its defer, hold\n" in printed
        assert "ConfigMap node-maintenance-ledger" in printed
        assert "all nodes are held by" in printed
        again = programs.run("release", "--all").out
        assert "released" not in again
        assert f"left on 1 node ({quiet}): {KEYS.ignore}" in again
