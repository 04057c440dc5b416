"""A proxy that hands the watch of nodes on late, with the connection open: old news is no evidence."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue
from time import monotonic

import pytest

from reconciler.drain.drainer import Limits
from tests.real.passes.processes import ENFORCE, Programs
from tests.real.passes.scene import Scene
from tests.support.beside import meanwhile
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.workloads import budget
from tests.support.fakes.proxy import Proxy

pytestmark = pytest.mark.slow

LATE = 25.0
"""Seconds."""

NODE = b"\x12\x04Node"
"""How the kind of an object in protobuf begins an event of the watch of nodes."""

ON_THE_WAY = timedelta(seconds=1)
"""From the decision to send an eviction until the API server has it, with its threads on two busy cores."""


class Late:
    """Hands each piece of a watch of nodes on `seconds` after it came."""

    seconds = 0.0

    def bend(self, content_type: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
        del content_type
        came = SimpleQueue[tuple[float, bytes]]()

        def read() -> None:
            # The client may close it at any time.
            with suppress(Exception):
                for chunk in chunks:
                    came.put((monotonic() + self.seconds * (NODE in chunk), chunk))
            came.put((0.0, b""))

        threading.Thread(target=read, daemon=True).start()
        while True:
            due, chunk = came.get()
            if not chunk:
                return
            threading.Event().wait(max(0.0, due - monotonic()))
            yield chunk


def test_nothing_is_evicted_from_a_node_that_somebody_uncordoned_while_its_watch_is_late(
    scene: Scene, programs: Programs, tmp_path: Path
) -> None:
    programs.configure(f"{ENFORCE}budget: {{maxUnavailable: 100%}}\n")
    node = scene.node(0)
    # One pod after the other leaves, for as long as the test needs it.
    scene.workload("web", replicas=60)
    scene.api.create("poddisruptionbudgets", budget("web", max_unavailable=1))
    other = scene.node(1)
    late = Late()

    def beat(ended: threading.Event) -> None:
        """Write the other node, as its kubelet does: the late watch is never silent."""
        while not ended.wait(0.2):
            scene.api.patch("nodes", other, {"metadata": {"annotations": {"beat": str(monotonic())}}})

    with meanwhile(beat), Proxy(programs.kubeconfig) as proxy:
        proxy.bend = late.bend
        path = proxy.write_kubeconfig(tmp_path / "proxy.kubeconfig")
        serving = programs.start("serve", "--every", "1h", kubeconfig=path)
        serving.wait_for("leading")
        scene.condition_tells(node)
        wait_for("evictions", lambda: len(_evicted(scene)) > 1, seconds=60)
        late.seconds = LATE
        # What came in time has been handed on.
        threading.Event().wait(1.0)
        uncordoned = datetime.now(UTC)
        scene.api.patch("nodes", node, {"spec": {"unschedulable": False}})
        threading.Event().wait(LATE)
        evicted = _evicted(scene)
        serving.kill()

    last = uncordoned + Limits().cordon.within + ON_THE_WAY
    assert [at - uncordoned for at in evicted if at > last] == []


def _evicted(scene: Scene) -> list[datetime]:
    """When evictions were asked for."""
    return [one.timestamp for one in scene.asked("create") if one.subresource == "eviction"]
