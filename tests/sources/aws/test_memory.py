"""EC2's answers in the ledger: today's form, the form that came before it, and what is broken."""

from __future__ import annotations

import json

import pytest

from reconciler.model.errors import SourceError
from reconciler.model.polling import Memory, ScopeAnswer
from reconciler.sources.aws.source import Ec2Events, InstanceEvent
from tests.support.builders import NOW, minutes

EC2 = Ec2Events()
EVENT = InstanceEvent("instance-event-1", "system-reboot", "scheduled reboot", NOW, NOW + minutes(30))
MEMORY = Memory((ScopeAnswer("eu-west-1", NOW, NOW + minutes(5), (("i-0a", EVENT),)),))
# Written by the version before polled sources had one form.
OLD = (
    '[{"again":"2026-11-21T12:05:00Z","asked":"2026-11-21T12:00:00Z","events":['
    '{"code":"system-reboot","description":"scheduled reboot","id":"instance-event-1",'
    '"instance":"i-0a","notAfter":"2026-11-21T12:30:00Z","notBefore":"2026-11-21T12:00:00Z"}],'
    '"region":"eu-west-1"}]'
)


def test_what_is_written_is_read_back() -> None:
    assert EC2.load(EC2.dump(MEMORY)) == MEMORY


def test_the_old_form_is_read_as_what_it_meant_and_gives_way_to_the_new_one() -> None:
    assert EC2.load(OLD) == MEMORY
    assert json.loads(EC2.dump(EC2.load(OLD)))["answers"][-1]["found"][0]["of"][0] == "i-0a"


@pytest.mark.parametrize("text", ["{", "[1]", "[{}]", "null", '"x"', '{"answers":[{"scope":1}]}'])
def test_a_memory_that_can_not_be_read_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match=EC2.name):
        EC2.load(text)


def test_an_answer_that_counts_for_too_long_is_refused() -> None:
    answer = {"scope": "eu-west-1", "asked": "2026-11-21T12:00:00Z", "again": "9999-12-31T23:59:59Z"}
    with pytest.raises(SourceError):
        EC2.load(json.dumps({"answers": [answer]}))
    near = {**answer, "again": "2026-11-21T12:30:00Z"}
    assert EC2.load(json.dumps({"answers": [near]})).of("eu-west-1") is not None
