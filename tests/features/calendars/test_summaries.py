"""What calendars call their events is shown with the windows and freezes that the events make."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.calendar.windows import Calendar, NotAllowed, Window
from reconciler.features.calendars.ical import parse_ical

NOW = datetime(2026, 12, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def event(*lines: str, start: str = "20261220T100000Z", length: str = "PT4H") -> list[str]:
    return ["BEGIN:VEVENT", f"DTSTART:{start}", f"DURATION:{length}", *lines, "END:VEVENT"]


def file(*events: list[str]) -> str:
    lines = [line for one in events for line in one]
    return "\r\n".join(["BEGIN:VCALENDAR", *lines, "END:VCALENDAR"])


def freeze(*events: list[str], reason: str = "") -> Calendar:
    return Calendar((), [NotAllowed("changes", parse_ical(file(*events), UTC), reason)])


def because(*events: list[str], reason: str = "") -> str:
    return freeze(*events, reason=reason).at(NOW, {}).because


def test_the_reason_of_a_freeze_has_the_names_of_the_events_that_apply_now() -> None:
    sale = event("SUMMARY:Winter sale")
    later = event("SUMMARY:Stocktaking", start="20261220T130000Z")

    assert because(sale, later) == "not allowed: changes (Winter sale) until 2026-12-20T17:00:00Z"
    assert because(sale, reason="see the wiki").startswith("not allowed: changes (see the wiki, Winter sale)")


def test_an_open_window_has_the_name_of_its_event() -> None:
    window = Window("changes", parse_ical(file(event("SUMMARY:Patch night")), UTC))

    assert Calendar([window]).at(NOW, {}).because.startswith("window changes (Patch night) is open until")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        pytest.param(
            r"SUMMARY;LANGUAGE=en:Release 4\, part\; one\n2", "Release 4, part; one 2", id="escapes"
        ),
        pytest.param("SUMMARY:a\x1b[31m\u202eb", "a\ufffd[31m\ufffdb", id="what controls a terminal"),
        pytest.param(f"SUMMARY:{'x' * 200_000}", f"{'x' * 99}…", id="too long"),
        pytest.param("SUMMARY;broken", "", id="no value"),
        pytest.param("SUMMARY:one\r\nSUMMARY:two", "one", id="two of them"),
    ],
)
def test_a_name_is_one_printable_line_and_never_a_mistake_of_the_file(written: str, shown: str) -> None:
    why = f" ({shown})" if shown else ""

    assert because(event(written)) == f"not allowed: changes{why} until 2026-12-20T14:00:00Z"


def test_of_many_names_the_first_three_are_shown() -> None:
    assert "(e0, e1, e2 and 2 more)" in because(*(event(f"SUMMARY:e{number}") for number in range(5)))


def test_each_interval_has_the_names_of_its_own_events() -> None:
    daily = event("SUMMARY:Trading", "RRULE:FREQ=DAILY;COUNT=3", start="20261218T100000Z")
    calendar = freeze(
        daily, event("SUMMARY:Closing", start="20261220T140000Z"), event(start="20261222T100000Z")
    )

    found = calendar.intervals(NOW, None, NOW + 4 * DAY)
    assert [(one.start.day, one.said) for one in found] == [(20, "Trading, Closing"), (22, "")]
    closures = calendar.closures(NOW, {}, NOW + 4 * DAY)
    assert [one.reason for one in closures] == ["Trading, Closing", ""]


def test_a_freeze_that_began_long_ago_has_its_name() -> None:
    long = event("SUMMARY:Rebuilding", start="20250101T000000Z", length="P800D")

    assert because(long).startswith("not allowed: changes (Rebuilding)")
    (found,) = freeze(long).intervals(NOW, None, NOW + DAY)
    assert found.said == "Rebuilding"
