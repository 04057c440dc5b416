"""A node that others change all the time: `serve` cordons, drains and gives it back as any other."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from tests.real.passes.processes import Programs
from tests.real.passes.scene import Object, Scene
from tests.support.beside import meanwhile
from tests.support.controlplane.processes import wait_for

pytestmark = pytest.mark.slow

EVERY = 0.06
"""Seconds between two changes of one client: the three make fifty a second."""

CHANGES: dict[str, Callable[[int], tuple[Object, str | None]]] = {
    "annotations": lambda count: ({"metadata": {"annotations": {"theirs/count": str(count)}}}, None),
    "labels": lambda count: ({"metadata": {"labels": {"theirs/count": str(count)}}}, None),
    "status": lambda count: ({"status": {"nodeInfo": {"kubeletVersion": f"v1.36.{count}"}}}, "status"),
}


@contextmanager
def changing(scene: Scene, node: str) -> Iterator[Counter[str]]:
    """Three clients that change the node; how often each has."""
    counts = Counter[str]()

    def keep_writing(kind: str, ended: threading.Event) -> None:
        while not ended.wait(EVERY):
            body, subresource = CHANGES[kind](counts[kind])
            scene.api.patch("nodes", node, body, subresource=subresource)
            counts[kind] += 1

    with meanwhile(*(partial(keep_writing, kind) for kind in CHANGES)):
        yield counts


def test_a_node_that_others_change_fifty_times_a_second_is_served_without_a_refused_write(
    scene: Scene, programs: Programs
) -> None:
    programs.configure("mode: Enforce\nuncordon: {settle: 2s}\n")
    node = scene.node()
    scene.workload("web", node, replicas=3)
    process = programs.start("serve", "--every", "1h", "--listen", "127.0.0.1:0")
    process.wait_for("leading")

    with changing(scene, node) as counts:
        wait_for("changes of all clients", lambda: min(counts[kind] for kind in CHANGES) > 5)
        scene.condition_tells(node)
        process.does("a cordon", lambda: scene.cordoned(node))
        process.does("the end of the drain", lambda: "done" in str(scene.record(node)))
        assert scene.pods_on(node) == []
        scene.condition_silent(node)
        process.does("the uncordon", lambda: scene.is_untouched(node))

    patches = [one for one in scene.asked("patch") if (one.resource, one.name) == ("nodes", node)]
    assert {one.code for one in patches} == {200}
    # Nothing is said to have been undone, and no pause holds the node.
    assert "did not stay" not in process.everything()
    assert process.terminate().code == 0
