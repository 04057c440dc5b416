"""EC2's answers as readings: kinds, dates, and which instance a node is."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.model.event import Answer, Kind, Status
from reconciler.model.node import Node
from reconciler.model.polling import Memory
from reconciler.sources.aws import source as aws
from reconciler.sources.aws.source import InstanceEvent
from tests.support import builders
from tests.support.builders import NOW, minutes

REGION, INSTANCE = "eu-west-1", f"i-{0:017x}"
EC2 = aws.Ec2Events()
NONE: Memory[str, InstanceEvent] = Memory()


def event(
    code: str = "system-reboot", hours: float = 1, *, now: datetime = NOW, words: str = "scheduled reboot"
) -> dict[str, Any]:
    start = now + timedelta(hours=hours)
    return {
        "InstanceEventId": "instance-event-1",
        "Code": code,
        "Description": words,
        "NotBefore": start,
        "NotAfter": start + timedelta(hours=2),
        "NotBeforeDeadline": start + timedelta(days=7),
    }


def status(*events: dict[str, Any]) -> dict[str, Any]:
    return {"InstanceId": INSTANCE, "Events": list(events)}


def on() -> Node:
    """The node that is the instance."""
    found = builders.node()
    return Node(found.name, found.uid, "1", provider_id=f"aws:///eu-west-1a/{INSTANCE}")


def remembered(statuses: list[dict[str, Any]]) -> Memory[str, InstanceEvent]:
    return EC2.remembered(NONE, [aws.listing(REGION, statuses)], [on()], minutes(5), NOW)


def read(statuses: list[dict[str, Any]]) -> Any:
    reading = EC2.reading(on(), remembered(statuses), NOW)
    assert reading is not None
    return reading


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("instance-reboot", Kind.REBOOT),
        ("system-reboot", Kind.REBOOT),
        ("system-maintenance", Kind.REBOOT),
        ("instance-stop", Kind.REDEPLOY),
        ("instance-retirement", Kind.TERMINATE),
        ("instance-nap", Kind.UNKNOWN),
    ],
)
def test_each_code_has_its_kind(code: str, kind: Kind) -> None:
    reading = read([status(event(code))])

    assert [signal.kind for signal in reading.signals] == [kind]


def respelt(value: Any, spell: Callable[[str], str]) -> Any:
    """The document with every key in another spelling."""
    if isinstance(value, dict):
        return {spell(key): respelt(each, spell) for key, each in value.items()}
    return [respelt(each, spell) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "spell",
    [
        pytest.param(lambda key: key[0].lower() + key[1:], id="camelCase"),
        pytest.param(lambda key: re.sub("(?<!^)([A-Z])", r"_\1", key).lower(), id="snake_case"),
        pytest.param(lambda key: re.sub("(?<!^)([A-Z])", r"-\1", key).lower(), id="kebab-case"),
        pytest.param(str.lower, id="lower case"),
    ],
)
def test_every_key_of_an_answer_counts_in_each_spelling(spell: Callable[[str], str]) -> None:
    written = status(event(), event("instance-stop", 5, words="[Completed] over"))
    (kept,) = aws.listing(REGION, [written]).found

    assert aws.listing(REGION, [respelt(written, spell)]).found == (kept,)
    assert None not in (kept[1].not_before, kept[1].not_after, kept[1].latest)


@pytest.mark.parametrize("word", ["[Completed]", "[Canceled]", "[Cancelled]", " [completed]"])
def test_what_is_over_is_no_event(word: str) -> None:
    over = event(words=f"{word} The instance is running on degraded hardware")

    assert read([status(over)]).answer is Answer.NO_EVENT


def test_an_event_has_started_once_its_time_has_come_and_that_is_a_moment_of_change() -> None:
    memory = remembered([status(event(hours=0.05))])
    before, after = (EC2.reading(on(), memory, NOW + minutes(count)) for count in (0, 3))

    assert before is not None
    assert after is not None
    assert [one.status for one in (*before.signals, *after.signals)] == [Status.SCHEDULED, Status.STARTED]
    assert NOW + minutes(3) in EC2.changes(memory, NOW)


def test_a_date_that_can_not_be_read_is_reported_as_such() -> None:
    [signal] = read([status({**event(), "NotBefore": "soon"})]).signals

    assert signal.date_unreadable
    assert signal.not_before is None


def test_an_expired_answer_is_unknown_in_a_process_without_a_client() -> None:
    stale = EC2.reading(on(), remembered([]), NOW + minutes(5))

    assert stale is not None
    assert stale.answer is Answer.UNKNOWN


@pytest.mark.parametrize(
    ("provider_id", "known"),
    [
        ("aws:///eu-west-1a/i-0123456789abcdef0", ("eu-west-1", "i-0123456789abcdef0")),
        ("aws:///us-gov-west-1b/i-0a", ("us-gov-west-1", "i-0a")),
        ("aws:///us-west-2-lax-1a/i-0a", ("us-west-2", "i-0a")),
        ("aws:///us-east-1-wl1-bos-wlz-1/i-0a", ("us-east-1", "i-0a")),
        ("aws:///ap-southeast-2c/I-0A", ("ap-southeast-2", "i-0a")),
        ("aws:///eu-west-1a/0a1b/fargate-ip-10-0-0-1", None),
        ("aws:///eu-west-1a/i-0a\n", None),
        ("aws:///eu-west-1a/i-" + "0" * 18, None),
        ("aws:///evil.example-1a/i-0a", None),
        ("aws:///eu-" + "w" * 40 + "-1a/i-0a", None),
        ("aws:///eu-we\u017ft-1a/i-0a", None),
        ("aws:///eu-west-\u0661a/i-0a", None),
        ("azure:///subscriptions/s/resourceGroups/g", None),
        ("", None),
    ],
)
def test_region_and_instance_stand_in_the_provider_id(
    provider_id: str, known: tuple[str, str] | None
) -> None:
    assert aws.instance_of(provider_id) == known


def test_a_list_with_any_content_is_read_without_an_exception() -> None:
    odd: list[dict[str, Any]] = [
        {},
        {"InstanceId": None, "Events": "none"},
        {"Events": [None, {}, {"Code": 7}]},
    ]

    assert len(aws.listing(REGION, odd).found) == 2
