"""When a drain may start: windows, times that are not allowed, and the deadline that overrules them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.real.passes.scene import LIVE_MIGRATION, MONDAY_NOON, Scene

NIGHT = 'windows: [{name: nights, days: [Mon-Sun], start: "22:00", end: "05:00"}]\n'
NOON = 'windows: [{name: noon, days: [Mon], start: "11:00", end: "13:00"}]\n'
SALE = "notAllowed: [{name: sale, start: 2026-05-11, end: 2026-05-12, reason: everything must go%s}]\n"
AT_DEADLINE = "no window opens before the deadline, so it starts not before"


@pytest.fixture(autouse=True)
def monday(scene: Scene) -> None:
    scene.clock.set(MONDAY_NOON)


def test_inside_a_window_a_drain_starts(scene: Scene) -> None:
    scene.set(NOON)
    node = scene.node()
    scene.condition_tells(node, minutes=600)

    report = scene.run()

    assert scene.cordoned(node)
    assert "noon" in report.node(node)["events"][0]["timing"]
    assert report.node(node)["events"][0]["overruled"] is None


def test_outside_a_window_the_node_waits_for_it_and_is_drained_once_it_opens(scene: Scene) -> None:
    scene.set(NIGHT)
    node = scene.node()
    # From 21:30 on it may start, an hour before its latest start.
    scene.condition_tells(node, minutes=10 * 60 + 45)

    report = scene.run()

    assert not scene.cordoned(node)
    assert scene.state(node) == "maintenance-required"
    assert "waits for nights, which opens at 2026-05-11T22:00:00Z" in report.holds(node)["windowOpen"]
    assert report.document["nextChange"] <= "2026-05-11T22:00:00Z"

    scene.clock.set(MONDAY_NOON.replace(hour=22) + timedelta(seconds=1))
    scene.condition_tells(node, minutes=44.98)
    scene.run()

    assert scene.cordoned(node)


def test_a_freeze_is_drained_before_it_begins_although_no_window_is_open(scene: Scene) -> None:
    scene.set(f"{NIGHT}events: {{Freeze: {{drain: true}}}}")
    node = scene.node()
    scene.workload("web", node)
    # The notice that Azure gives.
    scene.condition_tells(node, "Freeze", minutes=15, duration=9)
    scene.finish()

    assert (scene.cordoned(node), scene.pods_on(node)) == (True, [])


def test_a_window_belongs_to_the_day_on_which_it_starts(scene: Scene) -> None:
    # Friday 22:00 is still Friday's at Saturday 03:00.
    scene.set('windows: [{name: fridays, days: [Fri], start: "22:00", end: "05:00"}]\n')
    node = scene.node()
    scene.clock.set(MONDAY_NOON + timedelta(days=4, hours=15))
    scene.condition_tells(node, minutes=60)

    scene.run()

    assert scene.cordoned(node)


def test_a_drain_that_began_in_its_window_goes_on_past_its_end(scene: Scene) -> None:
    scene.set(f"{NOON}drain: {{timeout: 12h}}")
    node = scene.node()
    scene.workload("web", node)
    scene.api.create(
        "poddisruptionbudgets",
        {
            "metadata": {"name": "web"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        },
    )
    scene.condition_tells(node, minutes=600)
    scene.run()
    scene.clock.advance(hours=2)
    scene.condition_tells(node, minutes=480)
    report = scene.run()
    assert report.actions(node) == ["drain"]

    scene.api.delete("poddisruptionbudgets", "web", "default")
    scene.finish()

    assert scene.pods_on(node) == []


def test_the_deadline_overrules_a_closed_window_and_the_report_says_so(scene: Scene) -> None:
    scene.set(NIGHT)
    node = scene.node()
    # Fifteen minutes of lead time for a Reboot: ten minutes before it the deadline has passed.
    scene.condition_tells(node, minutes=10)

    report = scene.run()

    assert scene.cordoned(node)
    event = report.node(node)["events"][0]
    assert event["deadline"] == "2026-05-11T11:55:00Z"
    assert event["timing"] == "the deadline 2026-05-11T11:55:00Z passed 5m ago"
    assert "nights" in event["overruled"]
    assert "overruled" in report.text
    # The line has another moment before this one, which names the zone.
    assert "the deadline Mon 2026-05-11 11:55 passed 5m ago" in report.text


def test_before_its_deadline_an_event_waits_for_it_where_no_window_comes_first(scene: Scene) -> None:
    scene.set(NIGHT)
    node = scene.node()
    scene.condition_tells(node, minutes=60)

    report = scene.run()

    assert not scene.cordoned(node)
    assert f"{AT_DEADLINE} 2026-05-11T12:45:00Z" in report.holds(node)["windowOpen"]

    scene.clock.advance(minutes=45)
    scene.condition_tells(node, minutes=15)
    scene.run()

    assert scene.cordoned(node)


def test_a_preempt_starts_on_sight_outside_the_window(scene: Scene) -> None:
    scene.set(NIGHT)
    node = scene.node()
    scene.condition_tells(node, "Preempt", minutes=0.5)

    report = scene.run()

    assert scene.cordoned(node), report.text
    assert "at once" in report.node(node)["events"][0]["timing"]


def test_a_live_migration_is_never_drained_for_outside_the_window(scene: Scene) -> None:
    scene.set(f"{NIGHT}events: {{LiveMigration: {{drain: true}}}}")
    node = scene.node()
    scene.condition_tells(node, "Freeze", minutes=-5, description=LIVE_MIGRATION)

    report = scene.run()

    assert not scene.cordoned(node)
    assert "outsideWindow is Never" in report.holds(node)["windowOpen"]


def test_a_time_that_is_not_allowed_beats_the_window_and_shows_its_reason(scene: Scene) -> None:
    scene.set(NOON + SALE % "")
    node = scene.node()
    scene.condition_tells(node, minutes=600)

    report = scene.run()

    assert not scene.cordoned(node)
    assert "everything must go" in report.holds(node)["windowOpen"]


def test_the_deadline_beats_a_time_that_is_not_allowed(scene: Scene) -> None:
    scene.set(NOON + SALE % "")
    node = scene.node()
    scene.condition_tells(node, minutes=10)

    report = scene.run()

    assert scene.cordoned(node)
    assert "sale" in report.node(node)["events"][0]["overruled"]


def test_no_deadline_beats_a_time_that_is_not_allowed_absolutely(scene: Scene) -> None:
    scene.set(NOON + SALE % ", absolute: true")
    scheduled, started, lost = scene.node(0), scene.node(1), scene.node(2)
    scene.condition_tells(scheduled, minutes=-10)
    scene.condition_tells(started, status="Started")
    scene.condition_tells(lost, "Preempt", minutes=0.5)

    report = scene.run()

    for node in (scheduled, started, lost):
        assert not scene.cordoned(node)
        assert "absolute" in report.holds(node)["windowOpen"]


def test_what_has_no_date_has_no_deadline_and_waits_for_the_window(scene: Scene) -> None:
    scene.set(NIGHT)
    node = scene.node()
    scene.annotate(node, "request", '{"kind": "Reboot"}')

    report = scene.run()

    assert not scene.cordoned(node)
    assert report.node(node)["events"][0]["deadline"] is None
    assert "waits for nights" in report.holds(node)["windowOpen"]


def test_a_window_for_one_pool_leaves_the_others_at_any_time(scene: Scene) -> None:
    scene.set(
        'windows: [{name: nights, days: [Mon-Sun], start: "22:00", end: "05:00",'
        " nodeSelector: {agentpool: other}}]\nbudget: {maxUnavailable: 2}"
    )
    node = scene.node()
    scene.condition_tells(node, minutes=60)

    scene.run()

    assert scene.cordoned(node)
