"""What each source answered about the nodes, summed up for views of the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime

from reconciler.model.assessment import Assessment
from reconciler.model.event import Answer, Reading
from reconciler.model.plan import SourceState
from reconciler.model.polling import AnyMemory
from reconciler.model.snapshot import Snapshot


def source_states(
    snapshot: Snapshot, assessment: Assessment, names: Collection[str], now: datetime
) -> tuple[SourceState, ...]:
    """Return what the sources answered at `now` (aware, UTC), sorted by name; `names` are the enabled ones.

    What is not installed on a node gives no answer there.
    """
    asked = {name: _asked(memory) for name, memory in snapshot.memories.items()}
    counts: Counter[tuple[str, Answer]] = Counter()
    last: dict[str, datetime] = {}
    for one in assessment.nodes.values():
        for reading in one.readings:
            if reading.installed:
                counts[reading.source, reading.answer] += 1
                at = asked[reading.source] if reading.source in asked else _moment(reading, now)
                # A node can write any moment.
                if at is not None and last.get(reading.source, at) <= at:
                    last[reading.source] = min(at, now)
    return tuple(
        SourceState(
            name,
            last.get(name),
            counts[name, Answer.EVENT],
            counts[name, Answer.NO_EVENT],
            counts[name, Answer.UNKNOWN],
        )
        for name in sorted({*names, *(source for source, _ in counts)})
    )


def _asked(memory: AnyMemory) -> datetime | None:
    """Return when a polled source was last asked with success, None if it never was."""
    return max((one.asked for one in memory.answers if not one.problem), default=None)


def _moment(reading: Reading, now: datetime) -> datetime | None:
    """Return when a node's own reading was answered, None if it has no answer."""
    if reading.as_of is not None or reading.answer is Answer.UNKNOWN:
        return reading.as_of
    # What stands on the node itself was read with the node.
    return now
