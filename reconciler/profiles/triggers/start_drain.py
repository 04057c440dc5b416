"""drain: record that a drain of the node starts now, and for which events."""

from __future__ import annotations

from reconciler.model.record import DrainRecord, KnownEvent
from reconciler.model.structs import replace
from reconciler.profiles.case import newly_asking
from reconciler.profiles.plugins import trigger
from reconciler.profiles.situation import Effects, Situation


@trigger("drain")
def drain(situation: Situation, effects: Effects) -> Effects:
    """Record the start of the drain; the plan orders the drain for as long as the record has it.

    Events for which no drain may begin now wait: no pod is evicted for them. A drain that has begun starts
    again only for a kind of event that may evict more.
    """
    record = effects.record
    before = record.drain
    events = tuple(replace(one, waits=_waits(one, situation, first=before is None)) for one in record.events)
    again = before is None or newly_asking(record, situation.judged)
    began = DrainRecord(situation.now.replace(microsecond=0)) if again else before
    return replace(effects, record=replace(record, drain=began, events=events))


def _waits(known: KnownEvent, situation: Situation, *, first: bool) -> bool:
    if not first and not known.waits:
        return False
    return not any(
        one.may_start and one.event.kind is known.kind and known.matches(one.event)
        for one in situation.asking
    )
