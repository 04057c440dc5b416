"""A case whose events nothing reports any more: the hold that says how a person ends it.

Unknown is not healthy, so such a case never ends by itself. What has reported the events was removed from the
node or from the cluster, and no later pass can find out more.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model import scheduled_events as imds
from reconciler.model.event import Answer, Reading
from reconciler.model.holds import HoldCode
from reconciler.model.plan import Hold
from reconciler.model.record import CaseRecord
from reconciler.passes.decide.context import PassContext
from reconciler.passes.decide.seen import Seen


def unattended(one: Seen, record: CaseRecord, context: PassContext) -> tuple[Hold, ...]:
    """Return the hold that names the silent sources and how to end the case; empty if no source is silent."""
    found = tuple(_silent(one, record, context))
    if not found:
        return ()
    annotation = context.keys.imds
    outdated = not context.snapshot.agents.installed and annotation in one.node.annotations
    first = f"remove the annotation {annotation} from the node and " if outdated else ""
    reason = f"nothing may report the end of the maintenance ({'; '.join(found)})"
    remedy = f"if it is over, {first}run {context.keys.release(one.node.name)}"
    return (Hold(one.node.name, HoldCode.END_REPORTED, f"{reason}; {remedy}"),)


def _silent(one: Seen, record: CaseRecord, context: PassContext) -> Iterator[str]:
    """Yield each source of the case's events that nothing updates any more, with the reason."""
    for source in sorted({source for event in record.events for source in event.sources}):
        if source not in context.reading_names:
            continue
        readings = [reading for reading in one.assessment.readings if reading.source == source]
        if not readings:
            yield f"{source} reports nothing about the node any more"
        for reading in readings:
            if because := _why_silent(reading, context):
                yield f"{source}: {because}"


def _why_silent(reading: Reading, context: PassContext) -> str:
    if reading.answer is Answer.UNKNOWN:
        return "" if reading.installed else reading.because
    published = reading.source == imds.SOURCE and reading.answer is Answer.EVENT
    return "no node agent is installed" if published and not context.snapshot.agents.installed else ""
