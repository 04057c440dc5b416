"""Notices of a drain's escalations, which happen between two passes, in the drainer."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.drains import DrainProgress
from reconciler.model.notification import Notification
from reconciler.model.plan import Notice, NoticeType
from reconciler.model.ports import Notifier


class Escalations:
    """Reports each stage of an escalation once for a drain in this process."""

    def __init__(self) -> None:
        """Begin with nothing reported."""
        self._reported: set[tuple[str, str]] = set()

    def report(self, drains: Iterable[DrainProgress], notifier: Notifier) -> None:
        """Notify of every stage that is new since the last call; raises LockLost.

        A drain that is no longer there is forgotten, so a later drain of the node is reported again.
        """
        seen: set[tuple[str, str]] = set()
        for progress in drains:
            for text in progress.escalations:
                seen.add((progress.node, text))
                if (progress.node, text) not in self._reported:
                    notice = Notice("MaintenanceEscalated", text, NoticeType.WARNING)
                    notifier.notify(Notification(progress.node, progress.uid, notice))
        self._reported = seen
