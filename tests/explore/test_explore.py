"""A short exploration, and its parts: histories are drawn, checked, shrunk and printed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler import decide
from reconciler.engine import budget, case, situation
from tests.explore import exploring
from tests.explore.exploring import Sum, as_test, broken_law, explore, smallest
from tests.explore.generator import draw
from tests.explore.history import History, Scene, Step
from tests.explore.moves import MOVES

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


def test_ten_days_break_no_law_and_every_law_is_checked() -> None:
    total = Sum()
    for one in explore(5000, 10):
        total.add(one)

    assert [why for _, why in total.broken] == []
    assert total.days >= 10
    laws = ("1", "2", "3", "4", "5", "6", "7", "12", "calm")
    assert {law: total.checked[law] for law in laws if not total.checked[law]} == {}


def test_a_history_gives_the_same_result_again() -> None:
    first, second = exploring.play(draw(11)), exploring.play(draw(11))

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
