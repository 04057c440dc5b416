"""The hooks of a node: which of them hold a step, since when, and until when at most."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from reconciler.calendar.values import format_duration
from reconciler.engine.case import CaseView
from reconciler.engine.situation import Situation
from reconciler.model.hooks import Hook, HookEnd, HookRecord, HookStep, hooks_of
from reconciler.model.moments import shifted, to_text
from reconciler.model.node import Node
from reconciler.model.record import CaseRecord
from reconciler.settings.schema import Settings

_NAMED_AT_MOST = 3


class HookCase(Protocol):
    """What decides whether a hook holds its step: a Situation has it."""

    @property
    def record(self) -> CaseRecord:
        """The case of the node, with the hooks that have begun."""

    @property
    def case(self) -> CaseView:
        """The events of the case."""

    @property
    def settings(self) -> Settings:
        """The settings."""

    @property
    def now(self) -> datetime:
        """The moment of the pass (UTC)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A HookCase by itself."""

    record: CaseRecord
    case: CaseView
    settings: Settings
    now: datetime


@dataclass(frozen=True, slots=True)
class Waiting:
    """A hook that holds its step. `until` is when it ends at the latest (UTC), None before it is recorded."""

    hook: Hook
    until: datetime | None = None


def present_hooks(node: Node, settings: Settings) -> tuple[Hook, ...]:
    """Return the hooks that the node has now; none if the settings give hooks no time."""
    if settings.hooks.timeout <= timedelta():
        return ()
    return hooks_of(node.annotations, settings.keys.prefix)


def unended(step: HookStep, hooks: Sequence[Hook], record: CaseRecord) -> tuple[Hook, ...]:
    """Return the hooks of a step of which the record does not say that they have ended."""
    over = {one.id for one in record.hooks if one.end is not None}
    return tuple(hook for hook in hooks if hook.id.step is step and hook.id not in over)


def waiting(step: HookStep, hooks: Sequence[Hook], of: HookCase) -> tuple[Waiting, ...]:
    """Return the hooks that hold a step now: those that have not ended and whose time is not over."""
    entries = {one.id: one for one in of.record.hooks}
    found = []
    for hook in unended(step, hooks, of.record):
        entry = entries.get(hook.id)
        until = _ends_at(entry, of) if entry is not None else None
        if until is None or of.now < until:
            found.append(Waiting(hook, until))
    return tuple(found)


def _ends_at(entry: HookRecord, of: HookCase) -> datetime:
    """Return when a hook stops holding its step at the latest (UTC).

    A drain is never held beyond the latest start for an event that requires it. What follows a drain is never
    held beyond the date of an event: then the platform starts by itself. An uncordon has no such moment.
    """
    ends = [shifted(entry.since, of.settings.hooks.timeout)]
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


def ended(of: HookCase) -> CaseRecord:
    """Return the record in which the hooks whose time is over have ended."""
    return replace(
        of.record,
        hooks=tuple(
            replace(one, end=HookEnd.TIMED_OUT) if one.end is None and _ends_at(one, of) <= of.now else one
            for one in of.record.hooks
        ),
    )


def told(record: CaseRecord) -> CaseRecord:
    """Return the record after the Warning Events about the hooks that have timed out were sent."""
    return replace(record, hooks=tuple(replace(one, told=True) if one.end else one for one in record.hooks))


def reason(step: HookStep, found: Sequence[Waiting], settings: Settings) -> str:
    """Return what the hooks hold, who ends that, and when it ends at the latest, as a sentence."""
    names = ", ".join(str(one.hook) for one in found[:_NAMED_AT_MOST])
    more = f" and {len(found) - _NAMED_AT_MOST} more" if len(found) > _NAMED_AT_MOST else ""
    limit = max((one.until for one in found if one.until is not None), default=None)
    longest = format_duration(settings.hooks.timeout)
    ends = f"until {to_text(limit)} at most" if limit is not None else f"for {longest} at most"
    if len(found) == 1:
        return f"hook {names} holds {step.held} until its owner removes the annotation, {ends}"
    return f"hooks {names}{more} hold {step.held} until their owners remove the annotations, {ends}"


def held_step(step: HookStep, situation: Situation) -> tuple[str, datetime | None] | None:
    """Return why hooks hold a step, and when the first of them ends at the latest (UTC); None: none does."""
    found = waiting(step, present_hooks(situation.node, situation.settings), situation)
    if not found:
        return None
    until = min((one.until for one in found if one.until is not None), default=None)
    return reason(step, found, situation.settings), until
