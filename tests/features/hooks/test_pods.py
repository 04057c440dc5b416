"""Hooks of pods: they hold the eviction of their own pod, for as long as the settings say."""

from __future__ import annotations

from reconciler.model.values import replace
from reconciler.profiles.orders import drain_order
from tests.support import builders
from tests.support.builders import NOW, PREFIX, REQUEST, known, minutes, node, settings, snapshot
from tests.support.worlds import carry_on, look, world_of

HOOK = f"{PREFIX}/pre-drain.leader"
LIMIT = minutes(10)


def test_a_pods_hook_holds_it_until_the_latest_start_for_the_first_of_two_dates() -> None:
    events = tuple(known(not_before=NOW + minutes(left)) for left in (20, 600))
    chosen = settings("events: {Reboot: {leadTime: 15m}}")
    wait = drain_order(node(), events, NOW, chosen, snapshot()).options.waits.held

    assert wait is not None
    assert wait.deadline == NOW + minutes(5)


def test_new_attempts_and_new_annotations_do_not_begin_the_wait_again() -> None:
    world = world_of([builders.node("a", annotations={REQUEST: builders.DRAIN_NOW}), builders.node("b")])
    pod = replace(builders.pod("web", "a"), annotations={HOOK: "team web"})
    world.cluster.add_pod(pod)
    policy = builders.settings("drain: {timeout: 4m}")
    for step in range(1, 5):
        look(world, policy)
        carry_on(world)
        assert world.cluster.pods_on("a")
        world.cluster.add_pod(replace(pod, annotations={f"{PREFIX}/pre-drain.leader-{step}": "again"}))
        world.advance(minutes(2))
    assert world.cluster.pods_on("a")
    look(world, policy)
    world.advance(minutes(2))

    assert world.now == NOW + LIMIT
    assert not world.cluster.pods_on("a")


def test_the_latest_start_ends_the_wait() -> None:
    request = '{"kind":"Reboot","notBefore":"2026-11-21T12:18:00Z"}'
    world = world_of([builders.node("a", annotations={REQUEST: request}), builders.node("b")])
    world.cluster.add_pod(replace(builders.pod("web", "a"), annotations={HOOK: ""}))
    policy = builders.settings("")
    look(world, policy)
    carry_on(world)
    assert world.cluster.pods_on("a")
    world.advance(minutes(3))
    look(world, policy)
    carry_on(world)

    assert not world.cluster.pods_on("a")
