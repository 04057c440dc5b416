"""The chart of the next fortnight, at the widths of terminals, and on days on which the clocks change."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from rich.cells import cell_len

from jobs.commands.windows import fortnight
from reconciler.calendar.windows import Calendar
from reconciler.report.lines import ASCII, Look
from reconciler.settings.load import parse_settings
from tests.calendar.test_windows import EXAMPLE

BATCH = {"agentpool": "batch"}


def drawn(
    calendar: Calendar,
    at: str,
    labels: dict[str, str] | None = BATCH,
    *,
    width: int = 80,
    zone: str = "Europe/Berlin",
) -> list[str]:
    """Return the lines of the chart at a moment in UTC."""
    look = Look(datetime.fromisoformat(at).replace(tzinfo=UTC), ZoneInfo(zone), width, ASCII.cut)
    return [line.text for line in fortnight(calendar, labels, look, ASCII)]


def of(text: str) -> Calendar:
    return parse_settings(text, "f").calendar


def test_each_day_has_its_hours_and_the_names_of_what_applies() -> None:
    assert drawn(of(EXAMPLE), "2026-11-23T19:10")[:9] == [
        "The next 14 days, in Europe/Berlin",
        "          00    03    06    09    12    15    18    21",
        "Mon 11-23                                         ....++++  + weeknights",
        "Tue 11-24 ++++++++++..................................++++  + weeknights",
        "Wed 11-25 ++++++++++..................................++++  + weeknights",
        "Thu 11-26 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx  x black-friday, + w~",
        "Fri 11-27 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx  x black-friday, + w~",
        "Sat 11-28 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx  x black-friday",
        "Sun 11-29 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx  x black-friday",
    ]


def test_below_it_is_what_the_signs_and_the_names_mean() -> None:
    assert drawn(of(EXAMPLE), "2026-11-23T19:10")[16:] == [
        "+ a drain may start   x not allowed   . no window is open",
        "+ weeknights: Mon-Thu 22:00-05:00, nodes agentpool=batch",
        "x black-friday: 2026-11-26T00:00 to 2026-11-30T06:00, sale",
        "+ first-saturday: 0 2 * * 6#1 for 4h, nodes agentpool=batch",
    ]


@pytest.mark.parametrize(("width", "hours"), [(60, 24), (80, 48), (200, 48)])
def test_it_fits_the_terminal(width: int, hours: int) -> None:
    lines = drawn(of(EXAMPLE), "2026-11-23T19:10", width=width)

    assert max(map(cell_len, lines)) <= width
    assert lines[3][10 : 10 + hours].count("+") == hours * 7 // 24


def test_a_node_that_no_window_selects_is_open_except_in_freezes() -> None:
    lines = drawn(of(EXAMPLE), "2026-11-25T23:00", {"agentpool": "web"}, width=60)

    assert lines[2] == f"Thu 11-26 {'x' * 24}  x black-friday"
    assert lines[6] == f"Mon 11-30 {'x' * 6}{'+' * 18}  x black-friday"
    assert lines[7] == f"Tue 12-01 {'+' * 24}"


def test_for_all_nodes_a_column_is_open_if_one_window_is() -> None:
    lines = drawn(of(EXAMPLE), "2026-12-04T23:00", None, width=60)

    assert lines[2] == "Sat 12-05 ..++++..................  + first-saturday"


def test_a_freeze_of_some_nodes_does_not_close_all() -> None:
    text = """
windows: [{name: w, start: "01:00", end: "02:00"}]
notAllowed: [{name: n, start: 2026-11-23, end: 2026-11-24, nodeSelector: {a: b}}]
"""

    lines = drawn(of(text), "2026-11-23T00:00", None, width=60, zone="UTC")

    assert lines[2] == f"Mon 11-23 .+{'.' * 22}  x n, + w"
    assert any(line.startswith("x n: ") and line.endswith("nodes a=b") for line in lines)


@pytest.mark.parametrize(
    ("zone", "at", "window", "row", "hours"),
    [
        pytest.param(
            "Europe/Berlin", "2026-03-28T23:00", ("01:00", "04:00"), "..++  ++", "23", id="an hour is skipped"
        ),
        pytest.param(
            "Europe/Berlin",
            "2026-10-24T22:00",
            ("02:30", "04:00"),
            "....++++",
            "25",
            id="an hour comes twice",
        ),
        pytest.param(
            "Europe/Berlin", "2026-10-24T22:00", ("01:00", "02:30"), "..+++...", "25", id="open once of twice"
        ),
        pytest.param(
            "Australia/Lord_Howe",
            "2026-10-03T13:30",
            ("01:30", "03:00"),
            "...+ +..",
            "23.5",
            id="half an hour is skipped",
        ),
        pytest.param(
            "Australia/Lord_Howe",
            "2026-04-04T13:00",
            ("01:30", "02:00"),
            "...+....",
            "24.5",
            id="half an hour comes twice",
        ),
    ],
)
def test_a_day_on_which_the_clocks_change_has_the_hours_of_the_wall_clock(
    zone: str, at: str, window: tuple[str, str], row: str, hours: str
) -> None:
    start, end = window
    text = f'{{timeZone: {zone}, windows: [{{name: w, start: "{start}", end: "{end}"}}]}}'

    lines = drawn(of(text), at, {}, zone=zone)

    assert lines[2][10:18] == row
    assert lines[-1].endswith(f"has {hours} hours: the clocks change")


def test_what_is_in_a_name_does_not_reach_the_terminal() -> None:
    text = r'windows: [{name: "a\e[2J\nb", start: "01:00", end: "02:00"}]'

    lines = drawn(of(text), "2026-11-23T00:00", {}, zone="UTC")

    assert all(line.isprintable() for line in lines)


def test_many_rules_are_counted() -> None:
    text = f"windows: [{', '.join(f'{{name: w{n}, days: Mon}}' for n in range(15))}]"

    assert drawn(of(text), "2026-11-23T00:00", {}, zone="UTC")[-1] == "and 3 more"
