"""A record of version 1 on a real node: an upgrade in mid-drain, and the way back by `release`."""

from __future__ import annotations

import json

from reconciler.model.record import from_annotation
from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene
from tests.real.passes.test_drains import cover
from tests.support.controlplane.waiting import wait_for
from tests.support.record_v1 import as_version_1


def half_drained(scene: Scene) -> str:
    """A node that the program of version 1 has cordoned and half drained: one pod is left."""
    node = scene.node()
    scene.workload("web", node)
    scene.workload("shop", node)
    cover(scene, "web")
    scene.condition_tells(node)
    scene.run()
    wait_for("a half drained node", lambda: scene.pods_on(node) == ["web"], seconds=60)
    scene.new_process()

    uid = scene.api.get("nodes", node)["metadata"]["uid"]
    record = from_annotation(json.dumps(scene.record(node)), uid)
    assert record is not None
    assert record.being_drained
    scene.annotate(node, "record", as_version_1(record))
    return node


def test_an_upgrade_in_mid_drain_finishes_the_drain_and_uncordons(scene: Scene) -> None:
    scene.set("uncordon: {settle: 0s}")
    node = half_drained(scene)
    before = scene.record(node)
    assert before is not None
    assert before["version"] == 1

    scene.api.delete("poddisruptionbudgets", "web", "default")
    scene.finish()

    after = scene.record(node)
    assert after is not None
    assert after["version"] == 2
    assert after["drain"]["since"] == before["case"]["drain"]["since"]
    assert after["cordon"]["claims"] == ["profile:default"]
    assert scene.pods_on(node) == []
    assert scene.cordoned(node)

    scene.condition_silent(node)
    scene.run()

    assert scene.is_untouched(node)


def test_release_undoes_version_1_and_version_2(scene: Scene, programs: Programs) -> None:
    node = half_drained(scene)
    assert programs.run("release", node).code == 0
    assert scene.is_untouched(node)

    scene.run()
    record = scene.record(node)
    assert record is not None
    assert record["version"] == 2
    scene.new_process()
    scene.condition_silent(node)
    assert programs.run("release", node).code == 0
    assert scene.is_untouched(node)
