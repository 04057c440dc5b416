"""Which nodes were replaced, as text in our ConfigMap: what goes in comes out, and nothing breaks a pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kubernetes.replaced_memory import dump, load
from reconciler.model.snapshot import Replaced
from tests.support.builders import NOW, minutes

texts = st.text(min_size=1, max_size=12)
entries = st.builds(
    Replaced,
    texts,
    texts,
    texts,
    texts,
    st.integers(0, 9),
    st.integers(0, 99).map(lambda m: NOW - minutes(m)),
)


@given(st.lists(entries, max_size=4).map(tuple))
def test_what_goes_in_comes_out(replaced: tuple[Replaced, ...]) -> None:
    assert load(dump(replaced)) == replaced


@pytest.mark.parametrize("text", ["", None, "{", "[1]", '[{"node":"a"}]', '{"a":1}', "null"])
def test_a_text_that_can_t_be_read_is_taken_for_none(text: str | None) -> None:
    assert load(text) == ()
