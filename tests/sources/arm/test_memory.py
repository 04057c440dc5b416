"""ARM's answers in the ledger, and what is broken."""

from __future__ import annotations

import pytest

from reconciler.model.errors import LedgerUnreadable
from reconciler.model.machine import Scope
from reconciler.model.polling import Memory, ScopeAnswer
from reconciler.model.snapshot import Ledger
from reconciler.sources.arm.source import ArmPlans, Planned
from tests.support.builders import NOW, minutes

ARM = ArmPlans()
SET = Scope("sub", "mc_shop", "aks-np-vmss")
SINGLES = Scope("sub")
PLAN = Planned(True, NOW, NOW + minutes(60), NOW + minutes(60), NOW + minutes(120), "RetryLater")
MEMORY = Memory(
    (
        ScopeAnswer(SINGLES, NOW, NOW + minutes(5), problem="403 AuthorizationFailed"),
        ScopeAnswer(SET, NOW, NOW + minutes(15), (("1", PLAN), ("2", PLAN)), ("9",)),
    )
)


def test_what_is_written_is_read_back() -> None:
    assert ARM.kept.of(ARM.kept.put(Ledger(), MEMORY)) == MEMORY


@pytest.mark.parametrize("text", ["{", "[1]", "[{}]", "null", '"x"', '{"answers":[{"scope":1}]}'])
def test_a_memory_that_can_not_be_read_is_refused(text: str) -> None:
    with pytest.raises(LedgerUnreadable, match=ARM.name):
        ARM.kept.of(Ledger(parts={ARM.name: text}))
