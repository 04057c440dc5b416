"""The state of a node after a pass, for publishers."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.event import WITHOUT_START, MaintenanceEvent
from reconciler.model.plan import Hold
from reconciler.model.record import CaseRecord, State
from reconciler.profiles.case import CaseView


class Standing(Struct, frozen=True):
    """A node after a pass:

    its record, the events of its case, its holds, and whether its drain continues now.
    """

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
        """Whether all pods that had to go are gone."""
        drain = self.record.drain
        return self.state is State.IN_MAINTENANCE and drain is not None and drain.done is not None

    @property
    def started(self) -> bool:
        """Whether the maintenance itself has begun.

        If its source reports no start, it begins when the node is drained.
        """
        events = [one.event for one in self.case.present]
        if any(event.started for event in events):
            return True
        return self.drained and bool(events) and all(_reports_no_start(event) for event in events)


def _reports_no_start(event: MaintenanceEvent) -> bool:
    return bool(event.condition) or set(event.sources) <= WITHOUT_START
