"""Triggers that change the node and its case."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.case_outcome import CaseResult, outcome_of
from reconciler.model.node import MECHANIC_LABEL
from reconciler.model.plan import Notice, NoticeType
from reconciler.model.record import CaseRecord, Cordon, DrainRecord, KnownEvent
from reconciler.model.values import replace
from reconciler.profiles.case import newly_asking
from reconciler.profiles.plugins import trigger
from reconciler.profiles.situation import Effects, Situation


@trigger("adopt")
def adopt(situation: Situation, effects: Effects) -> Effects:
    """Make mechanic's cordon ours, and remove its label, so that a mechanic still running ignores the node.

    Our own cordon whose record somebody removed is taken back in the same way: why it was set is not known.

    It starts no drain: the checks of every start decide about that (`drainDue`).
    """
    record = replace(effects.record, cordon=Cordon.ADOPTED_MECHANIC)
    effects = replace(effects, record=record, labels={**effects.labels, MECHANIC_LABEL: None})
    ours = situation.node.cordoned_by_us
    what = "took back its cordon, whose record somebody removed" if ours else "adopted the cordon of mechanic"
    return effects.with_notice(Notice("MaintenanceAdopted", what))


@trigger("cordon")
def cordon(situation: Situation, effects: Effects) -> Effects:
    """Cordon the node. Share the cordon of another profile, and do not touch a foreign one (law 2)."""
    if situation.node.unschedulable:
        before = effects.record.node_cordon
        whose = Cordon.FOREIGN if before is Cordon.NONE else before
        return replace(effects, record=replace(effects.record, cordon=whose))
    because = "; ".join(dict.fromkeys((*(one.because for one in situation.asking), *_why_now(situation))))
    effects = replace(effects, unschedulable=True, record=replace(effects.record, cordon=Cordon.OURS))
    return effects.with_notice(Notice("MaintenanceCordon", f"cordoned: {because}"))


def _why_now(situation: Situation) -> Iterator[str]:
    """Yield what allows the start now: the window or the deadline, what that overrules, and the budget."""
    for one in situation.asking:
        if one.may_start:
            yield f"{one.timing}, which overrules: {one.overruled}" if one.overruled else one.timing
    use = situation.places.take(situation.node, "").use()
    exempt = " (exempt)" if len(use.holders) > use.limit else ""
    yield f"budget: {len(use.holders)} of {use.limit} places taken{exempt}"


@trigger("dismiss")
def dismiss(situation: Situation, effects: Effects) -> Effects:
    """Close the case and record its events, so that only a new event starts another case."""
    record = effects.record
    left = () if situation.case.over else record.events
    message = "someone uncordoned the node, so it is ignored until a new event"
    return replace(effects, record=record.closed(dismissed=left)).with_notice(
        Notice("MaintenanceStopped", message, NoticeType.WARNING)
    )


@trigger("giveUp")
def give_up(situation: Situation, effects: Effects) -> Effects:
    """Undo our cordon and ignore the event: Azure does it in its own window, and reports that again."""
    record = effects.record
    undo = record.may_uncordon
    closed = record.closed(dismissed=record.events)
    attempts = record.self_service.attempt if record.self_service else 0
    message = (
        f"Azure did not do its maintenance after {attempts} requests, so the node is uncordoned without it"
    )
    effects = replace(effects, record=closed, unschedulable=False if undo else None)
    return effects.with_notice(Notice("MaintenanceGivenUp", message, NoticeType.WARNING))


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


@trigger("uncordon")
def uncordon(situation: Situation, effects: Effects) -> Effects:
    """Close the case, and uncordon if the cordon is ours or adopted (law 2) and the claim is the last."""
    record = effects.record
    undo = record.may_uncordon
    # A plan for later is still reported, and this case of it is over.
    quiet = situation.record.quiet_since or situation.now
    outcome = outcome_of(replace(situation.record, quiet_since=quiet))
    message = f"maintenance is over: {_left(record)}"
    missed = outcome is not None and outcome.result is CaseResult.MISSED
    message = f"{message}; {outcome.words}" if outcome is not None else message
    effects = replace(effects, record=record.closed(), unschedulable=False if undo else None)
    return effects.with_notice(
        Notice("MaintenanceDone", message, NoticeType.WARNING if missed else NoticeType.NORMAL)
    )


def _left(record: CaseRecord) -> str:
    if record.may_uncordon:
        return "uncordoned"
    if not record.cordon.may_be_undone:
        return "the cordon is not ours"
    return f"still cordoned for {', '.join(map(str, record.also_claimed_by))}"
