"""A short exploration, and its parts: histories are drawn, checked, shrunk and printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.drain.drainer.node_drain import NodeDrain
from reconciler.model import case_outcome
from reconciler.model.node import Node
from reconciler.model.outcome import Outcome, Result
from reconciler.model.pod import PodDisruptionBudget
from reconciler.model.values import replace
from reconciler.passes import act, decide
from reconciler.passes.decide import facts
from reconciler.profiles import budget, case, situation
from tests.explore import exploring
from tests.explore.choices import draw
from tests.explore.exploring import Sum, as_test, broken_law, explore, smallest
from tests.explore.history import MOVES, History, Scene, Step

ACTING = ("mode: Enforce", "budget: {maxUnavailable: 1}")
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
    laws = (*"1234567", "12", "17", "18", "19", "22", "17 hooks", "people", "calm")
    assert {law: total.checked[law] for law in laws if not total.checked[law]} == {}


@pytest.mark.heavy
def test_a_history_gives_the_same_result_again() -> None:
    first, second = exploring.play(draw(10)), exploring.play(draw(10))

    assert (first.passes, first.writes, first.checked) == (second.passes, second.writes, second.checked)


UNREADABLE = History(
    Scene(1, settings=ACTING),
    (Step("request", value="Reboot", then=5), Step("request", value="nonsense", then=60)),
)


def test_an_uncordon_while_a_source_can_not_be_read_is_found_whatever_the_plan_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = case.view

    def healthy(*seen: Any, **more: Any) -> case.CaseView:
        return replace(view(*seen, **more), unknown=())

    assert broken_law(UNREADABLE) == ""
    monkeypatch.setattr(case, "view", healthy)

    assert broken_law(UNREADABLE) == "5"


WITHDRAWN = History(
    Scene(1, settings=ACTING), (Step("request", value="Reboot", then=5), Step("withdraw", then=60))
)


def test_an_uncordon_without_the_settle_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken_law(WITHDRAWN) == ""
    monkeypatch.setattr(situation.Situation, "settles_until", None)

    assert broken_law(WITHDRAWN) == "6"


def test_an_uncordon_while_the_event_is_reported_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    view = case.view

    def gone(*seen: Any, **more: Any) -> case.CaseView:
        found = view(*seen, **more)
        return found if seen[0].drain is None or seen[0].drain.done is None else replace(found, present=())

    monkeypatch.setattr(case, "view", gone)

    assert broken_law(WITHDRAWN) == "6"


def test_an_uncordon_during_an_upgrade_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (
        Step("request", value="Reboot", then=5),
        Step("upgrade", value="begins"),
        Step("withdraw", then=60),
    )
    history = History(Scene(1, settings=ACTING), steps)
    assert broken_law(history) == ""
    monkeypatch.setattr(Node, "in_upgrade", False)

    assert broken_law(history) == "6"


HELD = ("mode: Enforce", "budget: {maxUnavailable: 0}", "publish: [nodemaintenances]")
STRUCK = History(Scene(1, settings=HELD), (Step("vm event", value="Reboot in 5 by both", then=60),))


def test_a_missed_node_that_looks_green_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken_law(STRUCK) == ""
    monkeypatch.setattr(case_outcome, "struck_by", lambda _: None)

    assert broken_law(STRUCK) == "missed"


def test_a_missed_node_of_which_nobody_is_told_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_warnings", lambda *_: iter(()))

    assert broken_law(STRUCK) == "missed"


LOST = History(
    Scene(2, settings=ACTING), (Step("watches", value="lost"), Step("request", value="Reboot", then=60))
)


def test_a_drain_that_waits_for_a_lost_message_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken_law(LOST) == ""
    monkeypatch.setattr(NodeDrain, "_reread", lambda *_: iter(()))

    assert broken_law(LOST) == "17"


TENANT = History(
    Scene(2, settings=ACTING, pods=("tenant",)),
    (Step("tenant", value="budget"), Step("request", value="Reboot", then=60)),
)


def test_a_tenant_who_holds_the_pods_of_others_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken_law(TENANT) == ""
    monkeypatch.setattr(PodDisruptionBudget, "covers", lambda *_: True)

    assert broken_law(TENANT) == "18"


REFUSED = History(
    Scene(2, settings=("mode: Enforce", "budget: {maxUnavailable: 100%}")),
    (Step("fault", value="403 at 1"), Step("wide event", value="Reboot in 15 by both")),
)


def test_a_failed_write_that_keeps_others_from_theirs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    write_nodes = act._write_nodes

    def ends(*seen: Any) -> Iterator[Outcome]:
        for found in write_nodes(*seen):
            yield found
            if found.result is not Result.DONE:
                return

    assert broken_law(REFUSED) == ""
    monkeypatch.setattr(act, "_write_nodes", ends)

    assert broken_law(REFUSED) == "13"


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
