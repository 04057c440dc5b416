"""The messages of workflows that wait: which are kept, and which are left out."""

from __future__ import annotations

from datetime import timedelta

from reconciler.features.notices import memory
from reconciler.features.notices.deliveries import letter_of
from reconciler.features.notices.memory import (
    WORKFLOW_PENDING,
    Memory,
    Receiver,
    added,
    messages_sent,
    receiver_of,
    still_wanted,
)
from reconciler.model.messages import LONGEST, ProfileMessage
from tests.support.builders import NOW

DAY = timedelta(days=1)


def letter(number: int = 1, instance: str = "tell", text: str = "text", title: str = "") -> ProfileMessage:
    return ProfileMessage(f"id-{number}", instance, "a", NOW, text, title)


def numbers(known: Memory) -> list[str]:
    return [one.id for one in known.workflow]


def test_the_memory_is_the_same_after_it_was_written() -> None:
    known = added(Memory(workflow_sent=("old",)), [letter(1, title="on a"), letter(2, "other")])

    assert memory.from_text(memory.to_text(known)) == known
    assert memory.to_text(Memory()) == '{"version":1}'


def test_the_newest_messages_are_kept_and_the_others_are_counted_in_the_next_one() -> None:
    known = added(Memory(), (letter(number) for number in range(WORKFLOW_PENDING + 3)))
    first = known.workflow[0]

    assert (len(known.workflow), first.id) == (WORKFLOW_PENDING, "id-3")
    dropped = known.receiver(receiver_of("tell")).dropped
    assert letter_of(first, dropped).text == (
        "text\n3 earlier messages were left out, because they could not be sent."
    )
    after = messages_sent(known, [first])
    assert after.receiver(receiver_of("tell")).dropped == 0
    assert numbers(added(after, [first])) == numbers(after)


def test_a_memory_that_is_too_large_loses_its_oldest_messages() -> None:
    full = added(
        Memory(), (letter(number, text="\U0001f6d1" * LONGEST) for number in range(WORKFLOW_PENDING))
    )
    kept = memory.from_text(memory.to_text(full)).workflow

    assert len(memory.to_text(full).encode()) <= memory.LARGEST
    assert 0 < len(kept) < WORKFLOW_PENDING
    assert kept[-1] == full.workflow[-1]


def test_after_a_day_a_message_is_left_out() -> None:
    known = added(Memory(), [letter()])

    assert still_wanted(known, {"tell"}, NOW + DAY) is known
    after = still_wanted(known, {"tell"}, NOW + DAY + timedelta(seconds=1))
    assert numbers(after) == []
    assert after.receiver(receiver_of("tell")).dropped == 1


def test_what_an_instance_left_goes_with_it() -> None:
    known = added(Memory(), [letter(1), letter(2, "other")]).with_receiver(
        receiver_of("other"), Receiver(problem="no answer")
    )

    assert still_wanted(known, {"tell"}, NOW) == added(Memory(), [letter(1)])


def test_a_message_has_no_control_characters() -> None:
    found = letter_of(letter(text="a\x1b[2J\nb", title="c\nd"), 0)

    assert (found.text, found.title) == ("a\\x1b[2J\nb", "c d")
