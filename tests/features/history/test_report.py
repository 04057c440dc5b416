"""The sum of a history: numbers that can be counted by hand, and a text for narrow and wide terminals."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.history.summary import Summary, as_text, summed_up
from reconciler.features.history.tables import cases_as_text
from reconciler.model.case_outcome import CaseResult
from reconciler.model.ended_case import EndedCase
from reconciler.model.values import replace
from reconciler.report.document import as_json
from tests.support.builders import NOW, minutes
from tests.support.cases import ended
from tests.support.golden import assert_as_in

DAY = timedelta(days=1)
LINES = {"cases": 0, "repeated": 0, "older": 0, "other": 0, "broken": 0}


def summed(*cases: EndedCase, since: datetime | None = None, **lines: int) -> Summary:
    return summed_up(cases, since, NOW, {**LINES, **lines})


def a_month() -> tuple[EndedCase, ...]:
    return (
        ended("n1", at=NOW - 3 * DAY),
        ended("n2", at=NOW - 2 * DAY, not_before=NOW - 2 * DAY - minutes(50), drained=NOW - 2 * DAY),
        ended("n3", at=NOW - DAY, outcome=CaseResult.MISSED, drained=None, uncordoned=None, started=None),
        ended("s1", kind="Preempt", pool="spot", outcome=CaseResult.LATE, not_before=None),
        ended("s2", kind="Preempt", pool="spot", outcome=CaseResult.CANCELLED, drained=None),
    )


@pytest.mark.parametrize(
    ("file", "form"),
    [
        ("history.txt", lambda summary: as_text(summary, 120)),
        ("history.json", lambda summary: as_json({**summary.document, "program": "VERSION"})),
    ],
)
def test_a_month_is_as_in_the_golden_file(file: str, form: Callable[[Summary], str]) -> None:
    # n1 and s1 are empty from the end of the drain, n2 not at all, s2 from its start; n3 was never cordoned.
    assert_as_in(Path(__file__).parent / "golden" / file, form(summed(*a_month())))


def test_a_clock_that_went_back_makes_no_negative_hours() -> None:
    total = summed(ended(drained=NOW + minutes(5), started=NOW + minutes(9), announced=NOW)).document["total"]

    assert total["nodeHoursEmpty"] == 0
    assert total["notice"]["worstSeconds"] == total["drain"]["worstSeconds"] == 0


def test_what_nobody_knows_is_left_out_and_not_counted_as_nothing() -> None:
    summary = summed(replace(ended(kind="", pool="", drained=None), pods_moved=None, pods_left=None))
    text, document = as_text(summary), summary.document

    assert document["total"]["podsMovedKnown"] == document["total"]["podsLeftKnown"] == 0
    assert (document["kinds"][0]["kind"], document["pools"][0]["pool"]) == (None, None)
    assert document["total"]["drain"] is None
    row = next(line for line in text.splitlines() if line.startswith("unknown"))
    assert row.split()[-3:] == ["-", "-", "(-)"]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_each_number_is_there(width: int) -> None:
    summary = summed(*a_month(), repeated=1, older=2, broken=3)
    whole, shown = as_text(summary), as_text(summary, width)

    assert max(map(len, shown.splitlines())) <= width
    assert set(shown.split()) == set(whole.split())


def test_a_wide_terminal_has_one_table_for_each_grouping() -> None:
    def heads(text: str) -> list[str]:
        return [line.split()[0] for line in text.splitlines() if line.startswith(("kind ", "pool "))]

    summary = summed(*a_month())

    assert heads(as_text(summary, 200)) == ["kind", "pool"]
    assert heads(as_text(summary, 60)).count("kind") > 1


def test_a_long_list_of_missed_nodes_is_cut_and_says_so() -> None:
    cases = [ended(f"n{number}", outcome=CaseResult.MISSED) for number in range(23)]
    text = as_text(summed(*cases))

    assert text.count("  missed    n") == 20
    assert "  and 3 more; --output json has all of them\n" in text


def test_a_table_of_very_many_pools_has_those_with_the_most_cases() -> None:
    cases = [ended(f"n{number}", pool=f"p{number:03}") for number in range(60)]
    text = as_text(summed(*cases, ended("m", pool="p059")))

    assert sum(line.startswith("p0") for line in text.splitlines()) == 50
    assert "\np059 " in text
    assert "\nand 10 more; --output json has all of them\n" in text


def test_no_cases_is_said() -> None:
    assert as_text(summed()) == "no case is in the history\n"
    assert as_text(summed(since=NOW - 30 * DAY)) == "no case has ended since Thu 2026-10-22 12:00 UTC\n"


@given(st.lists(st.text(max_size=80), min_size=1, max_size=4))
def test_names_from_outside_control_no_terminal(names: list[str]) -> None:
    cases = [ended(name, pool=name, kind=name, outcome=CaseResult.MISSED) for name in names]

    assert all(line.isprintable() for line in as_text(summed(*cases), 80).split("\n"))


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_cases_read_well_in_each_width(width: int) -> None:
    text = cases_as_text(summed(*a_month()), width)

    assert max(map(len, text.splitlines())) <= width
    assert_as_in(Path(__file__).parent / "golden" / f"cases-{width}.txt", text)
