"""The hooks of a node: which of them hold a step, since when, and until when at most."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from reconciler.calendar.values import format_duration
from reconciler.model.hooks import (
    SHORTEST_KEPT,
    Hook,
    HookAnswer,
    HookEnd,
    HookId,
    HookKey,
    HookKind,
    HookRecord,
    HookRun,
    HookState,
    HookStep,
    hooks_of,
)
from reconciler.model.limits import first_of
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.record import CaseRecord
from reconciler.model.values import replace
from reconciler.profiles.case import CaseView
from reconciler.profiles.situation import Situation
from reconciler.settings.schema import Settings


class HookCase(Struct, frozen=True):
    """What decides whether a hook holds its step: the case with the hooks that have begun, and its events."""

    record: CaseRecord
    case: CaseView
    settings: Settings
    now: datetime


class Waiting(Struct, frozen=True):
    """A hook that holds its step. `until` is when it ends at the latest (UTC), None before it is recorded.

    `answer` is what a hook of the settings says.
    """

    hook: Hook
    until: datetime | None = None
    answer: HookAnswer | None = None


def present_hooks(node: Node, settings: Settings) -> tuple[Hook, ...]:
    """Return the hooks that the node has now; none if the settings give hooks no time."""
    if settings.hooks.timeout <= timedelta():
        return ()
    configured = (
        Hook(HookId(step, one.name, one.kind))
        for step in HookStep
        for one in settings.hooks.of(step)
        if one.node_selector.matches(node.labels)
    )
    return (*hooks_of(node.annotations, settings.keys.prefix), *configured)


def unended(step: HookStep, hooks: Sequence[Hook], record: CaseRecord) -> tuple[Hook, ...]:
    """Return the hooks of a step of which the record does not say that they have ended."""
    over = {one.id for one in record.hooks if one.end is not None or _is_done(one)}
    return tuple(hook for hook in hooks if hook.id.step is step and hook.id not in over)


def waiting(step: HookStep, hooks: Sequence[Hook], of: HookCase) -> tuple[Waiting, ...]:
    """Return the hooks that hold a step now: those that have not ended and whose time is not over."""
    if not hooks:
        return ()
    entries = {one.id: one for one in of.record.hooks}
    found = []
    for hook in unended(step, hooks, of.record):
        entry = entries.get(hook.id)
        until = ends_at(entry, of) if entry is not None else None
        if until is None or of.now < until:
            found.append(Waiting(hook, until, _answer(entry, of.now) if entry is not None else None))
    return tuple(found)


def _answer(entry: HookRecord, now: datetime) -> HookAnswer | None:
    """Return what a hook of the settings says, or what another process knew of it."""
    if not _pauses(entry, now) or (entry.answer is not None and entry.answer.state is not HookState.ABSENT):
        return entry.answer
    assert entry.again is not None
    return HookAnswer(HookState.RUNNING, f"asked again at {to_text(entry.again)}", entry.again - now)


def _pauses(entry: HookRecord, now: datetime) -> bool:
    return entry.again is not None and now < entry.again


def ends_at(entry: HookRecord, of: HookCase) -> datetime:
    """Return when a hook stops holding its step at the latest (UTC).

    A drain is never held beyond the latest start for an event that requires it. What follows a drain is never
    held beyond the date of an event: then the platform starts by itself. An uncordon has no such moment.
    """
    ends = [entry.since + of.settings.hooks.timeout]
    asking = [one for one in of.case.present if one.asks]
    if entry.id.step is HookStep.PRE_DRAIN:
        ends += [one.lost_from for one in asking if one.lost_from is not None]
    if entry.id.step is HookStep.POST_DRAIN:
        dates = (one.event.not_before for one in asking)
        ends += [date for date in dates if date is not None and date > entry.since]
    return min(ends)


def begun(
    record: CaseRecord, hooks: Sequence[Hook], steps: Collection[HookStep], second: datetime
) -> CaseRecord:
    """Return the record with the hooks that hold one of these `steps` from `second` on (UTC).

    A hook that is gone is left out: if it appears again, it has a time limit of its own. So is a hook of a
    drain or an uncordon that is not next any more, unless it has ended the wait for this drain.
    """
    if not hooks and not record.hooks:
        return record
    present = {hook.id for hook in hooks}
    kept = [one for one in record.hooks if one.id in present and _still_counts(one, steps)]
    known = {one.id for one in kept}
    kept += [HookRecord(one, second) for one in present if one.step in steps and one not in known]
    return replace(record, hooks=tuple(sorted(kept, key=lambda one: one.id)))


def _still_counts(entry: HookRecord, steps: Collection[HookStep]) -> bool:
    if entry.id.step in steps:
        return True
    match entry.id.step:
        case HookStep.PRE_DRAIN:
            # Another drain of the same case does not wait for it a second time.
            return entry.end is not None
        case HookStep.POST_DRAIN:
            # Its work may go on after the end of the events.
            return True
        case HookStep.PRE_UNCORDON:
            return False


def ended(of: HookCase) -> tuple[HookRecord, ...]:
    """Return the recorded hooks. Those that are done, or whose time is over, have ended."""
    return tuple(_ended(entry, of) for entry in of.record.hooks)


def _ended(entry: HookRecord, of: HookCase) -> HookRecord:
    if entry.end is not None:
        return entry
    if _is_done(entry):
        return replace(entry, end=HookEnd.DONE)
    if ends_at(entry, of) <= of.now:
        return replace(entry, end=HookEnd.TIMED_OUT)
    pause = entry.answer.again if entry.answer is not None else None
    if pause is None or pause <= SHORTEST_KEPT or _pauses(entry, of.now):
        return entry
    return replace(entry, again=(of.now + pause).replace(microsecond=0))


def _is_done(entry: HookRecord) -> bool:
    return entry.answer is not None and entry.answer.state is HookState.DONE


def runs(node: Node, of: HookCase) -> tuple[HookRun, ...]:
    """Return the hooks of the settings that are to be run now: they hold a step, and may be asked."""
    dated = [one for one in of.record.events if one.not_before is not None]
    first = min(dated, key=lambda one: str(one.not_before), default=None)
    event = first or next(iter(of.record.events), None)
    found = []
    for one in of.record.hooks:
        absent = one.answer is None or one.answer.state is HookState.ABSENT
        if one.id.kind is HookKind.ANNOTATION or one.end is not None or not absent or _pauses(one, of.now):
            continue
        until = ends_at(one, of)
        found.append(
            HookRun(
                HookKey(node.name, node.uid, one.id, one.since),
                until,
                until - of.now,
                event.kind.value if event is not None else "",
                first.not_before if first is not None else None,
            )
        )
    return tuple(found)


def told(record: CaseRecord) -> CaseRecord:
    """Return the record after the Warning Events about the hooks that have timed out were sent."""
    return replace(
        record,
        hooks=tuple(replace(one, told=True) if one.end is HookEnd.TIMED_OUT else one for one in record.hooks),
    )


def reason(step: HookStep, found: Sequence[Waiting], settings: Settings) -> str:
    """Return what the hooks hold, who ends that, and when it ends at the latest, as a sentence."""
    limit = max((one.until for one in found if one.until is not None), default=None)
    longest = format_duration(settings.hooks.timeout)
    ends = f"until {to_text(limit)} at most" if limit is not None else f"for {longest} at most"
    return "; ".join((*_annotated(step, found), *_configured(step, found))) + f", {ends}"


def _annotated(step: HookStep, found: Sequence[Waiting]) -> Iterator[str]:
    names = [str(one.hook) for one in found if one.hook.id.kind is HookKind.ANNOTATION]
    if len(names) == 1:
        yield f"hook {names[0]} holds {step.held} until its owner removes the annotation"
    elif names:
        hold = f"hold {step.held} until their owners remove the annotations"
        yield f"hooks {first_of(names)} {hold}"


def _configured(step: HookStep, found: Sequence[Waiting]) -> Iterator[str]:
    said = [
        f"{one.hook} ({one.answer.because if one.answer is not None and one.answer.because else 'begins'})"
        for one in found
        if one.hook.id.kind is not HookKind.ANNOTATION
    ]
    if said:
        hooks, hold = ("hook", "holds") if len(said) == 1 else ("hooks", "hold")
        yield f"{hooks} {first_of(said)} {hold} {step.held}"


def follows_drain(record: CaseRecord, case: CaseView) -> bool:
    """Whether `post-drain` hooks begin: the node is drained, and an event of the case is still there.

    Those that have begun go on when the event is gone. Any other then has nothing to hold, and no limit.
    """
    return record.drain is not None and record.drain.done is not None and not case.quiet


def held_step(step: HookStep, situation: Situation) -> tuple[str, datetime | None] | None:
    """Return why hooks hold a step, and when the first of them ends at the latest (UTC); None: none does."""
    case = HookCase(situation.record, situation.case, situation.settings, situation.now)
    found = waiting(step, present_hooks(situation.node, situation.settings), case)
    if step is HookStep.POST_DRAIN and not follows_drain(situation.record, situation.case):
        found = tuple(one for one in found if one.until is not None)
    if not found:
        return None
    until = min((one.until for one in found if one.until is not None), default=None)
    return reason(step, found, situation.settings), until
