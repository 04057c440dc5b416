"""The hooks of a node: which of them hold a step, since when, and until when at most."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, field

from reconciler.calendar.values import format_duration
from reconciler.features.hooks.hook import (
    SHORTEST_KEPT,
    Hook,
    HookAnswer,
    HookEnd,
    HookId,
    HookKey,
    HookKind,
    HookRecord,
    HookRecords,
    HookRun,
    HookState,
)
from reconciler.features.hooks.settings import HOOKS
from reconciler.model.limits import first_of
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.record import CaseRecord
from reconciler.model.steps import HeldStep, holders_of
from reconciler.model.values import replace
from reconciler.profiles.case import CaseView
from reconciler.settings.schema import Settings

Answers = Mapping[HookId, HookAnswer]
"""What the hooks of the settings say of one node in this pass. One that is missing has not been run."""


class HookCase(Struct, frozen=True):
    """What decides whether a hook holds its step: the case, its hooks that have begun, and its events."""

    record: CaseRecord
    begun: HookRecords
    case: CaseView
    settings: Settings
    now: datetime
    answers: Answers = field(default_factory=dict)

    def is_done(self, entry: HookRecord) -> bool:
        """Whether a hook of the settings says that it is done."""
        answer = self.answers.get(entry.id)
        return answer is not None and answer.state is HookState.DONE

    def is_absent(self, entry: HookRecord) -> bool:
        """Whether a hook of the settings has not been run."""
        answer = self.answers.get(entry.id)
        return answer is None or answer.state is HookState.ABSENT

    def pauses(self, entry: HookRecord) -> bool:
        """Whether the record says that a hook is not to be asked yet."""
        return entry.again is not None and self.now < entry.again


class Waiting(Struct, frozen=True):
    """A hook that holds its step. `until` is when it ends at the latest (UTC), None before it is recorded.

    `answer` is what a hook of the settings says.
    """

    hook: Hook
    until: datetime | None = None
    answer: HookAnswer | None = None


def present_hooks(node: Node, settings: Settings) -> tuple[Hook, ...]:
    """Return the hooks that the node has now; none if the settings give hooks no time."""
    section = HOOKS.of(settings)
    if section.timeout <= timedelta():
        return ()
    annotated = (
        Hook(HookId(holder.step, holder.name), holder.owner)
        for holder in holders_of(node.annotations, settings.keys.prefix)
    )
    configured = (
        Hook(HookId(step, hook.name, hook.kind))
        for step in HeldStep
        for hook in section.of(step)
        if hook.node_selector.matches(node.labels)
    )
    return (*annotated, *configured)


def unended(step: HeldStep, hooks: Sequence[Hook], of: HookCase) -> tuple[Hook, ...]:
    """Return the hooks of a step of which neither the record nor an answer says that they have ended."""
    over = {entry.id for entry in of.begun if entry.end is not None or of.is_done(entry)}
    return tuple(hook for hook in hooks if hook.id.step is step and hook.id not in over)


def waiting(step: HeldStep, hooks: Sequence[Hook], of: HookCase) -> tuple[Waiting, ...]:
    """Return the hooks that hold a step now: those that have not ended and whose time is not over."""
    entries = {entry.id: entry for entry in of.begun}
    holding = []
    for hook in unended(step, hooks, of):
        entry = entries.get(hook.id)
        until = ends_at(entry, of) if entry is not None else None
        if until is None or of.now < until:
            holding.append(Waiting(hook, until, _answer(entry, of) if entry is not None else None))
    return tuple(holding)


def _answer(entry: HookRecord, of: HookCase) -> HookAnswer | None:
    """Return what a hook of the settings says, or what another process knew of it."""
    if entry.again is None or not of.pauses(entry) or not of.is_absent(entry):
        return of.answers.get(entry.id)
    return HookAnswer(HookState.RUNNING, f"asked again at {to_text(entry.again)}", entry.again - of.now)


def ends_at(entry: HookRecord, of: HookCase) -> datetime:
    """Return when a hook stops holding its step at the latest (UTC).

    A drain is never held beyond the latest start for an event that requires it. What follows a drain is never
    held beyond the date of an event: then the platform starts by itself. An uncordon has no such moment.
    """
    ends = [entry.since + HOOKS.of(of.settings).timeout]
    asking = [judged for judged in of.case.present if judged.asks]
    if entry.id.step is HeldStep.PRE_DRAIN:
        ends += [judged.lost_from for judged in asking if judged.lost_from is not None]
    if entry.id.step is HeldStep.POST_DRAIN:
        dates = (judged.event.not_before for judged in asking)
        ends += [date for date in dates if date is not None and date > entry.since]
    return min(ends)


def begun(
    before: HookRecords, hooks: Sequence[Hook], steps: Collection[HeldStep], second: datetime
) -> HookRecords:
    """Return the recorded hooks with those that hold one of these `steps` from `second` on (UTC).

    A hook that is gone is left out: if it appears again, it has a time limit of its own. So is a hook of a
    drain or an uncordon that is not next any more, unless it has ended the wait for this drain.
    """
    present = {hook.id for hook in hooks}
    kept = [entry for entry in before if entry.id in present and _still_counts(entry, steps)]
    known = {entry.id for entry in kept}
    kept += [HookRecord(each, second) for each in present if each.step in steps and each not in known]
    return tuple(sorted(kept, key=lambda entry: entry.id))


def _still_counts(entry: HookRecord, steps: Collection[HeldStep]) -> bool:
    if entry.id.step in steps:
        return True
    match entry.id.step:
        case HeldStep.PRE_DRAIN:
            # Another drain of the same case does not wait for it a second time.
            return entry.end is not None
        case HeldStep.POST_DRAIN:
            # Its work may go on after the end of the events.
            return True
        case HeldStep.PRE_UNCORDON:
            return False


def ended(of: HookCase) -> HookRecords:
    """Return the recorded hooks. Those that are done, or whose time is over, have ended."""
    return tuple(_ended(entry, of) for entry in of.begun)


def _ended(entry: HookRecord, of: HookCase) -> HookRecord:
    if entry.end is not None:
        return entry
    if of.is_done(entry):
        return replace(entry, end=HookEnd.DONE)
    if ends_at(entry, of) <= of.now:
        return replace(entry, end=HookEnd.TIMED_OUT)
    answer = of.answers.get(entry.id)
    pause = answer.again if answer is not None else None
    if pause is None or pause <= SHORTEST_KEPT or of.pauses(entry):
        return entry
    return replace(entry, again=(of.now + pause).replace(microsecond=0))


def runs(node: Node, of: HookCase) -> tuple[HookRun, ...]:
    """Return the hooks of the settings that are to be run now: they hold a step, and may be asked."""
    dated = [event for event in of.record.events if event.not_before is not None]
    first = min(dated, key=lambda event: str(event.not_before), default=None)
    event = first or next(iter(of.record.events), None)
    orders = []
    for entry in of.begun:
        absent = of.is_absent(entry)
        if entry.id.kind is HookKind.ANNOTATION or entry.end is not None or not absent or of.pauses(entry):
            continue
        until = ends_at(entry, of)
        orders.append(
            HookRun(
                HookKey(node.name, node.uid, entry.id, entry.since),
                until,
                until - of.now,
                event.kind.value if event is not None else "",
                first.not_before if first is not None else None,
            )
        )
    return tuple(orders)


def told(hooks: HookRecords) -> HookRecords:
    """Return the recorded hooks after the Warning Events about those that have timed out were sent."""
    return tuple(replace(entry, told=True) if entry.end is HookEnd.TIMED_OUT else entry for entry in hooks)


def reason(step: HeldStep, holding: Sequence[Waiting], settings: Settings) -> str:
    """Return what the hooks hold, who ends that, and when it ends at the latest, as a sentence."""
    limit = max((each.until for each in holding if each.until is not None), default=None)
    longest = format_duration(HOOKS.of(settings).timeout)
    ends = f"until {to_text(limit)} at most" if limit is not None else f"for {longest} at most"
    clauses = []
    annotated = [str(each.hook) for each in holding if each.hook.id.kind is HookKind.ANNOTATION]
    if len(annotated) == 1:
        clauses.append(f"hook {annotated[0]} holds {step.words} until its owner removes the annotation")
    elif annotated:
        hold = f"hold {step.words} until their owners remove the annotations"
        clauses.append(f"hooks {first_of(annotated)} {hold}")
    configured = [each for each in holding if each.hook.id.kind is not HookKind.ANNOTATION]
    if configured:
        answers = [each.answer.because if each.answer is not None else "" for each in configured]
        shown = [
            f"{each.hook} ({answer or 'begins'})" for each, answer in zip(configured, answers, strict=True)
        ]
        hooks, hold = ("hook", "holds") if len(shown) == 1 else ("hooks", "hold")
        clauses.append(f"{hooks} {first_of(shown)} {hold} {step.words}")
    return f"{'; '.join(clauses)}, {ends}"


def follows_drain(record: CaseRecord, case: CaseView) -> bool:
    """Whether `post-drain` hooks begin: the node is drained, and an event of the case is still there.

    Those that have begun go on when the event is gone. Any other then has nothing to hold, and no limit.
    """
    return record.drain is not None and record.drain.done is not None and not case.quiet
