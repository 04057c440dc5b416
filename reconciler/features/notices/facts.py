"""What there is to say about one node after a pass: the facts, by the key of their message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from zlib import crc32

from msgspec import Struct

from reconciler.features.notices.memory import RESULT, TEXT, seconds
from reconciler.features.notices.messages import Topic
from reconciler.model import limits
from reconciler.model.case_outcome import CaseResult, counted, outcome_at_end, struck_by, unbegun
from reconciler.model.drains import Phase
from reconciler.model.event import MaintenanceEvent
from reconciler.model.moments import to_text
from reconciler.model.outcome import HoldCode, Outcome, Result, WaitsFor
from reconciler.model.plan import Hold, JudgedEvent, NodePlan
from reconciler.model.record import SAME_MOMENT, CaseRecord, State
from reconciler.model.values import replace

ENDING = "Done"
"""The key of the message about the end of a case."""

_NAMED = 3
_RECEIVED = "Received"
_UNTOUCHED = frozenset({HoldCode.LOOKED_AFTER, HoldCode.RECORD_READABLE, HoldCode.NOT_CLAIMED})


class Fact(Struct, frozen=True):
    """One thing to say. While it `lasts`, it can be repeated, and a message that waits for it is kept.

    `takes_back` is the key of the message that it takes back, empty if there is none. `before` is the moment
    before which people have to know it (UTC), None if there is none.
    """

    topic: Topic
    text: str
    lasts: bool = False
    takes_back: str = ""
    before: datetime | None = None


def facts_of(
    node: NodePlan, outcomes: Sequence[Outcome], said: Mapping[str, int], now: datetime
) -> dict[str, Fact]:
    """Return what there is to say about a node, by key; a key in `said` has been said before.

    `outcomes` are the results of the node's actions. What could not be written is not said. `now` is the
    moment of the pass (aware).
    """
    if any(hold.code in _UNTOUCHED for hold in node.holds):
        return {}
    found: dict[str, Fact] = dict(_failures(node, outcomes))
    found |= dict(_announced(node.events, said))
    case = node.ended or node.record
    if case is None:
        return found
    if not any(one.notable for one in outcomes):
        found |= dict(_of_case(node, case))
        found |= dict(_of_people(node, case))
        found |= dict(_foretold(node, case, said, now))
        if node.ended is not None and node.outcome is not None:
            found[ENDING] = Fact(Topic.DONE, _ended(node))
    return {key: replace(one, text=limits.text(one.text, TEXT)) for key, one in found.items()}


def kind_of(node: NodePlan) -> str:
    """Return the kind of the most disruptive event of the node's case, or its condition; else empty."""
    case = node.ended or node.record
    if case is not None and case.events:
        worst = max(case.events, key=lambda one: (one.kind.severity, bool(one.condition)))
        return worst.condition or worst.kind.value
    events = [one.event for one in node.events]
    if not events:
        return ""
    first = max(events, key=lambda one: (one.kind.severity, bool(one.condition)))
    return first.condition or first.kind.value


def _failures(node: NodePlan, outcomes: Sequence[Outcome]) -> Iterator[tuple[str, Fact]]:
    for one in outcomes:
        if one.result is Result.FAILED:
            yield f"Failed {one.action}", Fact(Topic.FAILED, f"{one.action} failed: {one.detail}")
    progress = node.draining.progress
    if progress is not None and progress.phase is Phase.FAILED:
        yield "Failed drain", Fact(Topic.FAILED, f"the drain failed: {progress.error}")
    for hold in node.holds:
        if hold.code == HoldCode.INTERNAL:
            yield "Failed internal", Fact(Topic.FAILED, hold.reason)


def _announced(events: Sequence[JudgedEvent], said: Mapping[str, int]) -> Iterator[tuple[str, Fact]]:
    before = [key for key in said if key.startswith(f"{_RECEIVED} ")]
    for judged in events[: limits.EVENTS]:
        event = judged.event
        key = _event_key(event)
        known = next((one for one in before if _is_same(one, key)), None)
        yield known or key, Fact(Topic.RECEIVED, f"{_event_words(event)}: {judged.because}")


def _event_key(event: MaintenanceEvent) -> str:
    # Sources join an event one after the other, and one calls a Freeze what another calls a LiveMigration.
    name = event.condition or ("Pause" if event.kind.is_pause else event.kind.value)
    return f"{_RECEIVED} {name} {seconds(event.not_before) if event.not_before else ''}".strip()


def _is_same(one: str, other: str) -> bool:
    """Whether two keys are those of one event: the same kind, and dates that agree or are missing."""
    name, _, date = one.removeprefix(f"{_RECEIVED} ").partition(" ")
    named, _, dated = other.removeprefix(f"{_RECEIVED} ").partition(" ")
    if name != named:
        return False
    return not date or not dated or abs(int(date) - int(dated)) <= SAME_MOMENT.total_seconds()


def _event_words(event: MaintenanceEvent) -> str:
    name = event.condition or event.kind.value
    if event.started:
        return f"{name} has started"
    date = f", not before {to_text(event.not_before)}" if event.not_before else ""
    return f"{name} is announced{date}"


def _of_case(node: NodePlan, case: CaseRecord) -> Iterator[tuple[str, Fact]]:
    facts, schedule = case.facts, node.schedule
    if case.uncordoned is not None and node.ended is None and not case.open:
        words = (hold.reason for hold in node.holds if hold.code == HoldCode.DISMISSED)
        text = next(words, case.uncordoned.words)
        key = f"Unguarded {seconds(case.uncordoned.at)}"
        yield key, Fact(Topic.UNGUARDED, text, lasts=True, before=node.platform_time)
    drained = case.drain is not None and case.drain.done is not None
    if case.open and case.state is State.REQUIRED and node.ended is None:
        if schedule is not None and schedule.planned_start is not None and not schedule.missed:
            start = to_text(schedule.planned_start)
            key = f"Planned {seconds(facts.planned)}" if facts.planned else "Planned"
            yield key, Fact(Topic.PLANNED, f"the drain is planned for {start}: {schedule.because}")
        held = _held(node.holds)
        if held:
            yield "Held", Fact(Topic.HELD, _reasons(held), lasts=True, before=node.platform_time)
    if facts.deadline_passed is not None:
        why = _reasons(node.holds)
        text = f"{unbegun(case)}: {why}" if why else unbegun(case)
        lasts = case.drain is None and case.uncordoned is None and node.ended is None
        yield "DeadlinePassed", Fact(Topic.DEADLINE_PASSED, text, lasts=lasts)
    if case.state is State.IN_MAINTENANCE or case.drain is not None:
        yield "Started", Fact(Topic.STARTED, _started(node))
    if drained and case.drain is not None and case.drain.done is not None:
        text = case.drain.kept.words(node.node)
        yield f"Drained {seconds(case.drain.done)}", Fact(Topic.DRAINED, text)
    elif node.ended is None and case.drain is not None:
        blocked = _blocked(node)
        if blocked:
            yield "Blocked", Fact(Topic.BLOCKED, blocked, lasts=True, before=node.platform_time)
    missed = struck_by(case)
    if missed is not None:
        name = missed.event.condition or missed.event.kind
        text = f"the platform started {name} at {to_text(missed.at)} while {counted(missed.pods, missed.met)}"
        yield f"Missed {seconds(missed.at)}", Fact(Topic.MISSED, text)


def _of_people(node: NodePlan, case: CaseRecord) -> Iterator[tuple[str, Fact]]:
    """Yield what people say of a case that goes on, and what they have ended."""
    if node.ended is not None or not case.open:
        return
    said, schedule = node.status.instructions, node.schedule
    late = "; the node will not be drained in time" if schedule is not None and schedule.missed else ""
    words = dict[str, str]()
    if said.hold is not None:
        stopped = schedule.stopped if schedule is not None else ""
        words[f"hold {said.hold.word}"] = f"{stopped or said.hold.words(node.node)}{late}"
    if said.deferral is not None:
        words[f"defer {said.deferral.word}"] = f"{said.deferral.words(node.node)}{late}"
    if said.approval is not None:
        words[f"approve {said.approval.word}"] = f"its drain is approved {said.approval.word}"
    words |= {f"before {ended}": ended for ended in said.before}
    for about, text in words.items():
        yield f"Person {crc32(about.encode('utf-8', 'replace'))}", Fact(Topic.PERSON, text)


def _foretold(
    node: NodePlan, case: CaseRecord, said: Mapping[str, int], now: datetime
) -> Iterator[tuple[str, Fact]]:
    """Yield that the node will be missed, or that it no longer will be."""
    forecast = case.facts.will_be_missed
    if forecast is None or node.ended is not None or node.schedule is None:
        return
    key = f"{Topic.WILL_BE_MISSED} {seconds(forecast.since)}"
    if forecast.is_due(now):
        yield key, Fact(Topic.WILL_BE_MISSED, node.schedule.outlook, lasts=True)
    elif forecast.over is not None and key in said:
        over = f"{Topic.NO_LONGER_MISSED} {seconds(forecast.over)}"
        yield over, Fact(Topic.NO_LONGER_MISSED, node.schedule.outlook, takes_back=key)


def _held(holds: Sequence[Hold]) -> list[Hold]:
    """Return what holds the start beside the time. Before the time has come, a turn does not matter."""
    early = any(hold.waits_for is WaitsFor.PERMISSION for hold in holds)
    matters = {WaitsFor.OTHER} if early else {WaitsFor.OTHER, WaitsFor.TURN}
    return [hold for hold in holds if hold.waits_for in matters]


def _started(node: NodePlan) -> str:
    because = next((step.because for step in node.transitions if step.begins), "")
    return f"the maintenance of the node starts: {because}" if because else "the node is in maintenance"


def _ended(node: NodePlan) -> str:
    words = node.outcome.words if node.outcome is not None else ""
    because = next((step.because for step in reversed(node.transitions) if step.because), "")
    return f"{words}; {because}" if because else words


def _blocked(node: NodePlan) -> str:
    """Return which pods block the drain and why, empty if none does."""
    progress = node.draining.progress
    if progress is None or progress.phase not in (Phase.RUNNING, Phase.TIMED_OUT):
        return ""
    blockers = [one for one in progress.blockers if not one.leaving]
    named = [
        f"{one.pod} ({one.budget}: {one.because})" if one.budget else f"{one.pod} ({one.because})"
        for one in blockers[:_NAMED]
    ]
    more = len(blockers) - len(named)
    stay = f"pods stay: {'; '.join(named)}" + (f"; and {more} more" if more > 0 else "")
    parts = [*([stay] if named else []), *(one.words(node.node) for one in progress.coming)]
    date = node.platform_time
    until = f"the platform may start from {to_text(date)} on; " if date is not None else ""
    return f"{until}{'; '.join(parts)}" if parts else ""


def _reasons(holds: Sequence[Hold]) -> str:
    return "; ".join(f"{hold.code}: {limits.text(hold.reason, 200)}" for hold in holds[:_NAMED])


def may_be_blocked(node: NodePlan) -> bool:
    """Whether pods may block the drain although this process does not say so: another one has begun it."""
    case, progress = node.record, node.draining.progress
    under_way = case is not None and case.drain is not None and case.drain.done is None
    return under_way and node.todo.drain is not None and (progress is None or progress.phase is Phase.STOPPED)


def result_of(case: CaseRecord) -> str:
    """Return what has become of a case, if it ends with its node now; empty if that is not known."""
    outcome = outcome_at_end(case, deleted=True)
    if outcome.result is CaseResult.STOPPED:
        return ""
    moved = case.facts.moved
    pods = "" if moved is None else f"; {moved} {'pod' if moved == 1 else 'pods'} moved"
    return limits.text(f"{outcome.words}{pods}", RESULT)
