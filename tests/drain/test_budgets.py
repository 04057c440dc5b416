"""Which budgets select a pod: the index has the same answer as a look at each budget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.drain.refusal import MOST_COVERING, BudgetIndex
from reconciler.model.pod import PodDisruptionBudget
from reconciler.model.selector import LabelSelector, Requirement
from reconciler.model.values import replace
from tests.support import builders

NAMES = st.sampled_from("ab")
REQUIREMENTS = st.builds(
    Requirement,
    NAMES,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(NAMES, max_size=2).map(tuple) | st.just(tuple("bcdefghijk")),
)
SELECTORS = st.none() | st.lists(REQUIREMENTS, max_size=3).map(lambda found: LabelSelector(tuple(found)))


@given(st.lists(st.tuples(NAMES, SELECTORS), max_size=8), NAMES, st.dictionaries(NAMES, NAMES))
def test_the_index_finds_what_a_look_at_each_budget_finds(
    shapes: list[tuple[str, LabelSelector | None]], namespace: str, labels: dict[str, str]
) -> None:
    budgets = [
        PodDisruptionBudget(where, f"b{number}", selector) for number, (where, selector) in enumerate(shapes)
    ]
    pod = replace(builders.pod(namespace=namespace), labels=labels)

    assert [*BudgetIndex(budgets).covering(pod)] == [one for one in budgets if one.covers(pod)]


def test_of_very_many_budgets_of_a_pod_some_are_found() -> None:
    every = LabelSelector(())
    budgets = [PodDisruptionBudget("shop", f"b{number}", every) for number in range(1000)]

    assert len(BudgetIndex(budgets).covering(builders.pod())) == MOST_COVERING
