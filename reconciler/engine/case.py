"""The case: which of the events that it is about are still there, and what the record should now know."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.model.assessment import NodeAssessment
from reconciler.model.event import Answer, Kind, MaintenanceEvent, Reading, Signal
from reconciler.model.plan import JudgedEvent
from reconciler.model.record import CaseRecord, KnownEvent, identity, same_event

SwitchedOn = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class CaseView:
    """The events of a case as they are now.

    `present` are there at some source; `unknown` were told of by a source that can't be read now, as
    sentences; an event of the record in neither has gone from every source that told of it.
    """

    present: tuple[JudgedEvent, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def over(self) -> bool:
        """Whether no event is there, and none may be."""
        return not self.present and not self.unknown


def view(
    record: CaseRecord,
    judged: tuple[JudgedEvent, ...],
    assessment: NodeAssessment,
    switched_on: SwitchedOn,
) -> CaseView:
    """Return how the record's events stand.

    An event is present while any source tells of it, started or not, whether or not it would still ask for
    a drain; and so is any other event that asks for one.
    """
    present = tuple(
        one for one in judged if one.asks or any(known.tells_of(one.event) for known in record.events)
    )
    unknown = tuple(
        f"{source} told of {known.condition or known.kind} and can't be read now"
        for known in record.events
        for source in known.sources
        if is_silent(known, source, assessment, switched_on)
    )
    return CaseView(present, tuple(dict.fromkeys(unknown)))


def is_silent(known: KnownEvent, source: str, assessment: NodeAssessment, switched_on: SwitchedOn) -> bool:
    """Whether a source that is switched on can't tell now whether the event is still there.

    A source that tells of something that nobody can read (a request edited into no JSON, a message of a new
    form) may mean this event by it; and one that shows a single event may hide this one behind another.
    """
    readings = [one for one in assessment.readings if one.source == source]
    if not readings:
        return switched_on(source)
    return any(
        one.answer is Answer.UNKNOWN
        or any(_may_mean(signal, known) for signal in one.signals)
        or _hides(one, known)
        for one in readings
    )


def _hides(reading: Reading, known: KnownEvent) -> bool:
    shown = [identity(signal) for signal in reading.signals]
    mine = (known.kind, known.not_before, known.ids, known.condition)
    return reading.tells_one and bool(shown) and not any(same_event(one, mine) for one in shown)


def _may_mean(signal: Signal, known: KnownEvent) -> bool:
    nameless = not signal.id or not known.ids
    return signal.kind is Kind.UNKNOWN and not signal.condition and not known.condition and nameless


def known(event: MaintenanceEvent) -> KnownEvent:
    """Return the event as a record keeps it, its moment cut to the seconds that the annotation keeps."""
    not_before = event.not_before.replace(microsecond=0) if event.not_before else None
    return KnownEvent(event.kind, not_before, event.ids, event.sources, event.condition)


def updated(
    record: CaseRecord,
    case: CaseView,
    assessment: NodeAssessment,
    switched_on: SwitchedOn,
    now: datetime,
) -> CaseRecord:
    """Return the record with the case's events as they are now, and since when none is left.

    An event keeps every source that ever told of it: one that said that it had gone, and falls silent while
    another still tells of it, has to be heard again. A date that a source has since let go (Azure empties it
    at the start) is kept.
    """
    fresh: list[KnownEvent] = []
    for one in case.present:
        seen = known(one.event)
        before = [old for old in record.events if old.tells_of(one.event)]
        told = {source for old in before for source in old.sources}
        dated = seen.not_before or next((old.not_before for old in before if old.not_before), None)
        sources = tuple(sorted({*seen.sources, *told}))
        fresh.append(replace(seen, not_before=dated, sources=sources))
    for old in record.events:
        silent = {source for source in old.sources if is_silent(old, source, assessment, switched_on)}
        if silent and not any(old.tells_of(one.event) for one in case.present):
            # With every source that told of it: one that said that it had gone may fall silent, too.
            fresh.append(old)
    if case.over:
        # What the case was about stays told until it is closed: people ask why a node is still cordoned.
        return replace(record, quiet_since=record.quiet_since or now.replace(microsecond=0))
    return replace(record, events=_unique(fresh), quiet_since=None)


def _unique(events: Iterable[KnownEvent]) -> tuple[KnownEvent, ...]:
    return tuple(sorted(dict.fromkeys(events), key=lambda one: (one.kind, one.ids, str(one.not_before))))


def without_new(fresh: CaseRecord, before: CaseRecord) -> CaseRecord:
    """Return the fresh record with only those events that the record before it knew."""
    kept = tuple(one for one in fresh.events if any(old.tells_of(one) for old in before.events))
    return replace(fresh, events=kept)


def newly_asking(record: CaseRecord, judged: tuple[JudgedEvent, ...]) -> bool:
    """Whether an event asks for a drain that the record does not know, or knew as another kind."""
    return any(
        one.asks
        and one.starts
        and not any(old.tells_of(one.event) and (old.kind is one.event.kind) for old in record.events)
        for one in judged
    )


def not_dismissed(record: CaseRecord, judged: tuple[JudgedEvent, ...]) -> tuple[JudgedEvent, ...]:
    """Return the events that somebody's uncordon has not told us to let be."""
    if not record.dismissed:
        return judged
    return tuple(one for one in judged if not any(old.tells_of(one.event) for old in record.dismissed))
