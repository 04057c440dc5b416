"""What the ledger keeps of calendars: what goes in comes out, and a broken text harms no pass."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.calendars.feature import IN_LEDGER, KeptCalendar, kept_calendars
from reconciler.model.content import CalendarPlace, CalendarText
from reconciler.model.snapshot import Ledger
from tests.support.builders import NOW, minutes

texts = st.text(min_size=1, max_size=12)
moments = st.integers(0, 99).map(lambda m: NOW - minutes(m))
calendars = st.builds(KeptCalendar, texts, texts, texts, st.none() | moments)


@given(st.lists(calendars, max_size=3))
def test_what_goes_in_comes_out(calendars: list[KeptCalendar]) -> None:
    assert IN_LEDGER.of(IN_LEDGER.put(Ledger(), tuple(calendars))) == tuple(calendars)


@pytest.mark.parametrize("text", ["{", "[1]", '[{"name":"a"}]', '{"a":1}', "null", "1"])
def test_a_text_that_can_t_be_read_is_no_calendar_and_is_noted(text: str) -> None:
    kept, (note,) = IN_LEDGER.known(Ledger(parts={"calendars": text}))

    assert kept == ()
    assert note.endswith("; what calendars said before is not known, and what is known then replaces it")


def test_a_large_calendar_is_read_back_whole() -> None:
    text = f"- {{start: 2030-01-01, end: 2030-01-02, reason: {random.Random(1).randbytes(90_000).hex()}}}"
    kept = kept_calendars([CalendarPlace("c", path="/c")], {"c": CalendarText(text)})

    (read,) = IN_LEDGER.of(IN_LEDGER.put(Ledger(), kept))

    assert read.text == text


@pytest.mark.parametrize("content", ["", "?", "AAAA", "eJwDAA"])
def test_a_kept_calendar_that_can_t_be_read_is_none(content: str) -> None:
    with pytest.raises(ValueError, match="the kept content can't be read"):
        print(KeptCalendar("c", "p", content).text)
