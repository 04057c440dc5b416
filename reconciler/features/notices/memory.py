"""What is remembered of messages: what was said of which case, and what is still to be sent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct, field

from reconciler.model import limits
from reconciler.model.notices import Message, Topic
from reconciler.model.structs import replace
from reconciler.model.workflow_message import WorkflowMessage
from reconciler.settings.go_templates import LARGEST as LARGEST_TEXT

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


class Known(Struct, frozen=True):
    """What was said of one node: `said` has the moment of each message by its key (Unix time).

    `case` identifies the case or the event, `open` is whether it is a case. `audience` are the names of the
    entries of `notify` that select the node. `namespaces` are those of its pods, if an entry needed them. The
    rest describes the node for a message after it is gone.
    """

    node: str
    case: str
    audience: tuple[str, ...] = ()
    said: Mapping[str, int] = field(default_factory=dict)
    open: bool = False
    kind: str = ""
    pool: str = ""
    zone: str = ""
    namespaces: tuple[str, ...] = ()


class Pending(Struct, frozen=True):
    """A message that is still to be sent, and the names of those who are to get it."""

    message: Message
    to: tuple[str, ...]


class Receiver(Struct, frozen=True):
    """What is remembered of one entry of `notify`; moments are UTC.

    `reminded` is the last reminder. `thread` is the thread of a chat, and `thread_since` when it began.
    `problem` is why nothing can be sent now, empty if it can, and `problem_since` since when. `dropped`
    counts the messages that were left out since the last one that was sent.
    """

    reminded: datetime | None = None
    thread: str = ""
    thread_since: datetime | None = None
    problem: str = ""
    problem_since: datetime | None = None
    dropped: int = 0


class Memory(Struct, frozen=True):
    """All of it: `cases` by the UID of the node, `receivers` by the name of the entry.

    `workflow` are the messages of workflows that are still to be sent, `workflow_sent` the ids of the last
    ones that were sent.
    """

    cases: Mapping[str, Known] = field(default_factory=dict)
    pending: tuple[Pending, ...] = ()
    receivers: Mapping[str, Receiver] = field(default_factory=dict)
    workflow: tuple[WorkflowMessage, ...] = ()
    workflow_sent: tuple[str, ...] = ()

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


class _Case(msgspec.Struct, omit_defaults=True):
    n: str
    c: str
    a: list[str] = []
    s: dict[str, int] = {}
    o: bool = False
    k: str = ""
    p: str = ""
    z: str = ""
    w: list[str] = []


class _Message(msgspec.Struct, omit_defaults=True):
    topic: str
    node: str
    case: str
    key: str
    at: int
    text: str
    to: list[str]
    kind: str = ""
    pool: str = ""
    zone: str = ""
    repeats: bool = False
    namespaces: list[str] = []
    patience: int | None = None


class _Receiver(msgspec.Struct, omit_defaults=True):
    reminded: int = 0
    thread: str = ""
    threadSince: int = 0  # noqa: N815 - as it is written
    problem: str = ""
    problemSince: int = 0  # noqa: N815 - as it is written
    dropped: int = 0


class _WorkflowMessage(msgspec.Struct, omit_defaults=True):
    id: str
    instance: str
    node: str
    at: int
    text: str
    title: str = ""


class _Stored(msgspec.Struct, omit_defaults=True):
    version: int
    cases: dict[str, _Case] = {}
    pending: list[_Message] = []
    receivers: dict[str, _Receiver] = {}
    workflow: list[_WorkflowMessage] = []
    workflowSent: list[str] = []  # noqa: N815 - as it is written


def to_text(memory: Memory) -> str:
    """Return the memory as JSON; above LARGEST bytes the oldest messages are left out."""
    pending, workflow = memory.pending[-PENDING:], memory.workflow[-WORKFLOW_PENDING:]
    while True:
        text = msgspec.json.encode(_stored(replace(memory, pending=pending, workflow=workflow)))
        if len(text) <= LARGEST or not (pending or workflow):
            return text.decode()
        pending, workflow = pending[len(pending) // 2 + 1 :], workflow[len(workflow) // 2 + 1 :]


def from_text(text: str) -> Memory:
    """Return the memory that a text contains; ValueError if it can't be read."""
    if not text:
        return Memory()
    try:
        found = msgspec.json.decode(text, type=_Stored)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(limits.text(str(error), 200)) from error
    if found.version != _VERSION:
        raise ValueError(f"it has version {limits.excerpt(found.version)}")
    cases = {
        uid: Known(
            one.n,
            one.c,
            tuple(one.a),
            dict(list(one.s.items())[:SAID]),
            one.o,
            one.k,
            one.p,
            one.z,
            tuple(one.w),
        )
        for uid, one in list(found.cases.items())[:CASES]
    }
    receivers = {
        name: Receiver(
            _moment(one.reminded),
            one.thread,
            _moment(one.threadSince),
            one.problem,
            _moment(one.problemSince),
            one.dropped,
        )
        for name, one in found.receivers.items()
    }
    pending = tuple(_pending(one) for one in found.pending[-PENDING:] if one.topic in set(Topic))
    workflow = tuple(map(_workflow_message, found.workflow[-WORKFLOW_PENDING:]))
    return Memory(cases, pending, receivers, workflow, tuple(found.workflowSent[-WORKFLOW_SENT:]))


def _workflow_message(one: _WorkflowMessage) -> WorkflowMessage:
    return WorkflowMessage(
        one.id,
        one.instance,
        one.node,
        _moment(one.at) or limits.EARLIEST,
        limits.text(one.text, LARGEST_TEXT),
        limits.text(one.title),
    )


def _pending(one: _Message) -> Pending:
    message = Message(
        topic=Topic(one.topic),
        node=one.node,
        case=one.case,
        key=one.key,
        at=_moment(one.at) or limits.EARLIEST,
        text=limits.text(one.text, TEXT),
        kind=one.kind,
        pool=one.pool,
        zone=one.zone,
        repeats=one.repeats,
        namespaces=tuple(one.namespaces),
        patience=None if one.patience is None else limits.duration(one.patience),
    )
    return Pending(message, tuple(one.to))


def _stored(memory: Memory) -> _Stored:
    return _Stored(
        _VERSION,
        {
            uid: _Case(
                one.node,
                one.case,
                list(one.audience),
                dict(one.said),
                one.open,
                one.kind,
                one.pool,
                one.zone,
                list(one.namespaces),
            )
            for uid, one in memory.cases.items()
        },
        [
            _Message(
                one.message.topic.value,
                one.message.node,
                one.message.case,
                one.message.key,
                seconds(one.message.at),
                one.message.text,
                list(one.to),
                one.message.kind,
                one.message.pool,
                one.message.zone,
                one.message.repeats,
                list(one.message.namespaces),
                None if one.message.patience is None else int(one.message.patience.total_seconds()),
            )
            for one in memory.pending
        ],
        {
            name: _Receiver(
                _number(one.reminded),
                one.thread,
                _number(one.thread_since),
                one.problem,
                _number(one.problem_since),
                one.dropped,
            )
            for name, one in memory.receivers.items()
        },
        [
            _WorkflowMessage(one.id, one.instance, one.node, seconds(one.at), one.text, one.title)
            for one in memory.workflow
        ],
        list(memory.workflow_sent),
    )


def seconds(moment: datetime) -> int:
    """Return a moment as Unix time in whole seconds."""
    return int(moment.timestamp())


def _number(moment: datetime | None) -> int:
    return seconds(moment) if moment is not None else 0


def _moment(number: int) -> datetime | None:
    if not number:
        return None
    found = limits.unix_moment(number)
    return found.astimezone(UTC) if found is not limits.UNREADABLE else None
