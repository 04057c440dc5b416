"""The hooks of a node after the state machine: which of them hold a step from now on, and which have ended.

The record says since when each of them holds its step, so the time limit counts on after a restart. A hook
that has timed out is recorded first, then reported, and only then the record says that it was: a killed
process reports it once more rather than not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from reconciler.calendar.values import format_duration
from reconciler.model.hooks import HookEnd, HookRecord, HookRun, HookStep
from reconciler.model.moments import to_text
from reconciler.model.plan import Hold, Notice, NoticeType
from reconciler.model.record import CaseRecord, State
from reconciler.model.values import replace
from reconciler.passes.node_facts import NodeFacts, PassContext
from reconciler.profiles import hooks as engine
from reconciler.profiles.case import CaseView
from reconciler.profiles.checks.people import HOOKS_DONE
from reconciler.profiles.hooks import HookCase, Waiting, present_hooks
from reconciler.profiles.state_machine import Walk

HOOK_TIMED_OUT = "HookTimedOut"

_CODES = frozenset(check.name for check in HOOKS_DONE.values())


class Hooked(Struct, frozen=True):
    """The record with the node's hooks after this pass, and what holds the node, with its hooks.

    `drain` is what a `pre-drain` hook holds of a drain that goes on; it is not one of `holds`. `runs` are the
    hooks of the settings that are to be run. `over` are the hooks that the pass has read and that have ended.
    """

    record: CaseRecord
    holds: tuple[Hold, ...]
    drain: Hold | None = None
    runs: tuple[HookRun, ...] = ()
    over: tuple[HookRecord, ...] = ()


def follow_hooks(node: NodeFacts, walked: Walk, view: CaseView, context: PassContext) -> Hooked:
    """Return the record and the holds of the state machine, with the hooks of the steps that are next."""
    record, in_maintenance = walked.effects.record, walked.state is State.IN_MAINTENANCE
    if not in_maintenance and not node.case.hooks:
        return Hooked(record, walked.holds)
    hooks = present_hooks(node.read, context.settings)
    before = HookCase(node.case, view, context.settings, context.now)
    present = {hook.id for hook in hooks}
    over = tuple(entry for entry in engine.ended(before) if entry.id in present)
    if not in_maintenance:
        return Hooked(record, walked.holds, over=over)
    steps = frozenset(_next_steps(record, view, walked))
    asked = replace(before, record=engine.begun(record, hooks, steps, context.second))
    asked = replace(asked, record=replace(asked.record, hooks=engine.ended(asked)))
    waiting = {step: engine.waiting(step, hooks, asked) for step in HookStep}
    runs = engine.runs(node.read, asked)
    # What the checks say of a hook whose step is not next holds nothing yet.
    holds = [hold for hold in walked.holds if hold.code not in _CODES]
    for step in (HookStep.POST_DRAIN, HookStep.PRE_UNCORDON):
        holds += _hold(node.name, step, waiting[step], asked)
    drain = drain_hold(node.name, waiting[HookStep.PRE_DRAIN], asked)
    return Hooked(asked.record, tuple(holds), drain, runs, over)


def _next_steps(record: CaseRecord, view: CaseView, walked: Walk) -> Iterator[HookStep]:
    drain = record.drain
    if drain is not None and drain.done is None:
        yield HookStep.PRE_DRAIN
    if engine.follows_drain(record, view):
        yield HookStep.POST_DRAIN
    if HOOKS_DONE[HookStep.PRE_UNCORDON].name in walked.alone:
        yield HookStep.PRE_UNCORDON


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
    found = {(each.id, each.since): each for each in (*over, *record.hooks) if _untold(each)}
    return tuple(_notice(each, context) for each in found.values())


def _untold(entry: HookRecord) -> bool:
    return entry.end is HookEnd.TIMED_OUT and not entry.told


def _notice(entry: HookRecord, context: PassContext) -> Notice:
    step, limit = entry.id.step, context.settings.hooks.timeout
    limited = context.now - entry.since >= limit
    urgent = "the drain can't wait longer" if step is HookStep.PRE_DRAIN else "the date of the event has come"
    why = f"its time limit of {format_duration(limit)} is over" if limited else urgent
    said = f" ({entry.answer.because})" if entry.answer is not None and entry.answer.because else ""
    held = f"hook {entry.id}{said} has held {step.held} since {to_text(entry.since)}"
    message = f"{held}; {why}, so the step goes on"
    return Notice(HOOK_TIMED_OUT, message, NoticeType.WARNING, once=f"{entry.id} {to_text(entry.since)}")
