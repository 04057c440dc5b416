"""Names and texts in a few columns."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from reconciler.report.lines import folded, padded, short_names, shortened


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", "short"),
        ("exactly 10", "exactly 10"),
        ("aks-np-12345678-vmss000001", "aks-~00001"),
        ("日本日本日本日本", "日本~日本"),
        ("a\x1b[31mred", "a\\x1~1mred"),
    ],
)
def test_the_middle_is_left_out_of_a_text_that_is_too_long(text: str, shown: str) -> None:
    assert shortened(text, 10, "~") == shown


def test_names_that_differ_in_the_middle_can_be_told_apart() -> None:
    names = [f"aks-{pool}-12345678-vmss000001" for pool in ("pool1", "pool2", "pool3")]
    shown = short_names(names, 14, "~")

    assert list(shown) == names
    assert len(set(shown.values())) == 3
    assert max(map(cell_len, shown.values())) <= 14


def test_names_that_no_cut_can_tell_apart_are_still_there() -> None:
    names = [f"a{'b' * 20}{number}{'c' * 20}" for number in range(3)]

    assert list(short_names(names, 6, "~")) == names


def test_spaces_fill_columns_and_not_characters() -> None:
    assert padded("日本", 6) == "日本  "
    assert padded("too long", 3) == "too long"


def test_a_wide_character_has_two_columns_of_a_line_and_is_whole() -> None:
    text = "日本 " * 30

    assert folded(text.strip(), 44) == [
        "日本 " * 8 + "日本",
        *["  " + "日本 " * 7 + "日本"] * 2,
        "  " + "日本 " * 4 + "日本",
    ]
