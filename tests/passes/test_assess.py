"""Joining what the sources say into events, and calling what is old unknown."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model import limits
from reconciler.model.event import Answer, Initiator, Kind, Signal, Status
from reconciler.model.record import identity, same_event
from reconciler.passes.assess import SignalGroups, assess, join, signal_order
from tests.laws.breaking import Break
from tests.support import builders, strategies
from tests.support.builders import NOW, minutes, reading, signal
from tests.support.searching import examples

CONDITION = "condition:VMEventScheduled"


@pytest.mark.parametrize(
    ("one", "two", "together"),
    [
        pytest.param(
            signal(event_id="A1", not_before=NOW),
            signal(source=CONDITION, event_id="a1", not_before=NOW + minutes(90)),
            True,
            id="the same id in other letters, whatever the date",
        ),
        pytest.param(
            signal(event_id="A1", not_before=NOW),
            signal(source=CONDITION, not_before=NOW + minutes(1)),
            True,
            id="kind and date within a minute",
        ),
        pytest.param(
            signal(event_id="A1", not_before=NOW),
            signal(source=CONDITION, not_before=NOW + minutes(2)),
            False,
            id="two minutes are two events",
        ),
        pytest.param(
            signal(not_before=NOW),
            signal(source=CONDITION, status=Status.STARTED),
            True,
            id="one without date",
        ),
        pytest.param(
            signal(Kind.FREEZE, not_before=NOW),
            signal(Kind.LIVE_MIGRATION, source=CONDITION, not_before=NOW),
            True,
            id="a Freeze may be a LiveMigration",
        ),
        pytest.param(
            signal(Kind.FREEZE, not_before=NOW),
            signal(Kind.REBOOT, source=CONDITION, not_before=NOW),
            False,
            id="a Freeze is no Reboot",
        ),
        pytest.param(
            signal(event_id="A1", not_before=NOW),
            signal(event_id="B2", not_before=NOW),
            False,
            id="one source tells two events apart itself",
        ),
    ],
)
def test_two_signals_are_one_event_or_two(one: Signal, two: Signal, together: bool) -> None:
    assert len(join("a", (one, two))) == (1 if together else 2)
    assert join("a", (one, two)) == join("a", (two, one))


def test_the_most_careful_report_wins_and_the_difference_is_shown() -> None:
    (event,) = join(
        "a",
        (
            signal(
                Kind.FREEZE,
                event_id="A1",
                not_before=NOW + minutes(10),
                duration=timedelta(seconds=5),
                initiator=Initiator.USER,
                description="short",
            ),
            signal(
                Kind.REBOOT,
                source=CONDITION,
                event_id="a1",
                status=Status.STARTED,
                not_before=NOW,
                duration=timedelta(seconds=60),
                initiator=Initiator.PLATFORM,
                description="the longer text",
            ),
        ),
    )

    assert (event.kind, event.status, event.not_before) == (Kind.REBOOT, Status.STARTED, NOW)
    assert (event.duration, event.cause.initiator) == (timedelta(seconds=60), Initiator.PLATFORM)
    assert event.cause.description == "the longer text"
    assert event.sources == (CONDITION, "imds")
    assert event.disagreements == (
        "kind: condition:VMEventScheduled says Reboot, imds says Freeze",
        "status: condition:VMEventScheduled says Started, imds says Scheduled",
        "not before: condition:VMEventScheduled says 2026-11-21T12:00:00Z, imds says 2026-11-21T12:10:00Z",
        "duration: condition:VMEventScheduled says 1m, imds says 5s",
        "initiator: condition:VMEventScheduled says Platform, imds says User",
    )


def test_a_freeze_that_another_source_calls_a_live_migration_is_no_disagreement() -> None:
    (event,) = join("a", (signal(Kind.FREEZE), signal(Kind.LIVE_MIGRATION, source=CONDITION)))

    assert (event.kind, event.disagreements) == (Kind.LIVE_MIGRATION, ())


def test_a_date_that_one_source_can_read_is_known() -> None:
    unread = signal(source=CONDITION, date_unreadable=True)
    (both,) = join("a", (signal(not_before=NOW), unread))
    (alone,) = join("a", (unread,))

    assert (both.date_unreadable, both.not_before) == (False, NOW)
    assert alone.date_unreadable


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(strategies.signals, max_size=5), st.randoms(use_true_random=False))
def test_no_signal_is_lost_and_the_order_does_not_matter(
    signals: list[Signal], chance: random.Random
) -> None:
    events = join("a", signals)
    shuffled = list(signals)
    chance.shuffle(shuffled)

    assert {source for event in events for source in event.sources} == {one.source for one in signals}
    assert {text.casefold() for event in events for text in event.ids} == {
        one.id.casefold() for one in signals if one.id
    }
    assert bool(events) == bool(signals)
    assert len(join("a", shuffled)) == len(events)


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        pytest.param(minutes(15), Answer.EVENT, id="just young enough"),
        pytest.param(minutes(15) + timedelta.resolution, Answer.UNKNOWN, id="too old"),
    ],
)
def test_an_old_answer_is_unknown(age: timedelta, expected: Answer) -> None:
    node = builders.node()
    reported = reading(signal(source=CONDITION), as_of=NOW - age)
    found = assess(builders.snapshot(node, readings={"a": (reported,)}), NOW).of("a")

    assert found.answer(CONDITION) is expected
    assert bool(found.events) == (expected is Answer.EVENT)


@pytest.mark.parametrize(
    ("ahead", "skew", "expected"),
    [
        pytest.param(timedelta(days=1), timedelta(), Answer.UNKNOWN, id="a day"),
        pytest.param(minutes(10), timedelta(), Answer.NO_EVENT, id="less than staleAfter"),
        pytest.param(timedelta(days=1), -timedelta(days=1), Answer.NO_EVENT, id="our own clock is behind"),
    ],
)
def test_no_event_with_a_heartbeat_in_the_future_is_unknown(
    ahead: timedelta, skew: timedelta, expected: Answer
) -> None:
    reported = reading(source=CONDITION, as_of=NOW + ahead)
    found = assess(builders.snapshot(builders.node(), readings={"a": (reported,)}, skew=skew), NOW).of("a")

    assert found.answer(CONDITION) is expected


def test_an_event_with_a_heartbeat_in_the_future_is_an_event() -> None:
    reported = reading(signal(source=CONDITION), as_of=NOW + timedelta(days=1))
    found = assess(builders.snapshot(builders.node(), readings={"a": (reported,)}), NOW).of("a")

    assert len(found.events) == 1


def test_what_is_not_installed_is_counted() -> None:
    nodes = [builders.node(name) for name in ("a", "b", "c")]
    absent = reading(source="imds", unknown="no node agent is installed", installed=False)
    seen = builders.snapshot(*nodes, readings={"a": (absent,), "b": (absent,)})

    assert assess(seen, NOW).absent == {"imds: no node agent is installed": 2}


def _candidates(groups: list[list[Signal]], one: Signal) -> list[int]:
    """Compare a signal with all groups: what joining means, without its speed."""
    by_id = [
        number
        for number, group in enumerate(groups)
        if one.id and one.id.casefold() in {other.id.casefold() for other in group}
    ]
    return by_id or [
        number
        for number, group in enumerate(groups)
        if not any(other.source == one.source and other.id != one.id for other in group)
        and any(same_event(identity(other), identity(one)) for other in group)
    ]


@settings(max_examples=examples(400))
@given(st.lists(strategies.signals, max_size=12))
def test_a_signal_joins_a_group_that_is_the_same_event_and_makes_one_only_where_none_is(
    signals: list[Signal],
) -> None:
    joining = SignalGroups()
    for one in sorted(signals, key=signal_order):
        before = [list(group) for group in joining.groups]
        joining.add(one)
        (joined,) = [
            number
            for number, group in enumerate(joining.groups)
            if number >= len(before) or len(group) > len(before[number])
        ]
        assert joined in (_candidates(before, one) or [len(before)])


@pytest.mark.parametrize("dated", [False, True])
@pytest.mark.parametrize("sources", [1, 3])
def test_the_work_of_joining_grows_with_the_number_of_events_and_not_with_its_square(
    sources: int, dated: bool
) -> None:
    def reads(count: int) -> int:
        counting = Break(0)
        groups = SignalGroups()
        for number in range(count):
            each = signal(source=f"s{number % sources}", event_id=f"E{number:06}", not_before=dates)
            groups.add(counting.broken(each))
        return counting.reads

    dates = NOW if dated else None
    assert reads(1200) <= 3 * reads(400) + 100


def test_a_reading_with_too_many_events_is_unknown_and_the_others_stay() -> None:
    many = [signal(event_id=f"E{number}") for number in range(limits.EVENTS)]
    one = signal(source="request", not_before=NOW)
    seen = builders.snapshot(builders.node(), readings={"a": (reading(*many), reading(one))})
    found = assess(seen, NOW).of("a")

    assert [event.sources for event in found.events] == [("request",)]
    assert [one.answer for one in found.readings] == [Answer.UNKNOWN, Answer.EVENT]
    assert "more than 100 events, 100 from here" in found.readings[0].because


def test_a_source_keeps_its_ids_apart_where_another_source_names_the_later_one() -> None:
    signals = [signal(source=CONDITION, event_id="B2"), signal(event_id="A1"), signal(event_id="B2")]

    assert [event.ids for event in join("a", signals)] == [("A1",), ("B2",)]
