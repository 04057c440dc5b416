"""What there is to say about one node after a pass: the facts, by the key of their message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from reconciler.calendar.values import format_duration, rounded
from reconciler.features.notices.memory import NAMESPACES, OWN_TEXT, REMEDY, RESULT, TEXT, seconds
from reconciler.features.notices.messages import OfNamespace, Topic, mark_of
from reconciler.model import limits
from reconciler.model.case_outcome import (
    CANCELLED,
    CaseResult,
    InTime,
    counted,
    outcome_at_end,
    struck_by,
    unbegun,
)
from reconciler.model.drains import Blocker, Coming, Phase
from reconciler.model.ended_case import leading_kind
from reconciler.model.holds import DISMISSED, INTERNAL, LOOKED_AFTER, NOT_CLAIMED, RECORD_READABLE
from reconciler.model.instructions import Word
from reconciler.model.keys import keys_of
from reconciler.model.moments import to_text
from reconciler.model.outcome import Outcome, Result, WaitsFor
from reconciler.model.plan import Hold, JudgedEvent, NodePlan
from reconciler.model.record import SAME_MOMENT, CaseRecord, State
from reconciler.model.schedule import HELD_BY, PODS_STAY
from reconciler.model.unguarded import UnguardedWhy
from reconciler.model.values import replace
from reconciler.report.explain import FORECAST, blocked_by, obstacles
from reconciler.report.people import for_any
from reconciler.report.standing import Standing, kind_of_hold

ENDING = "Done"
"""The key of the message about the end of a case."""

_NAMED = 3
_RECEIVED = "Received"
APPROVED = "approved"
"""The cause of what waits for an approval, as the check has it."""

_MOMENT = re.compile(r" \d{4}-\S+Z$")
_LEFT = {
    UnguardedWhy.DISMISSED: "the reconciler ignores an event of the node",
    UnguardedWhy.SOURCE_SILENT: "whether the maintenance of the node is over is not known",
}
"""Why nobody guards a node that nothing else of it says; in words for everyone."""

_CHECKS = {
    "maxUnavailable": "budgetLeft",
    "perZone": "budgetLeft",
    "perPool": "budgetLeft",
    "calendar": "windowOpen",
}
"""The checks that hold a start for what a forecast names otherwise: both have one cause."""

_WORDS_OF_PEOPLE = frozenset({"notHeld", "notDeferred"})
_UNTOUCHED = frozenset({LOOKED_AFTER.code, RECORD_READABLE.code, NOT_CLAIMED.code})


class Fact(Struct, frozen=True):
    """One thing to say.

    `text` is for the people who run the cluster. `anyone` and `named` are for the owners of pods on the node,
    see Message: nothing that a source, a person, a server or a webhook has written may stand in `anyone`.
    `takes_back` is the key of the message that it takes back, empty if there is none. `cause` is the same for
    all nodes with the same cause, empty if there is no other with it. `by` is when the platform may start, or
    until when a person has to act (UTC). `took` is how long a drain took. `past`: the state that it is about
    has ended.
    """

    topic: Topic
    text: str
    anyone: str
    named: tuple[OfNamespace, ...] = ()
    takes_back: str = ""
    cause: str = ""
    by: datetime | None = None
    took: timedelta | None = None
    past: bool = False

    @property
    def lasts(self) -> bool:
        """Whether it is true now of a state that ends: it can be repeated, and a message about it kept."""
        return self.topic.lasts and not self.past


def facts_of(
    node: NodePlan, outcomes: Sequence[Outcome], said: Mapping[str, int], now: datetime
) -> dict[str, Fact]:
    """Return what there is to say about a node, by key; a key in `said` has been said before.

    `outcomes` are the results of the node's actions. What could not be written is not said. `now` is the
    moment of the pass (aware).
    """
    if any(hold.code in _UNTOUCHED for hold in node.holds):
        by_hand = [hold.reason for hold in node.holds if hold.code == NOT_CLAIMED.code]
        return dict(_person(why, why, "a person drains the node by hand") for why in by_hand)
    facts: dict[str, Fact] = dict(_failures(node, outcomes))
    facts |= dict(_announced(node.events, said))
    case = node.ended or node.record
    if case is None or (node.ended is None and not case.open):
        facts |= dict(_of_people(node))
    if case is not None and not any(outcome.notable for outcome in outcomes):
        facts |= dict(_of_case(node, case))
        if node.ended is None and case.open:
            facts |= dict(_of_people(node))
        facts |= dict(_foretold(node, case, said, now))
        if node.ended is not None and node.outcome is not None:
            # Who uncordoned the node, and which pods the platform met, is not for everyone.
            outcome, write = replace(node.outcome, met="", uncordoned=None), node.todo.write
            back = write is not None and write.unschedulable is False
            text = _joined(
                f"back in service at {to_text(now)}" if back else "",
                node.outcome.words.replace(CANCELLED, f"the {kind_of(node)} was called off"),
            )
            facts[ENDING] = Fact(Topic.DONE, text, outcome.words)
    return {key: replace(fact, text=limits.text(fact.text, TEXT)) for key, fact in facts.items()}


def kind_of(node: NodePlan) -> str:
    """Return the kind of the most disruptive event of the node's case, or its condition; else empty."""
    case = node.ended or node.record
    if case is not None and case.events:
        return leading_kind(case.events)
    return leading_kind(judged.event for judged in node.events)


def _failures(node: NodePlan, outcomes: Sequence[Outcome]) -> Iterator[tuple[str, Fact]]:
    for outcome in outcomes:
        if outcome.result is Result.FAILED:
            failed = f"{outcome.action} failed"
            fact = Fact(Topic.FAILED, f"{failed}: {outcome.detail}", failed, cause=failed)
            yield f"Failed {outcome.action}", fact
    progress = node.draining.progress
    if progress is not None and progress.phase is Phase.FAILED:
        failed = "the drain failed"
        yield "Failed drain", Fact(Topic.FAILED, f"{failed}: {progress.error}", failed, cause=failed)
    for hold in node.holds:
        if hold.code == INTERNAL.code:
            failed = "the node can't be judged"
            yield "Failed internal", Fact(Topic.FAILED, hold.reason, failed, cause=failed)


def _announced(events: Sequence[JudgedEvent], said: Mapping[str, int]) -> Iterator[tuple[str, Fact]]:
    before = [key for key in said if key.startswith(f"{_RECEIVED} ")]
    for judged in events[: limits.EVENTS]:
        event = judged.event
        # Sources join an event one after the other. What one calls a Freeze, another calls a LiveMigration.
        name = event.condition or ("Pause" if event.kind.is_pause else event.kind.value)
        key = f"{_RECEIVED} {name} {seconds(event.not_before) if event.not_before else ''}".strip()
        known = next((earlier for earlier in before if _is_of_same_event(earlier, key)), None)
        what = event.condition or event.kind.value
        date = f", not before {to_text(event.not_before)}" if event.not_before else ""
        words = f"{what} has started" if event.started else f"{what} is announced{date}"
        needs = "a drain of the node is needed" if judged.asks else "no drain of the node is needed"
        yield known or key, Fact(Topic.RECEIVED, f"{words}: {judged.because}", f"{words}: {needs}")


def _is_of_same_event(key: str, other: str) -> bool:
    """Whether two keys are those of one event: the same kind, and dates that agree or are missing."""
    name, _, date = key.removeprefix(f"{_RECEIVED} ").partition(" ")
    named, _, dated = other.removeprefix(f"{_RECEIVED} ").partition(" ")
    if name != named:
        return False
    return not date or not dated or abs(int(date) - int(dated)) <= SAME_MOMENT.total_seconds()


def _of_case(node: NodePlan, case: CaseRecord) -> Iterator[tuple[str, Fact]]:
    facts, schedule = case.facts, node.schedule
    if case.uncordoned is not None and node.ended is None and not case.open:
        words = (hold.reason for hold in node.holds if hold.code == DISMISSED.code)
        text = next(words, case.uncordoned.words)
        key = f"Unguarded {seconds(case.uncordoned.at)}"
        anyone = "somebody uncordoned the node, and the platform may still start"
        yield key, Fact(Topic.UNGUARDED, text, anyone, cause="unguarded", by=node.platform_time)
    left = node.unguarded
    if left is not None and left.why in _LEFT and node.ended is None:
        key = f"Unguarded {left.why} {seconds(left.since) if left.since is not None else ''}".strip()
        cause = f"unguarded: {for_any(node.node, left.because)}"
        yield key, Fact(Topic.UNGUARDED, left.words, _LEFT[left.why], cause=cause, by=node.platform_time)
    if case.open and case.state is State.REQUIRED and node.ended is None:
        if schedule is not None and schedule.planned_start is not None and not schedule.missed:
            start = to_text(schedule.planned_start)
            key = f"Planned {seconds(facts.planned)}" if facts.planned else "Planned"
            planned = f"the drain for {kind_of(node)} is planned for {start}"
            yield key, Fact(Topic.PLANNED, f"{planned}: {schedule.because}", planned)
        needed = _approval(node)
        if needed is not None:
            yield "ApprovalNeeded", needed
        held = _held(node.holds)
        if held:
            codes = ", ".join(dict.fromkeys(hold.code for hold in held[:_NAMED]))
            kinds = {kind_of_hold(hold.code, by_itself=hold.by_itself) for hold in held}
            does = "is blocked" if Standing.BLOCKED in kinds else "waits"
            does = "is held by a person" if Standing.HELD in kinds else does
            anyone = f"the start of the drain {does} ({codes})"
            cause = _cause(node, held)
            yield "Held", Fact(Topic.HELD, _reasons(held), anyone, cause=cause, by=node.platform_time)
    if facts.deadline_passed is not None:
        why = _reasons(node.holds)
        text = f"{unbegun(case)}: {why}" if why else unbegun(case)
        past = case.drain is not None or case.uncordoned is not None or node.ended is not None
        cause, date = _cause(node, node.holds), node.platform_time
        fact = Fact(Topic.DEADLINE_PASSED, text, unbegun(case), cause=cause, by=date, past=past)
        yield "DeadlinePassed", fact
    if case.state is State.IN_MAINTENANCE or case.drain is not None:
        text = _joined(f"the drain for {kind_of(node)} has started", _may_start(node))
        yield "Started", Fact(Topic.STARTED, text, "the maintenance of the node starts")
    if case.drain is not None and case.drain.done is not None:
        done, date = case.drain.done, node.platform_time
        parts = [f"drained for {kind_of(node)} in {format_duration(done - case.drain.since)}"]
        if facts.moved is not None:
            parts.append(f"{limits.count_of(facts.moved, 'pod')} moved")
        if date is not None:
            parts.append(f"{rounded(abs(date - done))} {'before' if done <= date else 'after'} its date")
        text = "; ".join((", ".join(parts), *case.drain.kept.left(node.node)))
        kept = node.draining.kept or [Blocker(name, "stays") for name in case.drain.kept.names]
        named = _named(kept, case.drain.kept.coming, node.node)
        cause, took = f"drained for {kind_of(node)}", done - case.drain.since
        fact = Fact(Topic.DRAINED, text, "drained", named, cause=cause, took=took)
        yield f"Drained {seconds(done)}", fact
    elif node.ended is None and case.drain is not None:
        blocked = _blocked(node)
        if blocked is not None:
            yield "Blocked", blocked
    missed = struck_by(case)
    if missed is not None:
        name = missed.event.condition or missed.event.kind
        started = f"the platform started {name} at {to_text(missed.at)} while"
        text, anyone = f"{started} {counted(missed.pods, missed.met)}", f"{started} {counted(missed.pods)}"
        # Nobody closes an alert about a miss but a person, so one of an hour ago takes no more nodes.
        hour = missed.at.astimezone(UTC).strftime("%Y-%m-%dT%H")
        cause = f"missed {name} {hour}"
        yield f"Missed {seconds(missed.at)}", Fact(Topic.MISSED, text, anyone, cause=cause)


def _of_people(node: NodePlan) -> Iterator[tuple[str, Fact]]:
    """Yield what people say of a node now, and what they have ended.

    What they say of all nodes or of a pool is said once, see `deriving`.
    """
    said, schedule = node.status.instructions, node.schedule
    late = "; the node will not be drained in time" if schedule is not None and schedule.missed else ""
    if said.hold is not None and not said.hold.word.scope:
        word, stopped = said.hold.word, schedule.stopped if schedule is not None else ""
        text = f"{stopped or said.hold.words(node.node)}{late}"
        yield _person(f"hold {word}", text, f"a person holds the drain{late}", _with(word, "hold"))
    if said.deferral is not None and not said.deferral.word.scope:
        word = said.deferral.word
        text = f"{said.deferral.words(node.node)}{late}"
        yield _person(f"defer {word}", text, f"a person defers the drain{late}", _with(word, "defer"))
    for given in said.permissions:
        word, kind = given.word, given.kind
        text, anyone = f"its drain was {kind.done} {word.once}", f"a person {kind.done} the drain"
        yield _person(f"{kind.command} {word}", text, anyone, _with(word, kind.command))
    for ended in said.before:
        yield _person(f"before {ended}", str(ended), "what a person said has ended")


def _person(about: str, text: str, anyone: str, cause: str = "") -> tuple[str, Fact]:
    return f"Person {mark_of(about)}", Fact(Topic.PERSON, text, anyone, cause=cause)


def _with(word: Word, verb: str) -> str:
    """Return the cause of what a person said with one command of many nodes."""
    until = to_text(word.until) if word.until is not None else ""
    return f"{verb} {mark_of('|'.join((word.by, until, word.reason)))}"


def _foretold(
    node: NodePlan, case: CaseRecord, said: Mapping[str, int], now: datetime
) -> Iterator[tuple[str, Fact]]:
    """Yield that the node will be missed, or that it no longer will be."""
    forecast = case.facts.will_be_missed
    if forecast is None or node.ended is not None or node.schedule is None:
        return
    key = f"{Topic.WILL_BE_MISSED} {seconds(forecast.since)}"
    if forecast.is_due(now):
        anyone, date = "the node will not be drained in time", node.platform_time
        cause = _MOMENT.sub("", forecast.cause.removeprefix(HELD_BY))
        cause = APPROVED if _approval(node) is not None else _CHECKS.get(cause.partition(" ")[0], cause)
        if cause.startswith(PODS_STAY):
            # Without the code of the obstacle: a drain that is blocked by them has the same cause.
            cause = f"{PODS_STAY}: {cause.removeprefix(f'{PODS_STAY}: ').partition(' ')[2]}"
        fact = Fact(Topic.WILL_BE_MISSED, node.schedule.outlook, anyone, cause=cause, by=date)
        yield key, fact
    elif forecast.over is not None and key in said:
        over = f"{Topic.NO_LONGER_MISSED} {seconds(forecast.over)}"
        anyone = "the node will be drained in time after all"
        done, date = node.outcome.drained if node.outcome is not None else None, node.platform_time
        text = node.schedule.outlook
        if node.schedule.started and date is not None and (done or now) < date:
            what = "nothing blocks its drain any more" if done is None else "drained in time"
            text = f"{what}, {rounded(date - (done or now))} before the date"
        yield over, Fact(Topic.NO_LONGER_MISSED, text, anyone, takes_back=key)


def _approval(node: NodePlan) -> Fact | None:
    """Return which approval is missing, and until when it helps; None if no event needs one."""
    missing = [(judged.event, judged.kept.of(APPROVED)) for judged in node.events if judged.asks]
    needed = [(event, wait) for event, wait in missing if wait is not None]
    if not needed:
        return None
    event, wait = needed[0]
    latest = node.schedule.latest_start if node.schedule is not None else None
    by = latest or node.platform_time
    name = event.condition or event.kind.value
    needs = f"the drain for {name} needs an approval{f' by {to_text(by)}' if by is not None else ''}"
    follows = "the node is not drained"
    if wait.until is not None:
        follows = f"the drain starts at {to_text(wait.until)}"
    text = _joined(needs, _may_start(node), f"without an approval, {follows}")
    return Fact(Topic.APPROVAL_NEEDED, text, needs, cause=APPROVED, by=by)


def _may_start(node: NodePlan) -> str:
    """Return from when on the platform may start, empty without a date."""
    date = node.platform_time
    return f"the platform may start from {to_text(date)} on" if date is not None else ""


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def remedy(node: NodePlan, topic: Topic, prefix: str) -> str:
    """Return who can change what a message of this topic says of a node, with a command to type."""
    keys, explain = keys_of(prefix), f"reconciler explain {node.node}"
    progress = node.draining.progress
    blockers = [pod for pod in progress.blockers if not pod.leaving] if progress is not None else []
    if topic is Topic.MISSED:
        who = f"the owners of its pods: {explain} shows what is there now"
    elif topic is Topic.FAILED:
        who = f"whoever runs the reconciler: {explain}"
    elif topic is Topic.BLOCKED and blockers:
        # What the forecast knows names the owner, and a command that changes the budget or the workload.
        foreseen = (each for each in obstacles(node, keys) if each.code == FORECAST and not each.by_itself)
        who = next(foreseen, blocked_by(blockers[0], None)).who
    elif topic is not Topic.UNGUARDED and _approval(node) is not None:
        who = f"whoever may approve it: {keys.permit('approve', node.node)}"
        if topic is Topic.WILL_BE_MISSED and node.schedule is not None and node.schedule.remedies:
            who = f"{who}; or {node.schedule.who_starts}"
    else:
        held = {hold.code for hold in _held(node.holds)} if topic is Topic.HELD else set()
        blocking = obstacles(node, keys)
        waiting = [obstacle.who for obstacle in blocking if obstacle.code in held]
        waiting += [obstacle.who for obstacle in blocking if not obstacle.by_itself]
        who = next(iter(waiting), explain)
    return limits.text(who, REMEDY)


def _cause(node: NodePlan, holds: Sequence[Hold]) -> str:
    """Return what a start waits for. What a person has said differs from node to node."""
    if not holds:
        return ""
    # A missing approval comes first: it is what a person can give.
    hold = next((hold for hold in holds if hold.code == APPROVED), holds[0])
    if hold.code not in _WORDS_OF_PEOPLE:
        return hold.code
    return f"{hold.code} {mark_of(for_any(node.node, hold.reason))}"


def _held(holds: Sequence[Hold]) -> list[Hold]:
    """Return what holds the start beside the time. Before the time has come, a turn does not matter."""
    early = any(hold.waits_for is WaitsFor.PERMISSION for hold in holds)
    matters = {WaitsFor.OTHER} if early else {WaitsFor.OTHER, WaitsFor.TURN}
    return [hold for hold in holds if hold.waits_for in matters]


def _blocked(node: NodePlan) -> Fact | None:
    """Return which pods block the drain and why, None if none does."""
    progress = node.draining.progress
    if progress is None or progress.phase not in (Phase.RUNNING, Phase.TIMED_OUT):
        return None
    blockers = [pod for pod in progress.blockers if not pod.leaving]
    named = [_with_reason(pod) for pod in blockers[:_NAMED]]
    more = len(blockers) - len(named)
    stay = f"pods stay: {'; '.join(named)}" + (f"; and {more} more" if more > 0 else "")
    parts = [*([stay] if named else []), *(sender.words(node.node) for sender in progress.coming)]
    if not parts:
        return None
    of_namespaces = _named(blockers, progress.coming, node.node)
    first = blockers[0].budget or blockers[0].pod if blockers else progress.coming[0].namespace
    cause, anyone = f"{PODS_STAY}: {first}", _joined(_may_start(node), "pods stay")
    return Fact(Topic.BLOCKED, "; ".join(parts), anyone, of_namespaces, cause=cause, by=node.platform_time)


def _with_reason(blocker: Blocker) -> str:
    because = f"{blocker.budget}: {blocker.because}" if blocker.budget else blocker.because
    return f"{blocker.pod} ({because})"


def _named(pods: Iterable[Blocker], coming: Iterable[Coming], node: str) -> tuple[OfNamespace, ...]:
    """Return what owners may read of their own pods, by namespace: the first pods, and how many more."""
    by_namespace: dict[str, list[Blocker]] = {}
    for pod in pods:
        by_namespace.setdefault(pod.pod.partition("/")[0], []).append(pod)
    staying = []
    for namespace, own in sorted(by_namespace.items())[:NAMESPACES]:
        more = len(own) - _NAMED
        texts = (*map(_with_reason, own[:_NAMED]), *([f"{more} more of {namespace}"] if more > 0 else ()))
        staying.append(OfNamespace(namespace, limits.text("; ".join(texts), OWN_TEXT), len(own)))
    return (*staying, *(OfNamespace(sender.namespace, sender.words(node)) for sender in coming))


def _reasons(holds: Sequence[Hold]) -> str:
    return "; ".join(dict.fromkeys(limits.text(hold.reason, 200) for hold in holds[:_NAMED]))


def may_be_blocked(node: NodePlan) -> bool:
    """Whether pods may block the drain although this process does not say so: another one has begun it."""
    case, progress = node.record, node.draining.progress
    under_way = case is not None and case.drain is not None and case.drain.done is None
    return under_way and node.todo.drain is not None and (progress is None or progress.phase is Phase.STOPPED)


def result_of(case: CaseRecord) -> tuple[str, InTime]:
    """Return what has become of a case, if it ends with its node now, and whether that was in time.

    The text is empty if that is not known.
    """
    outcome = outcome_at_end(case, deleted=True)
    if outcome.result is CaseResult.STOPPED:
        return "", InTime.UNKNOWN
    moved = case.facts.moved
    pods = "" if moved is None else f"{limits.count_of(moved, 'pod')} moved"
    return limits.text(_joined(outcome.words, pods), RESULT), outcome.result.in_time
