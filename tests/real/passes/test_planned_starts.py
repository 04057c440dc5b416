"""When drains are planned to start, and what is said of those that will come too late."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.model.moments import to_text
from tests.real.passes.scene import MONDAY_NOON, PassReport, Scene

HOUR = timedelta(hours=1)
LEAD = timedelta(minutes=15)


@pytest.fixture(autouse=True)
def monday(scene: Scene) -> None:
    scene.clock.set(MONDAY_NOON)


def ask(scene: Scene, node: str, date: datetime) -> None:
    """Request a reboot of the node on a date."""
    scene.annotate(node, "request", json.dumps({"kind": "Reboot", "notBefore": to_text(date)}))


def forecasts(scene: Scene, reason: str = "MaintenanceWillBeMissed") -> list[tuple[str, str, str]]:
    """The node, the type and the message of each forecast."""
    return [
        (one["involvedObject"]["name"], one["type"], one["message"])
        for one in scene.api.list("events")
        if one["reason"] == reason
    ]


def sent(scene: Scene) -> int:
    """How many Events the program has tried to create."""
    return sum(one.resource == "events" for one in scene.asked("create"))


def missed(report: PassReport) -> set[str]:
    """The nodes that will be missed."""
    rows: list[dict[str, Any]] = report.document["nodes"]
    return {one["name"] for one in rows if (one["schedule"] or {}).get("missed")}


def test_a_request_far_ahead_waits_for_its_planned_start(scene: Scene) -> None:
    # No heartbeat of a condition grows old before the start.
    scene.set("sources: {nodeConditions: {enabled: false}}")
    node = scene.node()
    date = MONDAY_NOON + 5 * HOUR
    latest = date - LEAD
    planned = latest - HOUR
    ask(scene, node, date)

    report = scene.run()

    schedule = report.node(node)["schedule"]
    assert (schedule["plannedStart"], schedule["latestStart"]) == (to_text(planned), to_text(latest))
    assert "starts at Mon 2026-05-11 15:45 UTC, at the latest at Mon 2026-05-11 16:45" in report.text
    assert report.document["nextChange"] == to_text(planned)

    scene.clock.set(planned - timedelta(seconds=1))
    assert "15:45" in scene.run().holds(node)["startPlanned"]
    assert not scene.cordoned(node)
    scene.clock.set(planned)
    scene.run()

    assert scene.cordoned(node)


def test_of_five_nodes_under_a_budget_of_two_three_are_foretold_once_and_the_named_budget_helps(
    scene: Scene,
) -> None:
    scene.set("budget: {maxUnavailable: 2}")
    nodes = [scene.node(instance) for instance in range(5)]
    for node in nodes:
        ask(scene, node, MONDAY_NOON + 5 * HOUR)

    first = scene.run()
    assert forecasts(scene) == []
    scene.clock.advance(minutes=10)
    scene.run()
    told, before = forecasts(scene), sent(scene)
    scene.clock.advance(minutes=1)
    again = scene.run()

    assert len(told) == 3
    assert missed(first) == missed(again) == {node for node, _, _ in told}
    assert {kind for _, kind, _ in told} == {"Warning"}
    assert sent(scene) == before
    assert not any(scene.cordoned(node) for node in nodes)

    (budget,) = {found for _, _, text in told for found in re.findall(r"maxUnavailable of (\d+) from", text)}
    scene.set(f"budget: {{maxUnavailable: {budget}}}")
    assert missed(scene.run()) == set()
    scene.run()
    assert (budget, sent(scene)) == ("5", before + 3)
    back = forecasts(scene, "MaintenanceNoLongerMissed")
    assert {node for node, _, _ in back} == {node for node, _, _ in told}
    sentence = "the node will be drained in time after all: its drain starts at Mon 2026-05-11 15:45 UTC"
    assert {(kind, text) for _, kind, text in back} == {("Normal", sentence)}


def test_a_cordon_by_others_says_nothing_of_a_request_five_days_ahead(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 1}\nsources: {nodeConditions: {enabled: false}}")
    node, other = scene.node(), scene.node(1)
    date = MONDAY_NOON + 120 * HOUR
    ask(scene, node, date)
    scene.api.patch("nodes", other, {"spec": {"unschedulable": True}})

    reports = [scene.run()]
    scene.clock.advance(minutes=15)
    reports.append(scene.run())

    assert [missed(report) for report in reports] == [set(), set()]
    assert {report.node(node)["schedule"]["plannedStart"] for report in reports} == {
        to_text(date - LEAD - HOUR)
    }
    assert forecasts(scene) == []


def test_the_reserve_keeps_a_place_for_a_short_notice(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 2, reserve: 1}")
    nodes = [scene.node(instance) for instance in range(2)]
    short = scene.node(2)
    for node in nodes:
        ask(scene, node, MONDAY_NOON + HOUR)

    report = scene.run()

    (late,) = missed(report)
    assert "maxUnavailable (without budget.reserve) has 1 place" in report.node(late)["schedule"]["because"]
    assert [scene.cordoned(node) for node in nodes].count(True) == 1
    assert not scene.cordoned(late)

    scene.condition_tells(short, minutes=10)
    scene.run()

    assert scene.cordoned(short)
    assert not scene.cordoned(late)
