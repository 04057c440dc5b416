"""Somebody restores a backup of etcd while `serve` runs: it goes by what the API server has from then on."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.request import urlopen

import pytest

from tests.real.passes.processes import ENFORCE, Programs, Running
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for

pytestmark = pytest.mark.slow

WITHIN = 10.0
"""Seconds from a notice to its cordon, once the nodes were listed again."""


def test_after_a_restore_of_etcd_the_nodes_are_as_the_server_has_them(
    scene: Scene, programs: Programs
) -> None:
    programs.configure(f"{ENFORCE}budget: {{maxUnavailable: 100%}}\n")
    first, second = scene.node(0), scene.node(1)
    scene.workload("web", first)
    serving = programs.start("serve", "--every", "10s", "--listen", "127.0.0.1:0")
    serving.wait_for("leading")
    scene.controlplane.keep()
    scene.condition_tells(first)
    wait_for("the end of the drain", lambda: scene.cordoned(first) and not scene.pods_on(first), seconds=90)
    # The versions of the backup are far behind.
    for number in range(50):
        scene.api.patch("nodes", second, {"metadata": {"annotations": {"beat": str(number)}}})

    scene.controlplane.restore()
    restored = datetime.now(UTC)
    assert not scene.cordoned(first), "the cordon is newer than the backup"
    serving.does("a new list", lambda: "went back" in serving.everything(), seconds=30)
    scene.condition_tells(second, "Preempt", minutes=1)
    wait_for("the cordon", lambda: scene.cordoned(second), seconds=WITHIN)
    serving.does("a word about it", lambda: "restored a backup" in _page(serving), seconds=30)

    # Nobody asks for a drain of the first node any more.
    assert scene.pods_on(first) == ["web"]
    assert not scene.cordoned(first)
    assert [one for one in scene.asked("create", since=restored) if one.subresource == "eviction"] == []


def _page(serving: Running) -> str:
    (said,) = serving.said("listening")
    with urlopen(f"http://{said['address']}/", timeout=30) as answer:
        return str(answer.read().decode())
