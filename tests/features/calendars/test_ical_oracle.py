"""Events of iCalendar files against an independent library, in nights in which the clocks change too."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import icalendar
import recurring_ical_events
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.features.calendars.ical import parse_ical
from tests.laws.hits import Hits
from tests.support.searching import examples

unhurried = settings(deadline=None, max_examples=examples(100))

ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]
CHANGES = [date(2026, 3, 8), date(2026, 3, 29), date(2026, 4, 5), date(2026, 10, 4), date(2026, 10, 25)]

# Each comparison is about some weeks around a night in which the clocks change.
spans = st.sampled_from(CHANGES).map(
    lambda day: (
        datetime.combine(day, time(), tzinfo=UTC) - timedelta(days=12),
        datetime.combine(day, time(), tzinfo=UTC) + timedelta(days=40),
    )
)
days = st.sampled_from(CHANGES) | st.integers(0, 500).map(lambda n: date(2025, 9, 1) + timedelta(days=n))
clocks = st.integers(0, 95).map(lambda quarter: time(quarter // 4, quarter % 4 * 15))
by_day = st.lists(st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"]), min_size=1, unique=True)
numbered = st.sampled_from(["1SA", "2TU", "-1SU", "-1FR", "3MO", "SU"])
rules = st.one_of(
    st.builds("FREQ=DAILY;INTERVAL={}".format, st.integers(1, 5)),
    st.builds(
        lambda interval, each, start: f"FREQ=WEEKLY;INTERVAL={interval};BYDAY={','.join(each)};WKST={start}",
        st.integers(1, 3),
        by_day,
        st.sampled_from(["MO", "SU"]),
    ),
    st.builds(
        lambda interval, day: f"FREQ=MONTHLY;INTERVAL={interval};BYDAY={day}", st.integers(1, 4), numbered
    ),
    st.builds(
        lambda interval, day: f"FREQ=MONTHLY;INTERVAL={interval};BYMONTHDAY={day}",
        st.integers(1, 4),
        st.sampled_from([1, 15, 29, 31, -1]),
    ),
    st.just("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"),
    st.just("FREQ=MONTHLY"),
    st.just("FREQ=YEARLY"),
    st.just("FREQ=YEARLY;BYMONTH=3,10;BYDAY=-1SU"),
    st.builds("FREQ=YEARLY;BYDAY={}".format, st.sampled_from(["12SU", "-10MO", "40WE", "TH"])),
    st.builds(
        "FREQ=YEARLY;BYWEEKNO={};BYDAY=TU,SU;WKST={}".format,
        st.sampled_from(["1", "12,13", "40", "53", "-1", "-13"]),
        st.sampled_from(["MO", "SU", "TH"]),
    ),
    st.builds("FREQ=YEARLY;BYYEARDAY={}".format, st.sampled_from(["1", "88,300", "-1", "-70"])),
    st.just("FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR"),
    st.just("FREQ=MONTHLY;BYDAY=SU;BYSETPOS=1,-1;BYHOUR=1,2"),
    st.just("FREQ=DAILY;BYMONTH=3,10"),
    st.just("FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=0,30"),
)
changes = st.lists(st.tuples(st.integers(0, 30), st.integers(-30, 30), st.booleans()), max_size=4)
ends = st.one_of(
    st.just(""),
    st.integers(1, 40).map(";COUNT={}".format),
    st.integers(0, 300).map(lambda n: f";UNTIL={date(2026, 1, 1) + timedelta(days=n):%Y%m%d}T120000Z"),
)


def written(moment: datetime) -> str:
    """Return a time on the wall clock as iCalendar has it."""
    return f"{moment:%Y%m%dT%H%M%S}"


def calendar(*events: list[str]) -> str:
    """Return a file with these events."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//tests//EN"]
    for event in events:
        lines += ["BEGIN:VEVENT", *event, "END:VEVENT"]
    return "\r\n".join([*lines, "END:VCALENDAR", ""])


Stretches = list[tuple[datetime, datetime]]


def within(span: tuple[datetime, datetime], pairs: Stretches) -> Stretches:
    """Return the time of these stretches inside the span, joined."""
    joined: Stretches = []
    for start, end in sorted((max(start, span[0]), min(end, span[1])) for start, end in pairs):
        if start >= end:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined


def ours(text: str, zone: str, span: tuple[datetime, datetime]) -> Stretches:
    """Return the time of the events in a file by our own reading."""
    found = []
    for run in parse_ical(text, ZoneInfo(zone), zone_given=True).runs(span[0]):
        if run.start >= span[1]:
            break
        found.append((run.start, run.end))
    return within(span, found)


def utc(value: Any, zone: str) -> datetime:
    """Return the library's date or time in UTC."""
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    return (moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC)


def theirs(text: str, zone: str, span: tuple[datetime, datetime], elapsed: timedelta | None) -> Stretches:
    """Return the time of the events by the library. It takes a DURATION for time on the wall clock."""
    found = []
    query = recurring_ical_events.of(icalendar.Calendar.from_ical(text))
    for event in query.between(span[0] - timedelta(days=8), span[1] + timedelta(days=2)):
        if event.get("STATUS") == "CANCELLED":
            continue  # the library returns them to its caller
        start = utc(event["DTSTART"].dt, zone)
        end = start + elapsed if elapsed is not None else utc(event["DTEND"].dt, zone)
        found.append((start, end))
    return within(span, found)


COMPARED = Hits()


@COMPARED.at_least(100)
@unhurried
@given(
    spans, days, clocks, st.integers(1, 200), st.booleans(), rules, ends, st.sampled_from(ZONES), st.data()
)
def test_a_repeating_event_is_when_the_library_says(
    span: tuple[datetime, datetime],
    day: date,
    clock: time,
    quarters: int,
    by_duration: bool,
    rule: str,
    end: str,
    zone: str,
    data: st.DataObject,
) -> None:
    start = datetime.combine(day, clock)
    length = timedelta(minutes=15 * quarters)
    lines = ["UID:1", f"DTSTART;TZID={zone}:{written(start)}"]
    if by_duration:
        lines.append(f"DURATION:PT{15 * quarters}M")
    else:
        lines.append(f"DTEND;TZID={zone}:{written(start + length)}")
    out = data.draw(st.lists(st.integers(0, 20), max_size=3))
    lines += [f"EXDATE;TZID={zone}:{written(start + timedelta(days=n))}" for n in out]
    lines.append(f"RRULE:{rule}{end}")
    text = calendar(lines)

    found = ours(text, zone, span)

    COMPARED.count(len(found))
    assert found == theirs(text, zone, span, length if by_duration else None)


@COMPARED.at_least(50)
@unhurried
@given(
    spans, days, st.integers(1, 5), rules, st.sampled_from(ZONES), st.lists(st.integers(0, 40), max_size=3)
)
def test_whole_days_are_those_that_the_library_says(
    span: tuple[datetime, datetime], day: date, length: int, rule: str, zone: str, out: list[int]
) -> None:
    if "BYHOUR" in rule:
        return
    lines = [
        "UID:1",
        f"DTSTART;VALUE=DATE:{day:%Y%m%d}",
        f"DTEND;VALUE=DATE:{day + timedelta(days=length):%Y%m%d}",
    ]
    lines += [f"RRULE:{rule}", *(f"EXDATE;VALUE=DATE:{day + timedelta(days=n):%Y%m%d}" for n in out)]
    text = calendar(lines)

    found = ours(text, zone, span)

    COMPARED.count(len(found))
    assert found == theirs(text, zone, span, None)


@COMPARED.at_least(50)
@unhurried
@given(spans, days, clocks, changes, st.sampled_from(ZONES))
def test_moved_and_cancelled_instances_are_where_the_library_says(
    span: tuple[datetime, datetime], day: date, clock: time, moves: list[tuple[int, int, bool]], zone: str
) -> None:
    start = datetime.combine(day, clock)
    series = ["UID:1", f"DTSTART;TZID={zone}:{written(start)}", "DURATION:PT2H", "RRULE:FREQ=DAILY"]
    events = [series]
    for n, hours, cancelled in {move[0]: move for move in moves}.values():
        instance = start + timedelta(days=n)
        moved = ["UID:1", f"RECURRENCE-ID;TZID={zone}:{written(instance)}"]
        moved += [f"DTSTART;TZID={zone}:{written(instance + timedelta(hours=hours))}", "DURATION:PT2H"]
        events.append([*moved, "STATUS:CANCELLED"] if cancelled else moved)
    text = calendar(*events)

    found = ours(text, zone, span)

    COMPARED.count(len(found))
    assert found == theirs(text, zone, span, timedelta(hours=2))


OWN_ZONE = """BEGIN:VTIMEZONE
TZID:{name}
BEGIN:STANDARD
DTSTART:16010101T030000
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010101T020000
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3
END:DAYLIGHT
END:VTIMEZONE
"""


@settings(deadline=None, max_examples=examples(40))
@given(spans, days, clocks, st.integers(1, 20))
def test_a_zone_that_the_file_defines_is_the_zone_that_it_means(
    span: tuple[datetime, datetime], day: date, clock: time, quarters: int
) -> None:
    start = datetime.combine(day, clock)
    lines = ["UID:1", f"DTSTART;TZID=W. Europe Standard Time:{written(start)}"]
    lines += [f"DURATION:PT{15 * quarters}M", "RRULE:FREQ=DAILY"]
    text = calendar(lines)
    own = text.replace("BEGIN:VEVENT", f"{OWN_ZONE.format(name='W. Europe Standard Time')}BEGIN:VEVENT", 1)

    named = text.replace("W. Europe Standard Time", "Europe/Berlin")
    assert ours(own, "UTC", span) == ours(named, "UTC", span)
