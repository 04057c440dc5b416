"""uncordonedByOthers, by the cordon."""

from __future__ import annotations

import pytest

from reconciler.model.plan import Verdict
from tests.support.builders import ask, node, situation


@pytest.mark.parametrize(("cordoned", "verdict"), [(True, Verdict.FAILED), (False, Verdict.PASSED)])
def test_a_node_in_maintenance_without_a_cordon_was_uncordoned_by_a_person(
    cordoned: bool, verdict: Verdict
) -> None:
    answer = ask("uncordonedByOthers", situation(node(unschedulable=cordoned)))

    assert (answer.verdict, answer.holds) == (verdict, False)
