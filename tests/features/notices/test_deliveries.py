"""When messages are sent, which go together, and how they read."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from reconciler.features.notices.deliveries import MOST, Delivery, delivery_of, due_for, failed, sent, too_old
from reconciler.features.notices.memory import Memory
from reconciler.features.notices.messages import Topic
from reconciler.model.values import replace
from tests.features.notices.following import entries, message, told
from tests.support.builders import NOW, minutes

HOOK = "webhook: {url: 'http://127.0.0.1:1/'}"
UTC = ZoneInfo("UTC")


def one(keys: str = "", *, hook: str = HOOK) -> str:
    return f"notify: [{{name: all, {hook}{', ' if keys else ''}{keys}}}]"


def due_at(memory: Memory, text: str, now: datetime) -> datetime | None:
    """When the entry gets its next delivery, found as the queue finds it."""
    (entry,) = entries(text)
    for _ in range(3):
        found = due_for(entry, memory, now, UTC)
        if found.delivery is not None:
            return now
        if found.at is None:
            return None
        now = found.at
    raise AssertionError("it is put off again and again")


def due(memory: Memory, text: str, now: datetime = NOW, *, flush: bool = False) -> Delivery:
    """The delivery that the entry gets now."""
    (entry,) = entries(text)
    found = due_for(entry, memory, now, UTC, flush=flush).delivery
    assert found is not None
    return found


def test_forty_nodes_are_one_message() -> None:
    memory = told(*(message(node=f"node-{number:02}") for number in range(40)))
    found = due(memory, one(), NOW + timedelta(seconds=10))

    assert found.title == "40 nodes: drain started"
    assert sent(memory, found, NOW).pending == ()


def test_forty_nodes_of_which_much_is_said_are_one_message_too() -> None:
    names = [f"node-{number:02}" for number in range(40)]
    topics = (Topic.RECEIVED, Topic.PLANNED, Topic.WILL_BE_MISSED)
    memory = told(*(message(topic, name, text=f"{topic} {name}") for name in names for topic in topics))
    found = due(memory, one("group: 0s", hook="slack: {webhook: 'http://127.0.0.1:1/'}"))

    assert found.title == "40 nodes: will be missed; and 2 more"
    # Problems come first.
    assert found.lines[0].startswith("40 nodes: will be missed: WillBeMissed NODE: node-00, node-01")


@pytest.mark.parametrize("hook", [HOOK, "pagerduty: {routingKey: key}"])
def test_a_program_gets_fifty_messages_at_once(hook: str) -> None:
    memory = told(*(message(Topic.MISSED, "a", text=str(number)) for number in range(MOST + 1)))

    assert len(due(memory, one("group: 0s", hook=hook)).messages) == MOST


def test_nodes_of_which_the_same_is_said_share_a_line() -> None:
    (entry,) = entries(one())
    said = [message(node=node) for node in "abc"] + [
        message(Topic.BLOCKED, "b"),
        message(node="d", text="no"),
    ]

    assert delivery_of(entry, tuple(said), UTC).lines == (
        "node b: drain blocked: it is",
        "3 nodes: drain started: it is: a, b, c",
        "node d: drain started: no",
    )


def test_messages_are_put_together_from_the_first_one_on() -> None:
    memory = told(message(), message(node="b", at=NOW + timedelta(seconds=9)))

    assert due_at(memory, one("group: 10s"), NOW) == NOW + timedelta(seconds=10)
    assert due_at(memory, one("group: 0s"), NOW) == NOW


def test_a_process_that_ends_puts_nothing_off_that_could_be_sent_now() -> None:
    memory = told(message(), message(Topic.HELD, "b"))

    assert [each.node for each in due(memory, one(), flush=True).messages] == ["a"]


@pytest.mark.parametrize(
    ("topic", "keys", "wait"),
    [
        (Topic.STARTED, "group: 0s, after: 5m", minutes(5)),
        (Topic.HELD, "group: 0s", minutes(60)),
        (Topic.HELD, "group: 0s, heldFor: 2m", minutes(2)),
        (Topic.BLOCKED, "group: 0s", minutes(10)),
        (Topic.BLOCKED, "group: 0s, blockedFor: 0s, after: 1m", minutes(1)),
    ],
)
def test_a_message_waits_as_long_as_the_settings_say(topic: Topic, keys: str, wait: timedelta) -> None:
    assert due_at(told(message(topic)), one(keys), NOW) == NOW + wait


def test_a_message_waits_no_longer_than_a_third_of_the_time_that_is_left() -> None:
    blocked = replace(message(Topic.BLOCKED), by=NOW + timedelta(seconds=270))

    assert due_at(told(blocked), one("group: 0s, after: 1m"), NOW) == NOW + timedelta(seconds=150)
    assert due_at(told(blocked), one("group: 0s, blockedFor: 1m"), NOW) == NOW + minutes(1)


def test_a_reminder_does_not_wait_again() -> None:
    memory = told(replace(message(Topic.HELD), repeats=True))

    assert due_at(memory, one("group: 0s"), NOW) == NOW


def test_collected_messages_go_out_at_their_times() -> None:
    at = "at: {days: [Mon-Fri], time: '08:00', timeZone: Europe/Berlin}"
    saturday, monday = NOW, datetime(2026, 11, 23, 7, tzinfo=UTC)
    memory = told(message(at=saturday), message(node="b", at=saturday + timedelta(days=1)))

    assert due_at(memory, one(at), saturday + timedelta(days=1)) == monday
    late = told(message(at=monday + minutes(1)))
    assert due_at(late, one(at), monday + minutes(1)) == monday + timedelta(days=1)


def test_a_message_from_a_clock_that_was_ahead_is_sent_now() -> None:
    memory = told(message(at=NOW + timedelta(days=2)))

    assert due_at(memory, one("group: 0s"), NOW) == NOW


def test_a_delivery_has_a_limit_and_the_rest_follows() -> None:
    memory = told(*(message(node=f"n{number}") for number in range(MOST + 1)))
    first = due(memory, one("group: 0s"))
    second = due(sent(memory, first, NOW), one("group: 0s"))

    assert [each.node for each in second.messages] == [f"n{MOST}"]


def test_one_message_has_its_text_under_its_title_in_the_zone_of_its_readers() -> None:
    (entry,) = entries(one("cluster: prod"))
    found = delivery_of(
        entry, (message(text="planned for 2026-11-21T22:00:00Z\x1b[31m"),), ZoneInfo("Europe/Berlin")
    )

    assert found.title == "[prod] node a: drain started"
    assert found.lines == ("planned for Sat 2026-11-21 23:00 CET (Europe/Berlin)\\x1b[31m",)


def test_what_can_not_be_sent_for_a_day_is_left_out_and_counted() -> None:
    memory = told(message(), message(node="b", at=NOW + timedelta(days=1)))
    after = too_old(memory, entries(one()), NOW + timedelta(days=1, hours=2))
    found = due(after, one(), NOW + timedelta(days=2))

    assert [each.node for each in found.messages] == ["b"]
    assert found.lines[-1] == "1 earlier messages were left out, because they could not be sent."
    assert sent(after, found, NOW).receivers == {}


def test_a_problem_is_since_its_first_failure_and_ends_with_a_delivery() -> None:
    memory = failed(failed(told(message()), "all", "no answer", NOW), "all", "refused", NOW + minutes(5))
    receiver = memory.receiver("all")

    assert (receiver.problem, receiver.problem_since) == ("refused", NOW)
    found = due(memory, one("group: 0s"))
    assert sent(memory, found, NOW).receiver("all").problem == ""


def test_a_thread_goes_on_until_its_time_is_over() -> None:
    text = one("group: 0s", hook="slack: {token: xoxb, channel: ops, thread: 1d}")
    first = due(told(message(), message(node="b")), text)
    assert first.thread == ""
    after = sent(told(message(node="b")), first, NOW, "171.5")
    more = replace(after, pending=told(message(node="b")).pending)

    assert due(more, text, NOW + timedelta(hours=23)).thread == "171.5"
    assert due(more, text, NOW + timedelta(days=1)).thread == ""


def test_a_message_that_could_not_be_sent_for_long_says_from_when_it_is() -> None:
    late, fresh = message(text="it has started"), message(node="b", at=NOW + minutes(29), text="it is new")
    found = due(told(late, fresh), one("group: 0s"), NOW + minutes(30))

    said = "12:00 UTC (30m ago)"
    assert found.lines == (
        f"node a: drain started: it has started (this is from {said}, and could not be sent before)",
        "node b: drain started: it is new",
    )


def test_nodes_that_are_drained_together_are_one_sentence() -> None:
    nodes = ("a", "b", "c")
    gone = [
        replace(
            message(Topic.DRAINED, node, text=f"drained for Preempt in {number}s"),
            kind="Preempt",
            pool="pool1",
            cause="drained for Preempt",
            took=timedelta(seconds=number),
        )
        for number, node in enumerate(nodes, 1)
    ]
    before = [
        message(topic, node, text="Preempt") for node in nodes for topic in (Topic.RECEIVED, Topic.STARTED)
    ]
    found = due(told(*before, *gone), one("group: 0s", hook="slack: {webhook: 'http://127.0.0.1:1/'}"))

    assert found.text == "3 nodes of pool1: all drained for Preempt within 3s\na, b, c"


def test_that_a_drain_is_blocked_is_no_news_while_there_is_much_time() -> None:
    blocked = told(replace(message(Topic.BLOCKED), by=NOW + timedelta(hours=5)))

    assert due_at(blocked, one("group: 0s"), NOW) == NOW + timedelta(hours=4)
    assert due_at(blocked, one("group: 0s, blockedWithin: 10h"), NOW) == NOW + minutes(10)
    # It has not waited for its receiver, so it is not too old.
    assert too_old(blocked, entries(one("blockedWithin: 1m")), NOW + timedelta(hours=27)) == blocked


def test_a_message_says_each_thing_once_and_names_the_zone_once() -> None:
    (entry,) = entries(one())
    text = (
        "the node will not be drained in time: shop/a can't be evicted until 2026-11-21T12:30:00Z. Run more."
    )
    missed = replace(
        message(Topic.WILL_BE_MISSED, text=text),
        by=NOW + minutes(20),
        remedy="the owner of the pod: Run more: `kubectl scale`",
    )
    found = delivery_of(entry, (missed,), ZoneInfo("Europe/Berlin"), now=NOW)

    assert found.title == "node a: will be missed, maintenance from 13:20 CET (Europe/Berlin) (in 20m)"
    assert found.lines == (
        "shop/a can't be evicted until 13:30 (in 30m).",
        "→ the owner of the pod: Run more: `kubectl scale`",
    )


def test_a_headline_says_what_happened_and_the_lines_what_it_does_not() -> None:
    (entry,) = entries(one())
    text = "back in service at 2026-11-21T12:46:00Z; the Redeploy was called off"
    ended = message(Topic.DONE, at=NOW + minutes(46), text=text)
    found = delivery_of(entry, (ended,), UTC, now=NOW + minutes(50))

    assert found.text == "node a: back in service at 12:46 UTC (4m ago)\nthe Redeploy was called off"
