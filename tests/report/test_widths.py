"""The text report on a terminal: no line is wider than it, and nothing is lost."""

from __future__ import annotations

import pytest

from reconciler.report.text import as_text
from tests.report.scene import document


@pytest.mark.parametrize("rehearsed", [False, True])
@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost(width: int, rehearsed: bool) -> None:
    whole = as_text(document(rehearsed=rehearsed))
    shown = as_text(document(rehearsed=rehearsed), width)

    assert max(map(len, shown.splitlines())) <= width
    assert shown.split() == whole.split()


def test_a_row_goes_on_below_its_own_text() -> None:
    shown = as_text(document(), 60)

    assert "  held      no maintenance window is open; waits for night,\n            which opens at" in shown


@pytest.mark.parametrize("width", [1, 20])
def test_a_terminal_that_is_too_narrow_gets_lines_that_can_be_read(width: int) -> None:
    assert as_text(document(), width).split() == as_text(document()).split()
