"""The arithmetic of disruption budgets, row by row as pkg/controller/disruption does it."""

from __future__ import annotations

import pytest

from reconciler.model.pod import Pod
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from reconciler.simulation.workloads import BudgetSpec, Workload, budget_status
from tests.simulation.building import START

WEB = Workload("shop", "web", replicas=7)


def pods(ready: int, unready: int = 0, leaving: int = 0) -> list[Pod]:
    """So many pods of one workload; those that leave are still ready."""
    made = [WEB.pod(number) for number in range(ready + unready + leaving)]
    return [
        replace(
            pod,
            ready=index < ready or index >= ready + unready,
            deleting_until=START if index >= ready + unready else None,
        )
        for index, pod in enumerate(made)
    ]


@pytest.mark.parametrize(
    ("limit", "there", "desired", "healthy", "allowed"),
    [
        pytest.param({"min_available": 3}, pods(4), 3, 4, 1, id="a number of available pods"),
        pytest.param({"min_available": 5}, pods(4), 5, 4, 0, id="never below zero"),
        pytest.param({"min_available": "50%"}, pods(7), 4, 7, 3, id="half of the 7 wanted is 4: rounded up"),
        pytest.param({"max_unavailable": 1}, pods(7), 6, 7, 1, id="one may be away"),
        pytest.param({"max_unavailable": "25%"}, pods(7), 5, 7, 2, id="a quarter of 7 is 2: rounded up"),
        pytest.param(
            {"max_unavailable": 1}, pods(6, 1), 6, 6, 0, id="the one that is unready is the one away"
        ),
        pytest.param(
            {"max_unavailable": 1}, pods(6, 0, 1), 6, 6, 0, id="who terminates is away, ready or not"
        ),
        pytest.param({"max_unavailable": 9}, pods(7), 0, 7, 7, id="more than there are"),
        pytest.param({"min_available": 0}, [], 0, 0, 0, id="nothing is covered, nothing is allowed"),
    ],
)
def test_a_budget_allows_what_the_disruption_controller_would(
    limit: dict[str, int | str], there: list[Pod], desired: int, healthy: int, allowed: int
) -> None:
    spec = BudgetSpec("shop", "web", LabelSelector.of({"app": "web"}), **limit)  # type: ignore[arg-type]  # one of two

    status = budget_status(spec, there, lambda _: (WEB.key, WEB.replicas))

    assert (status.desired, status.healthy, status.allowed) == (desired, healthy, allowed)


def test_pods_without_a_controller_count_for_a_number_but_want_nothing_for_a_percentage() -> None:
    number = BudgetSpec("shop", "web", LabelSelector.of({"app": "web"}), min_available=1)
    percent = replace(number, min_available="50%")

    assert budget_status(number, pods(2), lambda _: None).expected == 2
    assert budget_status(percent, pods(2), lambda _: None).allowed == 0


def test_a_budget_covers_its_own_namespace_only() -> None:
    spec = BudgetSpec("other", "web", LabelSelector.of({"app": "web"}), max_unavailable=1)

    assert budget_status(spec, pods(3), lambda _: (WEB.key, 3)).expected == 0


def test_names_are_the_same_every_time_and_differ_from_pod_to_pod() -> None:
    assert WEB.pod(1).name == WEB.pod(1).name != WEB.pod(2).name
    assert Workload("shop", "db", "StatefulSet").pod(7, ordinal=2).name == "db-2"
