"""What hooks do in a pass: which of them hold a step from now on, which are run, and which have ended.

The record says since when each of them holds its step, so the time limit counts on after a restart. A hook
that has timed out is recorded first, then reported, and only then the record says that it was: a killed
process reports it once more rather than not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial

from reconciler.calendar.values import format_duration
from reconciler.features.hooks import holding
from reconciler.features.hooks.holding import Answers, HookCase, Waiting, present_hooks
from reconciler.features.hooks.hook import (
    IN_RECORD,
    RUN_HOOK,
    RUNNER,
    HookAnswer,
    HookEnd,
    HookId,
    HookKey,
    HookKind,
    HookReader,
    HookRecord,
    HookRecords,
    HookState,
)
from reconciler.features.hooks.settings import HOOKS
from reconciler.features.hooks.steps import HOOKS_DONE, unreadable
from reconciler.model.errors import Late, RecordUnreadable
from reconciler.model.moments import to_text
from reconciler.model.plan import Hold, Notice, NoticeType
from reconciler.model.ports import Outside
from reconciler.model.record import ProfileRecord, State
from reconciler.model.steps import HeldStep
from reconciler.model.values import replace
from reconciler.passes.decision import CaseDecision
from reconciler.passes.node_facts import Decider, DrainWait, NodeFacts, PassContext
from reconciler.passes.plugin import Deciding, Feature, Observed
from reconciler.profiles.case import CaseView
from reconciler.profiles.situation import Situation

HOOK_TIMED_OUT = "HookTimedOut"

_CODES = frozenset(check.name for check in HOOKS_DONE.values())
_SOON_AGAIN = timedelta(seconds=10)
"""After this time a hook that has not answered is asked again."""


def _observe(outside: Outside, observed: Observed) -> Mapping[str, Answers]:
    """Return what the hooks of the settings say that hold a step of a node, by node."""
    reader: HookReader | None = outside.client(RUNNER.name)
    if reader is None:
        return {}
    keys = [
        HookKey(node.name, node.uid, entry.id, entry.since)
        for node in observed.nodes
        if (record := observed.records.get(node.name)) is not None
        for _, profile in record.profiles
        for entry in _recorded(profile)
        if entry.id.kind is not HookKind.ANNOTATION and entry.end is None
    ]
    if not keys:
        return {}
    try:
        answers = outside.beside.read(("hooks",), partial(reader.answers, keys), most=1)
    except Late as error:
        # None of them counts as one that has not begun.
        answers = dict.fromkeys(keys, HookAnswer(HookState.UNKNOWN, str(error), _SOON_AGAIN))
    by_node: dict[str, dict[HookId, HookAnswer]] = {}
    for key, answer in answers.items():
        by_node.setdefault(key.node, {})[key.id] = answer
    return by_node


def _recorded(profile: ProfileRecord) -> HookRecords:
    """Return the recorded hooks, none where they can't be read."""
    try:
        return IN_RECORD.of(profile)
    except RecordUnreadable:
        return ()


class Following(Decider):
    """The hooks of one node after the other, in one pass."""

    def __init__(self, nodes: Sequence[NodeFacts], context: PassContext) -> None:
        """Take what the hooks of the settings say; `nodes` do not matter."""
        del nodes
        read = context.snapshot.for_settings.of_features
        self._answers: Mapping[str, Answers] = read.get(IN_RECORD.name, {})
        self._over: dict[str, HookRecords] = {}
        """The hooks that the pass has read and that have ended, by node."""

    def decide(
        self, decision: CaseDecision, node: NodeFacts, situation: Situation, context: PassContext
    ) -> tuple[NodeFacts, Situation]:
        """Return both with the hooks' own times believed, and with what the hooks say."""
        recorded = _recorded(node.case)
        if not recorded:
            return node, situation
        believed = tuple(entry.believed(context.times) for entry in recorded)
        if believed != recorded:
            node = replace(node, case=IN_RECORD.put(node.case, believed))
            situation = replace(situation, record=IN_RECORD.put(situation.record, believed))
        answers = self._answers.get(node.name)
        if not answers:
            return node, situation
        return node, replace(situation, of_features={**situation.of_features, IN_RECORD.name: answers})

    def follow(self, decision: CaseDecision, node: NodeFacts, context: PassContext) -> DrainWait:
        """Add to the decision the hooks of the steps that are next; return how they hold the drain."""
        in_maintenance = decision.state is State.IN_MAINTENANCE
        if not in_maintenance and IN_RECORD.name not in node.case.parts:
            return DrainWait()
        settings, now = context.settings, context.now
        hooks, record, view = present_hooks(node.read, settings), decision.record, decision.view
        drain, steps = record.drain, set[HeldStep]()
        if drain is not None and drain.done is None:
            steps.add(HeldStep.PRE_DRAIN)
        if holding.follows_drain(record, view):
            steps.add(HeldStep.POST_DRAIN)
        if HOOKS_DONE[HeldStep.PRE_UNCORDON].name in decision.alone:
            steps.add(HeldStep.PRE_UNCORDON)
        try:
            before, after = IN_RECORD.of(node.case), IN_RECORD.of(record)
        except RecordUnreadable as error:
            # It is kept, and nobody knows which have ended. Those of a drain hold it until its deadline.
            urgent = any(event.lost_from is not None and event.lost_from <= now for event in view.present)
            if not in_maintenance or urgent or not any(hook.id.step in steps for hook in hooks):
                return DrainWait()
            return DrainWait(HOOKS_DONE[HeldStep.PRE_DRAIN].hold(node.name, unreadable(error)))
        answers = self._answers.get(node.name, {})
        present = {hook.id for hook in hooks}
        read = HookCase(node.case, before, view, settings, now, answers)
        over = tuple(entry for entry in holding.ended(read) if entry.id in present)
        if over:
            self._over[node.name] = over
        if not in_maintenance:
            return DrainWait()
        begun = holding.begun(after, hooks, steps, context.second)
        case = HookCase(record, begun, view, settings, now, answers)
        case = replace(case, begun=holding.ended(case))
        decision.record = IN_RECORD.put(record, case.begun)
        held = {step: _hold(node.name, step, holding.waiting(step, hooks, case), case) for step in HeldStep}
        # What the checks say of a hook whose step is not next holds nothing yet.
        holds = [hold for hold in decision.holds if hold.code not in _CODES]
        for step in (HeldStep.POST_DRAIN, HeldStep.PRE_UNCORDON):
            holds += held[step]
        decision.holds = tuple(holds)
        decision.tasks = (*decision.tasks, *holding.runs(node.read, case))
        unended = (entry for entry in before if entry.id.step is HeldStep.PRE_DRAIN and entry.end is None)
        since = min((entry.since for entry in unended), default=None)
        return DrainWait(next(iter(held[HeldStep.PRE_DRAIN]), None), since)

    def finish(self, decision: CaseDecision, node: NodeFacts, context: PassContext) -> None:
        """Add to the decision the Warning Events about hooks that have timed out, and that were not sent yet.

        If the case ends, its hooks are those that the pass has read.
        """
        recorded = _recorded(decision.record)
        untold = {
            (entry.id, entry.since): entry
            for entry in (*self._over.get(node.name, ()), *recorded)
            if entry.end is HookEnd.TIMED_OUT and not entry.told
        }
        if not untold:
            return
        answers = self._answers.get(node.name, {})
        warnings = (_warning(entry, answers, context) for entry in untold.values())
        decision.pending = (*decision.pending, *warnings)
        if decision.record.open:
            noted = decision.noted or decision.record
            decision.noted = IN_RECORD.put(noted, holding.told(recorded))


def _hold(node: str, step: HeldStep, waiting: Iterable[Waiting], case: HookCase) -> tuple[Hold, ...]:
    """Return how recorded hooks hold a step, empty if none of them does."""
    recorded = [each for each in waiting if each.until is not None]
    if not recorded:
        return ()
    hold = HOOKS_DONE[step].hold(node, holding.reason(step, recorded, case.settings))
    ends = [each.until for each in recorded if each.until is not None]
    pauses = (each.answer.again for each in recorded if each.answer is not None)
    asks = (case.now + pause for pause in pauses if pause is not None)
    return (replace(hold, until=max(ends), asks=min((*ends, *asks))),)


def _warning(entry: HookRecord, answers: Answers, context: PassContext) -> Notice:
    step, limit = entry.id.step, HOOKS.of(context.settings).timeout
    limited = context.now - entry.since >= limit
    urgent = "the drain can't wait longer" if step is HeldStep.PRE_DRAIN else "the date of the event has come"
    why = f"its time limit of {format_duration(limit)} is over" if limited else urgent
    answer = answers.get(entry.id)
    said = f" ({answer.because})" if answer is not None and answer.because else ""
    held = f"hook {entry.id}{said} has held {step.words} since {to_text(entry.since)}"
    message = f"{held}; {why}, so the step goes on"
    return Notice(HOOK_TIMED_OUT, message, NoticeType.WARNING, once=f"{entry.id} {to_text(entry.since)}")


def _awaits(node: NodeFacts, context: PassContext) -> str:
    """Return that a hook holds what follows the drain of a node, empty if none does."""
    hooks = present_hooks(node.read, context.settings)
    if not any(hook.id.step is HeldStep.POST_DRAIN for hook in hooks):
        return ""
    try:
        recorded = IN_RECORD.of(node.case)
    except RecordUnreadable as error:
        return f"has hooks: {unreadable(error)}"
    answers = context.snapshot.for_settings.of_features.get(IN_RECORD.name, {}).get(node.name, {})
    case = HookCase(node.case, recorded, CaseView(), context.settings, context.now, answers)
    unended = holding.unended(HeldStep.POST_DRAIN, hooks, case)
    return f"has a hook: {unended[0]}" if unended else ""


FEATURE = Feature(
    "hooks",
    actions=(RUN_HOOK,),
    record=IN_RECORD,
    observe=_observe,
    decide=Deciding(Following),
    awaits=_awaits,
)
