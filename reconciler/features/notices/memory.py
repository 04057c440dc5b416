"""What is remembered of messages: what was said of which case, and what is still to be sent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta, Struct, field

from reconciler.features.notices import MEMORY
from reconciler.features.notices.messages import Message, Topic
from reconciler.http.retrying import Guard
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import MERGE_PATCH, Connection, Request, core
from reconciler.model import limits
from reconciler.model.case_outcome import InTime
from reconciler.model.errors import NotFound
from reconciler.model.messages import ProfileMessage
from reconciler.model.moments import shifted
from reconciler.model.moments import to_text as moment_text
from reconciler.model.values import Flat, Names, UnixMoment, decoded, encoded, parsed, replace

CASES = 2000
"""Nodes with an event or a case that are remembered."""

PENDING = 1000
"""Messages that wait to be sent."""

SAID = 100
"""Messages that one case can have."""

TEXT = 600
"""Characters of a message's text."""

REMEDY = 1000
"""Characters of who can change what a message says."""

OWN_TEXT = 300
"""Characters of what a message says of the pods of one namespace."""

NAMESPACES = 50
"""Namespaces of which a message says something."""

RESULT = 200
"""Characters of the result of a case."""

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
    "alerted": "d",
    "result": "r",
    "in_time": "i",
}


class Named(Protocol):
    """An entry of `notify`, or a notification of workflows."""

    @property
    def name(self) -> str:
        """Its name."""


class AlertCause(Struct, frozen=True, rename={"topic": "t", "cause": "u", "to": "a"}):
    """What opened an alert: the topic and the cause of a message, and the entries that were sent it."""

    topic: Topic
    cause: str
    to: Names


class KnownCase(Struct, frozen=True, rename=_SHORT):
    """What was said of one node: `said` has the moment of each message by its key (Unix time).

    `case` identifies the case or the event, `open` is whether it is a case. `audience` are the names of the
    entries of `notify` that select the node. `alerted` is what may have opened an alert, by the key of the
    message. `namespaces` are those of its pods, if an entry needed them. The rest describes the node and its
    case for a message after it is gone: `result` is what has become of the case, empty if that is not known,
    and `in_time` is whether its node was drained in time.
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
    alerted: Mapping[str, AlertCause] = field(default_factory=dict)
    result: str = ""
    in_time: InTime = InTime.UNKNOWN


class PendingMessage(Struct, frozen=True):
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


class Week(Struct, frozen=True):
    """How many cases have ended `since` a moment (UTC), by whether their nodes were drained in time."""

    since: UnixMoment
    ended: Mapping[InTime, Annotated[int, Meta(ge=0)]] = field(default_factory=dict)

    def with_end(self, in_time: InTime) -> Week:
        """Return it with one more case."""
        return replace(self, ended={**self.ended, in_time: self.ended.get(in_time, 0) + 1})


class Memory(Struct, frozen=True):
    """All of it: `cases` by the UID of the node, `receivers` by the name of the entry.

    `week` is for the next summary, None if nobody gets one.

    `workflow` are the messages of workflows that are still to be sent, `workflow_sent` the ids of the last
    ones that were sent.
    """

    cases: Annotated[Mapping[str, KnownCase], Meta(max_length=CASES)] = field(default_factory=dict)
    pending: Annotated[tuple[PendingMessage, ...], Meta(max_length=PENDING)] = ()
    receivers: Annotated[Mapping[str, Receiver], Meta(max_length=limits.INSTANCES)] = field(
        default_factory=dict
    )
    week: Week | None = None
    workflow: Annotated[tuple[ProfileMessage, ...], Meta(max_length=WORKFLOW_PENDING)] = ()
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


# Messages of workflows.

_WORKFLOW = "instances.notify/"


def receiver_of(instance: str) -> str:
    """Return the name under which an instance is remembered. No entry of `notify` can have it."""
    return f"{_WORKFLOW}{instance}"


def is_workflow(receiver: str) -> bool:
    """Whether a name is that of an instance."""
    return receiver.startswith(_WORKFLOW)


def added(memory: Memory, messages: Iterable[ProfileMessage]) -> Memory:
    """Return the memory with these messages, without those that it knows; it keeps the newest ones."""
    known = {*memory.workflow_sent, *(one.id for one in memory.workflow)}
    fresh = {message.id: message for message in messages if message.id not in known}
    if not fresh:
        return memory
    waiting = (*memory.workflow, *fresh.values())
    return _dropped(replace(memory, workflow=waiting), waiting[:-WORKFLOW_PENDING])


def messages_sent(memory: Memory, messages: Sequence[ProfileMessage]) -> Memory:
    """Return the memory after messages to one instance were sent."""
    ids = {message.id for message in messages}
    waiting = tuple(message for message in memory.workflow if message.id not in ids)
    sent = (*memory.workflow_sent, *(message.id for message in messages))[-WORKFLOW_SENT:]
    name = receiver_of(messages[0].instance)
    receiver = replace(memory.receiver(name), problem="", problem_since=None, dropped=0)
    return replace(memory, workflow=waiting, workflow_sent=sent).with_receiver(name, receiver)


def still_wanted(memory: Memory, instances: Collection[str], now: datetime) -> Memory:
    """Return the memory without messages that could not be sent for a day, and without gone instances."""
    names = {receiver_of(instance) for instance in instances}
    gone = {name for name in memory.receivers if is_workflow(name) and name not in names}
    receivers = {name: one for name, one in memory.receivers.items() if name not in gone}
    kept = tuple(one for one in memory.workflow if one.instance in instances)
    old = tuple(one for one in kept if shifted(one.at, OLDEST) < now)
    if not gone and not old and len(kept) == len(memory.workflow):
        return memory
    return _dropped(replace(memory, receivers=receivers, workflow=kept), old)


def _dropped(memory: Memory, left_out: tuple[ProfileMessage, ...]) -> Memory:
    """Return the memory without these messages; each counts as dropped."""
    ids = {one.id for one in left_out}
    after = replace(memory, workflow=tuple(one for one in memory.workflow if one.id not in ids))
    for one in left_out:
        name = receiver_of(one.instance)
        receiver = after.receiver(name)
        after = after.with_receiver(name, replace(receiver, dropped=receiver.dropped + 1))
    return after


def failing(memory: Memory, entries: Iterable[Named], instances: Iterable[Named]) -> tuple[str, ...]:
    """Return a note about each entry of `notify`, and each instance of workflows, that can't be sent to."""
    names = (*(entry.name for entry in entries), *(receiver_of(instance.name) for instance in instances))
    notes = []
    for name in names:
        receiver = memory.receiver(name)
        if receiver.problem and receiver.problem_since is not None:
            count = sum(name in message.to for message in memory.pending)
            count += sum(name == receiver_of(message.instance) for message in memory.workflow)
            waiting = f"{count} {'message waits' if count == 1 else 'messages wait'}"
            since = moment_text(receiver.problem_since)
            notes.append(f"notices to {name} fail since {since}: {receiver.problem}; {waiting}")
    return tuple(notes)


NAME = MEMORY
KEY = "memory"
_PATIENCE = 10.0
"""Seconds for one request. No pass waits for it."""


class NoticeMemory:
    """Reads and writes the memory of notices as one text."""

    def __init__(self, connection: Connection, namespace: str, guard: Guard) -> None:
        """Use this connection and our namespace; `guard` raises LockLost if the lock is not ours."""
        self._connection, self._guard = connection, guard
        self._place = core(namespace) / "configmaps"

    def load(self) -> str:
        """Return the text, empty if there is none yet; raises ClusterError."""
        found = objects.find(self._connection, self._place / NAME, objects.ConfigMap)
        return ((found.data if found is not None else None) or {}).get(KEY, "")

    def save(self, text: str) -> None:
        """Write the text; raises LockLost and ClusterError."""
        self._guard()
        patch = {"data": {KEY: text}}
        request = Request(
            "PATCH",
            self._place / NAME,
            body=patch,
            content_type=MERGE_PATCH,
            read_timeout=_PATIENCE,
            total=_PATIENCE,
        )
        try:
            self._connection.send(request)
        except NotFound:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, **patch}
            create = Request("POST", self._place, body=body, read_timeout=_PATIENCE, total=_PATIENCE)
            self._connection.send(create)
