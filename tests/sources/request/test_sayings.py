"""Requests as words of people: who asked for what, and who has cancelled it."""

from __future__ import annotations

import pytest

from reconciler.model.event import Kind
from reconciler.model.instructions import Word
from reconciler.model.keys import keys_of
from reconciler.model.sayings import Saying
from reconciler.run import PARTS
from reconciler.sources.request.source import Request, cancelled
from tests.support import builders
from tests.support.builders import NOW, PREFIX, REQUEST, minutes, node, planned, snapshot

KEYS = keys_of(PREFIX)
ASKED = Request(Kind.REBOOT, NOW + minutes(60), None, "CHG-42", "firmware", "alice", NOW)
WORD = Word("alice", NOW, reason="Reboot, not before 2026-11-21T13:00:00Z, id CHG-42, “firmware”")


def said(*, settings: str = "", **annotations: str) -> tuple[Saying, ...]:
    """All that people say of a node with these annotations."""
    on = node(annotations={f"{PREFIX}/{name.replace('_', '-')}": text for name, text in annotations.items()})
    found = planned(snapshot(on), builders.settings(settings)).sayings.get("a")
    return found.said if found is not None else ()


def test_a_request_is_a_word_of_its_author_with_what_is_requested_and_why() -> None:
    (saying,) = said(request=ASKED.text)

    assert (saying.did, saying.word, saying.over) == ("requested", WORD, "request ended")
    # It stays when its case has ended, until somebody removes it.
    assert not saying.with_case


def test_who_cancels_a_request_is_a_word_until_the_next_pass() -> None:
    write = cancelled(node(annotations={REQUEST: ASKED.text}), builders.settings(), "bob", NOW + minutes(5))
    assert write is not None
    (saying,) = said(said_before=str(write.annotations[KEYS.said_before]))

    assert (saying.did, saying.word, saying.ends) == (
        "request cancelled",
        Word("bob", NOW + minutes(5)),
        "requested",
    )


@pytest.mark.parametrize("text", ["reboot", '{"kind": "Reboot", "by": 7, "reason": []}', "[" * 3000])
def test_a_text_of_others_is_a_word_too(text: str) -> None:
    (saying,) = said(request=text)

    assert saying.did == "requested"
    assert saying.word.reason or "can't be read" in saying.word.problem


def test_a_node_with_a_request_is_looked_at_also_where_requests_are_ignored() -> None:
    assert PARTS.bears_signs(node(annotations={REQUEST: ASKED.text}), PREFIX)
    assert said(settings="sources: {requests: {enabled: false}}", request=ASKED.text)
