"""The hooks of a node after the state machine: which of them hold a step from now on, and which have ended.

The record says since when each of them holds its step, so the time limit counts on after a restart. A hook
that has timed out is recorded first, then reported, and only then the record says that it was: a killed
process reports it once more rather than not at all.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from reconciler.calendar.values import format_duration
from reconciler.model.hooks import HookEnd, HookRecord, HookStep
from reconciler.model.moments import to_text
from reconciler.model.plan import Hold, Notice, NoticeType
from reconciler.model.record import CaseRecord, State
from reconciler.model.values import replace
from reconciler.passes.decide.decision import CaseDecision
from reconciler.passes.node_facts import NodeFacts, PassContext
from reconciler.profiles import hooks as engine
from reconciler.profiles.checks.people import HOOKS_DONE
from reconciler.profiles.hooks import HookCase, Waiting, present_hooks

HOOK_TIMED_OUT = "HookTimedOut"

_CODES = frozenset(check.name for check in HOOKS_DONE.values())


def follow_hooks(
    decision: CaseDecision, node: NodeFacts, alone: Container[str], context: PassContext
) -> Hold | None:
    """Add to the decision the hooks of the steps that are next; return how they hold a drain that goes on.

    `alone` are the checks of which each is all that keeps a step from being taken.
    """
    in_maintenance = decision.state is State.IN_MAINTENANCE
    if not in_maintenance and not node.case.hooks:
        return None
    hooks = present_hooks(node.read, context.settings)
    before = HookCase(node.case, decision.view, context.settings, context.now)
    present = {hook.id for hook in hooks}
    decision.hooks_over = tuple(entry for entry in engine.ended(before) if entry.id in present)
    if not in_maintenance:
        return None
    drain, steps = decision.record.drain, set[HookStep]()
    if drain is not None and drain.done is None:
        steps.add(HookStep.PRE_DRAIN)
    if engine.follows_drain(decision.record, decision.view):
        steps.add(HookStep.POST_DRAIN)
    if HOOKS_DONE[HookStep.PRE_UNCORDON].name in alone:
        steps.add(HookStep.PRE_UNCORDON)
    asked = replace(before, record=engine.begun(decision.record, hooks, steps, context.second))
    asked = replace(asked, record=replace(asked.record, hooks=engine.ended(asked)))
    waiting = {step: engine.waiting(step, hooks, asked) for step in HookStep}
    # What the checks say of a hook whose step is not next holds nothing yet.
    holds = [hold for hold in decision.holds if hold.code not in _CODES]
    for step in (HookStep.POST_DRAIN, HookStep.PRE_UNCORDON):
        holds += _hold(node.name, step, waiting[step], asked)
    decision.record, decision.holds, decision.hooks = (
        asked.record,
        tuple(holds),
        engine.runs(node.read, asked),
    )
    return drain_hold(node.name, waiting[HookStep.PRE_DRAIN], asked)


def _hold(node: str, step: HookStep, waiting: Iterable[Waiting], asked: HookCase) -> Iterator[Hold]:
    found = [hook for hook in waiting if hook.until is not None]
    if found:
        hold = HOOKS_DONE[step].hold(node, engine.reason(step, found, asked.settings))
        ends = [hook.until for hook in found if hook.until is not None]
        pauses = (hook.answer.again for hook in found if hook.answer is not None)
        asks = (asked.now + pause for pause in pauses if pause is not None)
        yield replace(hold, until=max(ends), asks=min((*ends, *asks)))


def drain_hold(node: str, waiting: Iterable[Waiting], asked: HookCase) -> Hold | None:
    """Return what `pre-drain` hooks hold of a drain that has been recorded, None if there is none."""
    return next(_hold(node, HookStep.PRE_DRAIN, waiting, asked), None)


def timed_out(over: Iterable[HookRecord], record: CaseRecord, context: PassContext) -> tuple[Notice, ...]:
    """Return the Warning Events about hooks that have timed out, and that no pass has reported yet.

    `record` is the case after this pass. If it ends, its hooks are `over`, those that the pass has read.
    """
    untold = {
        (each.id, each.since): each
        for each in (*over, *record.hooks)
        if each.end is HookEnd.TIMED_OUT and not each.told
    }
    return tuple(_notice(each, context) for each in untold.values())


def _notice(entry: HookRecord, context: PassContext) -> Notice:
    step, limit = entry.id.step, context.settings.hooks.timeout
    limited = context.now - entry.since >= limit
    urgent = "the drain can't wait longer" if step is HookStep.PRE_DRAIN else "the date of the event has come"
    why = f"its time limit of {format_duration(limit)} is over" if limited else urgent
    said = f" ({entry.answer.because})" if entry.answer is not None and entry.answer.because else ""
    held = f"hook {entry.id}{said} has held {step.held} since {to_text(entry.since)}"
    message = f"{held}; {why}, so the step goes on"
    return Notice(HOOK_TIMED_OUT, message, NoticeType.WARNING, once=f"{entry.id} {to_text(entry.since)}")
