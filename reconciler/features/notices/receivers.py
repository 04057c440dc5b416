"""Who gets messages: entries of `notify`, their silences, and the notifications of workflows.

Each says what is due for it. What talks to a receiver runs in a thread of its own, and says what to remember.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from functools import cached_property, partial
from typing import Protocol

from msgspec import Struct

from reconciler.features.notices import deliveries, templates
from reconciler.features.notices.deliveries import Delivery, due_for, letter_of
from reconciler.features.notices.memory import Memory, messages_sent, receiver_of
from reconciler.features.notices.messages import Message
from reconciler.features.notices.owners import ForOwners, Namespace, for_owners
from reconciler.features.notices.settings import Notify
from reconciler.features.notices.silences import WantedSilences, look_again, wanted_silences
from reconciler.features.notices.transports.sending import NotSent, Transport
from reconciler.model.messages import MessageReceiver, ProfileMessage
from reconciler.model.moments import shifted
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Notice, Plan
from reconciler.model.ports import Clock

log = logging.getLogger(__name__)

_MOST_AT_ONCE = 20
"""Messages of one workflow's notification between two writes of the memory."""

_BATCH = timedelta(seconds=5)
"""After this time the memory is written before more of them are sent."""

_NAMED = 3


class Store(Protocol):
    """Keeps the memory as a text."""

    def load(self) -> str:
        """Return the text, empty if there is none yet; raises ClusterError."""

    def save(self, text: str) -> None:
        """Write the text; raises LockLost and ClusterError."""


class Silences(Protocol):
    """Keeps the silences of one entry."""

    def keep(self, wanted: WantedSilences, now: datetime) -> None:
        """Create, extend and end silences, in a bounded time; `now` is aware. Raises NotSent."""


class Concern(Protocol):
    """Reads whose pods a message concerns."""

    def pods(self, messages: Iterable[Message]) -> dict[str, tuple[str, ...]]:
        """Return the namespaces of the pods, by the id of the case; raises NotSent."""

    def namespaces(self) -> Mapping[str, Namespace]:
        """Return every namespace by its name; raises NotSent."""


class NoticeCounter(Protocol):
    """Counts messages; may be called from any thread, and raises nothing."""

    def notice(self, transport: str, *, sent: bool) -> None:
        """Count an attempt to send messages."""

    def waiting(self, messages: int | None) -> None:
        """Note how many messages wait to be sent."""


class QueuePorts(Struct, frozen=True):
    """What the queue needs of its process.

    `guard` raises LockLost if the lock is not ours: another process sends then. `make` returns the transport
    of an entry or of a notification of workflows, `silences` what keeps the silences of an entry. `warn`
    writes a Warning Event. `concerned` reads whose pods are on a node. `counted` may be None.
    """

    store: Store
    clock: Clock
    guard: Callable[[], None]
    make: Callable[[Notify | MessageReceiver], Transport]
    silences: Callable[[Notify], Silences]
    warn: Callable[[Notice], object]
    concerned: Concern
    counted: NoticeCounter | None = None


class SendResult(Struct, frozen=True):
    """What was sent: how that changes the memory, and why what came after it was not (None: nothing did)."""

    remember: Callable[[Memory], Memory]
    failure: NotSent | None = None


class Work(Struct, frozen=True):
    """What to send now, or when there may be something (UTC, None: when something changes).

    `send` takes a bounded time, and raises NotSent and LockLost.
    """

    send: Callable[[], SendResult] | None = None
    at: datetime | None = None


class Receiver(Protocol):
    """One who gets something; the memory has it under `name`, and metrics its `kind`."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def kind(self) -> str:
        """Its transport."""

    def due(self, memory: Memory, now: datetime, *, flush: bool) -> Work:
        """Return what is due `now` (aware); with `flush`, the process is about to end."""


class Entry:
    """An entry of `notify` that gets messages."""

    def __init__(self, entry: Notify, around: QueuePorts, zone: tzinfo) -> None:
        """Send as this entry says; `zone` is the one in which people read moments."""
        self.name, self.kind = entry.name, entry.transport
        self._entry, self._around, self._zone = entry, around, zone

    @cached_property
    def _transport(self) -> Transport:
        return self._around.make(self._entry)

    def due(self, memory: Memory, now: datetime, *, flush: bool) -> Work:
        """Return the delivery that is due, or when the next one may be."""
        found = due_for(self._entry, memory, now, self._zone, flush=flush)
        if found.delivery is None:
            return Work(at=found.at)
        return Work(partial(self._send, found.delivery))

    def _send(self, delivery: Delivery) -> SendResult:
        # Before anything is sent: without the namespaces and the pods, all of it is tried again.
        others = ForOwners()
        namespaces: dict[str, tuple[str, ...]] = {}
        if self._entry.to is not None:
            concerned = self._around.concerned
            namespaces = concerned.pods(delivery.messages)
            on_node = {
                message.node: namespaces.get(message.case, ())
                for message in delivery.messages
                if message.node
            }
            others = for_owners(self._entry, delivery, on_node, concerned.namespaces(), self._zone)
        thread = self._transport.send(self._worded(delivery))
        if others.cut:
            names, more = ", ".join(others.cut[:_NAMED]), len(others.cut) - _NAMED
            names = f"{names} and {more} more" if more > 0 else names
            log.warning("addresses of namespaces were left out: to=%s namespaces=%s", self.name, names)
        for each in others.deliveries:
            try:
                self._transport.send(self._worded(each))
            except NotSent as error:
                # An address is chosen by the owner of a namespace: a wrong one delays nobody else.
                log.warning("a notice was not sent to an owner: to=%s error=%s", self.name, error)

        def remember(memory: Memory) -> Memory:
            after = deliveries.sent(memory, delivery, self._around.clock.now(), thread)
            return after.with_namespaces(namespaces) if namespaces else after

        return SendResult(remember)

    def _worded(self, delivery: Delivery) -> Delivery:
        if self._entry.template is None:
            return delivery
        ends = time.monotonic() + templates.SECONDS
        return delivery.with_template(self._entry.template, lambda: time.monotonic() > ends)


class Instance:
    """A notification of workflows: its messages are sent one by one, in their order."""

    def __init__(self, instance: MessageReceiver, around: QueuePorts) -> None:
        """Send as this instance says."""
        self.name, self.kind = receiver_of(instance.name), instance.type
        self._instance, self._around = instance, around

    @cached_property
    def _transport(self) -> Transport:
        return self._around.make(self._instance)

    def due(self, memory: Memory, now: datetime, *, flush: bool) -> Work:
        """Return the messages of the instance that wait, the oldest first, as many as go at once."""
        del now, flush
        waiting = [message for message in memory.workflow if message.instance == self._instance.name]
        if not waiting:
            return Work()
        return Work(partial(self._send, waiting[:_MOST_AT_ONCE], memory.receiver(self.name).dropped))

    def _send(self, messages: Sequence[ProfileMessage], dropped: int) -> SendResult:
        """Send messages until one fails or they take too long."""
        ends = shifted(self._around.clock.now(), _BATCH)
        for count, message in enumerate(messages):
            sent = SendResult(partial(messages_sent, messages=messages[:count]))
            if count and self._around.clock.now() >= ends:
                return sent
            try:
                # Only the first one says how many were left out.
                self._transport.send(letter_of(message, 0 if count else dropped))
            except NotSent as error:
                if not count:
                    raise
                return SendResult(sent.remember, error)
        return SendResult(partial(messages_sent, messages=messages))


class SilenceReceiver:
    """The silences of one entry: what is wanted, what was last done and when, and whose may be left over."""

    def __init__(self, entry: Notify, around: QueuePorts, before: SilenceReceiver | None = None) -> None:
        """Keep them as this entry says; `before` is the same entry of earlier settings."""
        self.name, self.kind = entry.name, entry.transport
        self._entry, self._around = entry, around
        self.wanted: WantedSilences | None = before.wanted if before is not None else None
        self._done: WantedSilences | None = before._done if before is not None else None
        self._again: datetime | None = before._again if before is not None else None
        self._left: frozenset[str] = before._left if before is not None else frozenset()

    def want(self, plan: Plan, outcomes: Sequence[Outcome], memory: Memory) -> None:
        """Note which silences there have to be after a pass."""
        self.wanted = wanted_silences(self._entry, plan, outcomes, {*memory.cases, *self._left})
        self._left |= {uid for uid, _, _ in self.wanted.nodes}

    def due(self, memory: Memory, now: datetime, *, flush: bool) -> Work:
        """Return the silences that have to be set or ended."""
        del memory, flush
        if self.wanted is None:
            return Work()
        if self.wanted.differs(self._done) or self._again is None or self._again <= now:
            return Work(partial(self._keep, self.wanted))
        return Work(at=self._again)

    def _keep(self, wanted: WantedSilences) -> SendResult:
        self._around.silences(self._entry).keep(wanted, self._around.clock.now())
        return SendResult(partial(self._kept, wanted))

    def _kept(self, wanted: WantedSilences, memory: Memory) -> Memory:
        if self.wanted is not None and self._entry.alertmanager is not None:
            self._done = wanted
            self._again = shifted(self._around.clock.now(), look_again(self._entry.alertmanager))
            self._left = frozenset(uid for uid, _, _ in self.wanted.nodes)
        return deliveries.works(memory, self.name) if memory.receiver(self.name).problem else memory


def receivers_of(
    entries: Iterable[Notify],
    instances: Iterable[MessageReceiver],
    around: QueuePorts,
    zone: tzinfo,
    before: Mapping[str, Receiver],
) -> dict[str, Receiver]:
    """Return every receiver by its name; `before` are those of earlier settings."""
    found: dict[str, Receiver] = {}
    for entry in entries:
        earlier = before.get(entry.name)
        if entry.alertmanager is None:
            found[entry.name] = Entry(entry, around, zone)
        else:
            known = earlier if isinstance(earlier, SilenceReceiver) else None
            found[entry.name] = SilenceReceiver(entry, around, known)
    return found | {receiver_of(instance.name): Instance(instance, around) for instance in instances}
