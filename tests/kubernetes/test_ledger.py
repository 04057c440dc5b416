"""The ledger as its ConfigMap's data: what goes in comes out, and what is broken."""

from __future__ import annotations

import pytest

from reconciler.kubernetes import kept_records
from reconciler.kubernetes.ledger import from_data, to_data
from reconciler.model.event import Kind
from reconciler.model.snapshot import KEYS, Ledger, Replaced, Undone
from tests.support.builders import NOW, minutes

LEDGER = Ledger(
    last_start=NOW,
    parts={"racks": '["r1"]', "halls": "h1"},
    replaced=(Replaced("a", "uid-a", "1", "np", 3, NOW),),
)
DATA = {
    "lastStart": "2026-11-21T12:00:00Z",
    "racks": '["r1"]',
    "halls": "h1",
    "replaced": '[{"at":"2026-11-21T12:00:00Z","have":3,"node":"a","pool":"np","uid":"uid-a","zone":"1"}]',
}


def test_what_is_written_is_read_back() -> None:
    new = Ledger(last_start=NOW, new_parts=LEDGER.parts, replaced=LEDGER.replaced)

    assert to_data(new, {}) == DATA
    assert from_data(DATA) == LEDGER


def test_what_the_core_writes_is_no_part() -> None:
    full = Ledger(
        last_start=NOW,
        replaced=LEDGER.replaced,
        lasted={Kind.REBOOT: minutes(12)},
        undone=(Undone("a", "uid-a", ("cordon",), "denied", 1, NOW),),
    )
    written = {*to_data(full, {}), kept_records.KEPT, "holds", "endedHolds"}

    assert written == KEYS
    assert from_data(dict.fromkeys(KEYS, "")).parts == {}


def test_an_empty_ledger_writes_no_key_that_was_not_there() -> None:
    assert to_data(Ledger(), {}) == {}
    assert to_data(Ledger(), {"other": "stays"}) == {}
    assert to_data(Ledger(), {"undone": "[]", "other": "stays"}) == {}


def test_a_part_that_was_written_meanwhile_stays_unless_this_ledger_changes_it() -> None:
    read = from_data({"racks": "old", "halls": "old"})
    ours = Ledger(parts=read.parts, new_parts={"racks": "ours"})

    assert to_data(ours, {"racks": "theirs", "halls": "theirs"})["racks"] == "ours"
    assert to_data(ours, {"racks": "theirs", "halls": "theirs"}).get("halls", "theirs") == "theirs"
    assert to_data(Ledger(new_parts={"racks": ""}), {"racks": "theirs"}) == {"racks": ""}
    assert to_data(Ledger(new_parts={"racks": ""}), {}) == {}


@pytest.mark.parametrize(
    "text", ["soon", "9999-12-31T23:59:59Z", "2026-11-21T12:00:00", "\ud800", "9" * 5000]
)
def test_a_last_start_that_can_not_be_read_is_reported_and_kept(text: str) -> None:
    found = from_data({**DATA, "lastStart": text})
    assert found.last_start is None
    assert found.unread
    assert found.replaced == LEDGER.replaced
    assert "lastStart" not in to_data(found, {"lastStart": text})
