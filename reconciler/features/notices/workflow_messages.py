"""Messages of workflows: how they are kept, and which can not be sent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from reconciler.features.notices.memory import OLDEST, WORKFLOW_PENDING, WORKFLOW_SENT, Memory
from reconciler.features.notices.settings import Notify
from reconciler.model.moments import shifted, to_text
from reconciler.model.values import replace
from reconciler.model.workflow import WorkflowMessage
from reconciler.report import safe
from reconciler.settings.sections.workflows import NotifyInstance

_WORKFLOW = "instances.notify/"


def receiver_of(instance: str) -> str:
    """Return the name under which an instance is remembered. No entry of `notify` can have it."""
    return f"{_WORKFLOW}{instance}"


def is_workflow(receiver: str) -> bool:
    """Whether a name is that of an instance."""
    return receiver.startswith(_WORKFLOW)


def added(memory: Memory, messages: Iterable[WorkflowMessage]) -> Memory:
    """Return the memory with these messages, without those that it knows; it keeps the newest ones."""
    known = {*memory.workflow_sent, *(one.id for one in memory.workflow)}
    fresh = {one.id: one for one in messages if one.id not in known}
    if not fresh:
        return memory
    waiting = (*memory.workflow, *fresh.values())
    return _dropped(replace(memory, workflow=waiting), waiting[:-WORKFLOW_PENDING])


def by_instance(memory: Memory) -> dict[str, tuple[WorkflowMessage, ...]]:
    """Return the messages that wait, by their instances, in the order in which they are sent."""
    found: dict[str, list[WorkflowMessage]] = {}
    for one in memory.workflow:
        found.setdefault(one.instance, []).append(one)
    return {name: tuple(waiting) for name, waiting in found.items()}


def worded(memory: Memory, message: WorkflowMessage) -> WorkflowMessage:
    """Return the message as it is sent: without control characters, and with how many were left out."""
    dropped = memory.receiver(receiver_of(message.instance)).dropped
    left_out = (
        f"\n{dropped} earlier messages were left out, because they could not be sent." if dropped else ""
    )
    return replace(message, text=f"{safe.lines(message.text)}{left_out}", title=safe.line(message.title))


def messages_sent(memory: Memory, messages: Sequence[WorkflowMessage]) -> Memory:
    """Return the memory after messages to one instance were sent."""
    ids = {one.id for one in messages}
    waiting = tuple(one for one in memory.workflow if one.id not in ids)
    sent = (*memory.workflow_sent, *(one.id for one in messages))[-WORKFLOW_SENT:]
    name = receiver_of(messages[0].instance)
    receiver = replace(memory.receiver(name), problem="", problem_since=None, dropped=0)
    return replace(memory, workflow=waiting, workflow_sent=sent).with_receiver(name, receiver)


def still_wanted(memory: Memory, instances: Collection[str], now: datetime) -> Memory:
    """Return the memory without messages that could not be sent for a day, and without gone instances."""
    names = {receiver_of(one) for one in instances}
    gone = {name for name in memory.receivers if is_workflow(name) and name not in names}
    receivers = {name: one for name, one in memory.receivers.items() if name not in gone}
    kept = tuple(one for one in memory.workflow if one.instance in instances)
    old = tuple(one for one in kept if shifted(one.at, OLDEST) < now)
    if not gone and not old and len(kept) == len(memory.workflow):
        return memory
    return _dropped(replace(memory, receivers=receivers, workflow=kept), old)


def _dropped(memory: Memory, left_out: tuple[WorkflowMessage, ...]) -> Memory:
    """Return the memory without these messages; each counts as dropped."""
    ids = {one.id for one in left_out}
    after = replace(memory, workflow=tuple(one for one in memory.workflow if one.id not in ids))
    for one in left_out:
        name = receiver_of(one.instance)
        receiver = after.receiver(name)
        after = after.with_receiver(name, replace(receiver, dropped=receiver.dropped + 1))
    return after


def failing(
    memory: Memory, entries: Iterable[Notify], instances: Iterable[NotifyInstance]
) -> tuple[str, ...]:
    """Return a note about each entry of `notify`, and each instance of workflows, that can't be sent to."""
    names = (*(one.name for one in entries), *(receiver_of(one.name) for one in instances))
    return tuple(note for name in names if (note := _note(memory, name)))


def _note(memory: Memory, name: str) -> str:
    receiver = memory.receiver(name)
    if not receiver.problem or receiver.problem_since is None:
        return ""
    count = sum(name in one.to for one in memory.pending)
    count += sum(name == receiver_of(one.instance) for one in memory.workflow)
    waiting = f"{count} {'message waits' if count == 1 else 'messages wait'}"
    return f"notices to {name} fail since {to_text(receiver.problem_since)}: {receiver.problem}; {waiting}"
