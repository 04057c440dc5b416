"""Beside an upgrade of a node pool by AKS, with the program as its users run it."""

from __future__ import annotations

import pytest

from tests.real.passes.processes import ENFORCE, Programs
from tests.real.passes.scene import Scene
from tests.support.builders import IN_UPGRADE
from tests.support.controlplane.fill import Pool

pytestmark = pytest.mark.slow

UPGRADED, OTHER = Pool("upgraded"), Pool("other")
UPGRADES = "AKS upgrades pool upgraded"
FREE = f"{ENFORCE}budget: {{maxUnavailable: 100%}}\n"


def upgrade(scene: Scene, node: str, *, on: bool = True) -> None:
    """Let AKS begin or end the upgrade of a node."""
    annotations = {key: value if on else None for key, value in IN_UPGRADE.items()}
    scene.api.patch("nodes", node, {"metadata": {"annotations": annotations}})


def test_a_sweep_drains_no_second_node_of_the_pool_and_every_output_names_the_upgrade(
    scene: Scene, programs: Programs
) -> None:
    programs.configure(FREE)
    first, second, elsewhere = scene.node(0, UPGRADED), scene.node(1, UPGRADED), scene.node(2, OTHER)
    scene.workload("web", second)
    upgrade(scene, first)
    for name in (second, elsewhere):
        scene.annotate(name, "request", '{"kind": "Reboot"}')
    done = programs.sweep("--for", "30s")
    outputs = {
        "report": programs.run("report").out,
        "plan": programs.run("plan").out,
        "explain": programs.run("explain", second, "--config", str(programs.config)).out,
        "page": programs.run("report", "--output", "html").out,
    }

    assert (scene.cordoned(second), len(scene.pods_on(second))) == (False, 1)
    assert scene.cordoned(elsewhere)
    assert [(one["check"], one["reason"]) for one in done.node(second)["holds"]] == [("leftToUs", UPGRADES)]
    assert [name for name, text in outputs.items() if UPGRADES not in " ".join(text.split())] == []
    assert {"node": first, "because": "upgraded by AKS"} in done.document["budget"]["holders"]
