"""The queue of messages to people: threads of its own send them, so no pass waits for a receiver.

The memory of what was said is written before anything is sent, and again after it. A process that is killed
in between sends a message again rather than never.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, tzinfo
from functools import partial

from msgspec import Struct

from reconciler.features.notices import deliveries, memory
from reconciler.features.notices.deriving import Pass, Policy, after_pass
from reconciler.features.notices.memory import Memory, added, failing, still_wanted
from reconciler.features.notices.receivers import (
    QueuePorts,
    Receiver,
    SendResult,
    SilenceReceiver,
    receivers_of,
)
from reconciler.features.notices.settings import Notify
from reconciler.features.notices.transports.sending import NotSent
from reconciler.model.errors import ClusterError, LockLost, NoThread
from reconciler.model.messages import MessageReceiver, ProfileMessage
from reconciler.model.moments import shifted
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Notice, NoticeType, Plan
from reconciler.model.problems import internal
from reconciler.threads import start

log = logging.getLogger(__name__)

NOT_SENT = "NoticesNotSent"
"""The reason of the Warning Event on our Pod."""

LOAD_PATIENCE = 2.0
"""Seconds that a pass waits at most for the memory, which is read while the pass runs."""

KEEP_PATIENCE = 2.0
"""Seconds that a pass with messages of workflows waits at most until the memory with them is written."""

SAVE_AGAIN = timedelta(seconds=30)
"""The pause after a read or a write of the memory that failed."""

FIRST_PAUSE = timedelta(seconds=5)
"""The pause after the first of failures of a receiver in a row. Each further one is twice as long."""

_LONGEST_PAUSE = timedelta(minutes=15)
_REFUSED_PAUSE = timedelta(minutes=5)
_LOOK_AGAIN = timedelta(minutes=1)


class _Circuit(Struct):
    """The failures of one receiver in a row, and until when nothing is tried."""

    failures: int = 0
    until: datetime | None = None


class _Saving(Struct):
    """The memory as it was saved last, why that failed last, and when it is tried again."""

    memory: Memory | None = None
    trouble: str = ""
    after: datetime | None = None


class NoticeQueue:
    """Sends the messages of each pass; safe for threads."""

    def __init__(self, around: QueuePorts) -> None:
        """Use these; nothing runs until `start`."""
        self._around, self._clock = around, around.clock
        self._changed = threading.Condition()
        self._memory: Memory | None = None
        self._saved = _Saving()
        self._early: tuple[ProfileMessage, ...] = ()
        self._entries: tuple[Notify, ...] = ()
        self._instances: tuple[MessageReceiver, ...] = ()
        self._receivers: dict[str, Receiver] = {}
        self._busy: set[str] = set()
        self._circuits: dict[str, _Circuit] = {}
        self._closing = self._lock_lost = False
        self._thread: threading.Thread | None = None

    def start(
        self, entries: tuple[Notify, ...], zone: tzinfo, instances: tuple[MessageReceiver, ...] = ()
    ) -> None:
        """Begin to read the memory, and to send, unless that goes on; call it before each pass.

        `zone` is the one in which people read moments. `instances` are the notifications of workflows.
        """
        with self._changed:
            if self._entries is not entries or self._instances != instances:
                self._entries, self._instances = entries, instances
                self._receivers = receivers_of(entries, instances, self._around, zone, self._receivers)
            if (entries or instances) and not self._runs() and not self._lock_lost:
                try:
                    self._thread = start("notices", self._run)
                except NoThread as error:
                    # No pass fails because of its notices.
                    log.warning("notices wait for the next pass: %s", error)

    def keep(self, messages: Sequence[ProfileMessage]) -> None:
        """Keep messages of workflows, and return once they survive a kill, or after `KEEP_PATIENCE`.

        Until the memory can be read, they are kept in this process.
        """
        ids = {message.id for message in messages}
        with self._changed:
            self._wait_for_memory()
            if self._memory is None:
                self._early = (*self._early, *messages)[-memory.WORKFLOW_PENDING :]
                return
            self._memory = added(self._memory, messages)
            self._changed.notify_all()

            def would_be_lost() -> bool:
                saved = self._saved.memory
                # Nobody waits while the memory can't be written, or nothing writes it.
                if saved is None or not self._runs() or self._saved.trouble:
                    return False
                return not ids <= {*saved.workflow_sent, *(message.id for message in saved.workflow)}

            self._wait_while(would_be_lost, KEEP_PATIENCE)

    def after(
        self, plan: Plan, outcomes: Sequence[Outcome], now: datetime, policy: Policy | None = None
    ) -> tuple[str, ...]:
        """Add the messages of a pass, and return the notes about those that can't be sent. Never raises."""
        try:
            with self._changed:
                if not self._wait_for_memory() and (self._entries or self._instances):
                    return ("notices: what was sent before can't be read now, so nothing new is sent",)
                if self._memory is None or not self._receivers:
                    return ()
                known = self._memory
                if self._entries:
                    for receiver in self._receivers.values():
                        if isinstance(receiver, SilenceReceiver):
                            receiver.want(plan, outcomes, known)
                    known = after_pass(known, Pass.of(plan, outcomes), self._entries, now, policy)
                    known = deliveries.too_old(known, self._entries, now)
                self._memory = still_wanted(known, {instance.name for instance in self._instances}, now)
                self._changed.notify_all()
                notes = failing(self._memory, self._entries, self._instances)
                if self._saved.trouble:
                    notes = (*notes, f"notices: what was sent can't be remembered: {self._saved.trouble}")
                return notes
        except Exception as error:  # noqa: BLE001 - no pass fails because of its notices
            return (f"internal error: no notices about this pass: {internal('notices', error)}",)

    def close(self, patience: float) -> None:
        """Send what is due, for at most so many seconds; what is left is sent by the next process."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(patience)

    def _wait_for_memory(self) -> bool:
        if not self._closing:
            self._wait_while(lambda: self._memory is None and self._runs(), LOAD_PATIENCE)
        return self._memory is not None

    def _runs(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _wait_while(self, condition: Callable[[], bool], patience: float) -> None:
        ends = shifted(self._clock.now(), timedelta(seconds=patience))
        while condition() and (left := (ends - self._clock.now()).total_seconds()) > 0:
            self._clock.wait(self._changed, left)

    # The thread of the queue.

    def _run(self) -> None:
        try:
            if self._memory is None:
                self._load()
            while self._step():
                pass
        except LockLost:
            log.info("the lock is lost, so no notices are sent")
            self._lock_lost = True
        except Exception as error:  # noqa: BLE001 - the queue ends, and the next pass begins it again
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
                    self._clock.wait(self._changed, SAVE_AGAIN.total_seconds())
        try:
            loaded = memory.from_text(text)
        except ValueError as error:
            log.warning("the memory of notices is begun again, and messages may come twice: error=%s", error)
            loaded = Memory()
        with self._changed:
            self._memory, self._saved.memory = added(loaded, self._early), loaded
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
            again = self._saved.after
            must_save = known is not self._saved.memory and (again is None or again <= now)
            due, at = ([], None) if must_save else self._due(known, now)
            if not must_save and not due:
                # At the end nothing is waited for, apart from what is being sent.
                if self._closing and not self._busy:
                    return False
                seconds = max(0.0, ((at or shifted(now, _LOOK_AGAIN)) - now).total_seconds())
                self._clock.wait(self._changed, min(seconds, _LOOK_AGAIN.total_seconds()))
                return True
            for receiver, send in due:
                try:
                    start(f"notices-{receiver.name}", partial(self._attempt, receiver, send))
                except NoThread as error:
                    # The receiver has done nothing wrong, so nobody is warned of it.
                    log.warning("notices wait: to=%s error=%s", receiver.name, error)
                    circuit = self._circuits.setdefault(receiver.name, _Circuit())
                    circuit.until = shifted(now, FIRST_PAUSE)
                else:
                    # Only now: nobody may wait for a thread that does not run. It waits for this lock.
                    self._busy.add(receiver.name)
        if must_save:
            try:
                self._around.store.save(memory.to_text(known))
            except ClusterError as error:
                with self._changed:
                    if not self._saved.trouble:
                        log.warning("the memory of notices can't be written: error=%s", error)
                    self._saved.trouble, self._saved.after = str(error), shifted(now, SAVE_AGAIN)
            else:
                with self._changed:
                    self._saved = _Saving(known)
                    self._changed.notify_all()
        return True

    def _due(
        self, known: Memory, now: datetime
    ) -> tuple[list[tuple[Receiver, Callable[[], SendResult]]], datetime | None]:
        """Return what is due, and when to look again at the latest (None: when something changes)."""
        due: list[tuple[Receiver, Callable[[], SendResult]]] = []
        moments = [self._saved.after]
        for name, receiver in self._receivers.items():
            if name in self._busy:
                continue
            until = self._circuits.get(name, _Circuit()).until
            if until is not None and until > now:
                # After a failure nothing is tried for some time.
                moments.append(until)
                continue
            work = receiver.due(known, now, flush=self._closing)
            due += [(receiver, work.send)] if work.send is not None else []
            moments.append(work.at)
        return due, min((moment for moment in moments if moment is not None), default=None)

    # The threads of the deliveries.

    def _attempt(self, receiver: Receiver, send: Callable[[], SendResult]) -> None:
        """Do what talks to a receiver, and remember it."""
        sent: SendResult | None = None
        failure: NotSent | None = None
        warning = ""
        try:
            self._around.guard()
            sent = send()
            failure = sent.failure
        except NotSent as error:
            failure = error
        except LockLost:
            # Another process leads, and has the messages.
            with self._changed:
                self._lock_lost = True
        except Exception as error:  # noqa: BLE001 - a receiver harms itself only
            # Its text may have a secret in it.
            log.error("internal error: notices to %s: %s", receiver.name, type(error).__name__)
            failure = NotSent(f"an error in this program: {type(error).__name__}")
        finally:
            with self._changed:
                if sent is not None:
                    self._succeeded(receiver.name, sent)
                if failure is not None:
                    warning = self._failed(receiver.name, failure)
                if self._around.counted is not None and (sent is not None or failure is not None):
                    self._around.counted.notice(receiver.kind, sent=sent is not None)
                self._busy.discard(receiver.name)
                self._changed.notify_all()
        if warning:
            # Only now: the request may take long, and nothing waits for it.
            with suppress(Exception):
                self._around.warn(Notice(NOT_SENT, warning, NoticeType.WARNING))

    def _succeeded(self, name: str, sent: SendResult) -> None:
        self._circuits.pop(name, None)
        if self._memory is not None:
            if self._memory.receiver(name).problem:
                log.info("notices are sent again: to=%s", name)
            self._memory = sent.remember(self._memory)

    def _failed(self, name: str, failure: NotSent) -> str:
        """Pause, and remember the failure; return what people are warned of, if that is new."""
        now = self._clock.now()
        circuit = self._circuits.setdefault(name, _Circuit())
        pause = min(FIRST_PAUSE * 2 ** min(circuit.failures, 10), _LONGEST_PAUSE)
        pause = max(pause, _REFUSED_PAUSE) if failure.refused else pause
        pause = max(pause, timedelta(seconds=failure.retry_after or 0.0))
        circuit.failures += 1
        circuit.until = shifted(now, pause)
        if self._memory is None:
            return ""
        is_new = not self._memory.receiver(name).problem
        self._memory = deliveries.failed(self._memory, name, str(failure), now)
        if not is_new:
            return ""
        log.warning("notices can't be sent: to=%s error=%s", name, failure)
        return f"notices to {name} can't be sent: {failure}"
