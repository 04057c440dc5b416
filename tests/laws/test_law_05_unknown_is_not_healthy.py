"""Law 5: a source that reported the event and can't be read holds the uncordon, and never starts a drain."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.event import Answer, Reading
from reconciler.model.limits import count_of
from reconciler.model.node import Node
from reconciler.model.record import State
from reconciler.model.snapshot import Agents, Snapshot
from reconciler.model.values import replace
from reconciler.passes.assess import assess
from reconciler.passes.decide import decide
from reconciler.passes.observe import observe
from reconciler.report.document import to_report
from reconciler.report.text import as_text
from reconciler.run import PARTS
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.laws.histories import MAIN, History
from tests.laws.hits import Hits
from tests.support import builders, strategies
from tests.support.builders import IMDS, NOW, REQUEST, STATE, minutes
from tests.support.searching import examples
from tests.support.worlds import look, world_of

REBOOT = builders.condition(MAIN, "True", "Reboot Started. DurationInSeconds: -1.")


def _blind(reading: Reading) -> Reading:
    return dataclasses.replace(reading, answer=Answer.UNKNOWN, because="it can't be read", signals=())


BLINDED = Hits()


@BLINDED.at_least(25)
@settings(max_examples=examples(150))
@given(strategies.worlds(more=strategies.asking_nodes), strategies.policies())
def test_where_no_source_can_be_read_nothing_starts(world: World, policy: Settings) -> None:
    seen = observe(world.outside, policy, NOW, PARTS)
    blind = replace(seen, readings={name: tuple(map(_blind, each)) for name, each in seen.readings.items()})
    plan = decide(blind, assess(blind, NOW), policy, NOW, PARTS)

    sighted = decide(seen, assess(seen, NOW), policy, NOW, PARTS)
    BLINDED.count(sum(one.starts for one in sighted.nodes))
    adopted = {one.name for one in seen.nodes if policy.adopt and one.unschedulable}
    assert [one.node for one in plan.nodes if one.starts and one.node not in adopted] == []


KEPT = Hits()


@KEPT.at_least(16)
@settings(max_examples=examples(200))
@given(
    strategies.worlds(most=1, more=strategies.ending_nodes, often=True),
    strategies.policies(),
    st.integers(0, 11),
)
def test_a_source_that_goes_silent_starts_no_drain_and_undoes_no_cordon(
    world: World, policy: Settings, which: int
) -> None:
    seen = observe(world.outside, policy, NOW, PARTS)
    readings = seen.readings["n0"]
    reported = seen.nodes[0].annotations.get(builders.RECORD, "")
    on_record = [one for one in readings if f'"{one.source}"' in reported]
    # Mostly a source that matters: one that has reported an event on the record.
    chosen = on_record if on_record and which % 4 else readings
    silent = chosen[which % len(chosen)]
    changed = tuple(_blind(one) if one is silent else one for one in readings)
    blind = replace(seen, readings={"n0": changed})

    def uncordons_or_starts() -> tuple[bool, bool]:
        plan = decide(blind, assess(blind, NOW), policy, NOW, PARTS)
        nodes = [one for one in plan.nodes if one.node == "n0"]
        opened = any(one.todo.write is not None and one.todo.write.unschedulable is False for one in nodes)
        asked = any(
            event.asks and silent.source not in event.event.sources for one in nodes for event in one.events
        )
        return opened, any(one.starts for one in nodes) and not asked

    opened, started_alone = uncordons_or_starts()
    if f'"{silent.source}"' in reported and '"dismissed"' not in reported:
        sighted = decide(seen, assess(seen, NOW), policy, NOW, PARTS)
        KEPT.count(any(one.todo.write and one.todo.write.unschedulable is False for one in sighted.nodes))
        assert not opened
    if not (policy.adopt and seen.nodes[0].unschedulable):
        assert not started_alone


GOES_ON = Hits()


@GOES_ON.at_least(90)
@settings(max_examples=examples(100))
@given(strategies.leaving_nodes("n0"), strategies.policies(), st.integers(0, 11))
def test_a_source_that_reported_the_event_and_goes_silent_stops_no_drain(
    node: Node, policy: Settings, which: int
) -> None:
    running = DrainProgress("n0", "uid-n0", Phase.RUNNING)
    seen = replace(observe(world_of([node]).outside, policy, NOW, PARTS), drains={"n0": running})
    readings = [one for one in seen.readings["n0"] if f'"{one.source}"' in node.annotations[builders.RECORD]]
    silent = readings[which % len(readings)]
    changed = tuple(_blind(one) if one is silent else one for one in seen.readings["n0"])

    def stops(snapshot: Snapshot) -> bool:
        plan = decide(snapshot, assess(snapshot, NOW), policy, NOW, PARTS)
        return builders.plan_of(plan, "n0").todo.stop_drain

    GOES_ON.count(stops(seen))
    assert not stops(replace(seen, readings={"n0": changed}))


def _agent_dies(world: World) -> None:
    world.cluster.annotate("n0", IMDS, None)
    world.cluster.agents = Agents(installed=True, not_ready=frozenset(("n0",)))


def _daemonset_unreadable(world: World) -> None:
    world.cluster.agents = Agents(problem="403")


def _annotation_broken(world: World) -> None:
    world.cluster.annotate("n0", IMDS, "{")


def _condition_unknown(world: World) -> None:
    world.cluster.set_condition("n0", builders.condition(MAIN, "Unknown", "IMDS query failed"))


def _condition_gone(world: World) -> None:
    world.cluster.drop_condition("n0", MAIN)


def _condition_stale(world: World) -> None:
    world.cluster.set_condition("n0", replace(builders.quiet(), heartbeat=NOW - minutes(60)))


def _condition_ahead(world: World) -> None:
    """A detector whose clock is days ahead says that the event is over, and then dies."""
    world.cluster.set_condition("n0", replace(builders.quiet(), heartbeat=NOW + minutes(9000)))


def _condition_garbled(world: World) -> None:
    world.cluster.set_condition("n0", builders.condition(MAIN, "True", "Sorry, something went wrong"))


def _relative_gone(world: World) -> None:
    world.cluster.drop_condition("n0", "RebootScheduled")


def _request_garbled(world: World) -> None:
    world.cluster.annotate("n0", REQUEST, '{"kind":"Rebot"}')


@pytest.mark.parametrize(
    ("told_by", "goes_silent"),
    [
        pytest.param("imds", _agent_dies, id="the agent's pod is not ready"),
        pytest.param("imds", _daemonset_unreadable, id="the DaemonSet can't be read"),
        pytest.param("imds", _annotation_broken, id="the annotation is broken"),
        pytest.param("condition", _condition_unknown, id="the condition is Unknown"),
        pytest.param("condition", _condition_gone, id="the condition has vanished"),
        pytest.param("condition", _condition_stale, id="the condition's heartbeat is old"),
        pytest.param("condition", _condition_ahead, id="the condition's heartbeat is in the future"),
        pytest.param("condition", _condition_garbled, id="the message can't be parsed any more"),
        pytest.param("relative", _relative_gone, id="a relative of the condition has vanished"),
        pytest.param("request", _request_garbled, id="the request can't be parsed any more"),
    ],
)
def test_a_source_that_reported_the_event_and_is_silent_now_always_holds_the_uncordon(
    told_by: str, goes_silent: Callable[[World], None]
) -> None:
    history = History(world_of([builders.node("n0", conditions=(builders.quiet(),))]), builders.settings())
    event = {"EventId": "A1", "EventType": "Reboot", "EventStatus": "Started", "NotBefore": ""}
    if told_by == "imds":
        history.cluster.annotate("n0", IMDS, builders.published(event))
    elif told_by == "request":
        history.cluster.annotate("n0", REQUEST, builders.DRAIN_NOW)
    elif told_by == "relative":
        history.cluster.set_condition("n0", replace(REBOOT, type="RebootScheduled"))
    else:
        history.cluster.set_condition("n0", REBOOT)
    history.silent.add("n0")
    history.until_still()
    goes_silent(history.world)
    for _ in range(5):
        history.wait(timedelta(hours=1))
        plan, _ = history.look()

    assert history.cluster.nodes["n0"].unschedulable
    assert "eventsGone" in builders.codes(builders.plan_of(plan, "n0"))


def test_a_source_that_is_switched_off_does_not_hold_the_uncordon() -> None:
    node = builders.node("n0", conditions=(builders.quiet(),), annotations={IMDS: "{"})
    history = History(world_of([node]), builders.settings())
    event = {"EventId": "A1", "EventType": "Reboot", "EventStatus": "Started", "NotBefore": ""}
    history.cluster.annotate("n0", IMDS, builders.published(event))
    history.until_still()
    history.settings = builders.settings("sources: {imds: {enabled: false}}")
    history.until_still()
    history.wait(minutes(3))
    history.until_still()

    assert not history.cluster.nodes["n0"].unschedulable


def test_a_node_that_waits_goes_on_waiting_while_its_source_is_silent() -> None:
    closed = builders.settings('windows: [{start: "22:00", end: "23:00"}]')
    node = builders.node("n0", conditions=(builders.quiet(),))
    history = History(world_of([node]), closed)
    history.cluster.annotate(
        "n0", IMDS, builders.published({"EventType": "Reboot", "EventStatus": "Scheduled"})
    )
    history.until_still()
    history.cluster.agents = Agents(installed=True, not_ready=frozenset(("n0",)))
    history.until_still()

    assert history.cluster.nodes["n0"].labels[STATE] == State.REQUIRED


@settings(max_examples=examples(50))
@given(st.integers(1, 8))
def test_no_agent_installed_is_one_line_in_the_report_and_no_unknown_on_any_node(count: int) -> None:
    nodes = [builders.node(f"n{number}", conditions=(builders.quiet(),)) for number in range(count)]
    world = world_of(nodes)
    world.cluster.agents = Agents()
    plan, _ = look(world, builders.settings())
    text = as_text(to_report(plan, rehearsed=False))

    assert plan.nodes == ()
    assert text.count("no node agent is installed") == 1
    assert f"({count} of {count_of(count, 'node')})" in text
