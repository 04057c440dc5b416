"""Which differences of two looks are changes of what they have seen."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.runtime.looks import is_unchanged

EARLIER, NOW, LATER = (f"2026-11-21T12:00:{seconds}Z" for seconds in ("00", "10", "20"))


def look(at: str, said: object = "", **settings: object) -> dict[str, Any]:
    return {"at": at, "settings": settings or None, "said": said}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([LATER], [LATER], id="fixed"),
        pytest.param({"start": EARLIER}, {"start": NOW}, id="moved"),
        pytest.param([f"from {EARLIER} to {LATER}"], [f"from {NOW} to {LATER}"], id="one of two"),
        pytest.param(EARLIER, NOW.replace("10Z", "11Z"), id="cut to another second"),
    ],
)
def test_moments_may_stay_or_move_with_the_look(before: object, after: object) -> None:
    assert is_unchanged(look(EARLIER, before), look(NOW, after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(EARLIER, LATER, id="moved further"),
        pytest.param(f"from {EARLIER}", f"till {NOW}", id="another sentence"),
        pytest.param(None, NOW, id="known now"),
        pytest.param([EARLIER], [NOW, NOW], id="one more"),
        pytest.param({"a": EARLIER}, {"b": NOW}, id="another key"),
        pytest.param([1], [2], id="another number"),
        pytest.param("at 2026-99-99T99:99:99Z", "at 2026-99-99T99:99:98Z", id="a text that is no moment"),
    ],
)
def test_everything_else_is_a_change(before: object, after: object) -> None:
    assert not is_unchanged(look(EARLIER, before), look(NOW, after))


def test_settings_that_are_loaded_again_are_no_change_and_others_are() -> None:
    before = look(EARLIER, hash="a", loadedAt=EARLIER, ageSeconds=3)

    assert is_unchanged(before, look(NOW, hash="a", loadedAt=LATER, ageSeconds=0))
    assert not is_unchanged(before, look(NOW, hash="b", loadedAt=LATER, ageSeconds=0))
    assert not is_unchanged(before, look(NOW))
