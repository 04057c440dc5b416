"""Triggers. A trigger defines what changes on the node and in its record, and what the platform is asked for.

To add one, add a function under `@trigger("name")`, and name it in a profile.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from reconciler.model.case_outcome import CaseResult, outcome_of
from reconciler.model.limits import count_of, first_of
from reconciler.model.machine import Remove, ScaleUp
from reconciler.model.node import MECHANIC_LABEL, Node
from reconciler.model.plan import Notice, NoticeType, Verdict
from reconciler.model.record import (
    Asked,
    CaseRecord,
    Cordon,
    DrainRecord,
    KnownEvent,
    Replacement,
    Uncordoned,
)
from reconciler.model.values import replace
from reconciler.profiles.case import dismissed_words, known, newly_asking
from reconciler.profiles.plugins import PLATFORM, Trigger, trigger
from reconciler.profiles.situation import Effects, Offer, Request, Situation


@trigger("adopt")
def adopt(situation: Situation, effects: Effects) -> Effects:
    """Make the cordon of mechanic, or of a tool that a feature knows, ours.

    The label of mechanic is removed, so that a mechanic still running ignores the node.
    Our own cordon whose record somebody removed is taken back in the same way: why it was set is not known.

    It starts no drain: the checks of every start decide about that (`drainDue`).
    """
    other = "" if situation.node.cordoned_by_us else situation.node.cordon_of
    record = replace(effects.record, cordon=Cordon.ADOPTED if other else Cordon.ADOPTED_MECHANIC)
    labels = {key: value for key, value in effects.node.labels.items() if key != MECHANIC_LABEL}
    effects = replace(effects, record=record, node=replace(effects.node, labels=labels))
    ours = situation.node.cordoned_by_us
    adopted = f"adopted the cordon of {other or 'mechanic'}"
    what = "took back its cordon, whose record somebody removed" if ours else adopted
    return effects.with_notice(Notice("MaintenanceAdopted", what))


@trigger("cordon")
def cordon(situation: Situation, effects: Effects) -> Effects:
    """Cordon the node. Share the cordon of another profile, and do not touch a foreign one (law 2)."""
    if situation.node.unschedulable:
        before = effects.record.node_cordon
        whose = Cordon.FOREIGN if before is Cordon.NONE else before
        return replace(effects, record=replace(effects.record, cordon=whose))
    because = "; ".join(dict.fromkeys((*(one.because for one in situation.asking), *_why_now(situation))))
    closed = replace(effects.node, unschedulable=True)
    effects = replace(effects, node=closed, record=replace(effects.record, cordon=Cordon.OURS))
    return effects.with_notice(Notice("MaintenanceCordon", f"cordoned: {because}"))


def _why_now(situation: Situation) -> Iterator[str]:
    """Yield what allows the start now: the window or the deadline, what that overrules, and the budget."""
    for one in situation.asking:
        if one.may_start:
            yield one.opening.reason
    places = situation.places
    taken = len(places.holders) + (situation.node.name not in places.holders)
    exempt = " (exempt)" if taken > places.limit else ""
    yield f"budget: {taken} of {count_of(places.limit, 'place')} taken{exempt}"


@trigger("dismiss")
def dismiss(situation: Situation, effects: Effects) -> Effects:
    """Leave the node to whoever uncordoned it: its events start no other drain.

    The case goes on until they are gone, because the platform may still start. It ends at once without any.
    """
    record, left = effects.record, () if situation.case.over else effects.record.events
    done = record.drain.done if record.drain is not None else None
    by = Uncordoned(situation.now.replace(microsecond=0), situation.node.uncordoned_by, done)
    if not left:
        message = f"{by.words}; its events were gone"
        return replace(effects, record=record.closed()).with_notice(
            Notice("MaintenanceStopped", message, NoticeType.WARNING)
        )
    dismissed = tuple(dict.fromkeys((*record.dismissed, *left)))
    kept = replace(record.closed(dismissed=dismissed), events=left, facts=record.facts, uncordoned=by)
    back = situation.settings.keys.names.release(situation.node.name)
    words = f"{dismissed_words(kept, situation.now)}; {back} lets the reconciler drain it again"
    return replace(effects, record=kept).with_notice(Notice("MaintenanceStopped", words, NoticeType.WARNING))


@trigger("giveUp")
def give_up(situation: Situation, effects: Effects) -> Effects:
    """Undo our cordon and ignore the event: the platform does it in its own time, and reports that again."""
    record = effects.record
    closed = record.closed(dismissed=record.events)
    requests = {
        offer.platform: asked.attempts
        for offer in situation.asked
        if offer.refused is not None and (asked := record.asked_by(offer.name)) is not None
    }
    refusals = [
        f"{platform} did not do its maintenance after {count_of(attempts, 'request')}"
        for platform, attempts in requests.items()
    ]
    message = f"{'; '.join(refusals)}, so the node is uncordoned without it"
    effects = replace(effects, record=closed, node=_opened(effects))
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
    # A plan for later is still reported, and this case of it is over.
    quiet = situation.record.quiet_since or situation.now
    outcome = outcome_of(replace(situation.record, quiet_since=quiet))
    message = f"maintenance is over: {_left(record)}"
    missed = outcome is not None and outcome.result is CaseResult.MISSED
    message = f"{message}; {outcome.words}" if outcome is not None else message
    # A drain that helped us to end nothing is not repeated before it has to be.
    in_vain = [one for one in situation.case.later if one.after_drain.refused]
    late = tuple(known(one.event) for one in in_vain) if situation.case.only_later else ()
    if late:
        because = first_of([one.after_drain.refused for one in in_vain])
        message = f"{_left(record)} until shortly before the latest start: {because}"
    effects = replace(effects, record=record.closed(late=late), node=_opened(effects))
    return effects.with_notice(
        Notice("MaintenanceDone", message, NoticeType.WARNING if missed else NoticeType.NORMAL)
    )


def _opened(effects: Effects) -> Node:
    node = effects.node
    return replace(node, unschedulable=False) if effects.record.may_uncordon else node


def _left(record: CaseRecord) -> str:
    if record.may_uncordon:
        return "uncordoned"
    if not record.cordon.may_be_undone:
        return "the cordon is not ours"
    return f"still cordoned for {', '.join(map(str, record.also_claimed_by))}"


@trigger("askPlatform")
def ask_platform(situation: Situation, effects: Effects) -> Effects:
    """Record what each offer that is due asks of the platform. `act` asks once that is written."""
    for offer in situation.offers:
        if offer.due(situation).verdict is not Verdict.PASSED:
            continue
        request = offer.request(situation)
        if request is None:
            continue
        effects = replace(effects, record=_with_request(effects.record, offer, request, situation.now))
        if request.task is not None:
            effects = effects.with_task(request.task)
        effects = effects.with_notice(request.notice)
    return effects


def _with_request(record: CaseRecord, offer: Offer, request: Request, now: datetime) -> CaseRecord:
    """Return the record with one more request of an offer, at `now` (UTC)."""
    earlier = record.asked_by(offer.name)
    asked = Asked(
        offer.name,
        now.replace(microsecond=0),
        earlier.attempts + 1 if earlier is not None else 1,
        (*(earlier.events if earlier is not None else ()), *request.events),
        request.own,
    )
    others = (known for known in record.asked if known.offer != offer.name)
    return replace(record, asked=tuple(sorted((*others, asked), key=lambda each: each.offer)))


@trigger("replace")
def replace_machine(situation: Situation, effects: Effects) -> Effects:
    """Record the deletion. `act` sends the request to the machine provider after that."""
    machine = situation.machine
    if machine is None or machine.pool is None:
        return effects
    before = effects.record.replacement or Replacement(situation.now)
    asked = replace(before, asked=situation.now.replace(microsecond=0), removals=before.removals + 1)
    pool, lower = machine.pool, None
    if before.wanted is not None and not pool.lowered_by_deletion:
        # Do not lower a count that someone else has changed since.
        lower = before.wanted - 1 if pool.wanted == before.wanted else None
    effects = replace(effects, record=replace(effects.record, replacement=asked))
    effects = effects.with_task(Remove(situation.node.name, machine, lower))
    again = f" (attempt {asked.removals})" if asked.removals > 1 else ""
    message = f"deletes its machine; {pool} creates a new one{again}"
    return effects.with_notice(Notice("MaintenanceReplacing", message))


@trigger("surge")
def surge(situation: Situation, effects: Effects) -> Effects:
    """Record the new count of the pool. `act` sends the request after that."""
    machine = situation.machine
    if machine is None or machine.pool is None or machine.pool.wanted is None:
        return effects
    wanted = machine.pool.wanted + 1
    before = effects.record.replacement
    retries = 0 if before is None or before.wanted is None else before.retries + 1
    asked = Replacement(situation.now.replace(microsecond=0), wanted, retries=retries)
    effects = replace(effects, record=replace(effects.record, replacement=asked))
    effects = effects.with_task(ScaleUp(situation.node.name, machine, wanted))
    message = f"scales {machine.pool} up to {count_of(wanted, 'machine')}, for the replacement of this node"
    return effects.with_notice(Notice("MaintenanceSurge", message))


@trigger("leaveSurge")
def leave_surge(situation: Situation, effects: Effects) -> Effects:
    """Drop the replacement. The pool is not scaled down, because this could delete any node."""
    asked = effects.record.replacement
    effects = replace(effects, record=replace(effects.record, replacement=None))
    if asked is None or asked.wanted is None or asked.removals:
        return effects
    machine = situation.machine
    pool = str(machine.pool) if machine is not None and machine.pool is not None else "its pool"
    message = (
        f"{pool} was scaled up to {count_of(asked.wanted, 'machine')} for this node, which is not "
        f"replaced; scale it down"
    )
    return effects.with_notice(Notice("MaintenanceSurplus", message, NoticeType.WARNING))


TRIGGERS = {name: Trigger(name, kind) for name, kind in PLATFORM.triggers.items()}
"""Every trigger of the platform's profile, by name."""
