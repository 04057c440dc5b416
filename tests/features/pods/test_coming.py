"""What a pass knows of the pods that the coming night moves, without a request more."""

from __future__ import annotations

import pytest

from reconciler.features.pods.coming import NOBODY, ComingPod, Foreseen, foreseen
from reconciler.features.pods.feature import NAME
from reconciler.model.explanation import Moves
from reconciler.model.plan import Plan
from reconciler.model.unguarded import Unguarded, UnguardedWhy
from reconciler.model.values import replace
from reconciler.passes.plugin import Fleet
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.features.pods.test_tonight import fleet
from tests.report.explaining import Explained
from tests.support import builders
from tests.support.worlds import carry_on, look

PUBLISHES = "pods: {publish: true}"


def planned(world: World, settings: str = PUBLISHES) -> Plan:
    """The plan of a second pass: the first one has no time to read pods where a drain has to begin."""
    look(world, builders.settings(settings))
    world.advance(builders.minutes(1))
    plan, _ = look(world, builders.settings(settings))
    return plan


def known(plan: Plan) -> dict[str, tuple[ComingPod, ...] | None]:
    parts = {node.node: node.of_features.get(NAME) for node in plan.nodes}
    return {name: part.pods for name, part in parts.items() if isinstance(part, Foreseen)}


def rows(plan: Plan, node: str) -> list[tuple[str, Moves]]:
    return [(pod.pod, pod.answer) for pod in known(plan)[node] or ()]


def test_a_pass_knows_the_pods_on_the_nodes_of_this_night_and_whether_they_can_move() -> None:
    plan = planned(fleet())

    assert rows(plan, "night") == [
        ("shop/ledger", Moves.BLOCKED),
        ("shop/web-2", Moves.MOVES),
        ("team/etl", Moves.MOVES),
    ]
    assert known(plan).keys() == {"night"}


@pytest.mark.parametrize("settings", ["", "mode: Observe\npods: {publish: true}"], ids=["off", "Observe"])
def test_without_the_setting_and_in_mode_observe_a_plan_says_nothing_of_pods(settings: str) -> None:
    assert known(planned(fleet(), settings)) == {}


def requests(settings: str) -> list[str]:
    world, calls = fleet(), list[str]()

    def note(call: Call) -> None:
        calls.append(call.what)

    world.api.before_read = note
    planned(world, settings)
    carry_on(world)
    planned(world, settings)
    return calls


def test_it_costs_no_read_more() -> None:
    assert requests(PUBLISHES) == requests("")


def test_a_start_that_may_be_now_is_no_moment_that_goes_on() -> None:
    explained = Explained(fleet(), PUBLISHES)

    assert [(pod.pod, pod.start) for pod in known(explained.found.plan)["now"] or ()] == [
        ("shop/web-1", None)
    ]


def test_an_owner_reads_nothing_of_what_people_and_other_namespaces_do() -> None:
    explained = Explained(fleet(), PUBLISHES)
    found, secret = explained.found, "team acme holds it"
    told = Unguarded(UnguardedWhy.HELD_BY_PERSON, secret, secret)
    plans = tuple(
        replace(plan, unguarded=told, schedule=plan.schedule and replace(plan.schedule, because=secret))
        for plan in found.plan.nodes
    )
    nodes = {node.name: node for node in found.snapshot.nodes}
    said = foreseen(Fleet(plans, nodes, explained.settings, found.plan.now, found.snapshot))

    assert NOBODY in str(said)
    assert "acme" not in str(said)
