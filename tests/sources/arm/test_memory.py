"""ARM's answers in the ledger: today's form, the form that came before it, and what is broken."""

from __future__ import annotations

import json

import pytest

from reconciler.model.errors import SourceError
from reconciler.model.machine import Scope
from reconciler.model.polling import Memory, ScopeAnswer
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
# Written by the version before polled sources had one form.
OLD = (
    '{"answers":[{"again":"2026-11-21T12:05:00Z","asked":"2026-11-21T12:00:00Z",'
    '"problem":"403 AuthorizationFailed","scope":["sub","",""]},'
    '{"again":"2026-11-21T12:15:00Z","asked":"2026-11-21T12:00:00Z","planned":['
    '{"end":"2026-11-21T14:00:00Z","offerEnd":"2026-11-21T13:00:00Z","offerStart":"2026-11-21T12:00:00Z",'
    '"offered":true,"result":"RetryLater","start":"2026-11-21T13:00:00Z","vms":["1","2"]}],'
    '"scope":["sub","mc_shop","aks-np-vmss"],"unseen":["9"]}],"notBefore":"2026-11-21T12:20:00Z"}'
)


def test_what_is_written_is_read_back() -> None:
    assert ARM.load(ARM.dump(MEMORY)) == MEMORY


def test_the_old_form_is_read_as_what_it_meant_and_gives_way_to_the_new_one() -> None:
    assert ARM.load(OLD) == MEMORY
    assert json.loads(ARM.dump(ARM.load(OLD)))["answers"][-1]["found"][0]["of"][0] == "1"


@pytest.mark.parametrize("text", ["{", "[1]", "[{}]", "null", '"x"', '{"answers":[{"scope":1}]}'])
def test_a_memory_that_can_not_be_read_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match=ARM.name):
        ARM.load(text)
