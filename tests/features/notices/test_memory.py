"""The memory of notices: it survives its text, has limits, and refuses what it can't read."""

from __future__ import annotations

import pytest

from reconciler.features.notices.memory import (
    LARGEST,
    PENDING,
    KnownCase,
    Memory,
    Receiver,
    from_text,
    to_text,
)
from reconciler.features.notices.messages import Message
from reconciler.model.values import replace
from tests.features.notices.following import message, told
from tests.support.builders import NOW


def test_a_memory_is_the_same_after_it_was_written() -> None:
    case = KnownCase("a", "uid-a@1", ("all",), {"Started": 1}, True, "Reboot", "np", "zone-1", ("shop",))
    receiver = Receiver(NOW, "171.5", NOW, "no answer", NOW, 3)
    memory = replace(
        told(replace(message(), kind="Reboot", repeats=True, namespaces=("shop",))), cases={"uid-a": case}
    )
    memory = memory.with_receiver("all", receiver)

    assert from_text(to_text(memory)) == memory
    assert from_text("") == Memory()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"version":2}',
        '{"version":1,"cases":{"a":1}}',
        "[" * 100_000,
        '{"version":1,"pending":[{}]}',
    ],
)
def test_what_can_not_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_text(text)


def test_a_topic_of_a_later_version_is_left_out() -> None:
    text = to_text(told(message())).replace('"topic":"Started"', '"topic":"Later"')

    assert from_text(text).pending == ()


def test_the_newest_messages_are_kept_where_not_all_fit() -> None:
    def long(number: int) -> Message:
        return message(node=f"n{number}", text="\u0001" * 600)

    many = told(*(long(number) for number in range(PENDING + 1)))
    text = to_text(many)
    kept = from_text(text).pending

    assert len(text) <= LARGEST
    assert kept[-1].message.node == f"n{PENDING}"
    assert 0 < len(kept) < PENDING
