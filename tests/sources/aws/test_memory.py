"""EC2's answers in the ledger, and what is broken."""

from __future__ import annotations

import json

import pytest

from reconciler.model.errors import LedgerUnreadable
from reconciler.model.polling import Memory, ScopeAnswer
from reconciler.model.snapshot import Ledger
from reconciler.sources.aws.source import Ec2Events, InstanceEvent
from tests.support.builders import NOW, minutes

EC2 = Ec2Events()
EVENT = InstanceEvent("instance-event-1", "system-reboot", "scheduled reboot", NOW, NOW + minutes(30))
MEMORY = Memory((ScopeAnswer("eu-west-1", NOW, NOW + minutes(5), (("i-0a", EVENT),)),))


def test_what_is_written_is_read_back() -> None:
    assert EC2.kept.of(EC2.kept.put(Ledger(), MEMORY)) == MEMORY


@pytest.mark.parametrize("text", ["{", "[1]", "[{}]", "null", '"x"', '{"answers":[{"scope":1}]}'])
def test_a_memory_that_can_not_be_read_is_refused(text: str) -> None:
    with pytest.raises(LedgerUnreadable, match=EC2.name):
        EC2.kept.of(Ledger(parts={EC2.name: text}))


def test_an_answer_that_counts_for_too_long_is_refused() -> None:
    answer = {"scope": "eu-west-1", "asked": "2026-11-21T12:00:00Z", "again": "9999-12-31T23:59:59Z"}
    with pytest.raises(LedgerUnreadable):
        EC2.kept.of(Ledger(parts={"aws": json.dumps({"answers": [answer]})}))
    near = {**answer, "again": "2026-11-21T12:30:00Z"}
    memory = EC2.kept.of(Ledger(parts={"aws": json.dumps({"answers": [near]})}))
    assert memory.of("eu-west-1") is not None
