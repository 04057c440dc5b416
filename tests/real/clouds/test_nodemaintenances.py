"""NodeMaintenance objects on a real API server: a view that follows the cases, and can be lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.features.publishing.node_maintenances import changes
from reconciler.features.publishing.objects import Maintenance, MaintenanceWrite
from reconciler.model.event import Kind, Status
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan
from reconciler.model.values import replace
from reconciler.passes.plugin import Fleet
from tests.real.manifests.applying import applied, kubectl
from tests.real.passes.scene import Scene
from tests.support import builders
from tests.support.builders import NOW, minutes
from tests.support.controlplane.processes import wait_for

Object = dict[str, Any]
SHOW = "publish: [nodemaintenances]\nuncordon: {settle: 0s}\n"


@pytest.fixture
def viewed(scene: Scene) -> Iterator[Scene]:
    """A scene whose cluster has the kind."""
    with applied(scene.controlplane, "crd"):
        wait_for("the kind", lambda: scene.serves("nodemaintenances"))
        scene.set(SHOW)
        yield scene


def views(scene: Scene) -> list[Object]:
    return sorted(scene.api.list("nodemaintenances"), key=lambda one: str(one["metadata"]["name"]))


def states(scene: Scene) -> list[str]:
    return [one["status"]["state"] for one in views(scene)]


def writes(scene: Scene) -> list[tuple[str, int]]:
    entries = scene.asked()
    return [(one.verb, one.code) for one in entries if one.resource == "nodemaintenances"]


def test_an_object_follows_the_case_to_its_end_and_is_kept_for_a_while(viewed: Scene) -> None:
    scene = viewed
    settings = f"{SHOW}history: 2d\nevents: {{Reboot: {{start: Early}}}}\n"
    scene.set(f"{settings}windows: [{{name: night, start: '22:00', end: '05:00'}}]")
    scene.clock.set(scene.now.replace(hour=12, minute=0, second=0))
    node = scene.node()
    scene.workload("web", node)
    scene.imds_tells(0, scene.event(0, minutes=60 * 24, event_id="A1"))
    scene.run()
    waiting = views(scene)
    table = kubectl(scene.controlplane, "get", "nodemaintenances")
    scene.set(settings)
    scene.run()
    draining = states(scene)
    scene.finish()
    drained = states(scene)
    scene.imds_tells(0, scene.event(0, status="Started", event_id="A1"))
    scene.run()
    started = states(scene)
    scene.imds_tells(0)
    scene.run()
    scene.run()
    done = views(scene)
    scene.clock.advance(days=1, hours=23)
    scene.condition_silent(node)
    scene.run()
    kept = states(scene)
    scene.clock.advance(hours=2)
    scene.condition_silent(node)
    scene.run()

    [first] = waiting
    night = scene.now.replace(hour=22, minute=0, second=0, microsecond=0)
    assert first["spec"] | {"notBefore": ""} == {
        "nodeName": node,
        "nodeUID": scene.api.get("nodes", node)["metadata"]["uid"],
        "kind": "Reboot",
        "ids": ["A1"],
        "sources": ["imds"],
        "notBefore": "",
        "description": first["spec"]["description"],
    }
    assert first["status"]["state"] == "Waiting"
    assert first["status"]["reason"] == "windowOpen"
    assert first["status"]["due"][11:] == night.strftime("%H:%M:%SZ")
    assert "night" in first["status"]["message"]
    columns = table.splitlines()[0].split()
    assert columns == ["NAME", "NODE", "KIND", "STATE", "DUE", "REASON", "AGE"]
    assert table.splitlines()[1].split()[1:4] == [node, "Reboot", "Waiting"]
    assert (draining, drained, started) == (["Draining"], ["Drained"], ["Started"])
    [last] = done
    assert last["metadata"]["uid"] == first["metadata"]["uid"]
    assert last["status"]["state"] == "Done"
    assert {one["status"] for one in last["status"]["conditions"]} == {"False"}
    assert kept == ["Done"]
    assert views(scene) == []


def test_at_rest_nothing_is_written_and_one_list_is_all_it_costs(viewed: Scene) -> None:
    scene = viewed
    scene.node()
    scene.imds_tells(0, scene.event(0))
    scene.finish()
    count = len(writes(scene))
    scene.clock.advance(minutes=1)
    scene.run()

    assert writes(scene)[count:] == [("list", 200)]


def test_without_the_kind_everything_works_for_one_request_a_pass(scene: Scene) -> None:
    scene.set(SHOW)
    node = scene.node()
    scene.workload("web", node)
    scene.condition_tells(node)
    scene.finish()
    count = len(writes(scene))
    report = scene.run()

    assert scene.cordoned(node)
    assert scene.pods_on(node) == []
    assert [one for one in report.document["outcomes"] if one["result"] not in ("done", "running")] == []
    assert writes(scene)[count:] == [("list", 404)]


# The pure part.


def shown(have: list[Maintenance], *plans: NodePlan, on: Node | None = None) -> dict[str, Maintenance | None]:
    """The objects after the writes, by name; None for those that are deleted."""
    nodes = {"a": on or builders.node()}
    fleet = Fleet(plans, nodes, builders.settings("history: 1h"), NOW)
    found = changes(have, fleet).writes
    assert all(isinstance(write, MaintenanceWrite) for write in found)
    return {write.name: write.wanted for write in found if isinstance(write, MaintenanceWrite)}


def plan(*events: Any, chosen: str = "") -> NodePlan:
    readings = {"a": builders.reported(*events)}
    seen = builders.snapshot(builders.node(), readings=readings)
    return builders.plan_of(builders.planned(seen, builders.settings(chosen)))


def test_an_event_that_gets_an_id_and_another_date_later_is_still_the_same_object() -> None:
    [first] = shown([], plan(builders.signal(not_before=NOW + minutes(30)))).values()
    assert first is not None
    [second] = shown([first], plan(builders.signal(not_before=NOW + minutes(30), event_id="A1"))).values()
    assert second is not None
    [third] = shown([second], plan(builders.signal(not_before=NOW + minutes(90), event_id="a1"))).values()

    assert third is not None
    assert first.name == second.name == third.name
    assert third.event.not_before == NOW + minutes(90)


def test_a_text_that_counts_minutes_is_no_reason_to_write() -> None:
    waiting = plan(builders.signal(), chosen="windows: [{start: '22:00', end: '05:00'}]")
    [first] = shown([], waiting).values()
    assert first is not None

    assert first.reason == "windowOpen"
    assert shown([replace(first, message="it was another a minute ago")], waiting) == {}
    assert shown([replace(first, reason="budgetLeft")], waiting) == {first.name: first}


def test_an_event_that_comes_back_brings_its_object_back() -> None:
    reported = builders.signal(Kind.FREEZE, status=Status.SCHEDULED, event_id="F1")
    [first] = shown([], plan(reported)).values()
    assert first is not None
    [ended] = shown([first]).values()
    assert ended is not None
    [again] = shown([ended], plan(reported)).values()

    assert again is not None
    assert (again.name, again.state, again.finished) == (first.name, "LetPass", None)
