"""What there is to say about one node after a pass: the facts, by the key of their message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from zlib import crc32

from msgspec import Struct

from reconciler.features.notices.memory import NAMESPACES, OWN_TEXT, RESULT, TEXT, seconds
from reconciler.features.notices.messages import OfNamespace, Topic
from reconciler.model import limits
from reconciler.model.case_outcome import CaseResult, counted, outcome_at_end, struck_by, unbegun
from reconciler.model.drains import Blocker, Coming, Phase
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

    `text` is for the people who run the cluster. `anyone` and `named` are for the owners of pods on the node,
    see Message: nothing that a source, a person, a server or a webhook has written may stand in `anyone`.
    `takes_back` is the key of the message that it takes back, empty if there is none. `before` is the moment
    before which people have to know it (UTC), None if there is none.
    """

    topic: Topic
    text: str
    anyone: str
    named: tuple[OfNamespace, ...] = ()
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
            # Who uncordoned the node, and which pods the platform met, is not for everyone.
            outcome = replace(node.outcome, met="", uncordoned=None)
            found[ENDING] = Fact(Topic.DONE, _ended(node), outcome.words)
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
            failed = f"{one.action} failed"
            yield f"Failed {one.action}", Fact(Topic.FAILED, f"{failed}: {one.detail}", failed)
    progress = node.draining.progress
    if progress is not None and progress.phase is Phase.FAILED:
        failed = "the drain failed"
        yield "Failed drain", Fact(Topic.FAILED, f"{failed}: {progress.error}", failed)
    for hold in node.holds:
        if hold.code == HoldCode.INTERNAL:
            yield "Failed internal", Fact(Topic.FAILED, hold.reason, "the node can't be judged")


def _announced(events: Sequence[JudgedEvent], said: Mapping[str, int]) -> Iterator[tuple[str, Fact]]:
    before = [key for key in said if key.startswith(f"{_RECEIVED} ")]
    for judged in events[: limits.EVENTS]:
        event = judged.event
        key = _event_key(event)
        known = next((one for one in before if _is_same(one, key)), None)
        words = _event_words(event)
        needs = "a drain of the node is needed" if judged.asks else "no drain of the node is needed"
        yield known or key, Fact(Topic.RECEIVED, f"{words}: {judged.because}", f"{words}: {needs}")


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
        anyone = "somebody uncordoned the node, and the platform may still start"
        yield key, Fact(Topic.UNGUARDED, text, anyone, lasts=True, before=node.platform_time)
    drained = case.drain is not None and case.drain.done is not None
    if case.open and case.state is State.REQUIRED and node.ended is None:
        if schedule is not None and schedule.planned_start is not None and not schedule.missed:
            start = to_text(schedule.planned_start)
            key = f"Planned {seconds(facts.planned)}" if facts.planned else "Planned"
            planned = f"the drain is planned for {start}"
            yield key, Fact(Topic.PLANNED, f"{planned}: {schedule.because}", planned)
        held = _held(node.holds)
        if held:
            codes = ", ".join(dict.fromkeys(hold.code for hold in held[:_NAMED]))
            anyone = f"the start of the drain is held ({codes})"
            yield "Held", Fact(Topic.HELD, _reasons(held), anyone, lasts=True, before=node.platform_time)
    if facts.deadline_passed is not None:
        why = _reasons(node.holds)
        text = f"{unbegun(case)}: {why}" if why else unbegun(case)
        lasts = case.drain is None and case.uncordoned is None and node.ended is None
        yield "DeadlinePassed", Fact(Topic.DEADLINE_PASSED, text, unbegun(case), lasts=lasts)
    if case.state is State.IN_MAINTENANCE or case.drain is not None:
        yield "Started", Fact(Topic.STARTED, _started(node), "the maintenance of the node starts")
    if drained and case.drain is not None and case.drain.done is not None:
        text = case.drain.kept.words(node.node)
        kept = node.draining.kept or [Blocker(name, "stays") for name in case.drain.kept.names]
        named = _named(kept, case.drain.kept.coming, node.node)
        yield f"Drained {seconds(case.drain.done)}", Fact(Topic.DRAINED, text, "drained", named)
    elif node.ended is None and case.drain is not None:
        blocked = _blocked(node)
        if blocked is not None:
            yield "Blocked", blocked
    missed = struck_by(case)
    if missed is not None:
        name = missed.event.condition or missed.event.kind
        started = f"the platform started {name} at {to_text(missed.at)} while"
        text, anyone = f"{started} {counted(missed.pods, missed.met)}", f"{started} {counted(missed.pods)}"
        yield f"Missed {seconds(missed.at)}", Fact(Topic.MISSED, text, anyone)


def _of_people(node: NodePlan, case: CaseRecord) -> Iterator[tuple[str, Fact]]:
    """Yield what people say of a case that goes on, and what they have ended."""
    if node.ended is not None or not case.open:
        return
    said, schedule = node.status.instructions, node.schedule
    late = "; the node will not be drained in time" if schedule is not None and schedule.missed else ""
    words = dict[str, str]()
    anyone = {"hold": f"a person holds the drain{late}", "defer": f"a person defers the drain{late}"}
    anyone |= {"approve": "a person approved the drain", "before": "what a person said has ended"}
    if said.hold is not None:
        stopped = schedule.stopped if schedule is not None else ""
        words[f"hold {said.hold.word}"] = f"{stopped or said.hold.words(node.node)}{late}"
    if said.deferral is not None:
        words[f"defer {said.deferral.word}"] = f"{said.deferral.words(node.node)}{late}"
    if said.approval is not None:
        words[f"approve {said.approval.word}"] = f"its drain is approved {said.approval.word}"
    words |= {f"before {ended}": ended for ended in said.before}
    for about, text in words.items():
        said_of = anyone[about.partition(" ")[0]]
        yield f"Person {crc32(about.encode('utf-8', 'replace'))}", Fact(Topic.PERSON, text, said_of)


def _foretold(
    node: NodePlan, case: CaseRecord, said: Mapping[str, int], now: datetime
) -> Iterator[tuple[str, Fact]]:
    """Yield that the node will be missed, or that it no longer will be."""
    forecast = case.facts.will_be_missed
    if forecast is None or node.ended is not None or node.schedule is None:
        return
    key = f"{Topic.WILL_BE_MISSED} {seconds(forecast.since)}"
    if forecast.is_due(now):
        anyone = "the node will not be drained in time"
        yield key, Fact(Topic.WILL_BE_MISSED, node.schedule.outlook, anyone, lasts=True)
    elif forecast.over is not None and key in said:
        over = f"{Topic.NO_LONGER_MISSED} {seconds(forecast.over)}"
        anyone = "the node will be drained in time after all"
        yield over, Fact(Topic.NO_LONGER_MISSED, node.schedule.outlook, anyone, takes_back=key)


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


def _blocked(node: NodePlan) -> Fact | None:
    """Return which pods block the drain and why, None if none does."""
    progress = node.draining.progress
    if progress is None or progress.phase not in (Phase.RUNNING, Phase.TIMED_OUT):
        return None
    blockers = [one for one in progress.blockers if not one.leaving]
    named = [_with_reason(one) for one in blockers[:_NAMED]]
    more = len(blockers) - len(named)
    stay = f"pods stay: {'; '.join(named)}" + (f"; and {more} more" if more > 0 else "")
    parts = [*([stay] if named else []), *(one.words(node.node) for one in progress.coming)]
    date = node.platform_time
    until = f"the platform may start from {to_text(date)} on; " if date is not None else ""
    if not parts:
        return None
    of_namespaces = _named(blockers, progress.coming, node.node)
    text, anyone = f"{until}{'; '.join(parts)}", f"{until}pods stay"
    return Fact(Topic.BLOCKED, text, anyone, of_namespaces, lasts=True, before=date)


def _with_reason(blocker: Blocker) -> str:
    because = f"{blocker.budget}: {blocker.because}" if blocker.budget else blocker.because
    return f"{blocker.pod} ({because})"


def _named(pods: Iterable[Blocker], coming: Iterable[Coming], node: str) -> tuple[OfNamespace, ...]:
    """Return what owners may read of their own pods, by namespace: the first pods, and how many more."""
    by_namespace: dict[str, list[Blocker]] = {}
    for pod in pods:
        by_namespace.setdefault(pod.pod.partition("/")[0], []).append(pod)
    found = []
    for namespace, own in sorted(by_namespace.items())[:NAMESPACES]:
        more = len(own) - _NAMED
        texts = (*map(_with_reason, own[:_NAMED]), *([f"{more} more of {namespace}"] if more > 0 else ()))
        found.append(OfNamespace(namespace, limits.text("; ".join(texts), OWN_TEXT), len(own)))
    return (*found, *(OfNamespace(one.namespace, one.words(node)) for one in coming))


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
