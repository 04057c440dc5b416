"""The lists of nodes in the ledger: what goes in comes out, and a broken text harms no pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kubernetes.ledger import REPLACED, UNDONE, from_data, to_data
from reconciler.model.snapshot import Ledger, Replaced, Undone
from tests.support.builders import NOW, minutes

texts = st.text(min_size=1, max_size=12)
moments = st.integers(0, 99).map(lambda m: NOW - minutes(m))
replaced = st.builds(Replaced, texts, texts, texts, texts, st.integers(0, 9), moments)
undone = st.builds(Undone, texts, texts, st.tuples(texts), texts, st.integers(0, 9), moments)


@given(st.lists(replaced, max_size=4), st.lists(undone, max_size=4))
def test_what_goes_in_comes_out(replaced: list[Replaced], undone: list[Undone]) -> None:
    undone.sort(key=lambda one: one.node)
    ledger = Ledger(replaced=tuple(replaced), undone=tuple(undone))

    assert from_data(to_data(ledger, {})) == ledger


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"node":"a"}]', '{"a":1}', "null", "1"])
def test_a_text_that_can_t_be_read_is_an_empty_list(text: str) -> None:
    assert from_data({REPLACED: text, UNDONE: text}) == Ledger()
