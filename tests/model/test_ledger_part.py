"""A plugin's part of the ledger: what is read, what is written, and what is broken."""

from __future__ import annotations

import pytest

from reconciler.model.errors import LedgerUnreadable
from reconciler.model.snapshot import Ledger, LedgerPart
from reconciler.model.values import code_of

LIFTS: LedgerPart[int] = LedgerPart("crane", code_of(int), 0, "lifts are counted again", most=3)
FULL = Ledger(parts={"crane": "3", "hoist": "x"})


def test_what_is_put_is_read_and_changes_nothing_else() -> None:
    after = LIFTS.put(FULL, 4)

    assert LIFTS.of(after) == 4
    assert after.new_parts == {"crane": "4"}
    # Another process has written its part since this one has read it.
    assert after.merged(Ledger(parts={"crane": "3", "hoist": "y"})).parts == {"crane": "4", "hoist": "y"}


def test_what_is_empty_is_removed() -> None:
    after = LIFTS.put(FULL, 0)

    assert LIFTS.of(after) == 0
    assert after.merged(FULL) == Ledger(parts={"hoist": "x"})


def test_what_is_there_already_is_not_written_in_another_form() -> None:
    ledger = Ledger(parts={"crane": " 3"})

    assert LIFTS.put(ledger, 3) == ledger
    assert LIFTS.put(Ledger(), 0) == Ledger()


@pytest.mark.parametrize("text", ["{", '"x"', "[]", "null", "1000", "\ud800"])
def test_a_part_that_can_t_be_read_says_so_and_is_replaced_only_by_a_value(text: str) -> None:
    ledger = Ledger(parts={"crane": text})

    with pytest.raises(LedgerUnreadable, match="`crane` of the ledger can't be read"):
        LIFTS.of(ledger)
    value, (note,) = LIFTS.known(ledger)
    assert value == 0
    assert note.endswith("; lifts are counted again, and what is known then replaces it")
    assert ledger.merged(ledger) == ledger
    assert LIFTS.put(ledger, 5).merged(ledger) == Ledger(parts={"crane": "5"})


def test_a_part_that_can_t_be_read_may_mean_another_value_than_none() -> None:
    part = LedgerPart("crane", code_of(int), 0, "lifts are counted again", unread=9)

    assert part.known(Ledger(parts={"crane": "?"}))[0] == 9
    assert part.known(Ledger())[0] == 0


def test_a_value_that_is_too_large_is_not_kept() -> None:
    with pytest.raises(LedgerUnreadable, match="longer than 3 characters"):
        LIFTS.put(FULL, 1000)
