"""Writes Events of passes and of drains, and of escalations, which happen between two passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING
from uuid import uuid4

from jobs.runtime.process import Companion, EventWriter, Leading, PassPorts, Ports, Process
from reconciler.model.drains import DrainProgress
from reconciler.model.plan import Notice, NoticeType
from reconciler.model.ports import Notification, Notifier

if TYPE_CHECKING:
    from reconciler.features.events.pod_events import PodEvents
    from reconciler.kubernetes.connection import Connection
    from reconciler.model.drains import DrainOrder, Eviction
    from reconciler.model.outcome import Outcome
    from reconciler.model.plan import Notice, Plan
    from reconciler.model.ports import Notifier
    from reconciler.model.snapshot import Self
    from reconciler.settings.schema import Settings


LAST_EVENTS, LAST_EVENTS_BY_HAND = 3.0, 2.0
"""Seconds that the end of a process, and of a command, waits for Events about pods."""


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


class _AboutPods(Companion):
    def __init__(self, leading: Leading) -> None:
        self._leading, self._escalations = leading, Escalations()
        self._events: PodEvents | None = None

    def after(self, plan: Plan, outcomes: tuple[Outcome, ...], notifier: Notifier) -> Sequence[str]:
        """Report escalations of drains, and see to it that Events about pods are sent."""
        if self._events is not None:
            self._events.go_on()
        if self._leading.settings is not None:
            self._escalations.report(self._leading.drains().values(), notifier)
        return ()

    def drains(self) -> None:
        """Get ready for the first drain."""
        from reconciler.features.events.pod_events import PodEvents, log

        leading, settings = self._leading, self._leading.settings
        zone: Callable[[], tzinfo] = (lambda: UTC) if settings is None else lambda: settings().time_zone
        guard, warn = leading.eviction_guard, leading.warn or log.warning
        self._events = PodEvents(leading.connection, guard, zone, warn=warn)

    def evicted(self, order: DrainOrder, eviction: Eviction) -> None:
        """Write Events about a pod that was evicted."""
        from reconciler.features.events.settings import POD_EVENTS

        settings = self._leading.settings
        if self._events is not None and (settings is None or POD_EVENTS.of(settings())):
            self._events.evicted(order, eviction.pod, eviction.deleted)

    def close(self) -> None:
        """Send the Events that wait, for a short time."""
        if self._events is not None:
            self._events.close(LAST_EVENTS if self._leading.settings is not None else LAST_EVENTS_BY_HAND)


def _ports(given: Ports) -> Callable[[Settings], PassPorts]:
    from reconciler.features.events.kubernetes_events import KubernetesEvents

    return lambda settings: PassPorts(
        notifier=KubernetesEvents(given.connection, guard=given.guard, zone=settings.time_zone)
    )


def _own_pod(connection: Connection, itself: Self) -> Callable[[Notice, tzinfo], bool]:
    from reconciler.features.events.kubernetes_events import OwnPodEvents

    return OwnPodEvents(connection, itself).notify


def _by_hand(connection: Connection, zone: tzinfo) -> EventWriter:
    from reconciler.features.events.kubernetes_events import KubernetesEvents

    return KubernetesEvents(connection, guard=lambda: None, zone=zone)


PROCESS = Process(companion=_AboutPods, ports=_ports, own_pod=_own_pod, by_hand=_by_hand)
