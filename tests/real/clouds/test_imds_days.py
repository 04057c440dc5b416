"""The days that Microsoft's mock server plays at IMDS, with a real agent before it and whole passes behind.

Kinds, durations and times are those of Azure-Samples/scheduled-events-mock-server, which gives an event a new
id at each step and writes its dates as ISO 8601.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from tests.agent.running import AgentProcess, as_admin
from tests.real.passes.scene import POOL, PREFIX, Scene
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.imds import Event, FakeImds, event, started

INSTANCE = 5


@dataclass(frozen=True, slots=True)
class Day:
    """Scheduled for `notice` minutes, then started for `lasts`; with `lasts` None it is cancelled instead."""

    kind: str
    description: str
    duration: int
    notice: int = 15
    lasts: int | None = 10
    source: str = "Platform"


FAILURE = Day("Redeploy", "Virtual machine has encountered a failure.", -1)


@pytest.fixture
def node(scene: Scene, imds: FakeImds, tmp_path: Path) -> Iterator[str]:
    """A node with a workload, whose agent asks the IMDS."""
    name = scene.node(INSTANCE)
    scene.workload("web", name)
    with AgentProcess(
        tmp_path,
        *("--node", name, "--imds-address", imds.address, "--interval", "0.2"),
        *as_admin(scene.controlplane, tmp_path),
    ):
        yield name


ids = itertools.count(1)


def tell(scene: Scene, imds: FakeImds, node: str, *events: Event) -> None:
    """Let IMDS report these events, and wait until the agent has published them."""
    imds.announce(*events)

    def published() -> bool:
        annotations = scene.api.get("nodes", node)["metadata"].get("annotations", {})
        report = json.loads(annotations.get(f"{PREFIX}/imds", '{"events":[]}'))["events"]
        return [one["EventId"] for one in report] == [one["EventId"] for one in events]

    wait_for("the agent's word", published)


def scheduled(scene: Scene, day: Day) -> Event:
    when = (scene.now + timedelta(minutes=day.notice)).strftime("%Y-%m-%dT%H:%M:%SZ")
    document = event(POOL.vm_name(INSTANCE), day.kind, event_id=f"id-{next(ids)}", not_before=when)
    return {
        **document,
        "Description": day.description,
        "DurationInSeconds": day.duration,
        "EventSource": day.source,
    }


def live(scene: Scene, imds: FakeImds, node: str, day: Day) -> list[bool]:
    """Live through the day: whether the node is cordoned after each step, which then has to be empty."""
    seen = []

    def look() -> None:
        scene.finish()
        seen.append(scene.cordoned(node))
        assert not seen[-1] or scene.pods_on(node) == []

    first = scheduled(scene, day)
    tell(scene, imds, node, first)
    look()
    scene.clock.advance(minutes=day.notice)
    if day.lasts is not None:
        tell(scene, imds, node, {**started(first), "EventId": f"id-{next(ids)}"})
        look()
        scene.clock.advance(minutes=day.lasts)
    tell(scene, imds, node)
    look()
    # The settle time of two minutes.
    scene.clock.advance(minutes=3)
    look()
    return seen


def test_a_day_of_failure_empties_the_node_until_it_is_over(scene: Scene, imds: FakeImds, node: str) -> None:
    assert live(scene, imds, node, FAILURE) == [True, True, True, False]
    assert scene.is_untouched(node)
