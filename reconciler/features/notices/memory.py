"""What is remembered of messages: what was said of which case, and what is still to be sent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field

from reconciler.model import limits
from reconciler.model.notices import Message, Topic
from reconciler.model.values import Flat, Names, UnixMoment, decoded, encoded, parsed, replace
from reconciler.model.workflow import WorkflowMessage

CASES = 2000
"""Nodes with an event or a case that are remembered."""

PENDING = 1000
"""Messages that wait to be sent."""

SAID = 100
"""Messages that one case can have."""

TEXT = 600
"""Characters of a message's text."""

LARGEST = 900_000
"""Bytes of the whole memory. A ConfigMap holds 1 MiB."""

WORKFLOW_PENDING = 1000
"""Messages of workflows that wait to be sent."""

WORKFLOW_SENT = 1000
"""Messages of workflows that were sent and are remembered, so that none comes twice."""

OLDEST = timedelta(days=1)
"""After this time a message that could not be sent is left out."""

_VERSION = 1

_Seconds = Annotated[int, Meta(le=int(limits.LATEST.timestamp()))]


_SHORT = {
    "node": "n",
    "case": "c",
    "audience": "a",
    "said": "s",
    "open": "o",
    "kind": "k",
    "pool": "p",
    "zone": "z",
    "namespaces": "w",
}


class Known(Struct, frozen=True, rename=_SHORT):
    """What was said of one node: `said` has the moment of each message by its key (Unix time).

    `case` identifies the case or the event, `open` is whether it is a case. `audience` are the names of the
    entries of `notify` that select the node. `namespaces` are those of its pods, if an entry needed them. The
    rest describes the node for a message after it is gone.
    """

    node: str
    case: str
    audience: Names = ()
    said: Mapping[str, _Seconds] = field(default_factory=dict)
    open: bool = False
    kind: str = ""
    pool: str = ""
    zone: str = ""
    namespaces: Names = ()


class Pending(Struct, frozen=True):
    """A message that is still to be sent, and the names of those who are to get it."""

    message: Flat[Message]
    to: Names


class Receiver(Struct, frozen=True):
    """What is remembered of one entry of `notify`; moments are UTC.

    `reminded` is the last reminder. `thread` is the thread of a chat, and `thread_since` when it began.
    `problem` is why nothing can be sent now, empty if it can, and `problem_since` since when. `dropped`
    counts the messages that were left out since the last one that was sent.
    """

    reminded: UnixMoment | None = None
    thread: str = ""
    thread_since: UnixMoment | None = None
    problem: str = ""
    problem_since: UnixMoment | None = None
    dropped: int = 0


class Memory(Struct, frozen=True):
    """All of it: `cases` by the UID of the node, `receivers` by the name of the entry.

    `workflow` are the messages of workflows that are still to be sent, `workflow_sent` the ids of the last
    ones that were sent.
    """

    cases: Annotated[Mapping[str, Known], Meta(max_length=CASES)] = field(default_factory=dict)
    pending: Annotated[tuple[Pending, ...], Meta(max_length=PENDING)] = ()
    receivers: Annotated[Mapping[str, Receiver], Meta(max_length=limits.INSTANCES)] = field(
        default_factory=dict
    )
    workflow: Annotated[tuple[WorkflowMessage, ...], Meta(max_length=WORKFLOW_PENDING)] = ()
    workflow_sent: Annotated[tuple[str, ...], Meta(max_length=WORKFLOW_SENT)] = ()

    def receiver(self, name: str) -> Receiver:
        """Return what is remembered of an entry."""
        return self.receivers.get(name, Receiver())

    def with_receiver(self, name: str, receiver: Receiver) -> Memory:
        """Return the memory with this entry's changed; one without data is left out."""
        kept = {key: value for key, value in self.receivers.items() if key != name}
        if receiver != Receiver():
            kept[name] = receiver
        return replace(self, receivers=kept)

    def with_namespaces(self, found: Mapping[str, tuple[str, ...]]) -> Memory:
        """Return the memory with the namespaces of the pods of these cases, by the id of the case."""
        cases = {
            uid: replace(known, namespaces=found[known.case]) if found.get(known.case) else known
            for uid, known in self.cases.items()
        }
        return replace(self, cases=cases)

    def without(self, name: str, ids: frozenset[str]) -> Memory:
        """Return the memory without these messages to one entry, by their ids."""
        kept = []
        for one in self.pending:
            to = tuple(each for each in one.to if each != name) if one.message.id in ids else one.to
            kept += [replace(one, to=to)] if to else []
        return replace(self, pending=tuple(kept))


def to_text(memory: Memory) -> str:
    """Return the memory as JSON; above LARGEST bytes the oldest messages are left out."""
    pending, workflow = memory.pending[-PENDING:], memory.workflow[-WORKFLOW_PENDING:]
    while True:
        document = encoded(replace(memory, pending=pending, workflow=workflow))
        text = msgspec.json.encode({"version": _VERSION, **document})
        if len(text) <= LARGEST or not (pending or workflow):
            return text.decode()
        pending, workflow = pending[len(pending) // 2 + 1 :], workflow[len(workflow) // 2 + 1 :]


def from_text(text: str) -> Memory:
    """Return the memory that a text contains; ValueError if it can't be read."""
    if not text:
        return Memory()
    document = parsed(text, LARGEST)
    version = document.get("version") if isinstance(document, dict) else None
    if version != _VERSION:
        raise ValueError(f"it has version {limits.excerpt(version)}")
    topics = set(Topic)
    try:
        # A later program may know more topics.
        known = [pending for pending in document.get("pending", ()) if pending["topic"] in topics]
    except (TypeError, KeyError) as error:
        raise ValueError(limits.text(repr(error))) from error
    return decoded(Memory, {**document, "pending": known})


def seconds(moment: datetime) -> int:
    """Return a moment as Unix time in whole seconds."""
    return int(moment.timestamp())
