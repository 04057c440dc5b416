"""The queue of messages to people: threads of its own send them, so no pass waits for a receiver.

The memory of what was said is written before anything is sent, and again after it. A process that is killed
in between sends a message again rather than never.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from typing import Protocol

from msgspec import Struct

from reconciler.features.notices import deliveries, memory
from reconciler.features.notices.deliveries import Delivery
from reconciler.features.notices.deriving import Pass, after_pass
from reconciler.features.notices.memory import Memory
from reconciler.features.notices.owners import ForOwners, Namespace, for_owners
from reconciler.features.notices.settings import Notify
from reconciler.features.notices.silences import WantedSilences, look_again, wanted_silences
from reconciler.features.notices.transports.transport import NotSent, Sender, Transport
from reconciler.features.notices.workflow_messages import (
    added,
    by_instance,
    failing,
    messages_sent,
    receiver_of,
    still_wanted,
    worded,
)
from reconciler.model.errors import ClusterError, LockLost
from reconciler.model.moments import shifted
from reconciler.model.notices import Message
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Notice, NoticeType, Plan
from reconciler.model.ports import Clock
from reconciler.model.problems import internal
from reconciler.model.workflow import WorkflowMessage
from reconciler.settings import templates
from reconciler.settings.sections.workflows import NotifyInstance

log = logging.getLogger(__name__)

NOT_SENT = "NoticesNotSent"
"""The reason of the Warning Event on our Pod."""

LOAD_PATIENCE = 2.0
"""Seconds that a pass waits at most for the memory, which is read while the pass runs."""

KEEP_PATIENCE = 2.0
"""Seconds that a pass with messages of workflows waits at most until the memory with them is written."""

_SAVE_AGAIN = timedelta(seconds=30)
_FIRST_PAUSE = timedelta(seconds=5)
_LONGEST_PAUSE = timedelta(minutes=15)
_REFUSED_PAUSE = timedelta(minutes=5)
_LOOK_AGAIN = timedelta(minutes=1)
_MOST_AT_ONCE = 20
"""Messages of one workflow's notification between two writes of the memory."""

_NAMED = 3

_BATCH = timedelta(seconds=5)
"""After this time the memory is written before more of them are sent."""


class Counted(Protocol):
    """Counts notices; may be called from any thread, and raises nothing."""

    def notice(self, transport: str, *, sent: bool) -> None:
        """Count an attempt to send notices."""

    def waiting(self, messages: int | None) -> None:
        """Note how many messages wait to be sent."""


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


class Around(Struct, frozen=True):
    """What the queue needs of its process.

    `guard` raises LockLost if the lock is not ours: another process sends then. `make` returns the transport
    of an entry, `silences` what keeps its silences. `warn` writes a Warning Event. `concerned` reads whose
    pods are on a node. `sender` returns what sends the messages of an instance of a workflow. `counted` may
    be None.
    """

    store: Store
    clock: Clock
    guard: Callable[[], None]
    make: Callable[[Notify], Transport]
    silences: Callable[[Notify], Silences]
    warn: Callable[[Notice], object]
    concerned: Concern
    sender: Callable[[NotifyInstance], Sender]
    counted: Counted | None = None


class _Kept(Struct):
    """The silences of one entry: what is wanted, what was last done and when, and whose may be left over."""

    wanted: WantedSilences
    done: WantedSilences | None = None
    again: datetime | None = None
    left: frozenset[str] = frozenset()


class _Circuit(Struct):
    """The failures of one entry in a row, and until when nothing is tried."""

    failures: int = 0
    until: datetime | None = None


class NoticeQueue:
    """Sends the messages of each pass; safe for threads."""

    def __init__(self, around: Around) -> None:
        """Use these; nothing runs until `start`."""
        self._around, self._clock = around, around.clock
        self._changed = threading.Condition()
        self._memory: Memory | None = None
        self._saved: Memory | None = None
        self._save_after: datetime | None = None
        self._entries: tuple[Notify, ...] = ()
        self._zone: tzinfo = UTC
        self._transports: dict[str, Transport] = {}
        self._instances: tuple[NotifyInstance, ...] = ()
        self._senders: dict[str, Sender] = {}
        self._early: tuple[WorkflowMessage, ...] = ()
        self._silences: dict[str, _Kept] = {}
        self._busy: set[str] = set()
        self._circuits: dict[str, _Circuit] = {}
        self._trouble = ""
        self._closing = self._lock_lost = False
        self._thread: threading.Thread | None = None

    def start(
        self, entries: tuple[Notify, ...], zone: tzinfo, instances: tuple[NotifyInstance, ...] = ()
    ) -> None:
        """Begin to read the memory, and to send; `zone` is the one in which people read moments.

        `instances` are the notifications of workflows.
        """
        with self._changed:
            if self._entries is not entries:
                self._entries, self._transports = entries, {}
            if self._instances is not instances:
                self._instances, self._senders = instances, {}
            self._zone = zone
            if self._thread is None and (entries or instances):
                self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
                self._thread.start()

    def keep(self, messages: Sequence[WorkflowMessage]) -> None:
        """See `Outbox`. Without the memory they are kept in this process until it can be read."""
        ids = {one.id for one in messages}
        with self._changed:
            self._wait_for_memory()
            if self._memory is None:
                self._early = (*self._early, *messages)[-memory.WORKFLOW_PENDING :]
                return
            self._memory = added(self._memory, messages)
            self._changed.notify_all()
            ends = shifted(self._clock.now(), timedelta(seconds=KEEP_PATIENCE))
            while self._is_unsaved(ids) and (left := (ends - self._clock.now()).total_seconds()) > 0:
                self._clock.wait(self._changed, left)

    def _is_unsaved(self, ids: set[str]) -> bool:
        """Whether a kill would lose a message; not if the memory can't be written, or nothing writes it."""
        if self._saved is None or self._thread is None or not self._thread.is_alive() or self._trouble:
            return False
        return not ids <= {*self._saved.workflow_sent, *(one.id for one in self._saved.workflow)}

    def after(self, plan: Plan, outcomes: Sequence[Outcome], now: datetime) -> tuple[str, ...]:
        """Add the messages of a pass, and return the notes about those that can't be sent. Never raises."""
        try:
            with self._changed:
                if not self._wait_for_memory():
                    return ("notices: what was sent before can't be read now, so nothing new is sent",)
                if self._memory is None or not (self._entries or self._instances):
                    return ()
                entries, known = self._entries, self._memory
                if entries:
                    self._want_silences(plan, outcomes, known)
                    known = after_pass(known, Pass.of(plan, outcomes), entries, now)
                    known = deliveries.too_old(known, entries, now)
                self._memory = still_wanted(known, {one.name for one in self._instances}, now)
                self._changed.notify_all()
                return self._notes(self._memory)
        except Exception as error:  # noqa: BLE001 - no pass fails because of its notices
            return (f"internal error: no notices about this pass: {internal('notices', error)}",)

    def close(self, patience: float) -> None:
        """Send what is due, for at most so many seconds; what is left is sent by the next process."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(patience)

    def _want_silences(self, plan: Plan, outcomes: Sequence[Outcome], known: Memory) -> None:
        kept: dict[str, _Kept] = {}
        for entry in self._entries:
            if entry.alertmanager is None:
                continue
            before = self._silences.get(entry.name)
            left = before.left if before is not None else frozenset()
            wanted = wanted_silences(entry, plan, outcomes, {*known.cases, *left})
            left |= {uid for uid, _, _ in wanted.nodes}
            kept[entry.name] = (
                _Kept(wanted, before.done, before.again, left)
                if before is not None
                else _Kept(wanted, left=left)
            )
        self._silences = kept

    def _wait_for_memory(self) -> bool:
        if self._memory is None and self._thread is not None and not self._closing:
            ends = shifted(self._clock.now(), timedelta(seconds=LOAD_PATIENCE))
            while self._memory is None and (left := (ends - self._clock.now()).total_seconds()) > 0:
                self._clock.wait(self._changed, left)
        return self._memory is not None or self._thread is None

    def _notes(self, known: Memory) -> tuple[str, ...]:
        notes = failing(known, self._entries, self._instances)
        if self._trouble:
            notes = (*notes, f"notices: what was sent can't be remembered: {self._trouble}")
        return notes

    # The thread of the queue.

    def _run(self) -> None:
        try:
            self._load()
            while self._step():
                pass
        except LockLost:
            log.info("the lock is lost, so no notices are sent")
        except Exception as error:  # noqa: BLE001 - the queue ends, and the next process has its memory
            internal("the queue of notices has ended", error)
        finally:
            with self._changed:
                self._changed.notify_all()

    def _load(self) -> None:
        while True:
            try:
                text = self._around.store.load()
                break
            except ClusterError as error:
                log.warning("the memory of notices can't be read: error=%s", error)
                with self._changed:
                    if self._closing:
                        raise LockLost("the process ends") from error
                    self._clock.wait(self._changed, _SAVE_AGAIN.total_seconds())
        try:
            found = memory.from_text(text)
        except ValueError as error:
            log.warning("the memory of notices is begun again, and messages may come twice: error=%s", error)
            found = Memory()
        with self._changed:
            self._memory, self._saved = added(found, self._early), found
            self._early = ()
            self._changed.notify_all()

    def _step(self) -> bool:
        """Save, send or wait once; return whether to go on."""
        with self._changed:
            now = self._clock.now()
            known = self._memory
            if known is None or self._lock_lost:
                return False
            if self._around.counted is not None:
                self._around.counted.waiting(len(known.pending) + len(known.workflow))
            to_save = known if self._must_save(known, now) else None
            due, at = ([], None) if to_save is not None else self._due(known, now)
            silent, later = ([], None) if to_save is not None else self._due_silences(now)
            letters, then = ([], None) if to_save is not None else self._due_messages(known, now)
            if to_save is None and not due and not silent and not letters:
                at = min((one for one in (at, later, then) if one is not None), default=None)
                # At the end nothing is waited for, apart from what is being sent.
                if self._closing and not self._busy:
                    return False
                seconds = max(0.0, ((at or shifted(now, _LOOK_AGAIN)) - now).total_seconds())
                self._clock.wait(self._changed, min(seconds, _LOOK_AGAIN.total_seconds()))
                return True
            self._busy |= {delivery.to for delivery in due} | {entry.name for entry in silent}
            self._busy |= {receiver_of(each[0].instance) for each in letters}
        if to_save is not None:
            self._save(to_save, now)
        work = [(delivery.to, partial(self._send, delivery)) for delivery in due]
        work += [(entry.name, partial(self._keep_silences, entry)) for entry in silent]
        work += [(receiver_of(each[0].instance), partial(self._send_messages, each)) for each in letters]
        for name, each in work:
            thread = partial(self._attempt, name, each)
            threading.Thread(target=thread, name=f"notices-{name}", daemon=True).start()
        return True

    def _must_save(self, known: Memory, now: datetime) -> bool:
        return known is not self._saved and (self._save_after is None or self._save_after <= now)

    def _save(self, known: Memory, now: datetime) -> None:
        try:
            self._around.store.save(memory.to_text(known))
        except ClusterError as error:
            with self._changed:
                if not self._trouble:
                    log.warning("the memory of notices can't be written: error=%s", error)
                self._trouble, self._save_after = str(error), shifted(now, _SAVE_AGAIN)
            return
        with self._changed:
            self._saved, self._trouble, self._save_after = known, "", None

    def _due(self, known: Memory, now: datetime) -> tuple[list[Delivery], datetime | None]:
        """Return what is due, and when to look again at the latest (None: when something changes)."""
        due: list[Delivery] = []
        moments: list[datetime] = [self._save_after] if self._save_after is not None else []
        for entry in self._entries:
            if entry.name in self._busy:
                continue
            if (until := self._paused(entry.name, now)) is not None:
                moments.append(until)
                continue
            found = deliveries.due_for(entry, known, now, self._zone, flush=self._closing)
            due += [found.delivery] if found.delivery is not None else []
            moments += [found.at] if found.at is not None else []
        return due, min(moments, default=None)

    def _due_silences(self, now: datetime) -> tuple[list[Notify], datetime | None]:
        """Return the entries whose silences have to be looked at, and when to look again at the latest."""
        due: list[Notify] = []
        moments: list[datetime] = []
        for entry in self._entries:
            kept = self._silences.get(entry.name)
            if kept is None or entry.name in self._busy:
                continue
            if (until := self._paused(entry.name, now)) is not None:
                moments.append(until)
            elif kept.wanted.differs(kept.done) or kept.again is None or kept.again <= now:
                due.append(entry)
            else:
                moments.append(kept.again)
        return due, min(moments, default=None)

    def _due_messages(
        self, known: Memory, now: datetime
    ) -> tuple[list[tuple[WorkflowMessage, ...]], datetime | None]:
        """Return the next messages to each instance, and when to look again at the latest."""
        due: list[tuple[WorkflowMessage, ...]] = []
        moments: list[datetime] = []
        for instance, waiting in by_instance(known).items():
            name = receiver_of(instance)
            if name in self._busy:
                continue
            until = self._paused(name, now)
            due += [waiting[:_MOST_AT_ONCE]] if until is None else []
            moments += [until] if until is not None else []
        return due, min(moments, default=None)

    def _paused(self, name: str, now: datetime) -> datetime | None:
        """Return until when nothing is tried after a failure, None if it may be."""
        circuit = self._circuits.get(name)
        return (
            circuit.until
            if circuit is not None and circuit.until is not None and circuit.until > now
            else None
        )

    # The threads of the deliveries.

    def _attempt(self, name: str, work: Callable[[], Callable[[], None]]) -> None:
        """Do what talks to a receiver; then, if it succeeds, what `work` returns."""
        failure: NotSent | None = None
        success: Callable[[], None] | None = None
        try:
            self._around.guard()
            success = work()
        except NotSent as error:
            failure = error
        except LockLost:
            # Another process leads, and has the messages.
            with self._changed:
                self._lock_lost = True
        except Exception as error:  # noqa: BLE001 - a receiver harms itself only
            # Its text may have a secret in it.
            log.error("internal error: notices to %s: %s", name, type(error).__name__)
            failure = NotSent(f"an error in this program: {type(error).__name__}")
        finally:
            with self._changed:
                if success is not None:
                    success()
                elif failure is not None:
                    self._failed(name, failure)
                self._count(name, success is not None, failure is not None)
                self._busy.discard(name)
                self._changed.notify_all()

    def _count(self, name: str, sent: bool, failed: bool) -> None:
        if self._around.counted is not None and (sent or failed):
            kinds = {one.name: one.transport for one in self._entries}
            kinds |= {receiver_of(one.name): one.type for one in self._instances}
            self._around.counted.notice(kinds.get(name, ""), sent=sent)

    def _send(self, delivery: Delivery) -> Callable[[], None]:
        transport = self._transport(delivery.to)
        others, namespaces = self._for_owners(delivery)
        thread = transport.send(self._worded(delivery))
        if others.cut:
            names, more = ", ".join(others.cut[:_NAMED]), len(others.cut) - _NAMED
            names = f"{names} and {more} more" if more > 0 else names
            log.warning("addresses of namespaces were left out: to=%s namespaces=%s", delivery.to, names)
        for each in others.deliveries:
            try:
                transport.send(self._worded(each))
            except NotSent as error:
                # An address is chosen by the owner of a namespace: a wrong one delays nobody else.
                log.warning("a notice was not sent to an owner: to=%s error=%s", delivery.to, error)
        return partial(self._succeeded, delivery, thread, namespaces)

    def _send_messages(self, messages: Sequence[WorkflowMessage]) -> Callable[[], None]:
        """Send messages to one instance, until one fails or they take too long."""
        with self._changed:
            sender, known = self._sender(messages[0].instance), self._memory or Memory()
        ends = shifted(self._clock.now(), _BATCH)
        for count, message in enumerate(messages):
            if count and self._clock.now() >= ends:
                return partial(self._messages_sent, messages[:count])
            try:
                # Only the first one says how many were left out.
                sender.send(worded(Memory() if count else known, message))
            except NotSent as error:
                if not count:
                    raise
                return partial(self._messages_sent, messages[:count], error)
        return partial(self._messages_sent, messages)

    def _sender(self, instance: str) -> Sender:
        found = self._senders.get(instance)
        if found is None:
            entry = next((one for one in self._instances if one.name == instance), None)
            if entry is None:
                raise NotSent("the settings do not have it any more", refused=True)
            found = self._senders[instance] = self._around.sender(entry)
        return found

    def _messages_sent(self, messages: Sequence[WorkflowMessage], failure: NotSent | None = None) -> None:
        """Remember what was sent; `failure` is that of the next message, None if none has failed."""
        name = receiver_of(messages[0].instance)
        if self._memory is None:
            return
        if self._memory.receiver(name).problem:
            log.info("notices are sent again: to=%s", name)
        self._memory = messages_sent(self._memory, messages)
        self._circuits.pop(name, None)
        if failure is not None:
            self._failed(name, failure)

    def _for_owners(self, delivery: Delivery) -> tuple[ForOwners, dict[str, tuple[str, ...]]]:
        """Return the deliveries to the owners of pods, and the namespaces by case; raises NotSent."""
        with self._changed:
            entry = next((one for one in self._entries if one.name == delivery.to), None)
            zone = self._zone
        if entry is None or entry.to is None:
            return ForOwners(), {}
        by_case = self._around.concerned.pods(delivery.messages)
        on_node = {one.node: by_case.get(one.case, ()) for one in delivery.messages}
        found = for_owners(entry, delivery, on_node, self._around.concerned.namespaces(), zone)
        return found, by_case

    def _keep_silences(self, entry: Notify) -> Callable[[], None]:
        with self._changed:
            wanted = self._silences[entry.name].wanted if entry.name in self._silences else WantedSilences()
        self._around.silences(entry).keep(wanted, self._clock.now())
        return partial(self._silenced, entry, wanted)

    def _silenced(self, entry: Notify, wanted: WantedSilences) -> None:
        self._circuits.pop(entry.name, None)
        kept = self._silences.get(entry.name)
        if kept is not None and entry.alertmanager is not None:
            kept.done = wanted
            kept.again = shifted(self._clock.now(), look_again(entry.alertmanager))
            kept.left = frozenset(uid for uid, _, _ in kept.wanted.nodes)
        if self._memory is not None and self._memory.receiver(entry.name).problem:
            self._memory = deliveries.works(self._memory, entry.name)

    def _worded(self, delivery: Delivery) -> Delivery:
        with self._changed:
            entries = self._entries
        template = next((one.template for one in entries if one.name == delivery.to), None)
        if template is None:
            return delivery
        ends = time.monotonic() + templates.SECONDS
        return delivery.with_template(template, lambda: time.monotonic() > ends)

    def _transport(self, name: str) -> Transport:
        with self._changed:
            found = self._transports.get(name)
            if found is None:
                entry = next((one for one in self._entries if one.name == name), None)
                if entry is None:
                    raise NotSent("the settings do not have it any more", refused=True)
                found = self._transports[name] = self._around.make(entry)
        return found

    def _succeeded(self, delivery: Delivery, thread: str, namespaces: Mapping[str, tuple[str, ...]]) -> None:
        if self._memory is None:
            return
        if self._memory.receiver(delivery.to).problem:
            log.info("notices are sent again: to=%s", delivery.to)
        after = deliveries.sent(self._memory, delivery, self._clock.now(), thread)
        self._memory = after.with_namespaces(namespaces) if namespaces else after
        self._circuits.pop(delivery.to, None)

    def _failed(self, name: str, failure: NotSent) -> None:
        now = self._clock.now()
        circuit = self._circuits.setdefault(name, _Circuit())
        pause = min(_FIRST_PAUSE * 2 ** min(circuit.failures, 10), _LONGEST_PAUSE)
        pause = max(pause, _REFUSED_PAUSE) if failure.refused else pause
        pause = max(pause, timedelta(seconds=failure.retry_after or 0.0))
        circuit.failures += 1
        circuit.until = shifted(now, pause)
        if self._memory is None:
            return
        is_new = not self._memory.receiver(name).problem
        self._memory = deliveries.failed(self._memory, name, str(failure), now)
        if is_new:
            log.warning("notices can't be sent: to=%s error=%s", name, failure)
            message = f"notices to {name} can't be sent: {failure}"
            threading.Thread(target=partial(self._warn, message), name="notices-warning", daemon=True).start()

    def _warn(self, message: str) -> None:
        with suppress(Exception):
            self._around.warn(Notice(NOT_SENT, message, NoticeType.WARNING))
