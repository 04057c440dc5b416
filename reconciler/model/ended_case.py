"""A case that has ended, and the fields of its line in a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct

from reconciler.model import limits
from reconciler.model.case_outcome import ENDS, CaseOutcome, CaseResult, outcome_at_end
from reconciler.model.drains import DrainProgress, HeldBy
from reconciler.model.event import MaintenanceEvent
from reconciler.model.instructions import Instructions, case_person
from reconciler.model.plan import NodePlan
from reconciler.model.problems import guarded
from reconciler.model.record import CasePerson, CaseRecord, KnownEvent, State
from reconciler.model.values import Flat, Name, Written, decoded, encoded


class CasePlace(Struct, frozen=True):
    """The node of a case, with its UID, its zone, its pool and its cluster; what is not known is empty."""

    node: Name
    uid: Name
    zone: Written[Name] = ""
    pool: Written[Name] = ""
    cluster: Written[Name] = ""


class CaseTimes(Struct, frozen=True):
    """The moments of a case in UTC, None where they are not known.

    `case_start` is the first moment that its record has. `announced` is when a pass first saw it,
    `not_before` the earliest date of its events. `planned` is the planned start of its drain, `started` the
    start, `drained` the end. `gone` is when its events were gone. `uncordoned` is when the node was
    uncordoned, None if it was not cordoned or stayed cordoned. `ended` is when the case was closed.
    """

    case_start: datetime
    ended: datetime
    announced: datetime | None = None
    not_before: datetime | None = None
    planned: datetime | None = None
    started: datetime | None = None
    drained: datetime | None = None
    gone: datetime | None = None
    uncordoned: datetime | None = None


class EndedCase(Struct, frozen=True):
    """A case that has ended: what was announced, what was done, and what became of it.

    `kind` is the most disruptive kind of its events, or the type of a condition, empty if it had no event.
    `pods_moved` are the pods that left in its drains. `pods_left` are those that a drain kept, and for a
    missed node those that the platform met. Both are None if they are not known. `why` is a sentence.
    `people` are those who held, deferred, permitted or began the drain. `held_by` are the budgets that have
    refused its evictions, the longest first, as far as processes have seen it to the end.
    """

    place: Flat[CasePlace]
    times: Flat[CaseTimes]
    kind: Name
    sources: tuple[Name, ...]
    outcome: CaseResult
    why: str
    pods_moved: int | None = None
    pods_left: int | None = None
    people: Written[tuple[CasePerson, ...]] = ()
    held_by: Written[tuple[HeldBy, ...]] = ()

    @property
    def identity(self) -> tuple[str, datetime]:
        """What two lines about one case have in common: the node's UID, and the start of the case."""
        return (self.place.uid or self.place.node, self.times.case_start)


def ended_cases(plans: Iterable[NodePlan], now: datetime, *, deleted: bool = False) -> list[EndedCase]:
    """Return the cases that end with these plans at `now` (aware, UTC).

    One that breaks the program is left out. `deleted` says that the nodes were deleted after these plans, so
    that an open case has ended. A case also ends with the request to delete the machine, because perhaps no
    pass sees the node again.
    """
    found = []
    for plan in plans:
        work = partial(ended_case, plan, now, deleted=deleted)
        case, _ = guarded(f"node {plan.node}: its ended case is not kept", work, None)
        found += [case] if case is not None else []
    return found


def ended_case(plan: NodePlan, now: datetime, *, deleted: bool) -> EndedCase | None:
    """Return the case that ends with a node's plan, None if none does; see `ended_cases`."""
    case, lost = plan.ended, False
    if case is None and (deleted or plan.todo.deletes_node):
        case, lost = plan.record, True
    if case is None:
        return None
    outcome = outcome_at_end(case, deleted=lost)
    return EndedCase(
        place=CasePlace(plan.node, plan.uid, plan.zone, plan.pool),
        times=_times(case, plan, now.replace(microsecond=0), lost=lost),
        kind=leading_kind(case.events),
        sources=tuple(sorted({source for event in case.events for source in event.sources})),
        outcome=outcome.result,
        why=_why(outcome, _ending(plan, deleted=deleted) if lost else _stopped(outcome, plan)),
        pods_moved=case.facts.moved,
        pods_left=_left(case, outcome),
        people=tuple(_people(plan.status.instructions, case.facts.begun)),
        held_by=held_by(case, plan.draining.progress, now) if lost else case.facts.held_by,
    )


def case_start(case: CaseRecord) -> datetime | None:
    """Return the first moment that the record of a case has (UTC), None if it has none."""
    facts = case.facts
    first = (facts.announced, facts.deadline_passed, facts.drain_began, case.since)
    known = (*first, *(start.at for start in facts.starts))
    return min((moment for moment in known if moment is not None), default=None)


def held_by(case: CaseRecord, drained: DrainProgress | None, now: datetime) -> tuple[HeldBy, ...]:
    """Return the time of the budgets that held a case, with the attempt that is not counted yet."""
    drain = case.drain
    # The drainer shows an earlier attempt until the next one begins.
    if drained is None or drain is None or drain.done is not None or drained.since != drain.since:
        return case.facts.held_by
    ended = drained.finished or now
    return HeldBy.together(*case.facts.held_by, *(spell.until(ended) for spell in drained.spells))


def leading_kind(events: Iterable[KnownEvent | MaintenanceEvent]) -> str:
    """Return the most disruptive kind of these events, or the type of a condition; empty without events."""
    event = max(events, key=lambda event: (event.kind.severity, bool(event.condition)), default=None)
    return "" if event is None else event.condition or event.kind.value


def _people(said: Instructions, begun: CasePerson | None) -> Iterator[CasePerson]:
    yield from (ended.person for ended in said.before)
    if said.hold is not None:
        yield case_person("held", f"held {said.hold.word}", said.hold.word)
    if said.deferral is not None:
        yield case_person("deferred", f"deferred {said.deferral.word}", said.deferral.word)
    for given in said.permissions:
        yield case_person(given.kind.done, f"{given.kind.done} {given.word.once}", given.word)
    if begun is not None:
        yield begun


def _times(case: CaseRecord, plan: NodePlan, ended: datetime, *, lost: bool) -> CaseTimes:
    facts, drain, left = case.facts, case.drain, case.uncordoned
    opened = not lost and plan.before is State.IN_MAINTENANCE and _opened(plan)
    return CaseTimes(
        case_start=case_start(case) or ended,
        ended=ended,
        announced=facts.announced,
        not_before=min(
            (event.not_before for event in case.events if event.not_before is not None), default=None
        ),
        planned=facts.planned,
        started=facts.drain_began,
        drained=drain.done if drain is not None else left.drained if left is not None else None,
        gone=case.quiet_since,
        uncordoned=left.at if left is not None else ended if opened else None,
    )


def _opened(plan: NodePlan) -> bool:
    """Whether pods may run on the node after the pass, because of it or of a person before it."""
    write = plan.todo.write
    return not plan.status.unschedulable or (write is not None and write.unschedulable is False)


def _why(outcome: CaseOutcome, because: str) -> str:
    return limits.text(f"{outcome.words}; {because}" if because else outcome.words)


def _stopped(outcome: CaseOutcome, plan: NodePlan) -> str:
    steps = plan.transitions if outcome.result is CaseResult.STOPPED else ()
    return "; ".join(step.because for step in steps if step.because)


def _ending(plan: NodePlan, *, deleted: bool) -> str:
    if not plan.goes_by_us:
        return "its node was deleted"
    return "its machine was deleted to be replaced" if deleted else "its machine is deleted to be replaced"


def _left(case: CaseRecord, outcome: CaseOutcome) -> int | None:
    done = case.drain is not None and case.drain.done is not None
    kept = case.drain.kept.count if case.drain is not None and done else None
    if outcome.result is CaseResult.MISSED:
        return None if outcome.pods is None else outcome.pods + (kept or 0)
    return outcome.pods if kept is None else kept


EVENT = "case"
"""The `event` of such a line in a log."""

_NULL_IF_UNKNOWN = dict.fromkeys(
    ["announced", "notBefore", "planned", "started", "drained", "gone", "uncordoned", "podsMoved", "podsLeft"]
)


def to_fields(case: EndedCase) -> dict[str, Any]:
    """Return the case as the fields of its line; moments are RFC 3339 in UTC, None is unknown."""
    more = {"kind": case.kind or None, "inTime": case.outcome.in_time.value}
    return {**_NULL_IF_UNKNOWN, **encoded(case), **more}


def from_fields(fields: Mapping[str, Any]) -> EndedCase:
    """Return the case that the fields of a line describe; other fields are ignored.

    `inTime` is among those: it follows from the outcome.

    Raises ValueError, which names the field, if one is missing or has a wrong value.
    """
    known = {key: value for key, value in fields.items() if value is not None}
    case = decoded(EndedCase, {"kind": "", **known})
    if case.outcome not in ENDS:
        raise ValueError(f"outcome: {case.outcome.value!r} is not one of {', '.join(ENDS)}")
    return case
