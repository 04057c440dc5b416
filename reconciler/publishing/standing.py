"""Where a node stands after a pass, as publishers show it."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.engine.case import CaseView
from reconciler.model.event import REQUEST, MaintenanceEvent, Status
from reconciler.model.plan import Hold
from reconciler.model.record import CaseRecord, State


@dataclass(frozen=True, slots=True)
class Standing:
    """A node after a pass: its record, its case's events, its holds, and whether its drain goes on now."""

    state: State
    record: CaseRecord
    case: CaseView
    holds: tuple[Hold, ...] = ()
    draining: bool = False

    @property
    def open(self) -> bool:
        """Whether there is a case."""
        return self.state is not State.OPERATIONAL

    @property
    def drained(self) -> bool:
        """Whether every pod that had to go has gone."""
        drain = self.record.drain
        return self.state is State.IN_MAINTENANCE and drain is not None and drain.done is not None

    @property
    def started(self) -> bool:
        """Whether the maintenance itself has begun. One whose source reports no start begins once drained."""
        events = [one.event for one in self.case.present]
        if any(event.status is Status.STARTED and not event.condition for event in events):
            return True
        return self.drained and bool(events) and all(_tells_no_start(event) for event in events)


def _tells_no_start(event: MaintenanceEvent) -> bool:
    return bool(event.condition) or set(event.sources) <= {REQUEST}
