"""Which pods keep Karpenter from finishing a deletion, by Karpenter's own rules."""

from __future__ import annotations

import pytest

from reconciler.features.machines.karpenter import stalls
from reconciler.model.pod import DO_NOT_DISRUPT, Owner, Placement, Pod, PodDisruptionBudget, Toleration
from reconciler.model.selector import EVERYTHING
from reconciler.model.values import replace
from tests.support.builders import NOW, pod

KEPT = replace(pod("db-0"), annotations={DO_NOT_DISRUPT: "true"})
BUDGET = PodDisruptionBudget("shop", "db", EVERYTHING, allowed=0, desired=1, healthy=1, expected=1)


def tolerating(one: Pod, *tolerations: Toleration) -> Pod:
    return replace(one, placement=Placement(tolerations=tolerations))


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(KEPT, id="do-not-disrupt"),
        pytest.param(replace(KEPT, owner=Owner("DaemonSet", "db")), id="a DaemonSet's"),
        pytest.param(tolerating(KEPT, Toleration("other", "Exists")), id="tolerates another taint"),
        pytest.param(
            tolerating(KEPT, Toleration("karpenter.sh/disrupted", "Exists", effect="NoExecute")),
            id="tolerates another effect",
        ),
    ],
)
def test_a_pod_that_karpenter_never_evicts_stalls_the_deletion(one: Pod) -> None:
    assert stalls([one], []) == "pod shop/db-0 has karpenter.sh/do-not-disrupt"


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(replace(KEPT, annotations={DO_NOT_DISRUPT: "false"}), id="it may be disrupted"),
        pytest.param(replace(KEPT, phase="Succeeded"), id="finished"),
        pytest.param(replace(KEPT, deleting_until=NOW), id="it goes already"),
        pytest.param(replace(KEPT, owner=Owner("Node", "a")), id="a static pod"),
        pytest.param(tolerating(KEPT, Toleration(operator="Exists")), id="tolerates everything"),
        pytest.param(
            tolerating(KEPT, Toleration("karpenter.sh/disrupted", effect="NoSchedule")),
            id="tolerates the taint",
        ),
    ],
)
def test_a_pod_that_karpenter_does_not_wait_for_stalls_nothing(one: Pod) -> None:
    assert stalls([one], []) == ""


@pytest.mark.parametrize(
    ("budgets", "words"),
    [
        pytest.param([BUDGET], "can't be evicted now because of PodDisruptionBudget shop/db", id="blocks"),
        pytest.param([replace(BUDGET, allowed=1)], "", id="allows one"),
        pytest.param([replace(BUDGET, namespace="other")], "", id="of another namespace"),
        pytest.param(
            [replace(BUDGET, allowed=1), replace(BUDGET, name="db2", allowed=1)],
            "is selected by several PodDisruptionBudgets (shop/db, shop/db2)",
            id="two budgets",
        ),
    ],
)
def test_a_budget_that_refuses_stalls_the_deletion(budgets: list[PodDisruptionBudget], words: str) -> None:
    found = stalls([pod("db-0")], budgets)

    assert found == (f"pod shop/db-0 {words}" if words else "")


def test_many_pods_are_named_in_a_few_words() -> None:
    many = [replace(KEPT, name=f"db-{number}") for number in range(5)]

    assert stalls(many, []).endswith("pod shop/db-2 has karpenter.sh/do-not-disrupt, and 2 more")
