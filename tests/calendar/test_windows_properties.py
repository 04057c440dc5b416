"""What holds for every calendar: against naive oracles, in every zone, at every minute."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.calendar.occurrences import Cron, Once, Run, Span, Times, Weekly, firings, subtract, union
from reconciler.calendar.values import TimeOfDay
from reconciler.calendar.windows import Calendar, NotAllowed, Openness, Window
from reconciler.model.selector import LabelSelector
from reconciler.settings.fields import parse_selector
from tests.laws.hits import Hits
from tests.support.searching import examples

# A shared machine may be slow at any one example; the suite's own timeout is enough.
unhurried = settings(deadline=None, max_examples=examples(60))

START = datetime(2026, 1, 1, tzinfo=UTC)
ZONES = [ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")]
# Both of the nights, in every zone of the list, in which the clocks change.
CHANGES = [
    datetime(2026, month, day, tzinfo=UTC)
    for month, day in ((3, 8), (3, 29), (4, 4), (10, 3), (10, 25), (11, 1))
]

minutes = st.integers(0, 365 * 24 * 60).map(lambda minute: START + timedelta(minutes=minute))
near_changes = st.builds(
    lambda day, minute: day + timedelta(minutes=minute), st.sampled_from(CHANGES), st.integers(-2000, 2000)
)
moments = minutes | near_changes
zones = st.sampled_from(ZONES)
quarters = st.integers(0, 95).map(lambda quarter: TimeOfDay(quarter * 900))


@st.composite
def weekly(draw: st.DrawFn, zone: st.SearchStrategy[ZoneInfo] = zones) -> Weekly:
    """Draw a weekly rule on quarters of hours."""
    start = draw(quarters)
    end = draw(quarters.filter(lambda end: end != start))
    days = draw(st.frozensets(st.integers(0, 6), min_size=1))
    return Weekly(days, start, end, draw(zone))


@st.composite
def once(draw: st.DrawFn) -> Once:
    """Draw a stretch of up to forty days."""
    start = draw(moments)
    return Once(start, start + timedelta(minutes=draw(st.integers(1, 40 * 1440))), UTC)


crons = st.builds(
    Cron,
    st.sampled_from(["@daily", "0 2 * * 6#1", "30 2 * * *", "*/20 8-10 * * 1-5", "0 0 1 * *"]),
    st.integers(1, 3000).map(lambda minute: timedelta(minutes=minute)),
    zones,
)
times: st.SearchStrategy[Times] = weekly() | once() | crons
selectors: st.SearchStrategy[LabelSelector] = st.sampled_from([{}, {"a": "1"}, {"a": "2"}]).map(
    parse_selector
)
nodes: st.SearchStrategy[dict[str, str]] = st.sampled_from([{}, {"a": "1"}, {"a": "2"}])


@st.composite
def calendars(draw: st.DrawFn) -> Calendar:
    """Draw up to three windows and two freezes."""
    windows = draw(st.lists(st.tuples(times, selectors), max_size=3))
    freezes = draw(st.lists(st.tuples(times, selectors, st.booleans()), max_size=2))
    return Calendar(
        [Window(f"w{i}", rule, selector) for i, (rule, selector) in enumerate(windows)],
        [NotAllowed(f"n{i}", rule, "", absolute, sel) for i, (rule, sel, absolute) in enumerate(freezes)],
    )


def facts(answer: Openness) -> tuple[bool, str | None, str | None, bool]:
    """Return what of an answer its `changes_at` is about."""
    return answer.open, answer.window, answer.not_allowed, answer.absolute


def in_force(rule: Times, now: datetime) -> bool:
    """Say whether a rule is in force, by its runs."""
    run = next(iter(rule.runs(now)), None)
    return run is not None and run.holds(now)


@unhurried
@given(weekly(st.just(ZONES[0])), minutes)
def test_a_weekly_rule_is_in_force_when_the_wall_clock_says_so(rule: Weekly, now: datetime) -> None:
    clock = TimeOfDay(now.hour * 3600 + now.minute * 60)
    today, yesterday = now.weekday() in rule.days, (now.weekday() - 1) % 7 in rule.days
    overnight = rule.end < rule.start
    started_today = today and rule.start <= clock and (overnight or clock < rule.end)
    started_yesterday = yesterday and overnight and clock < rule.end

    assert in_force(rule, now) is (started_today or started_yesterday)


@unhurried
@given(weekly(), moments)
def test_away_from_changes_of_the_clocks_every_zones_wall_clock_says_so(rule: Weekly, now: datetime) -> None:
    offsets = {(now + timedelta(days=step)).astimezone(rule.zone).utcoffset() for step in (-2, -1, 0, 1, 2)}
    if len(offsets) == 1:
        local = now.astimezone(rule.zone).replace(tzinfo=UTC)

        assert in_force(rule, now) is in_force(Weekly(rule.days, rule.start, rule.end, UTC), local)


RUNS, EDGES = Hits(), Hits()


@RUNS.at_least(50)
@unhurried
@given(times, moments)
def test_runs_ascend_never_touch_and_end_after_the_question(rule: Times, now: datetime) -> None:
    runs = list(islice(rule.runs(now), 5))

    RUNS.count(len(runs))
    assert all(run.start < run.end and now < run.end for run in runs)
    assert all(one.end < other.start for one, other in pairwise(runs))


@EDGES.at_least(50)
@unhurried
@given(times, moments)
def test_a_run_is_half_open(rule: Times, now: datetime) -> None:
    for run in islice(rule.runs(now), 2):
        EDGES.count()
        if run.start.year > 1:
            assert in_force(rule, run.start)
            assert not in_force(rule, run.start - timedelta(seconds=1))
        if run.end.year < 9999:
            assert not in_force(rule, run.end)
            assert in_force(rule, run.end - timedelta(seconds=1))


def _minutes(spans: list[Span]) -> set[int]:
    return {
        minute
        for span in spans
        for minute in range(int((span.run.start - START).total_seconds()) // 60,
                            int((span.run.end - START).total_seconds()) // 60)
    }  # fmt: skip


def _spans(pairs: list[tuple[int, int]]) -> list[Span]:
    return sorted(
        (
            Span(Run(START + timedelta(minutes=a), START + timedelta(minutes=a + length)))
            for a, length in pairs
        ),
        key=lambda span: span.run.start,
    )


stretches = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 50)), max_size=6).map(_spans)
FAR = START + timedelta(days=400)


@unhurried
@given(stretches, stretches)
def test_a_union_holds_the_minutes_of_both(one: list[Span], other: list[Span]) -> None:
    joined = list(union([one, other], FAR))

    assert _minutes(joined) == _minutes(one) | _minutes(other)
    assert all(a.run.end < b.run.start for a, b in pairwise(joined))


def test_what_is_taken_may_cover_the_end_of_one_span_and_the_start_of_the_next() -> None:
    left = subtract(_spans([(0, 10), (20, 10)]), _spans([(5, 20)]))

    assert list(left) == _spans([(0, 5), (25, 5)])


@unhurried
@given(stretches, stretches)
def test_a_difference_holds_the_minutes_of_one_and_not_of_the_other(
    one: list[Span], other: list[Span]
) -> None:
    left = list(subtract(union([one], FAR), union([other], FAR)))

    assert _minutes(left) == _minutes(one) - _minutes(other)
    assert all(span.run.start < span.run.end for span in left)


@unhurried
@given(calendars(), nodes, moments)
def test_a_calendar_says_what_its_rules_say_one_by_one(
    calendar: Calendar, labels: dict[str, str], now: datetime
) -> None:
    windows = [window for window in calendar.windows if window.selector.matches(labels)]
    freezes = [freeze for freeze in calendar.not_allowed if freeze.selector.matches(labels)]
    opened = not windows or any(in_force(window.times, now) for window in windows)
    frozen = [freeze for freeze in freezes if in_force(freeze.times, now)]

    answer = calendar.at(now, labels)

    assert answer.open is (opened and not frozen)
    assert answer.not_allowed == (frozen[0].name if frozen else None)
    assert answer.absolute is any(freeze.absolute for freeze in frozen)


@unhurried
@given(calendars(), nodes, moments, zones)
def test_the_time_zone_of_now_changes_nothing(
    calendar: Calendar, labels: dict[str, str], now: datetime, zone: ZoneInfo
) -> None:
    elsewhere = now.astimezone(zone)

    assert calendar.at(elsewhere, labels) == calendar.at(now, labels)
    assert calendar.openings(elsewhere, labels) == calendar.openings(now, labels)


@unhurried
@given(calendars(), nodes, moments)
def test_openings_and_answers_agree(calendar: Calendar, labels: dict[str, str], now: datetime) -> None:
    openings = calendar.openings(now, labels, count=2)

    answer = calendar.at(now, labels)
    assert answer.open is bool(openings and openings[0].start <= now)
    for opening in openings:
        assert calendar.at(max(opening.start, now), labels).open
        if opening.end is not None:
            assert now < opening.end
            assert not calendar.at(opening.end, labels).open
            assert calendar.at(opening.end - timedelta(seconds=1), labels).open


@unhurried
@given(calendars(), nodes, moments)
def test_an_answer_holds_until_it_says_that_it_changes(
    calendar: Calendar, labels: dict[str, str], now: datetime
) -> None:
    answer = calendar.at(now, labels)
    last = answer.changes_at or now + timedelta(days=300)

    asked = calendar.at(now, labels)
    for step in range(1, 12):
        between = now + (last - now) * step / 12
        assert facts(calendar.at(between, labels)) == facts(asked)
    if answer.changes_at is not None:
        assert now < answer.changes_at
        assert facts(calendar.at(answer.changes_at, labels)) != facts(answer)


@unhurried
@given(calendars(), nodes, moments, moments)
def test_an_answer_does_not_depend_on_earlier_questions(
    calendar: Calendar, labels: dict[str, str], now: datetime, earlier: datetime
) -> None:
    fresh, asked = (Calendar(calendar.windows, calendar.not_allowed) for _ in range(2))
    asked.at(earlier, labels)

    assert facts(asked.at(now, labels)) == facts(fresh.at(now, labels))


@unhurried
@given(
    st.sampled_from(
        ["*/7 * * * *", "30 2 * * *", "15,45 1-3 * * *", "0 */5 * * 0", "10 0 1-7 * 1", "* 2 * * *"]
    ),
    st.integers(1, 900).map(lambda minute: timedelta(minutes=minute)),
    zones,
    near_changes,
)
def test_a_cron_rule_is_in_force_for_its_length_after_each_of_cronsims_firings(
    schedule: str, duration: timedelta, zone: ZoneInfo, now: datetime
) -> None:
    before = firings(schedule, now - duration - timedelta(seconds=1), zone)
    first = next(before).astimezone(UTC)

    # A firing at now - duration is just over.
    fired = first if now - duration < first else next(before).astimezone(UTC)
    assert in_force(Cron(schedule, duration, zone), now) is (fired <= now)
