"""A tenant keeps creating pods on a node that is drained: nobody else waits, and the case says who it is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from tests.real.passes.scene import Scene
from tests.support.beside import meanwhile
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.workloads import pod

SETTINGS = """
budget: {maxUnavailable: 2}
drain: {maxConcurrentNodes: 1}
events: {Reboot: {unmanagedPods: Evict}}
"""
TENANT = "tenant-a"
COMING = f"new pods keep coming from namespace {TENANT}"


@contextmanager
def _pods_keep_coming(scene: Scene, node: str, **shape: Any) -> Iterator[None]:
    """Create a pod on the node several times a second, each time with another name."""

    def create(over: threading.Event) -> None:
        for number in count():
            if over.wait(0.2):
                return
            scene.api.create("pods", pod(f"try-{number}", namespace=TENANT, node_name=node, **shape))

    with meanwhile(create):
        yield


def _two_nodes(scene: Scene) -> tuple[str, str]:
    """A node to which the tenant sends its pods, and another one; both have pods, and maintenance soon."""
    scene.set(SETTINGS)
    scene.api.create("namespaces", {"metadata": {"name": TENANT}})
    theirs, other = scene.node(), scene.node(1)
    scene.workload("mine", theirs)
    scene.workload("web", other)
    scene.condition_tells(theirs, minutes=16)
    scene.condition_tells(other, minutes=17)
    return theirs, other


def test_a_tenant_whose_new_pods_keep_coming_keeps_no_other_node_from_its_drain(scene: Scene) -> None:
    theirs, other = _two_nodes(scene)
    with _pods_keep_coming(scene, theirs):
        report = scene.run()

        def drained() -> bool:
            nonlocal report
            report = scene.run()
            return all(_done(scene, node) for node in (theirs, other))

        wait_for("the end of both drains", drained, seconds=60, instead=lambda: report.text)
        report = scene.run()

    assert "web" not in scene.pods_on(other)
    assert "mine" not in scene.pods_on(theirs)
    assert COMING in report.text
    assert f"kubectl get pods -n {TENANT} --field-selector spec.nodeName={theirs}" in report.text
    record = scene.record(theirs)
    assert record is not None
    assert record["drain"]["kept"]["coming"][0]["namespace"] == TENANT
    events = scene.api.list("events")
    assert any(COMING in one["message"] for one in events if one["involvedObject"]["name"] == theirs)


def test_new_pods_that_take_long_to_leave_keep_no_slot(scene: Scene) -> None:
    theirs, other = _two_nodes(scene)
    # Each pod leaves in time until the next one does: together they never end.
    with _pods_keep_coming(scene, theirs, grace=30, finalizers=["example.com/slow"]):
        report = scene.run()

        def drained() -> bool:
            nonlocal report
            report = scene.run()
            return _done(scene, other) and COMING in report.holds(theirs).get("drain", "")

        wait_for("the end of the other drain", drained, seconds=60, instead=lambda: report.text)

    assert not _done(scene, theirs)
    assert "drainSlot" not in report.holds(other)


def _done(scene: Scene, node: str) -> bool:
    record = scene.record(node)
    return record is not None and "done" in record.get("drain", {})
