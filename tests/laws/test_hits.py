"""The counter of hits: what never ran fails, and each run begins at nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.hits import Hits


@pytest.fixture(autouse=True)
def a_whole_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick run demands nothing."""
    monkeypatch.delenv("LAWS_PROFILE", raising=False)


def a_property(hits: Hits, least: int, from_number: int) -> None:
    """Hold a property over ten numbers whose core runs from one of them on."""

    @hits.at_least(least)
    @settings(max_examples=10, database=None)
    @given(st.integers(1, 1000))
    def holds(number: int) -> None:
        hits.count(number >= from_number)

    holds()


def test_a_property_whose_core_runs_often_enough_passes() -> None:
    hits = Hits()
    a_property(hits, 5, from_number=1)

    assert hits.found >= 5


def test_a_property_whose_core_never_runs_fails() -> None:
    with pytest.raises(AssertionError, match="ran 0 times, not 1"):
        a_property(Hits(), 1, from_number=1001)


def test_what_an_earlier_run_counted_does_not_help_the_next() -> None:
    hits = Hits()
    a_property(hits, 5, from_number=1)

    with pytest.raises(AssertionError):
        a_property(hits, 5, from_number=1001)
