"""Tells of each pod that a drain moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jobs.runtime.log_line import write_events
from jobs.runtime.process import Companion, Leading, Observer, Process, Surroundings
from reconciler.features.pods import EVICTED

if TYPE_CHECKING:
    from reconciler.model.drains import DrainOrder, Eviction


class _Telling(Companion):
    def __init__(self, leading: Leading) -> None:
        self._leading = leading

    def evicted(self, order: DrainOrder, eviction: Eviction) -> None:
        """Tell of a pod that was moved."""
        from reconciler.features.pods.moved import moved, to_fields

        pod = moved(order, eviction, self._leading.clock.now())
        self._leading.observers.happened(EVICTED, to_fields(pod))


class _Log(Observer):
    def happened(self, event: str, fields: Mapping[str, object]) -> None:
        """Log a pod that was moved."""
        if event == EVICTED:
            write_events(event, fields)


def _observer(around: Surroundings, _: Observer) -> Observer | None:
    # What other commands print is for people.
    return _Log() if around.command == "serve" else None


PROCESS = Process(companion=_Telling, observer=_observer)
