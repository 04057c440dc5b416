"""Triggers. A trigger defines what changes on the node and in its record, and what the platform is asked for.

To add one, add a function under `@trigger("name")`, and name it in a profile.
"""

from __future__ import annotations

from reconciler.model.case_outcome import CaseResult, outcome_of
from reconciler.model.limits import count_of, first_of
from reconciler.model.node import MECHANIC_LABEL, Node
from reconciler.model.plan import Notice, NoticeType, Verdict
from reconciler.model.record import Asked, CaseRecord, Cordon, DrainRecord, KnownEvent, Uncordoned
from reconciler.model.values import replace
from reconciler.profiles.case import dismissed_words, known, newly_asking
from reconciler.profiles.situation import Effects, Situation
from reconciler.profiles.vocabulary import PLATFORM, Trigger, trigger


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
    # Why, and what allows the start now: the window or the deadline, what that overrules, and the budget.
    asking, places = situation.asking, situation.places
    taken = len(places.holders) + (situation.node.name not in places.holders)
    exempt = " (exempt)" if taken > places.limit else ""
    reasons = [judged.because for judged in asking]
    reasons += [judged.opening.reason for judged in asking if judged.may_start]
    reasons.append(f"budget: {taken} of {count_of(places.limit, 'place')} taken{exempt}")
    because = "; ".join(dict.fromkeys(reasons))
    closed = replace(effects.node, unschedulable=True)
    effects = replace(effects, node=closed, record=replace(effects.record, cordon=Cordon.OURS))
    return effects.with_notice(Notice("MaintenanceCordon", f"cordoned: {because}"))


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
        if offer.refused is not None and (asked := situation.record.asked_by(offer.name)) is not None
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
    events = tuple(
        replace(event, waits=_waits(event, situation, first=before is None)) for event in record.events
    )
    again = before is None or newly_asking(record, situation.judged)
    began = DrainRecord(situation.now.replace(microsecond=0)) if again else before
    return replace(effects, record=replace(record, drain=began, events=events))


def _waits(known: KnownEvent, situation: Situation, *, first: bool) -> bool:
    if not first and not known.waits:
        return False
    return not any(
        judged.may_start and judged.event.kind is known.kind and known.matches(judged.event)
        for judged in situation.asking
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
    in_vain = [judged for judged in situation.case.later if judged.after_drain.refused]
    late = tuple(known(judged.event) for judged in in_vain) if situation.case.only_later else ()
    if late:
        because = first_of([judged.after_drain.refused for judged in in_vain])
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
    return _ask(situation, effects, prepares=False)


@trigger("prepare")
def prepare(situation: Situation, effects: Effects) -> Effects:
    """Do the same for what has to be there before the platform is asked to begin."""
    return _ask(situation, effects, prepares=True)


def _ask(situation: Situation, effects: Effects, *, prepares: bool) -> Effects:
    for offer, answer in situation.due:
        if offer.prepares is not prepares or answer.verdict is not Verdict.PASSED:
            continue
        request = offer.request(situation)
        if request is None:
            continue
        record = effects.record
        # A request about an ID that no event of the record has would be forgotten, and sent again in each
        # pass.
        known_ids = {id_ for event in record.events for id_ in event.ids}
        if unknown := next((id_ for id_ in request.events if id_ not in known_ids), None):
            raise ValueError(
                f"the offer {offer.name} asks about {unknown}, which no event of the node has as ID"
            )
        earlier = record.asked_by(offer.name)
        asked = Asked(
            offer.name,
            situation.now.replace(microsecond=0),
            earlier.attempts + 1 if earlier is not None else 1,
            (*(earlier.events if earlier is not None else ()), *request.events),
            request.own,
        )
        others = (known for known in record.asked if known.offer != offer.name)
        record = replace(record, asked=tuple(sorted((*others, asked), key=lambda each: each.offer)))
        effects = replace(effects, record=record)
        if request.task is not None:
            effects = effects.with_task(request.task)
        effects = effects.with_notice(request.notice)
    return effects


@trigger("leaveOffers")
def leave_offers(situation: Situation, effects: Effects) -> Effects:
    """Forget what was asked, and report what of it somebody has to undo."""
    effects = replace(effects, record=replace(effects.record, asked=()))
    for offer in situation.asked:
        if offer.left is not None and (notice := offer.left(situation)) is not None:
            effects = effects.with_notice(notice)
    return effects


TRIGGERS = {name: Trigger(name, kind) for name, kind in PLATFORM.triggers.items()}
"""Every trigger of the platform's profile, by name."""
