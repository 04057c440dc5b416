"""How many nodes may be out of service at once for any reason, and which kinds never wait for a place."""

from __future__ import annotations

import pytest

from tests.real.passes.scene import MONDAY_NOON, Scene


@pytest.fixture(autouse=True)
def monday(scene: Scene) -> None:
    scene.clock.set(MONDAY_NOON)


def nodes(scene: Scene, count: int) -> list[str]:
    """Nodes of three zones by turns."""
    return [scene.node(instance) for instance in range(count)]


def cordoned(scene: Scene) -> list[str]:
    return [each["metadata"]["name"] for each in scene.api.list("nodes") if each["spec"].get("unschedulable")]


def test_a_percentage_is_rounded_up_and_the_hold_says_who_has_the_place(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 10%}")
    fleet = nodes(scene, 11)
    for node in fleet[:4]:
        scene.condition_tells(node)

    report = scene.run()

    taken = cordoned(scene)
    assert len(taken) == 2
    assert report.document["budget"]["places"] == 2
    for node in set(fleet[:4]) - set(taken):
        reason = report.holds(node)["budgetLeft"]
        assert "maxUnavailable is 2" in reason
        assert all(f"{one} (ours, starting)" in reason for one in taken)


def test_a_place_that_comes_free_goes_to_the_next_node_by_date(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 1}\nuncordon: {settle: 0s}")
    first, third, second = nodes(scene, 3)
    for node, minutes in ((first, 5), (second, 6), (third, 7)):
        scene.condition_tells(node, minutes=minutes)
    scene.finish()
    assert cordoned(scene) == [first]

    scene.condition_silent(first)
    scene.run()
    scene.run()

    assert cordoned(scene) == [second]


def test_each_zone_has_its_own_budget(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 100%, perZone: 1}")
    fleet = nodes(scene, 6)
    for node in fleet:
        scene.condition_tells(node)

    report = scene.run()

    taken = cordoned(scene)
    zones = [report.node(node)["zone"] for node in taken]
    assert sorted(zones) == ["westeurope-1", "westeurope-2", "westeurope-3"]
    for node in set(fleet) - set(taken):
        assert f"perZone in {report.node(node)['zone']} is 1" in report.holds(node)["budgetLeft"]


def test_nodes_that_others_took_out_of_service_hold_places(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 2}")
    by_others = scene.node(0, unschedulable=True)
    not_ready = scene.node(1)
    scene.condition(not_ready, "Ready", "False")
    waiting = scene.node(2)
    scene.condition_tells(waiting)

    report = scene.run()

    assert not scene.cordoned(waiting)
    reason = report.holds(waiting)["budgetLeft"]
    assert f"{by_others} (cordoned by others)" in reason
    assert f"{not_ready} (NotReady)" in reason


def test_a_node_that_is_out_of_service_already_needs_no_second_place(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 1}")
    node = scene.node(0, unschedulable=True)
    scene.workload_on(node)
    scene.condition_tells(node)

    scene.finish()

    assert scene.pods_on(node) == []


def test_exempt_kinds_never_wait_and_are_counted(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 1}")
    held, lost, ended = nodes(scene, 3)
    scene.condition_tells(lost, "Preempt", minutes=0.5)
    scene.condition_tells(ended, "Terminate", minutes=5)
    scene.condition_tells(held, "Reboot", minutes=8)

    report = scene.run()

    assert sorted(cordoned(scene)) == sorted([lost, ended])
    assert not scene.cordoned(held)
    assert lost in report.holds(held)["budgetLeft"]


def test_the_deadline_does_not_beat_the_budget(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 1}")
    other = scene.node(0, unschedulable=True)
    node = scene.node(1)
    scene.condition_tells(node, minutes=-30)

    report = scene.run()

    assert not scene.cordoned(node)
    assert other in report.holds(node)["budgetLeft"]


def test_starts_keep_their_distance_across_processes(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 3, spacing: 10m}")
    scene.api.create_namespace("node-maintenance")
    first, second = nodes(scene, 2)
    scene.condition_tells(first, minutes=8)
    scene.condition_tells(second, minutes=9)
    scene.run()
    scene.new_process()

    report = scene.run()

    assert cordoned(scene) == [first]
    assert "spacing is 0:10:00" in report.holds(second)["spacingKept"]

    scene.clock.advance(minutes=10, seconds=1)
    scene.run()

    assert cordoned(scene) == [first, second]
