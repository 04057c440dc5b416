"""How much work it is to know the budgets of pods, counted in matches of a budget with a pod."""

from __future__ import annotations

import pytest

from reconciler.drain.drainer import shared
from reconciler.drain.drainer.shared import PdbTracker
from reconciler.drain.refusal import MOST_COVERING
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import BudgetGone, Listed
from reconciler.model.selector import Requirement
from reconciler.model.values import replace
from tests.drain.drainer.driving import CountedSelector


def _budget(namespace: str, name: str, *apps: str) -> PodDisruptionBudget:
    return PodDisruptionBudget(namespace, name, CountedSelector((Requirement("app", "In", apps),)))


def _pods(namespace: str, count: int) -> list[Pod]:
    return [
        Pod(namespace, f"web-{number}", f"{namespace}-{number}", "a", {"app": "web"}, phase="Running")
        for number in range(count)
    ]


EVIL = [_budget("evil", f"b-{number}", "other") for number in range(300)]


def _tracker() -> PdbTracker:
    tracker = PdbTracker()
    for budget in (*EVIL, _budget("rich", "web", "web"), _budget("rich", "api", "api")):
        tracker.see(budget)
    tracker.see(Listed())
    return tracker


def _matches() -> int:
    return CountedSelector.taken()


def test_a_budget_that_changes_is_matched_with_the_pods_of_its_namespace_alone() -> None:
    tracker, rich, evil = _tracker(), _pods("rich", 60), _pods("evil", 5)
    _matches()
    for pod in (*rich, *evil):
        tracker.covering(pod)
    assert _matches() == 60 * 2 + 5 * len(EVIL)

    for number, budget in enumerate(EVIL):
        tracker.see(replace(budget, selector=CountedSelector((Requirement("app", "In", (f"v-{number}",)),))))
        for pod in (*rich, *evil):
            tracker.covering(pod)

    assert _matches() == 5 * len(EVIL)


def test_a_status_that_changes_is_no_match() -> None:
    tracker, pods = _tracker(), _pods("rich", 60)
    for pod in pods:
        tracker.covering(pod)
    _matches()
    for allowed in range(50):
        tracker.see(replace(_budget("rich", "web", "web"), allowed=allowed))
        assert {tracker.covering(pod)[0].allowed for pod in pods} == {allowed}

    assert _matches() == 0


def test_what_is_known_of_a_pod_follows_the_budgets() -> None:
    tracker, (pod,) = _tracker(), _pods("rich", 1)

    def covering() -> list[str]:
        return sorted(budget.name for budget in tracker.covering(pod))

    assert covering() == ["web"]
    tracker.see(_budget("rich", "api", "api", "web"))
    assert covering() == ["api", "web"]
    tracker.see(_budget("rich", "web", "api"))
    assert covering() == ["api"]
    tracker.see(BudgetGone("rich/api"))
    assert covering() == []
    tracker.see(_budget("rich", "new", "web"))
    assert covering() == ["new"]
    pod = replace(pod, labels={"app": "api"})
    assert covering() == ["web"]


def test_of_very_many_budgets_of_a_pod_some_are_enough() -> None:
    tracker, (pod,) = _tracker(), _pods("evil", 1)
    for number in range(100):
        tracker.see(_budget("evil", f"all-{number}", "web"))

    assert len(tracker.covering(pod)) == MOST_COVERING


def test_a_limited_number_of_pods_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "REMEMBERED", 10)
    tracker, pods = _tracker(), _pods("rich", 40)
    for pod in pods:
        assert len(tracker.covering(pod)) == 1
    _matches()
    tracker.see(_budget("rich", "web", "web", "more"))

    assert _matches() <= 10
