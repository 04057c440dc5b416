"""The ledger as its ConfigMap's data: what goes in comes out, and what is broken."""

from __future__ import annotations

import logging

import pytest

from reconciler.kubernetes.ledger import from_data, to_data
from reconciler.model.errors import SourceError
from reconciler.model.polling import AnyMemory, Memory, ScopeAnswer
from reconciler.model.snapshot import Ledger, Replaced
from tests.support.builders import NOW, minutes


class Form:
    """The memory of a source that asks one scope and knows no facts: a text is the name of the scope."""

    def __init__(self, name: str) -> None:
        self.name = name

    def dump(self, memory: AnyMemory, /) -> str:
        return "".join(one.scope for one in memory.answers)

    def load(self, text: str, /) -> AnyMemory:
        if text == "broken":
            raise SourceError(f"the last answer of {self.name} can't be read")
        return memory(text) if text else Memory()


def memory(scope: str) -> AnyMemory:
    return Memory((ScopeAnswer(scope, NOW, NOW + minutes(5)),))


FORMS = (Form("racks"), Form("halls"))
LEDGER = Ledger(
    last_start=NOW,
    memories={"racks": memory("r1"), "halls": memory("h1")},
    replaced=(Replaced("a", "uid-a", "1", "np", 3, NOW),),
)
DATA = {
    "lastStart": "2026-11-21T12:00:00Z",
    "racks": "r1",
    "halls": "h1",
    "replaced": '[{"at":"2026-11-21T12:00:00Z","have":3,"node":"a","pool":"np","uid":"uid-a","zone":"1"}]',
}


def test_what_is_written_is_read_back() -> None:
    assert from_data(to_data(LEDGER, {}, FORMS), FORMS) == LEDGER
    assert from_data(DATA, FORMS) == LEDGER


def test_which_publishers_may_have_objects_is_read_back_and_what_is_strange_there_is_limited() -> None:
    ledger = Ledger(signs=("another", "nodemaintenances"))

    assert from_data(to_data(ledger, {}, FORMS), FORMS) == ledger
    assert to_data(Ledger(), {"published": "nodemaintenances"}, FORMS) == {"published": ""}
    assert len(from_data({"published": "x," * 10**6}, FORMS).signs) <= 10


def test_an_empty_ledger_writes_no_key_that_was_not_there() -> None:
    assert to_data(Ledger(), {}, FORMS) == {}
    assert to_data(Ledger(), {"racks": "x", "other": "stays"}, FORMS) == {"racks": ""}


@pytest.mark.parametrize(("source", "other"), [("racks", "halls"), ("halls", "racks")])
def test_a_memory_that_can_not_be_read_is_dropped_with_a_warning_and_nothing_else_is(
    source: str, other: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        found = from_data({**DATA, source: "broken"}, FORMS)

    assert found.memories == {other: LEDGER.memories[other]}
    assert (found.last_start, found.replaced) == (LEDGER.last_start, LEDGER.replaced)
    assert any(source in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    "text", ["soon", "9999-12-31T23:59:59Z", "2026-11-21T12:00:00", "\ud800", "9" * 5000]
)
def test_a_last_start_that_can_not_be_read_is_reported_and_kept(text: str) -> None:
    found = from_data({**DATA, "lastStart": text}, FORMS)
    assert found.last_start is None
    assert found.unread
    assert found.replaced == LEDGER.replaced
    assert "lastStart" not in to_data(found, {"lastStart": text}, FORMS)
