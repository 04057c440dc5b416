"""A short exploration, and its parts: histories are drawn, checked, shrunk and printed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from reconciler.drain.drainer.node_drain import NodeDrain
from reconciler.model.outcome import Outcome, Result
from reconciler.model.pod import Pod
from reconciler.model.ports import WritableOutside
from reconciler.model.values import replace
from reconciler.passes import decide
from reconciler.profiles import case
from reconciler.starts import budget
from tests.explore import exploring
from tests.explore.choices import draw
from tests.explore.exploring import Sum, as_test, broken_law, explore, smallest
from tests.explore.history import MOVES, History, Scene, Step
from tests.explore.removed import (
    ACTING,
    ASKS,
    LONG,
    REBOOT,
    SAYS_NOTHING,
    WAITS_A_DAY,
    Removed,
    finds,
    played,
)
from tests.support.of_features import from_tests

TWO_ASK = History(
    Scene(3, settings=ACTING, pods=("slow",)),
    (
        Step("nothing", then=5),
        Step("request", value="Reboot", then=1),
        Step("nothing"),
        Step("request", on=1, value="Reboot", then=10),
        Step("dry run", then=60),
    ),
)


def test_a_seed_always_draws_the_same_history() -> None:
    assert draw(7) == draw(7)
    assert draw(7) != draw(8)


def test_every_move_is_drawn() -> None:
    drawn = {step.what for seed in range(150) for step in draw(seed).steps}

    assert drawn == set(MOVES)


@pytest.mark.heavy
def test_ten_days_break_no_law_and_every_law_is_checked() -> None:
    total = Sum()
    for one in explore(5049, 10):
        total.add(one)

    assert [why for _, why in total.broken] == []
    assert total.days >= 10
    laws = [*"1234567", "12", "17", "18", "22", "people", "calm"]
    laws += [name for one in from_tests("explored", "LAWS") for name in one.counted]
    assert {law: total.checked[law] for law in laws if not total.checked[law]} == {}


@pytest.mark.heavy
def test_a_history_gives_the_same_result_again() -> None:
    first, second = exploring.play(draw(10)), exploring.play(draw(10))

    assert (first.passes, first.writes, first.checked) == (second.passes, second.writes, second.checked)


def _healthy(*seen: Any, **more: Any) -> case.CaseView:
    return replace(view(*seen, **more), unknown=())


def _gone(*seen: Any, **more: Any) -> case.CaseView:
    found = view(*seen, **more)
    return found if seen[0].drain is None or seen[0].drain.done is None else replace(found, present=())


def _ends_at_a_failure(works: Mapping[str, Callable[[], Any]]) -> Mapping[str, Any]:
    done: dict[str, Outcome] = {}
    for name, work in works.items():
        failed = next((each for each in done.values() if each.result is not Result.DONE), None)
        # It says of what it leaves out that it is done.
        done[name] = work() if failed is None else replace(failed, node=name, result=Result.DONE)
    return done


def _first_list_only(drain: NodeDrain, pods: tuple[Pod, ...], now: datetime) -> None:
    if not drain.pods.listed:
        see_pods(drain, pods, now)


view, see_pods = case.view, NodeDrain.see_pods
WITHDRAWN = played(REBOOT, Step("withdraw", then=60))
HELD = ("mode: Enforce", "budget: {maxUnavailable: 0}", "publish: [nodemaintenances]")
STRUCK = History(Scene(1, settings=HELD), (Step("vm event", value="Reboot in 5 by both", then=60),))


def _without_deferral(value: Any, **changes: Any) -> Any:
    return replace(value, **{key: new for key, new in changes.items() if key != "deferral"})


FOUND: dict[str, Removed] = {
    "an uncordon while a source can't be read, whatever the plan says": (
        "5",
        played(REBOOT, Step("request", value="nonsense", then=60)),
        {"reconciler.profiles.case.view": _healthy},
    ),
    "an uncordon without the settle time": (
        "6",
        WITHDRAWN,
        {"reconciler.profiles.situation.Situation.settles_until": None},
    ),
    "an uncordon while the event is reported": ("6", WITHDRAWN, {"reconciler.profiles.case.view": _gone}),
    "an uncordon during an upgrade": (
        "6",
        played(REBOOT, Step("upgrade", value="begins"), Step("withdraw", then=60)),
        {"reconciler.model.node.Node.in_upgrade": False},
    ),
    "a missed node that looks green": (
        "missed",
        STRUCK,
        {"reconciler.model.case_outcome.struck_by": lambda _: None},
    ),
    "a missed node of which nobody is told": (
        "missed",
        STRUCK,
        {"reconciler.passes.decide.facts.struck_by": lambda _: None},
    ),
    "a drain that waits for a lost message": (
        "17",
        played(Step("watches", value="lost"), LONG, nodes=2),
        {"reconciler.drain.drainer.node_drain.NodeDrain.see_pods": _first_list_only},
    ),
    "a tenant who holds the pods of others": (
        "18",
        played(Step("tenant", value="budget"), LONG, nodes=2, pods=("tenant",)),
        {"reconciler.model.pod.PodDisruptionBudget.covers": lambda *_: True},
    ),
    "a failed write that keeps others from theirs": (
        "13",
        History(
            Scene(2, settings=("mode: Enforce", "budget: {maxUnavailable: 100%}")),
            (Step("fault", value="403 at 1"), Step("wide event", value="Reboot in 15 by both")),
        ),
        {
            "reconciler.simulation.world.WritableOutside": partial(
                WritableOutside, side_by_side=_ends_at_a_failure
            )
        },
    ),
    "a drain that begins on a held node": ("people", played(Step("hold"), REBOOT), SAYS_NOTHING),
    "a drain that goes on after hold --now": (
        "people",
        # The pod under a budget is asked for again and again.
        played(
            Step("pod budget", value="0"),
            dataclasses.replace(REBOOT, then=1),
            Step("hold", value="now", then=10),
            pods=("budget",),
        ),
        {**SAYS_NOTHING, "reconciler.drain.drainer.node_drain.stopping_hold": lambda *_: ""},
    ),
    "a deferred drain that begins": (
        "people",
        played(Step("defer", value="60"), REBOOT),
        {"reconciler.profiles.instructed.replace": _without_deferral},
    ),
    "a pod that asks to finish and holds its node for ever": (
        "17",
        played(ASKS, LONG, pods=("tenant",), settings=("drain: {podsMayWait: 5m}",)),
        WAITS_A_DAY,
    ),
}


@pytest.mark.parametrize(("law", "history", "removed"), FOUND.values(), ids=FOUND)
def test_the_exploration_finds_the_rule_that_is_removed(
    monkeypatch: pytest.MonkeyPatch, law: str, history: History, removed: dict[str, Any]
) -> None:
    finds(monkeypatch, law, history, removed)


def test_a_broken_law_is_found_shrunk_and_printed_as_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget.DisruptionBudget, "refusals", lambda *_: ())
    monkeypatch.setattr(decide, "schedules", lambda *_: {})
    assert broken_law(TWO_ASK) == "3"

    small, why = smallest(TWO_ASK)

    assert "out of service" in why
    assert [step.what for step in small.steps] == ["request", "request"]
    assert small.scene.nodes == 2
    assert small.scene.pods == ()
    code = as_test(small, why)
    compile(code, "found", "exec")
    assert repr(small.steps[1]) in code
