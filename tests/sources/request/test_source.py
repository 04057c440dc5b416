"""A request by hand: what may be written, and what is said where it can't be read."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings

from reconciler.model.event import Answer, Kind, Signal, Status
from reconciler.sources.request.source import parse, read
from tests.support import builders, strategies
from tests.support.builders import NOW, PREFIX, REQUEST, minutes


def test_only_the_kind_is_needed() -> None:
    assert parse('{"kind":"reboot"}') == Signal("request", Kind.REBOOT, Status.SCHEDULED)


def test_every_key_is_read() -> None:
    text = (
        '{"kind":"Redeploy","notBefore":"2026-11-21T14:00:00+01:00","duration":"5m","id":"CHG-42",'
        '"reason":"new disk"}'
    )

    assert parse(text) == Signal(
        "request",
        Kind.REDEPLOY,
        Status.SCHEDULED,
        not_before=NOW + minutes(60),
        duration=timedelta(minutes=5),
        id="CHG-42",
        description="new disk",
    )


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("2m", 120), ("3h", 3 * 3600), ("4d", 4 * 86400), ("0s", 0)]
)
def test_a_duration_has_one_number_and_one_unit(text: str, seconds: int) -> None:
    assert parse(f'{{"kind":"Freeze","duration":"{text}"}}').duration == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("reboot", "it is not JSON", id="no JSON"),
        pytest.param("[]", "it is not a JSON object", id="no object"),
        pytest.param("{}", "kind is None; write one of Freeze, LiveMigration", id="no kind"),
        pytest.param('{"kind":"Nap"}', "kind is 'Nap'", id="unknown kind"),
        pytest.param('{"kind":"Unknown"}', "kind is 'Unknown'", id="nobody asks for Unknown"),
        pytest.param('{"kind":"Reboot","when":"now"}', "unknown key 'when'", id="unknown key"),
        pytest.param('{"kind":"Reboot","notBefore":"soon"}', "notBefore: ", id="no date"),
        pytest.param(
            '{"kind":"Reboot","notBefore":"2026-11-21T22:00:00"}', "without a time zone", id="no zone"
        ),
        pytest.param('{"kind":"Reboot","notBefore":"0001-01-01T00:00:00+14:00"}', "notBefore: ", id="year 0"),
        pytest.param('{"kind":"Reboot","duration":"long"}', "duration is 'long'", id="no duration"),
        pytest.param('{"kind":"Reboot","duration":"99999999999999d"}', "duration is", id="endless"),
    ],
)
def test_a_request_that_can_not_be_read_is_an_unknown_event_that_says_what_to_change(
    text: str, said: str
) -> None:
    answer = read(builders.node(annotations={REQUEST: text}), PREFIX)

    assert answer.answer is Answer.EVENT
    assert answer.signals[0].kind is Kind.UNKNOWN
    assert said in answer.signals[0].description


@settings(deadline=None)
@given(strategies.garbage)
def test_no_text_breaks_the_reading(text: str) -> None:
    answer = read(builders.node(annotations={REQUEST: text}), PREFIX)

    assert answer.answer is Answer.EVENT


def test_without_the_annotation_nothing_is_asked() -> None:
    assert read(builders.node(), PREFIX).answer is Answer.NO_EVENT
