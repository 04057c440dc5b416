"""Azure is asked to start an event early, on a real API server with real agents between it and an IMDS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.real.passes.scene import POOL, PREFIX, Scene
from tests.sources.imds.agent.running import AgentProcess, as_admin
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.workloads import budget
from tests.support.fakes.imds import FakeImds

Object = dict[str, Any]
ID = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"
INSTANCES = (5, 6)
WANTED = "events: {Reboot: {acknowledge: true}}\nbudget: {maxUnavailable: 2}\nuncordon: {settle: 0s}\n"


@pytest.fixture
def agents(scene: Scene, imds: FakeImds, tmp_path: Path) -> Iterator[list[AgentProcess]]:
    """An agent on each of the two nodes, as the cluster's admin."""
    with ExitStack() as stack:
        started = []
        for instance in INSTANCES:
            folder = tmp_path / str(instance)
            folder.mkdir()
            process = AgentProcess(
                folder,
                *("--node", scene.node(instance), "--imds-address", imds.address, "--interval", "0.2"),
                *("--reread", "0.2", *as_admin(scene.controlplane, folder)),
            )
            started.append(stack.enter_context(process))
        yield started


def nodes() -> tuple[str, str]:
    first, second = INSTANCES
    return POOL.node_name(first), POOL.node_name(second)


def of_both(scene: Scene) -> Object:
    """A reboot of both nodes' VMs."""
    return {**scene.event(0, event_id=ID), "Resources": [POOL.vm_name(each) for each in INSTANCES]}


def annotation(scene: Scene, node: str, name: str) -> Any:
    text = scene.api.get("nodes", node)["metadata"].get("annotations", {}).get(f"{PREFIX}/{name}")
    return None if text is None else json.loads(text)


def orders(scene: Scene) -> list[Any]:
    """What the agents are asked, node by node."""
    return [annotation(scene, node, "acknowledge") for node in nodes()]


def published(scene: Scene) -> list[list[str]]:
    """The statuses that the agents have published, node by node."""
    found = [annotation(scene, node, "imds") or {"events": []} for node in nodes()]
    return [[each["EventStatus"] for each in one["events"]] for one in found]


def on_record(scene: Scene, node: str) -> object:
    """The ids that we acknowledged, by the node's record."""
    record = scene.record(node)
    assert record is not None
    (asked,) = record["profiles"]["default"]["asked"]
    return asked["events"]


def is_drained(scene: Scene, node: str) -> bool:
    record = scene.record(node)
    return record is not None and "done" in record.get("drain", {})


def drain(scene: Scene, *names: str) -> None:
    """Run passes until these nodes are drained, and the record says so."""

    def done() -> bool:
        scene.run()
        scene.drainer.wait(0.5)
        return all(is_drained(scene, name) for name in names)

    wait_for("end of the drains", done, seconds=60)


def acknowledgements_told(scene: Scene) -> int:
    events = scene.api.list("events", "default")
    return sum(event["reason"] == "MaintenanceAcknowledged" for event in events)


def test_an_event_of_two_nodes_starts_once_both_are_drained_and_both_come_back_after_it(
    scene: Scene, imds: FakeImds, agents: list[AgentProcess]
) -> None:
    scene.set(WANTED)
    first, second = nodes()
    scene.workload("web", first)
    scene.workload("shop", second)
    scene.api.create("poddisruptionbudgets", budget("shop", min_available=1))
    imds.announce(of_both(scene))
    wait_for("both agents' word", lambda: published(scene) == [["Scheduled"], ["Scheduled"]])

    drain(scene, first)
    report = scene.run()
    waited_for = f"event {ID} is not acknowledged: node {second} is not drained for it yet"
    assert report.holds(first)["offerDue"] == waited_for
    assert waited_for in report.text
    assert scene.pods_on(second) == ["shop"]
    assert orders(scene) == [None, None]
    imds.wait_for_requests(10)
    assert imds.acknowledged == []

    scene.api.delete("poddisruptionbudgets", "shop", "default")
    drain(scene, first, second)
    report = scene.run()
    assert [on_record(scene, node) for node in nodes()] == [[ID], [ID]]
    wait_for("start of the event", lambda: published(scene) == [["Started"], ["Started"]])
    # Each agent may have said it before it saw that the event has started.
    assert set(imds.acknowledged) == {ID}
    assert sum(len(agent.lines("acknowledged")) for agent in agents) == len(imds.acknowledged)
    assert acknowledgements_told(scene) == 2

    report = scene.run()
    assert orders(scene) == [None, None]
    assert [scene.cordoned(node) for node in nodes()] == [True, True]
    assert "Reboot (Started)" in report.holds(first)["eventsGone"]

    imds.announce()
    wait_for("both agents' word that it has gone", lambda: published(scene) == [[], []])
    scene.run()
    scene.run()
    assert [scene.is_untouched(node) for node in nodes()] == [True, True]
    assert orders(scene) == [None, None]
    assert acknowledgements_told(scene) == 2
    assert imds.requests.count("POST") == len(imds.acknowledged)
