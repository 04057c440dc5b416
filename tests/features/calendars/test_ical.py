"""iCalendar files: what each property means, and which files are refused with which words."""

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from reconciler.features.calendars.ical import parse_ical
from reconciler.features.calendars.ical_lines import CalendarMistake

BERLIN = ZoneInfo("Europe/Berlin")
START = "DTSTART:20260301T100000Z"


def file(*lines: str) -> str:
    """Return a calendar with these lines inside."""
    return "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", *lines, "END:VCALENDAR", ""])


def event(*lines: str) -> str:
    """Return a calendar with one event."""
    return file("BEGIN:VEVENT", *lines, "END:VEVENT")


def runs(text: str, since: str = "2026-01-01", count: int = 3) -> list[str]:
    """Return the first runs of a file after a day, in UTC and without the year 2026."""
    moment = datetime.fromisoformat(since).replace(tzinfo=UTC)
    found = islice(parse_ical(text, BERLIN).runs(moment), count)
    written = (f"{run.start:%Y-%m-%dT%H:%M} {run.end:%Y-%m-%dT%H:%M}" for run in found)
    return [run.replace("2026-", "") for run in written]


MEANINGS = {
    "in UTC": (":20260301T100000Z DTEND:20260301T120000Z", "03-01T10:00 03-01T12:00"),
    "in the zone of the settings": (":20260301T100000 DURATION:PT2H", "03-01T09:00 03-01T11:00"),
    "a date is its whole day": (";VALUE=DATE:20260301", "02-28T23:00 03-01T23:00"),
    "an end date": (";VALUE=DATE:20260328 DTEND;VALUE=DATE:20260330", "03-27T23:00 03-29T22:00"),
    "a start in the gap": (";TZID=Europe/Berlin:20260329T023000 DURATION:PT1H", "03-29T01:30 03-29T02:30"),
    "a start that comes twice": (
        ";TZID=Europe/Berlin:20261025T023000 DURATION:PT1H",
        "10-25T00:30 10-25T01:30",
    ),
    "an end on the wall clock": (
        ";TZID=Europe/Berlin:20261024T220000 DTEND;TZID=Europe/Berlin:20261025T050000",
        "10-24T20:00 10-25T04:00",
    ),
    "a day of 25 hours": (";TZID=Europe/Berlin:20261024T220000 DURATION:P1D", "10-24T20:00 10-25T21:00"),
    "24 hours": (";TZID=Europe/Berlin:20261024T220000 DURATION:PT24H", "10-24T20:00 10-25T20:00"),
    "a day, then two hours": (
        ";TZID=Europe/Berlin:20261024T020000 DURATION:P1DT2H",
        "10-24T00:00 10-25T02:00",
    ),
    "half an hour is skipped": (
        ";TZID=Australia/Lord_Howe:20261004T021500 DURATION:PT30M",
        "10-03T15:45 10-03T16:15",
    ),
    "and repeated": (";TZID=Australia/Lord_Howe:20260405T014500 DURATION:PT30M", "04-04T14:45 04-04T15:15"),
    "two zones": (
        ";TZID=Europe/Berlin:20260301T220000 DTEND;TZID=America/New_York:20260301T180000",
        "03-01T21:00 03-01T23:00",
    ),
    "further dates, and a period": (
        ":20260301T100000Z DURATION:PT1H RDATE:20260305T100000Z,20260306T100000Z/PT2H",
        "03-01T10:00 03-01T11:00, 03-05T10:00 03-05T11:00, 03-06T10:00 03-06T12:00",
    ),
    "a date as EXDATE": (
        ":20260301T100000 DURATION:PT1H RRULE:FREQ=DAILY;COUNT=2 EXDATE;VALUE=DATE:20260302",
        "03-01T09:00 03-01T10:00",
    ),
    "without an end it has no time": (":20260301T100000Z", ""),
    "a cancelled event": (":20260301T100000Z DURATION:PT1H STATUS:CANCELLED", ""),
    "an event of decades": (":20250101T000000Z DTEND:20850101T000000Z", "1-01-01T00:00 2085-01-01T00:00"),
    "a leap day": (";VALUE=DATE:20200229 RRULE:FREQ=YEARLY", "2028-02-28T23:00 2028-02-29T23:00"),
}
"""By case: the properties of an event from its DTSTART on, and its runs in UTC, without this year."""


@pytest.mark.parametrize(("lines", "expected"), MEANINGS.values(), ids=MEANINGS)
def test_an_event_is_when_its_properties_say(lines: str, expected: str) -> None:
    assert ", ".join(runs(event(*f"DTSTART{lines}".split()))) == expected


def test_a_daily_whole_day_has_no_end() -> None:
    found = next(parse_ical(event("DTSTART;VALUE=DATE:20200101", "RRULE:FREQ=DAILY"), BERLIN).runs(
        datetime(2026, 1, 1, tzinfo=UTC)
    ))  # fmt: skip

    assert (found.start.year, found.end.year) == (1, 9999)


def test_the_newest_version_of_an_event_counts() -> None:
    old = ["BEGIN:VEVENT", "UID:1", "DTSTART:20260301T100000Z", "DURATION:PT1H", "END:VEVENT"]
    new = ["BEGIN:VEVENT", "UID:1", "SEQUENCE:2", "DTSTART:20260302T100000Z", "DURATION:PT1H", "END:VEVENT"]

    assert runs(file(*new, *old)) == ["03-02T10:00 03-02T11:00"]


def test_events_with_the_same_uid_both_count() -> None:
    one = ["BEGIN:VEVENT", "UID:1", "DTSTART:20260301T100000Z", "DURATION:PT1H", "END:VEVENT"]
    other = ["BEGIN:VEVENT", "UID:1", "DTSTART:20260302T100000Z", "DURATION:PT1H", "END:VEVENT"]

    assert len(runs(file(*one, *other))) == 2


def test_the_files_own_zone_is_for_times_without_a_zone_unless_the_settings_name_one() -> None:
    text = file("X-WR-TIMEZONE:America/New_York", "BEGIN:VEVENT", "DTSTART;VALUE=DATE:20260301", "END:VEVENT")

    assert runs(text) == ["03-01T05:00 03-02T05:00"]
    (run,) = parse_ical(text, BERLIN, zone_given=True).runs(datetime(2026, 1, 1, tzinfo=UTC))
    assert run.start == datetime(2026, 2, 28, 23, tzinfo=UTC)


MICROSOFTS = """BEGIN:VTIMEZONE
TZID:W. Europe Standard Time
BEGIN:STANDARD
DTSTART:16010101T030000
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010101T020000
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
END:DAYLIGHT
END:VTIMEZONE""".splitlines()


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        pytest.param("20260329T013000", "03-29T00:30 03-29T01:30", id="before the gap"),
        pytest.param("20260329T023000", "03-29T01:30 03-29T02:30", id="in the gap"),
        pytest.param("20260329T033000", "03-29T01:30 03-29T02:30", id="after the gap"),
        pytest.param("20261025T023000", "10-25T00:30 10-25T01:30", id="what comes twice"),
        pytest.param("20261025T033000", "10-25T02:30 10-25T03:30", id="after that"),
    ],
)
def test_the_zone_of_a_file_has_gaps_and_repeated_times(start: str, expected: str) -> None:
    lines = [f"DTSTART;TZID=W. Europe Standard Time:{start}", "DURATION:PT1H"]

    assert runs(file(*MICROSOFTS, "BEGIN:VEVENT", *lines, "END:VEVENT")) == [expected]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("TZOFFSETTO:+0100", "TZOFFSETTO:1", "line 8: STANDARD has no TZOFFSETTO like"),
        ("FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3", "FREQ=DAILY", "the RRULE of a time zone needs FREQ=YEARLY"),
        ("TZID:W. Europe Standard Time", "X-TZID:x", "line 3: VTIMEZONE has no TZID"),
        ("DTSTART:16010101T020000", "X-START:x", "DAYLIGHT has no DTSTART"),
    ],
)
def test_a_broken_zone_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(CalendarMistake, match=message):
        parse_ical(file(*MICROSOFTS).replace(old, new, 1), BERLIN)


def test_lines_are_folded_and_what_is_not_needed_is_skipped() -> None:
    text = event(
        "DTSTART;TZID=Euro",
        " pe/Berlin:20260301T10",
        "\t0000",
        "DURATION:PT1H",
        'ATTENDEE;CN="a;b:c":mailto:x',
        "DESCRIPTION:DTSTART:20270101T000000Z",
        "BEGIN:VALARM",
        "TRIGGER:-PT15M",
        "DURATION:PT15M",
        "END:VALARM",
    )

    assert runs(text) == ["03-01T09:00 03-01T10:00"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "line 1: is empty", id="nothing"),
        pytest.param("hello: world", "line 1: is not an iCalendar file", id="another file"),
        pytest.param("BEGIN:VEVENT\nEND:VEVENT", "line 1: is not an iCalendar file", id="no VCALENDAR"),
        pytest.param("BEGIN:VCALENDAR\nhello", "line 2: 'hello' is not a line", id="no colon"),
        pytest.param(
            "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260301T100000Z",
            "line 2: END:VEVENT is missing .* the file is cut off",
            id="cut off",
        ),
        pytest.param("BEGIN:VCALENDAR\nEND:VEVENT", "line 2: END:VEVENT stands where", id="crossed"),
        pytest.param("BEGIN:X\n" * 30, "line 11: components are nested deeper", id="nested"),
        pytest.param(event("UID:1"), "line 3: VEVENT has no DTSTART", id="no start"),
        pytest.param(event("DTSTART:2026"), "line 4: '2026' is not a date and time", id="no date"),
        pytest.param(event("DTSTART:20260230T000000Z"), "line 4: .* not a valid date", id="30 February"),
        pytest.param(event("DTSTART:12000101T000000Z"), "line 4: .* between the years", id="the year 1200"),
        pytest.param(
            event("DTSTART;TZID=Mars:20260301T100000"), "line 4: TZID=Mars is not an IANA", id="a zone"
        ),
        pytest.param(event(START, "DTEND:20260301T090000Z"), "line 5: DTEND is before", id="back"),
        pytest.param(event(START, "DTEND;VALUE=DATE:20260302"), "line 5: DTEND and DTSTART", id="mix"),
        pytest.param(
            event(START, "DTEND:20260301T110000Z", "DURATION:PT1H"),
            "line 6: VEVENT has both",
            id="end and duration",
        ),
        pytest.param(event(START, "DURATION:-PT1H"), "line 5: '-PT1H' is not a duration", id="negative"),
        pytest.param(event(START, "DURATION:P9999999W"), "is not a duration", id="many weeks"),
        pytest.param(event(START, START), "line 5: VEVENT has a second", id="two"),
        pytest.param(
            event(START, "RECURRENCE-ID;RANGE=THISANDFUTURE:20260301T100000Z"),
            "line 5: RECURRENCE-ID with RANGE",
            id="range",
        ),
        pytest.param(event(START, "EXRULE:FREQ=DAILY"), "line 5: EXRULE is not supported", id="exrule"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(CalendarMistake, match=message):
        parse_ical(text, BERLIN)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("FREQ=SECONDLY", "FREQ=SECONDLY repeats too often; write FREQ=DAILY"),
        ("FREQ=HOURLY;INTERVAL=6", "FREQ=HOURLY repeats too often"),
        ("FREQ=OFTEN", "FREQ=OFTEN is not one of YEARLY"),
        ("BYDAY=MO", "FREQ= is not one of"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL=0 is not a whole number from 1"),
        ("FREQ=DAILY;COUNT=999999999", "COUNT=999999999 is not a whole number from 1 to 5000"),
        ("FREQ=DAILY;BYHOUR=25", "BYHOUR=25 is not a whole number from 0 to 23"),
        ("FREQ=DAILY;BYDAY=XX", "BYDAY=XX is not a day like MO"),
        ("FREQ=WEEKLY;BYDAY=1MO", "BYDAY=1MO with a number needs FREQ=MONTHLY"),
        ("FREQ=DAILY;BYEASTER=1", "the RRULE has the unknown part BYEASTER"),
        ("FREQ=DAILY;FREQ=DAILY", "is a duplicate"),
        ("FREQ=DAILY;UNTIL=99991231T000000Z;COUNT=1", "both COUNT and UNTIL"),
        ("FREQ=DAILY;WKST=X", "WKST=X is not a day"),
        ("FREQ=DAILY;BYMINUTE=" + ",".join(map(str, range(60))), "starts 60 times a day; at most 24"),
    ],
)
def test_a_broken_rule_is_refused_with_its_line(rule: str, message: str) -> None:
    text = event(START, "DURATION:PT1H", f"RRULE:{rule}")

    with pytest.raises(CalendarMistake, match=f"^line 6: .*{message}"):
        parse_ical(text, BERLIN)


def _events(count: int, *lines: str) -> str:
    each = ["BEGIN:VEVENT", "DTSTART:19700101T100000Z", "DURATION:PT1H", *lines, "END:VEVENT"]
    return file(*each * count)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(_events(2001), "line 8003: the calendar has more than 2000 events", id="events"),
        pytest.param(_events(201, "RRULE:FREQ=YEARLY"), "more than 200 events that repeat", id="repeating"),
        pytest.param(
            _events(51, "RRULE:FREQ=YEARLY;COUNT=2").replace(":1970", ":2020"),
            "line 253: the calendar has more than 50 events with COUNT",
            id="counted",
        ),
        pytest.param(
            _events(1, "RRULE:FREQ=YEARLY;COUNT=2"),
            "line 4: an event with COUNT starts before 2000; write UNTIL",
            id="counted from long ago",
        ),
        pytest.param(
            _events(30, f"RRULE:FREQ=DAILY;BYHOUR={','.join(map(str, range(24)))}"),
            "start more than 200 times on one day",
            id="starts",
        ),
        pytest.param(
            "BEGIN:VCALENDAR\n" + "BEGIN:X\nEND:X\n" * 20_000, "more than 20000 components", id="parts"
        ),
        pytest.param(
            event(START, "EXDATE:" + ",".join(["20260301T100000Z"] * 5001)),
            "EXDATE has more than 5000 dates",
            id="dates",
        ),
        pytest.param(event("DTSTART:" + "1" * 200_000), "DTSTART is longer than", id="a long value"),
    ],
)
def test_what_is_too_much_is_refused(text: str, message: str) -> None:
    with pytest.raises(CalendarMistake, match=message):
        parse_ical(text, BERLIN)


@pytest.mark.parametrize(
    "rule", ["FREQ=DAILY;COUNT=5", "FREQ=DAILY", "FREQ=WEEKLY", "FREQ=MONTHLY", "FREQ=YEARLY"]
)
def test_a_rule_that_never_fires_has_only_its_first_start(rule: str) -> None:
    lines = ["DTSTART:20260101T100000Z", "DURATION:PT1H", f"RRULE:{rule};BYMONTH=2;BYMONTHDAY=30"]

    assert runs(event(*lines)) == ["01-01T10:00 01-01T11:00"]
