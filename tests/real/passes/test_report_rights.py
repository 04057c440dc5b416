"""`report` with the permissions of a person: what it can do without, and the role that we ship for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.manifests.applying import applied
from tests.real.manifests.permissions import built
from tests.real.passes.accounts import account, once_permitted
from tests.real.passes.processes import Done, Programs
from tests.real.passes.scene import Scene


def reported(programs: Programs, kubeconfig: Path, config: Path | None = None) -> Done:
    return once_permitted(
        lambda: programs.run("report", "--format", "json", config=config, kubeconfig=kubeconfig)
    )


@pytest.mark.slow
def test_with_the_role_that_we_ship_nothing_is_unseen_and_the_settings_are_those_of_the_cluster(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    scene.workload("web", node)
    scene.condition_tells(node)
    (role,) = built("report")
    source = Path("configmap/node-maintenance/maintenance-policy")
    with (
        applied(scene.controlplane, "base"),
        applied(scene.controlplane, "report"),
        account(scene, role["metadata"]["name"]) as kubeconfig,
    ):
        done = reported(programs, kubeconfig, source)
        readiness = programs.run(
            "readiness", "--output", "json", "--config", str(source), kubeconfig=kubeconfig
        )

    assert done.document["unseen"] == []
    assert (readiness.code, readiness.document["unseen"]) == (0, [])
    assert done.document["mode"] == "Observe"
    assert done.document["settings"]["hash"]
    assert done.node(node)["preview"]["blockers"] == []
