"""Each kind of event from each source is drained for or ignored, as the default settings say."""

from __future__ import annotations

import pytest

from tests.real.passes.scene import LIVE_MIGRATION, MONDAY_NOON, Scene
from tests.support.fakes import imds

DRAINED = [
    pytest.param("Reboot", "Scheduled", id="Reboot"),
    pytest.param("Redeploy", "Scheduled", id="Redeploy"),
    pytest.param("Preempt", "Scheduled", id="Preempt"),
    pytest.param("Terminate", "Scheduled", id="Terminate"),
    pytest.param("Reboot", "Started", id="Reboot that has started"),
    pytest.param("Redeploy", "Started", id="Redeploy that has started"),
    pytest.param("Preempt", "Started", id="Preempt that has started"),
    pytest.param("Terminate", "Started", id="Terminate that has started"),
]
LET_PASS = [
    pytest.param("Freeze", "Host server is undergoing maintenance.", "Freeze", id="Freeze"),
    pytest.param("Freeze", LIVE_MIGRATION, "LiveMigration", id="LiveMigration"),
    pytest.param("Reimage", "Nobody has reported this before.", "Unknown", id="a kind that nobody knows"),
]


@pytest.fixture(autouse=True)
def monday(scene: Scene) -> None:
    scene.clock.set(MONDAY_NOON)


@pytest.mark.parametrize(("kind", "status"), DRAINED)
def test_the_node_condition_and_imds_each_lead_to_a_drain(scene: Scene, kind: str, status: str) -> None:
    scene.set("budget: {maxUnavailable: 2}")
    by_condition, by_imds = scene.node(0), scene.node(1)
    scene.workload("web", by_condition)
    scene.workload("shop", by_imds)
    event = scene.event(1, kind)

    scene.condition_tells(by_condition, kind, status=status)
    scene.imds_tells(1, imds.started(event) if status == "Started" else event)
    report = scene.finish()

    for node, source in ((by_condition, "condition:VMEventScheduled"), (by_imds, "imds")):
        assert scene.cordoned(node)
        assert scene.pods_on(node) == []
        assert scene.state(node) == report.node(node)["state"] == "in-maintenance"
        (event,) = report.node(node)["events"]
        assert (event["kind"], event["status"], event["sources"]) == (kind, status, [source])


@pytest.mark.parametrize(("kind", "description", "read_as"), LET_PASS)
def test_what_the_defaults_ignore_is_reported_and_left_alone(
    scene: Scene, kind: str, description: str, read_as: str
) -> None:
    by_condition, by_imds = scene.node(0), scene.node(1)
    scene.condition_tells(by_condition, kind, description=description)
    scene.imds_tells(1, scene.event(1, kind, description=description))

    report = scene.run()

    for node in (by_condition, by_imds):
        assert [event["kind"] for event in report.node(node)["events"]] == [read_as]
        assert report.actions(node) == []
        assert scene.is_untouched(node)
        # Law 7: an unreadable event is not one that the settings ignore.
        assert list(report.holds(node)) == (["eventReadable"] if read_as == "Unknown" else [])
        assert read_as in report.text


def test_a_live_migration_is_drained_for_where_the_settings_say_so_and_a_freeze_is_not(scene: Scene) -> None:
    scene.set("events: {LiveMigration: {drain: true}}\nbudget: {maxUnavailable: 2}")
    migrated, frozen = scene.node(0), scene.node(1)
    scene.condition_tells(migrated, "Freeze", description=LIVE_MIGRATION)
    scene.condition_tells(frozen, "Freeze")

    scene.finish()

    assert scene.cordoned(migrated)
    assert scene.is_untouched(frozen)


def test_a_live_migration_that_has_started_is_past_its_use(scene: Scene) -> None:
    scene.set("events: {LiveMigration: {drain: true}}")
    node = scene.node()
    scene.condition_tells(node, "Freeze", description=LIVE_MIGRATION, status="Started")

    report = scene.run()

    assert not scene.cordoned(node)
    assert report.actions(node) == ["record"]
    assert report.holds(node) == {"inTime": "LiveMigration has started: a drain would come too late"}


def test_a_pause_shorter_than_the_threshold_is_ignored_and_an_unknown_one_counts_as_long(
    scene: Scene,
) -> None:
    scene.set("events: {Freeze: {drain: true, minDuration: 30s}}\nbudget: {maxUnavailable: 3}")
    short, long, unknown = (scene.node(instance) for instance in range(3))
    scene.condition_tells(short, "Freeze", duration=9)
    scene.condition_tells(long, "Freeze", duration=30)
    scene.condition_tells(unknown, "Freeze", duration=-1)

    scene.finish()

    assert [scene.cordoned(node) for node in (short, long, unknown)] == [False, True, True]


def test_advice_about_a_spot_node_is_no_event(scene: Scene) -> None:
    node = scene.node()
    message = "SpotRebalanceRecommendation Advisory. For more information, see https://aka.ms/aks/spot."
    scene.condition(node, "PreemptionScheduled", "True", message)

    report = scene.run()

    assert [event["kind"] for event in report.node(node)["events"]] == ["Rebalance"]
    assert scene.is_untouched(node)


@pytest.mark.parametrize("kind", ["Preemption", "Reboot", "Redeploy", "Preempt", "Terminate"])
def test_the_relatives_of_the_node_condition_are_listened_to(scene: Scene, kind: str) -> None:
    node = scene.node()
    when = "Mon, 11 May 2026 12:10:00 GMT"
    message = f"{kind.removesuffix('ion')} Scheduled: {when}. DurationInSeconds: -1."
    scene.condition(node, f"{kind}Scheduled", "True", message)

    scene.finish()

    assert scene.cordoned(node)


def test_a_request_by_hand_is_an_event_until_its_author_takes_it_back(scene: Scene) -> None:
    scene.set("uncordon: {settle: 0s}")
    node = scene.node()
    scene.annotate(node, "request", '{"kind": "Reboot", "reason": "new firmware"}')
    scene.finish()
    assert scene.cordoned(node)

    scene.annotate(node, "request", None)
    scene.run()

    assert scene.is_untouched(node)


def test_an_event_that_a_user_started_is_reported_and_not_drained_for(scene: Scene) -> None:
    node, drained = scene.node(0), scene.node(1)
    words = "Virtual machine is going to be restarted as requested by authorized user."
    scene.imds_tells(0, scene.event(0, "Reboot", source="User"))
    scene.condition_tells(drained, "Reboot", description=words)

    report = scene.run()

    for one in (node, drained):
        assert "a user started this Reboot" in report.node(one)["events"][0]["because"]
        assert scene.is_untouched(one)


def test_two_sources_that_report_one_event_make_one(scene: Scene) -> None:
    node = scene.node()
    event = scene.event(0, "Reboot")
    scene.imds_tells(0, event)
    scene.condition_tells(node, "Reboot")

    report = scene.run()

    (joined,) = report.node(node)["events"]
    assert joined["sources"] == ["condition:VMEventScheduled", "imds"]
    assert joined["ids"] == [event["EventId"]]


def test_an_event_of_another_vm_that_this_vm_sees_as_well_is_not_its_own(scene: Scene) -> None:
    first, tenth = scene.node(1), scene.node(10)
    both = [scene.event(10, "Reboot")]
    scene.imds_tells(1, *both)
    scene.imds_tells(10, *both)

    scene.finish()

    assert scene.is_untouched(first)
    assert scene.cordoned(tenth)
