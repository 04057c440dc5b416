"""Events about a drain's escalations, which happen between two passes, in the drainer."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import uuid4

from reconciler.model.drains import DrainProgress
from reconciler.model.plan import Notice, NoticeType
from reconciler.model.ports import Notification, Notifier


class Escalations:
    """Reports each stage of an escalation once for a drain in this process."""

    def __init__(self) -> None:
        """Begin with nothing reported."""
        self._names: dict[tuple[str, str], str] = {}
        self._reported: set[tuple[str, str]] = set()

    def report(self, drains: Iterable[DrainProgress], notifier: Notifier) -> None:
        """Notify of every stage that was not reported before; raises LockLost.

        After one that can't be sent now, the others wait for the next call, too. A drain that is no longer
        there is forgotten, so a later drain of the node is reported again.
        """
        names: dict[tuple[str, str], str] = {}
        reported: set[tuple[str, str]] = set()
        settled = True
        for progress in drains:
            for text in progress.escalations:
                stage = (progress.node, text)
                # An answer may be lost: the same name keeps a second try from being a second Event.
                names[stage] = self._names.get(stage) or uuid4().hex
                if stage not in self._reported and settled:
                    notice = Notice("MaintenanceEscalated", text, NoticeType.WARNING, once=names[stage])
                    settled = notifier.notify(Notification(progress.node, progress.uid, notice))
                    reported |= {stage} if settled else set()
                elif stage in self._reported:
                    reported.add(stage)
        self._names, self._reported = names, reported
