"""What a report says of receivers to which nothing can be sent."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.features.notices.memory import Memory
from reconciler.features.notices.workflow_messages import receiver_of
from reconciler.model.moments import to_text
from reconciler.settings.sections.notify import Notify
from reconciler.settings.sections.workflows import NotifyInstance


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
