"""The page with the versions of Kubernetes says what is built, and keeps what was found about it."""

from __future__ import annotations

from datetime import date

from tests.versions.table import EVERY, NOT_YET, PAGE, Row, built, passed, rows, updated, usual


def test_three_minors_in_a_row_are_built() -> None:
    numbers = [int(minor.removeprefix("1.")) for minor in built()]

    assert numbers == list(range(numbers[0], numbers[0] - 3, -1))


def test_the_page_has_the_table_of_what_is_built() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert updated(page, {}) == page
    assert {minor: row.version for minor, row in rows(page).items()} == built()


def test_a_result_is_written_and_that_of_another_version_is_dropped() -> None:
    first, last = [minor for minor in built() if minor != usual()]
    day = passed(7, date(2026, 11, 22))
    before = f"a\n<!-- versions -->\n| {last} | v{last}.0 | 5 tests passed on 2026-01-01 |\n<!-- end -->\nb"

    once = updated(before, {first: day})

    assert rows(once) == {
        first: Row(built()[first], day),
        usual(): Row(built()[usual()], EVERY),
        last: Row(built()[last], NOT_YET),
    }
    # Another run keeps it.
    assert updated(once, {last: day}) == updated(updated(before, {last: day}), {first: day})
    assert (once[:2], once[-2:]) == ("a\n", "\nb")
