"""othersFirst, by whether it is our own node, and by the other nodes that wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.plan import Verdict
from tests.support.builders import ask, situation


@pytest.mark.parametrize(
    ("own", "waiting", "verdict"),
    [(False, 3, Verdict.PASSED), (True, 0, Verdict.PASSED), (True, 1, Verdict.FAILED)],
)
def test_only_our_own_node_waits_for_the_others(own: bool, waiting: int, verdict: Verdict) -> None:
    assert ask("othersFirst", replace(situation(), own_node=own, waiting_nodes=waiting)).verdict is verdict
