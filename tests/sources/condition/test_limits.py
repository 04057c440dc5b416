"""What a condition may say: beyond the limits it is unknown, or cut."""

from __future__ import annotations

from datetime import UTC, datetime

from reconciler.model import limits
from reconciler.model.event import Answer, Kind
from reconciler.sources.condition.source import parse_message, read
from tests.laws.histories import MAIN
from tests.support import builders

FAR = datetime(9999, 12, 31, tzinfo=UTC)
MANY_DIGITS = "9" * 5000


def test_a_message_with_thousands_of_digits_is_an_event_of_unknown_duration() -> None:
    found = parse_message("s", f"Reboot Started. DurationInSeconds: {MANY_DIGITS}. Because.")
    assert (found.kind, found.duration) == (Kind.REBOOT, None)


def test_a_heartbeat_that_can_not_be_meant_makes_the_reading_unknown() -> None:
    (found,) = read(builders.node(conditions=(builders.condition(MAIN, "False", at=FAR),)))
    assert found.answer is Answer.UNKNOWN
    assert found.as_of is None


def test_texts_of_a_condition_are_cut() -> None:
    (found,) = read(builders.node(conditions=(builders.condition(MAIN, "Unknown", "x" * 10**6),)))
    assert len(found.because) < 2 * limits.TEXT
    assert len(parse_message("s", "Hibernate Scheduled. " + "x" * 10**6).description) <= limits.TEXT
