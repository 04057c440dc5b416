"""What each source answered about the nodes, summed up for views of the plan."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct

from reconciler.model.event import Answer, Reading
from reconciler.model.plan import SourceState
from reconciler.model.polling import AnyMemory
from reconciler.model.snapshot import Assessment, Snapshot


class _Tally(Struct):
    """The answers of one source so far; `polled` is whether its memory says when it was asked."""

    last: datetime | None = None
    polled: bool = False
    events: int = 0
    quiet: int = 0
    unknown: int = 0

    def add(self, reading: Reading, now: datetime) -> None:
        if reading.answer is Answer.NO_EVENT:
            self.quiet += 1
        elif reading.answer is Answer.EVENT:
            self.events += 1
        else:
            self.unknown += 1
        if self.polled:
            return
        at = reading.as_of
        if at is None and reading.answer is not Answer.UNKNOWN:
            # What stands on the node itself was read with the node.
            at = now
        if at is not None and (self.last is None or self.last < at):
            # A node can write any moment.
            self.last = min(at, now)


def source_states(
    snapshot: Snapshot, assessment: Assessment, names: Collection[str], now: datetime
) -> tuple[SourceState, ...]:
    """Return what the sources answered at `now` (aware, UTC), sorted by name; `names` are the enabled ones.

    What is not installed on a node gives no answer there.
    """
    found = {name: _Tally() for name in names}
    for name, memory in snapshot.memories.items():
        found[name] = _Tally(_asked(memory), polled=True)
    # This loop runs for each reading of each node, so it makes no value of its own.
    for one in assessment.nodes.values():
        for reading in one.readings:
            if reading.installed:
                tally = found.get(reading.source)
                if tally is None:
                    tally = found[reading.source] = _Tally()
                tally.add(reading, now)
    return tuple(
        SourceState(name, one.last, one.events, one.quiet, one.unknown) for name, one in sorted(found.items())
    )


def _asked(memory: AnyMemory) -> datetime | None:
    """Return when a polled source was last asked with success, None if it never was."""
    return max((one.asked for one in memory.answers if not one.problem), default=None)
