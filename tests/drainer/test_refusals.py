"""What each answer to an eviction means, with the wording of API servers old and new."""

from __future__ import annotations

import pytest

from reconciler.drainer.refusals import EvictionRefusal, RefusalMeaning, read_refusal
from reconciler.errors import TooManyRequests
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.selector import EVERYTHING

POD = Pod("shop", "web", "u", "n")
WEB = PodDisruptionBudget("shop", "web", EVERYTHING, desired=3, healthy=3)
DB = PodDisruptionBudget("shop", "db", EVERYTHING, desired=2, healthy=1)
VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."


def _refused(text: str, *causes: str, wait: float | None = None) -> TooManyRequests:
    return TooManyRequests(text, status=429, causes=causes, retry_after=wait)


@pytest.mark.parametrize(
    ("error", "budgets", "means"),
    [
        pytest.param(
            _refused(VIOLATES, "The disruption budget web needs 3 healthy pods and has 3 currently"),
            (),
            EvictionRefusal(
                RefusalMeaning.BUDGET, "waits for PDB shop/web: needs 3 healthy, has 3", "shop/web"
            ),
            id="the server names the budget and its numbers",
        ),
        pytest.param(
            _refused(VIOLATES, wait=10.0),
            (WEB,),
            EvictionRefusal(
                RefusalMeaning.BUDGET, "waits for PDB shop/web: needs 3 healthy, has 3", "shop/web", 10.0
            ),
            id="the server names none, and one budget selects the pod",
        ),
        pytest.param(
            _refused(VIOLATES, "db"),
            (WEB, DB),
            EvictionRefusal(
                RefusalMeaning.BUDGET, "waits for PDB shop/db: needs 2 healthy, has 1", "shop/db"
            ),
            id="the server names one of two budgets",
        ),
        pytest.param(
            _refused(VIOLATES),
            (WEB, DB),
            EvictionRefusal(RefusalMeaning.BUDGET, f"refused by a PDB: {VIOLATES}"),
            id="the server names none of two budgets",
        ),
        pytest.param(
            _refused(VIOLATES, wait=4.0),
            (),
            EvictionRefusal(RefusalMeaning.BUDGET, f"refused by a PDB: {VIOLATES}", wait=4.0),
            id="the budgets are not known",
        ),
        pytest.param(
            _refused("too many requests", wait=1.0),
            (WEB,),
            EvictionRefusal(RefusalMeaning.LATER, "the API server is busy: too many requests", wait=1.0),
            id="no budget is meant",
        ),
    ],
)
def test_a_429_is_read_with_and_without_the_name_of_a_budget(
    error: TooManyRequests, budgets: tuple[PodDisruptionBudget, ...], means: EvictionRefusal
) -> None:
    assert read_refusal(error, POD, budgets) == means
