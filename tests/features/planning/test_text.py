"""The table and the page around it, and the document: nothing is too wide or hidden in silence."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.cells import cell_len

from reconciler.features.planning.text import ahead_document, as_lines
from reconciler.model.plan import NodePlan
from reconciler.model.schedule import CaseSchedule, Prospect
from reconciler.model.values import replace
from reconciler.report.ahead import PlanAhead
from reconciler.report.document import as_json
from reconciler.report.lines import ASCII, Screen
from reconciler.report.standing import Standing
from tests.docs.pages import named, written
from tests.report.ahead_scene import DAY, HOUR, MISS, ahead, case, everything
from tests.support.builders import NOW
from tests.support.golden import assert_as_in

GOLDEN = Path(__file__).parent / "golden"


def texts(shown: PlanAhead, columns: int = 80, lines: int | None = None) -> list[str]:
    return [line.text for line in as_lines(shown, Screen(columns, lines, ASCII))]


def table_row(name: str, shown: PlanAhead, columns: int = 80) -> list[str]:
    """The cells of one node's row."""
    (found,) = [line for line in texts(shown, columns) if re.match(rf"\w+ +{name} ", line)]
    return re.split(r" {2,}", found)


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_plan_is_as_in_the_golden_file(columns: int) -> None:
    shown = everything()
    noted = replace(shown, plan=replace(shown.plan, notes=("imds: no node agent is installed",)))

    assert_as_in(GOLDEN / f"plan-{columns}.txt", "".join(f"{line}\n" for line in texts(noted, columns)))


def test_the_document_is_as_in_the_golden_file_and_its_moments_are_utc() -> None:
    document = ahead_document(everything("Asia/Kolkata"))

    assert_as_in(GOLDEN / "plan.json", as_json({**document, "program": "VERSION"}))
    nodes = [node for calendar in document["calendars"] for node in calendar["nodes"]]
    assert sorted(nodes) == sorted(case["name"] for case in document["cases"])


@pytest.mark.parametrize("columns", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("zone", ["UTC", "America/Argentina/Buenos_Aires"])
def test_no_line_is_wider_than_the_terminal(columns: int, zone: str) -> None:
    assert max(map(len, texts(everything(zone), columns))) <= columns


def test_the_columns_of_the_table() -> None:
    plan = CaseSchedule(NOW + HOUR, NOW + 2 * HOUR, "nights", ends=NOW + 4 * HOUR)
    shown = ahead(case("a", plan, not_before=NOW + 3 * HOUR))
    cells = ["planned", "a", "Reboot", "Sat 21 13:00", "Sat 21 14:00", "Sat 21 16:00"]

    assert table_row("a", shown) == cells
    assert table_row("a", shown, 100) == [*cells, "Sat 21 15:00"]
    assert table_row("a", shown, 120) == [*cells, "Sat 21 15:00", "nights"]
    assert table_row("a", ahead(case("a", CaseSchedule(NOW))))[3] == "now"


def test_a_miss_has_its_reason_below_it_once_and_all_of_it_asks_for_red() -> None:
    miss = CaseSchedule(missed=True, because=MISS)
    lines = as_lines(ahead(case("a", miss), case("b", miss)), Screen(200, None, ASCII))
    red = [line.text for line in lines if line.alarm]

    assert [line.split()[0] for line in red] == ["MISSED", "MISSED", "at", "!", "!"]
    assert "at Sun 22 21:00 (in 1d9h) five nodes are due" in red[2]


def test_a_miss_has_what_lets_its_drain_begin_once_for_all_nodes_of_one_reason() -> None:
    def miss(name: str, because: str = "no window opens") -> NodePlan:
        return case(name, CaseSchedule(missed=True, because=because, remedies=(f"kubectl lift {name}",)))

    lines = texts(ahead(miss("a"), miss("b"), miss("c", "no place is free")), 200)

    assert [line.strip() for line in lines if "lift" in line] == [
        "no window opens; `kubectl lift NODE` lets its drain begin",
        "no place is free; `kubectl lift c` lets its drain begin",
    ]


@pytest.mark.parametrize("height", [13, 24, 50])
def test_a_screen_has_the_most_urgent_cases_and_says_how_to_see_the_rest(height: int) -> None:
    nodes = [case(f"n{number:03}", CaseSchedule(NOW + number * HOUR / 2)) for number in range(200)]
    lines = texts(ahead(*nodes), 80, height)
    rows = [line for line in lines if line.startswith("planned")]

    assert len(lines) <= height
    assert len(lines) > height - 3
    assert rows[0].split()[1] == "n000"
    assert f"and {200 - len(rows)} more; --all shows them" in lines


def test_without_a_limit_every_case_is_there() -> None:
    nodes = [case(f"n{number:03}", CaseSchedule(NOW)) for number in range(300)]
    lines = texts(ahead(*nodes))

    assert sum(line.startswith("planned") for line in lines) == 300
    assert sum("(nights)" in line for line in lines) == 1


def test_without_a_case_the_page_says_so_and_when_the_next_window_opens() -> None:
    lines = texts(ahead(case("a", None), settings='windows: [{name: nights, start: "22:00", end: "05:00"}]'))

    assert "No case: nothing is planned to start." in lines
    assert "no maintenance window is open; nights opens next, at 22:00" in lines


def test_cases_and_misses_after_the_end_are_counted() -> None:
    one = ahead(case("a", CaseSchedule(NOW + 8 * DAY)), settings="")
    assert "1 later, the first on Sun 29 12:00; a longer --until shows them" in texts(one)

    missed = CaseSchedule(None, NOW + 8 * DAY, missed=True, because="no place")
    shown = texts(ahead(case("a", CaseSchedule(NOW + 8 * DAY)), case("b", missed), settings=""), 200)

    assert shown[-1].startswith("2 later, the first on Sun 29 12:00, 1 of them will be missed; ")


def test_in_mode_observe_the_page_says_that_nothing_starts() -> None:
    said = "nothing of this starts in mode Observe; mode Enforce would start it"
    node = case("a", CaseSchedule(NOW))

    assert said in texts(ahead(node, mode="Observe"))
    assert said not in texts(ahead(node))
    assert said not in texts(ahead(mode="Observe"))


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_zone_is_named_once(columns: int) -> None:
    text = "\n".join(texts(everything("Asia/Kolkata"), columns))

    assert text.count("Asia/Kolkata") == 1
    assert text.startswith("Sat 2026-11-21 17:30 IST (Asia/Kolkata)")
    assert not re.search(r"\d{4}-\d\d-\d\dT", text)


def test_a_time_of_day_that_comes_twice_says_which_one_is_meant() -> None:
    now = NOW.replace(month=10, day=24)
    second = CaseSchedule(now + 13 * HOUR)
    shown = ahead(case("a", second), zone="Europe/Berlin", now=now, settings="")

    assert table_row("a", shown)[3] == "Sun 25 02:00 CET"


def test_a_moment_beyond_the_calendar_of_a_zone_never_comes() -> None:
    shown = ahead(case("a", CaseSchedule(NOW, ends=datetime.max.replace(tzinfo=UTC))), zone="Asia/Kolkata")

    assert table_row("a", shown)[5] == "never"


def test_a_far_moment_has_its_month_and_a_very_far_one_its_year() -> None:
    plan = CaseSchedule(NOW, NOW + 40 * DAY, ends=NOW + 400 * DAY)

    assert table_row("a", ahead(case("a", plan)))[3:] == ["now", "12-31 12:00", "2027-12-26"]


@pytest.mark.parametrize("name", ["a\x1b[31m", "n" * 253, "日本" * 60])
def test_a_hostile_name_stays_in_its_column(name: str) -> None:
    plan = CaseSchedule(missed=True, because=f"{name}\n\x1b]0;x\x07 is due")
    lines = texts(ahead(case(name, plan), case("b", CaseSchedule(NOW))))

    assert all(line.isprintable() for line in lines)
    assert [
        line for line in lines if cell_len(line) > 80 and "is due" not in line and len(line.split()) > 1
    ] == []
    assert sum(line.startswith("planned  ") for line in lines) == 1


def test_every_key_of_a_look_ahead_is_described() -> None:
    document = ahead_document(everything())

    assert document.keys() - named("output.md") == set()
    page = written("output.md")
    parts = (document["cases"][0], document["calendars"][0], document["calendars"][0]["openings"][0])
    assert {key for part in parts for key in part if f"`{key}`" not in page} == set()


def test_cases_of_which_it_is_not_known_whether_their_drains_can_end_are_counted() -> None:
    why = "not known whether its drain can end: its pods can't be read"
    unknown = CaseSchedule(NOW + HOUR, prospect=Prospect(unknown=why))
    lines = texts(ahead(case("a", unknown), case("b", CaseSchedule(NOW + HOUR))), 120)

    assert "of 1 it is not known whether the drain can end" in lines
    assert any(why in line for line in lines)


def test_a_latest_start_that_is_over_is_no_moment_to_wait_for() -> None:
    late = CaseSchedule(NOW + HOUR, NOW - HOUR, missed=True, because="it was announced too late")
    started = CaseSchedule(NOW - HOUR, NOW - HOUR, started=True)
    shown = ahead(case("a", late), case("b", started))

    assert "passed" in table_row("a", shown)
    assert "passed" not in table_row("b", shown)


def test_a_case_has_the_word_that_each_output_has_for_it() -> None:
    begun = CaseSchedule(NOW - HOUR, NOW, started=True)
    stopped = replace(begun, stopped="ann holds it")
    known = ahead(*(case(name, begun) for name in "abc"), case("d", CaseSchedule()), case("e", stopped))
    words = {"a": "drained", "b": "blocked", "c": "draining", "d": "waits", "e": "held"}
    cases = (replace(each, standing=Standing(words[each.node])) for each in known.cases)

    shown = replace(known, cases=tuple(cases))
    assert {name: table_row(name, shown)[0] for name in words} == {**words, "e": "HELD"}
    assert (
        "5 cases: 1 blocked, 1 held by a person, 1 draining, 1 drained, 1 waiting, without a known start"
        in texts(shown, 120)
    )


def test_the_head_says_which_drain_and_which_maintenance_come_next() -> None:
    known = ahead(case("a", CaseSchedule(NOW + HOUR)), case("b", CaseSchedule(NOW + HOUR / 2)))
    dates = {"a": (NOW + 2 * HOUR, "Reboot"), "b": (NOW + 3 * HOUR, "Redeploy")}
    cases = (
        replace(each, not_before=dates[each.node][0], kinds=dates[each.node][1:]) for each in known.cases
    )

    assert "next: drain of b in 30m, at 12:30; Reboot of a in 2h, at 14:00" in texts(
        replace(known, cases=tuple(cases))
    )
