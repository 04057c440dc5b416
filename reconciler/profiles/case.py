"""The case: which of its events still exist, and what the record keeps of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from operator import itemgetter

from msgspec import Struct

from reconciler.model.event import REQUEST, Answer, Kind, MaintenanceEvent
from reconciler.model.limits import EARLIEST
from reconciler.model.moments import to_text
from reconciler.model.plan import JudgedEvent
from reconciler.model.record import CaseRecord, KnownEvent, State, identity, same_event
from reconciler.model.snapshot import NodeAssessment
from reconciler.model.values import replace

SwitchedOn = Callable[[str], bool]


class CaseView(Struct, frozen=True):
    """The events of a case as they are now.

    `present` are reported by a source. `unknown` were reported by a source that can't be read now, as
    sentences. Any other event of the record is gone from every source that reported it. `later` are the
    present ones whose earliest start is more than an hour away, and for which the node was not drained, or
    was drained in vain because only the platform ends them.
    `urgent` are the present ones for which the node may be lost already, so that nothing can wait.
    """

    present: tuple[JudgedEvent, ...] = ()
    unknown: tuple[str, ...] = ()
    later: tuple[JudgedEvent, ...] = ()
    urgent: tuple[JudgedEvent, ...] = ()

    @property
    def over(self) -> bool:
        """Whether no event exists, and no unreadable source may hide one."""
        return not self.present and not self.unknown

    @property
    def only_later(self) -> bool:
        """Whether only events are left that require nothing now, and nothing may be hidden."""
        later = all(
            (judged.event.plan and not judged.asks) or judged in self.later for judged in self.present
        )
        return bool(self.present) and later and not self.unknown

    @property
    def quiet(self) -> bool:
        """Whether no event is current: a plan for later is not."""
        return self.over or self.only_later


def view(
    record: CaseRecord,
    judged: tuple[JudgedEvent, ...],
    assessment: NodeAssessment,
    switched_on: SwitchedOn,
    now: datetime,
    *,
    adopted: bool = False,
) -> CaseView:
    """Return which of the record's events still exist; `now` is aware, UTC.

    An event is present while any source reports it, even if it has started or no longer requires a drain. Any
    other event that requires a drain is present too. For which event another tool has cordoned an `adopted`
    node is not known: every event is present, and every source has to be known.
    """
    present = tuple(
        one
        for one in judged
        if one.asks
        or any(known.matches(one.event) for known in record.events)
        or (adopted and not one.event.plan and not one.event.condition)
    )
    unknown = tuple(
        f"{source} reported {known.condition or known.kind} and can't be read now"
        for known in record.events
        for source in known.sources
        if is_silent(known, source, assessment, switched_on)
    )
    if adopted:
        unknown += tuple(
            f"{reading.source} can't be read now, and the node was cordoned by another tool"
            for reading in assessment.readings
            if reading.answer is Answer.UNKNOWN and reading.installed
        )
    closed = record.drain is not None and not adopted
    later = tuple(
        one
        for one in present
        if closed and one.far and (one.after_drain.refused or not covers(record, one.event))
    )
    urgent = tuple(event for event in present if event.cannot_wait(now))
    return CaseView(present, tuple(dict.fromkeys(unknown)), later, urgent)


def is_silent(known: KnownEvent, source: str, assessment: NodeAssessment, switched_on: SwitchedOn) -> bool:
    """Whether an enabled source can't report now whether the event still exists.

    An unreadable report (a request that is not JSON, a message in a new form) may be about this event. A
    source that shows a single event may hide this one behind another.
    """
    readings = [one for one in assessment.readings if one.source == source]
    if not readings:
        return switched_on(source)
    for reading in readings:
        if reading.answer is Answer.UNKNOWN:
            return True
        for signal in reading.signals:
            nameless = not signal.id or not known.ids
            unread = signal.kind is Kind.UNKNOWN and not signal.condition
            if unread and not known.condition and nameless:
                return True
        shown = any(same_event(identity(signal), known) for signal in reading.signals)
        if reading.tells_one and reading.signals and not shown:
            return True
    return False


def may_be_hidden(known: KnownEvent, assessment: NodeAssessment, switched_on: SwitchedOn) -> bool:
    """Whether any enabled source of the event can't report now whether it still exists."""
    return any(is_silent(known, source, assessment, switched_on) for source in known.sources)


def unreported(
    record: CaseRecord, judged: tuple[JudgedEvent, ...], assessment: NodeAssessment, switched_on: SwitchedOn
) -> tuple[tuple[KnownEvent, ...], tuple[KnownEvent, ...]]:
    """Return the recorded events that no source reports: those that one may hide, and those that are gone."""
    absent = [old for old in record.events if not any(old.matches(event.event) for event in judged)]
    hidden = tuple(old for old in absent if may_be_hidden(old, assessment, switched_on))
    return hidden, tuple(old for old in absent if old not in hidden)


def known(event: MaintenanceEvent) -> KnownEvent:
    """Return the event as it is recorded, with its moment in whole seconds."""
    not_before = event.not_before.replace(microsecond=0) if event.not_before else None
    return KnownEvent(event.kind, not_before, event.ids, event.sources, event.condition, event.reports_start)


def updated(
    record: CaseRecord, case: CaseView, assessment: NodeAssessment, switched_on: SwitchedOn, now: datetime
) -> CaseRecord:
    """Return the record with the current events of the case, and the time since when there is none.

    An event keeps every source that ever reported it. A source that reported its end, and then can't be read
    while another still reports the event, has to be read again. A date that a source no longer gives (Azure
    empties it at the start) is kept.
    """
    fresh: list[KnownEvent] = []
    for one in case.present:
        seen = known(one.event)
        before = [old for old in record.events if _is_known(old, one.event)]
        sources_before = {source for old in before for source in old.sources}
        dated = seen.not_before or next((old.not_before for old in before if old.not_before), None)
        sources = tuple(sorted({*seen.sources, *sources_before}))
        # A source that can't be read may still report it under its own id.
        hidden = {id_ for old in before if may_be_hidden(old, assessment, switched_on) for id_ in old.ids}
        ids = tuple(sorted({*seen.ids, *hidden}))
        reports_start = seen.reports_start or any(old.reports_start for old in before)
        seen = replace(seen, not_before=dated, sources=sources, ids=ids, reports_start=reports_start)
        drained_for = [old for old in before if record.drain is not None and not old.waits]
        if record.drain is None or any(old.kind.severity >= seen.kind.severity for old in drained_for):
            fresh.append(seen)
        else:
            # A new event, or a worse kind of a known one: the drain goes on as it was allowed to begin.
            fresh += [replace(seen, waits=True), *(replace(seen, kind=old.kind) for old in drained_for)]
    for old in record.events:
        reported = any(old.matches(judged.event) for judged in case.present)
        if not reported and may_be_hidden(old, assessment, switched_on):
            # It keeps all its sources: one that reported its end may become unreadable too.
            fresh.append(old)
    quiet = (record.quiet_since or now.replace(microsecond=0)) if case.quiet else None
    # The last events stay on record until the case is closed: people ask why a node is still cordoned.
    if case.over:
        return replace(record, quiet_since=quiet)
    events = sorted(
        dict.fromkeys(fresh), key=lambda event: (event.kind, event.ids, str(event.not_before), event.waits)
    )
    return replace(record, events=tuple(events), quiet_since=quiet)


def covers(record: CaseRecord, event: MaintenanceEvent) -> bool:
    """Whether the node's drain, in progress or done, was allowed to begin for this event."""
    if record.drain is None:
        return False
    return any(_is_known(old, event) for old in record.events if not old.waits) and not waits(record, event)


def _is_known(old: KnownEvent, event: MaintenanceEvent) -> bool:
    """Whether an event in the record is this one.

    A request without a date stays the same one when a plan that it is joined with gets another date.
    """
    if old.matches(event):
        return True
    requested = event.at_once and REQUEST in old.sources and REQUEST in event.sources
    return requested and old.kind is event.kind and not (old.ids and event.ids)


def waits(record: CaseRecord, event: MaintenanceEvent) -> bool:
    """Whether the node is in maintenance, and its drain was not allowed to begin for this event yet."""
    return any(old.waits and old.matches(event) for old in record.events)


def allowed(record: CaseRecord) -> tuple[KnownEvent, ...]:
    """Return the events for which the node is drained, or may be."""
    return tuple(event for event in record.events if not event.waits)


def taken_for_good(record: CaseRecord) -> tuple[KnownEvent, datetime] | None:
    """Return the event of a node in maintenance that takes its VM for good, and from when on (UTC).

    None: there is none, or it was called off before its date. From then on, a node that is NotReady does not
    come back.
    """
    if record.state is not State.IN_MAINTENANCE:
        return None
    return min(taking(allowed(record), record.quiet_since), key=itemgetter(1), default=None)


def taking(events: Iterable[KnownEvent], quiet: datetime | None) -> list[tuple[KnownEvent, datetime]]:
    """Return the events that take the VM for good, and from when on (UTC). Those called off before do not."""
    dated = [(event, event.not_before or EARLIEST) for event in events if event.kind.takes_the_vm]
    return [pair for pair in dated if quiet is None or pair[1] <= quiet]


def wants_drain(record: CaseRecord, case: CaseView) -> bool:
    """Whether an event for which the drain was allowed to begin still requires it, or can't be read."""
    if case.over:
        return False
    found = [[judged for judged in case.present if known.matches(judged.event)] for known in allowed(record)]
    return any(not present or any(judged.asks for judged in present) for present in found)


def newly_asking(record: CaseRecord, judged: tuple[JudgedEvent, ...]) -> bool:
    """Whether a drain may begin for an event of a kind that the drain was not for: it may evict more."""
    kinds = {(old.kind, old.condition) for old in allowed(record)}
    return any(
        one.asks and one.starts and one.may_start and (one.event.kind, one.event.condition) not in kinds
        for one in judged
    )


def not_dismissed(record: CaseRecord, judged: tuple[JudgedEvent, ...]) -> tuple[JudgedEvent, ...]:
    """Return the events without those that are ignored because someone uncordoned the node."""
    if not record.dismissed:
        return judged
    return tuple(one for one in judged if not any(old.matches(one.event) for old in record.dismissed))


def dismissed_words(record: CaseRecord, now: datetime) -> str:
    """Return in a sentence why the events of a node are ignored, and what comes; `now` is aware."""
    if record.uncordoned is None:
        return "the platform did not do its maintenance when asked, so the event is ignored until a new one"
    kinds = ", ".join(dict.fromkeys(event.condition or event.kind.value for event in record.dismissed))
    dates = [event.not_before for event in record.dismissed if event.not_before is not None]
    if any(record.facts.start_of(event) is not None for event in record.dismissed):
        comes = f"the platform has started {kinds}"
    elif not dates:
        comes = f"the platform may start {kinds} at any time"
    elif min(dates) <= now:
        comes = f"the platform may have started {kinds} at {to_text(min(dates))}"
    else:
        comes = f"the platform may start {kinds} from {to_text(min(dates))} on"
    return f"{record.uncordoned.words}, and nobody guards it: {comes}"


def without_ended_requests(record: CaseRecord) -> CaseRecord:
    """Return the record without requests to the platform about events that the record no longer has."""
    reported = {id_ for known in record.events for id_ in known.ids}
    left = (
        replace(asked, events=tuple(id_ for id_ in asked.events if id_ in reported))
        if asked.events
        else asked
        for asked in record.asked
    )
    kept = (new for old, new in zip(record.asked, left, strict=True) if new.events or not old.events)
    return replace(record, asked=tuple(kept))


def without_ended_dismissals(
    record: CaseRecord, judged: tuple[JudgedEvent, ...], assessment: NodeAssessment, switched_on: SwitchedOn
) -> CaseRecord:
    """Return the record with only the ignored and late events that a source reports or may hide."""
    if not record.dismissed and not record.late:
        return record

    def kept(events: tuple[KnownEvent, ...]) -> tuple[KnownEvent, ...]:
        return tuple(
            old
            for old in events
            if any(old.matches(event.event) for event in judged)
            or may_be_hidden(old, assessment, switched_on)
        )

    return replace(record, dismissed=kept(record.dismissed), late=kept(record.late))
