"""When a drain does not finish: each stage that the settings allow, done and reported; none by default."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.real.passes.processes import ENFORCE, Done, Programs
from tests.real.passes.scene import Scene
from tests.real.passes.test_drains import cover

pytestmark = pytest.mark.slow


def asked(scene: Scene, verb: str, resource: str, since: datetime) -> list[str]:
    """The names of what we asked one verb for."""
    entries = scene.asked(verb, since=since)
    return [one.name for one in entries if one.resource == resource and one.code < 300]


def escalated(scene: Scene, node: str) -> list[str]:
    """What the node's Events say of stages."""
    return [
        event["message"]
        for event in scene.api.list("events", "default")
        if event["reason"] == "MaintenanceEscalated" and event["involvedObject"]["name"] == node
    ]


def report(done: Done, node: str) -> list[str]:
    """What the pass's own report says of stages."""
    assert done.code == 0, done.err
    return list(done.node(node)["drain"]["escalations"])


@pytest.fixture
def blocked(scene: Scene) -> str:
    """A node with one pod that its budget holds, before an event of its own."""
    node = scene.node()
    scene.workload("web", node)
    cover(scene, "web")
    return node


def test_before_the_deadline_it_is_deleted_where_that_is_allowed(
    scene: Scene, programs: Programs, blocked: str
) -> None:
    programs.configure(f"{ENFORCE}drain: {{escalation: {{deleteBeforeDeadline: true}}}}\n")
    scene.condition_tells(blocked, minutes=0.2)
    since = datetime.now(UTC)

    done = programs.sweep("--for", "60s")

    (text,) = report(done, blocked)
    assert text.endswith("is deleted instead of evicted, to be gone by the deadline")
    assert escalated(scene, blocked) == [text]
    assert scene.pods_on(blocked) == []
    assert len(asked(scene, "delete", "pods", since)) == 1
