"""What an agent may publish: beyond the limits it is unknown, and what is left out is named."""

from __future__ import annotations

import json

import pytest

from reconciler.model import limits
from reconciler.model.event import Answer, Kind
from reconciler.model.snapshot import Agents
from reconciler.sources.imds import scheduled_events as imds
from reconciler.sources.imds import source as published
from tests.support import builders
from tests.support.builders import IMDS, PREFIX

MANY_DIGITS = "9" * 5000
EVENT = {"EventId": "A1", "EventType": "Reboot", "EventStatus": "Scheduled", "NotBefore": ""}


@pytest.mark.parametrize(
    "text",
    [
        builders.published(EVENT) + " " * limits.ANNOTATION,
        builders.published(*[EVENT] * (limits.EVENTS + 1)),
        f'{{"version":{MANY_DIGITS}}}',
    ],
)
def test_published_events_beyond_the_limits_are_unknown(text: str) -> None:
    node = builders.node(annotations={IMDS: text})
    assert published.read(node, PREFIX, Agents(installed=True)).answer is Answer.UNKNOWN


def test_a_published_duration_of_many_digits_is_unknown() -> None:
    text = builders.published(EVENT).replace('"A1"', f'"A1", "DurationInSeconds": {MANY_DIGITS}')
    (found,) = imds.published(text).signals
    assert (found.id, found.duration) == ("A1", None)


@pytest.mark.parametrize("description", ["", "x" * 5000])
def test_the_agent_publishes_no_more_than_is_read_and_says_what_is_missing(description: str) -> None:
    events = [
        {**EVENT, "EventId": f"E{n}", "Resources": ["vm"], "Description": description} for n in range(150)
    ]
    text = imds.to_annotation({"Events": events}, "vm")
    found = imds.published(text).signals

    assert len(text) <= limits.ANNOTATION
    kept = len(json.loads(text)["events"])
    assert 0 < kept <= limits.EVENTS
    assert found[-1].kind is Kind.UNKNOWN
    assert f"{150 - kept} more events" in found[-1].description


def test_an_event_that_alone_is_too_long_is_not_lost() -> None:
    text = imds.to_annotation({"Events": [{**EVENT, "Resources": ["vm"], "Description": "x" * 40_000}]}, "vm")
    (found,) = imds.published(text).signals
    assert found.kind is Kind.UNKNOWN
