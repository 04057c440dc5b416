"""The ledger as its ConfigMap's data: today's form, the form that came before it, and what is broken."""

from __future__ import annotations

import json
import logging

import pytest

from reconciler.kubernetes.ledger import from_data, to_data
from reconciler.model.aws import InstanceEvent
from reconciler.model.azure import Planned, Scope
from reconciler.model.polling import Memory, ScopeAnswer
from reconciler.model.snapshot import Ledger, Replaced
from reconciler.run import PARTS
from tests.support.builders import NOW, minutes

SET = Scope("sub", "mc_shop", "aks-np-vmss")
SINGLES = Scope("sub")
PLAN = Planned(True, NOW, NOW + minutes(60), NOW + minutes(60), NOW + minutes(120), "RetryLater")
EVENT = InstanceEvent("instance-event-1", "system-reboot", "scheduled reboot", NOW, NOW + minutes(30))
LEDGER = Ledger(
    last_start=NOW,
    memories={
        "arm": Memory(
            (
                ScopeAnswer(SINGLES, NOW, NOW + minutes(5), problem="403 AuthorizationFailed"),
                ScopeAnswer(SET, NOW, NOW + minutes(15), (("1", PLAN), ("2", PLAN)), ("9",)),
            )
        ),
        "aws": Memory((ScopeAnswer("eu-west-1", NOW, NOW + minutes(5), (("i-0a", EVENT),)),)),
    },
    replaced=(Replaced("a", "uid-a", "1", "np", 3, NOW),),
)
# Written by the version before polled sources had one form.
OLD = {
    "lastStart": "2026-11-21T12:00:00Z",
    "arm": (
        '{"answers":[{"again":"2026-11-21T12:05:00Z","asked":"2026-11-21T12:00:00Z",'
        '"problem":"403 AuthorizationFailed","scope":["sub","",""]},'
        '{"again":"2026-11-21T12:15:00Z","asked":"2026-11-21T12:00:00Z","planned":['
        '{"end":"2026-11-21T14:00:00Z","offerEnd":"2026-11-21T13:00:00Z","offerStart":"2026-11-21T12:00:00Z",'
        '"offered":true,"result":"RetryLater","start":"2026-11-21T13:00:00Z","vms":["1","2"]}],'
        '"scope":["sub","mc_shop","aks-np-vmss"],"unseen":["9"]}],"notBefore":"2026-11-21T12:20:00Z"}'
    ),
    "aws": (
        '[{"again":"2026-11-21T12:05:00Z","asked":"2026-11-21T12:00:00Z","events":['
        '{"code":"system-reboot","description":"scheduled reboot","id":"instance-event-1",'
        '"instance":"i-0a","notAfter":"2026-11-21T12:30:00Z","notBefore":"2026-11-21T12:00:00Z"}],'
        '"region":"eu-west-1"}]'
    ),
    "replaced": '[{"at":"2026-11-21T12:00:00Z","have":3,"node":"a","pool":"np","uid":"uid-a","zone":"1"}]',
}


def test_what_is_written_is_read_back() -> None:
    assert from_data(to_data(LEDGER, {}, PARTS.sources.polled), PARTS.sources.polled) == LEDGER


def test_which_publishers_may_have_objects_is_read_back_and_what_is_strange_there_is_limited() -> None:
    ledger = Ledger(published=("another", "nodemaintenances"))

    assert from_data(to_data(ledger, {}, PARTS.sources.polled), PARTS.sources.polled) == ledger
    assert to_data(Ledger(), {"published": "nodemaintenances"}, PARTS.sources.polled) == {"published": ""}
    assert len(from_data({"published": "x," * 10**6}, PARTS.sources.polled).published) <= 10


def test_the_old_form_is_read_as_what_it_meant() -> None:
    assert from_data(OLD, PARTS.sources.polled) == LEDGER


def test_the_keys_stay_and_the_old_form_gives_way_to_the_new_one() -> None:
    written = to_data(LEDGER, OLD, PARTS.sources.polled)

    assert set(written) == set(OLD)
    assert {json.loads(written[key])["answers"][-1]["found"][0]["of"][0] for key in ("arm", "aws")} == {
        "1",
        "i-0a",
    }


def test_an_empty_ledger_writes_no_key_that_was_not_there() -> None:
    assert to_data(Ledger(), {}, PARTS.sources.polled) == {}
    assert to_data(Ledger(), {"aws": "x", "other": "stays"}, PARTS.sources.polled) == {"aws": ""}


@pytest.mark.parametrize("text", ["{", "[1]", "[{}]", "null", '"x"', '{"answers":[{"scope":1}]}'])
@pytest.mark.parametrize("source", ["arm", "aws"])
def test_a_memory_that_can_not_be_read_is_dropped_with_a_warning_and_nothing_else_is(
    source: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    other = "aws" if source == "arm" else "arm"
    with caplog.at_level(logging.WARNING):
        found = from_data({**OLD, source: text}, PARTS.sources.polled)

    assert found.memories == {other: LEDGER.memories[other]}
    assert (found.last_start, found.replaced) == (LEDGER.last_start, LEDGER.replaced)
    assert any(source in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    "text", ["soon", "9999-12-31T23:59:59Z", "2026-11-21T12:00:00", "\ud800", "9" * 5000]
)
def test_a_last_start_that_can_not_be_read_is_reported_and_kept(text: str) -> None:
    found = from_data({**OLD, "lastStart": text}, PARTS.sources.polled)
    assert found.last_start is None
    assert found.unread
    assert found.replaced == LEDGER.replaced
    assert "lastStart" not in to_data(found, {"lastStart": text}, PARTS.sources.polled)
