"""The answer about a start: whether the drain of a node may begin now, and what it waits for.

The checks of a start read it. The schedule plans with the same moments, so what it plans for now waits for
nothing here (law 14), and what waits here begins no drain, whatever the schedule says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import cached_property

from msgspec import Struct

from reconciler.calendar.values import format_duration
from reconciler.model.instructions import Wait
from reconciler.model.limits import count_of
from reconciler.model.moments import has_come, to_text
from reconciler.model.node import Node
from reconciler.model.plan import Hold, JudgedEvent
from reconciler.model.schedule import HELD_BY, CaseSchedule, Exemption, Prospect
from reconciler.model.values import replace
from reconciler.starts.budget import DisruptionBudget
from reconciler.starts.times import NEAR

_NAMED_AT_MOST = 3


class StartAnswer(Struct, frozen=True, dict=True):
    """Whether the drain of a node may start now: it may if it waits for nothing. All moments are UTC.

    `asking` are the events that require a drain, `undrained` those of them for which none has begun.
    `schedule` is what is planned for the node, None if nothing is. `places` are those of the fleet now, and
    `last_start` is that from which `budget.spacing` counts, None if the node keeps no distance. `goes_last`
    is the wait of our own node for the other ones, None for any other node.
    """

    node: Node
    asking: tuple[JudgedEvent, ...]
    undrained: tuple[JudgedEvent, ...]
    schedule: CaseSchedule | None
    places: DisruptionBudget
    last_start: datetime | None
    goes_last: Wait | None
    now: datetime

    @cached_property
    def exempt(self) -> Exemption:
        """What the start does without. Without another start, what that of the drain that has begun did."""
        return Exemption.of_all(event.exempt for event in self.undrained or self.asking)

    @cached_property
    def opening(self) -> tuple[JudgedEvent, ...]:
        """The events for which windows and deadline allow a start now."""
        return tuple(event for event in self.undrained if event.opening.allowed)

    @property
    def for_windows(self) -> Wait | None:
        """The wait for windows or a deadline, None if one of the events may start."""
        if self.opening:
            return None
        done = "no other event requires a drain" if self.asking else "no event requires a drain"
        closed = "; ".join(dict.fromkeys(event.opening.words for event in self.undrained))
        return Wait(closed or done, _first(event.until for event in self.undrained))

    @cached_property
    def refusals(self) -> str:
        """Why no place of the budget is free for the node, empty if one is or the node holds one."""
        return "; ".join(self.places.refusals(self.node))

    @property
    def for_place(self) -> Wait | None:
        """The wait for a place of the budget, None if one is free or the start needs none."""
        if not self.refusals or has_come(self.exempt.places, self.now):
            return None
        return Wait(self.refusals, _first((self.places.eases_at, self.exempt.places)))

    @property
    def for_spacing(self) -> Wait | None:
        """The wait for `budget.spacing`, None if it has passed or the start keeps none."""
        last, spacing = self.last_start, self.places.settings.spacing
        if last is None or spacing <= timedelta() or has_come(self.exempt.spacing, self.now):
            return None
        if self.now >= last + spacing:
            return None
        reason = f"the last start was at {to_text(last)}, and budget.spacing is {format_duration(spacing)}"
        return Wait(reason, _first((last + spacing, self.exempt.spacing)))

    @property
    def for_others(self) -> Wait | None:
        """The wait of our own node for the others, None once it may be lost at any moment."""
        lost, wait = first_lost_from(self.asking), self.goes_last
        if wait is None or has_come(lost, self.now):
            return None
        return Wait(wait.because, _first((lost, wait.until)))

    @property
    def for_plan(self) -> Wait | None:
        """The wait for the planned start, None from then on, and for a start that is not planned.

        While no window is open, no place is free or a person keeps the drain waiting, those say so.
        """
        unplanned_from, plan = self.exempt.places, self.schedule
        kept = all(event.kept.waits for event in self.opening)
        if kept or has_come(unplanned_from, self.now):
            return None
        times = (event.times.earliest for event in self.opening if event.times is not None)
        first = min(times, default=self.now)
        if plan is None:
            return Wait(f"a drain starts from {to_text(first)} on", first) if first > self.now else None
        if has_come(plan.planned_start, self.now) or (first <= self.now and self.refusals):
            return None
        if plan.planned_start is None:
            return Wait(plan.because, unplanned_from)
        starts = f"its drain {'would start' if plan.observed else 'starts'} at {to_text(plan.planned_start)}"
        if not plan.missed:
            starts = f"{starts}: {plan.because}"
        elif not plan.by_pods:
            # Pods that stay do not make the start late.
            starts = f"{starts}, too late"
        return Wait(starts, _first((plan.planned_start, unplanned_from)))


def wait_of_own_node(waiting: int, stuck_at: datetime | None) -> Wait | None:
    """Return the wait of the node on which we run for so many others, None if none waits for a drain.

    `stuck_at` is when it may no longer wait for one of them (UTC), None if that is not known.
    """
    if not waiting:
        return None
    others = f"{count_of(waiting, 'other node', 'wait')} for a drain"
    return Wait(f"the reconciler runs on it, so it goes last: {others}", stuck_at)


def first_lost_from(events: Iterable[JudgedEvent]) -> datetime | None:
    """Return from when on the node may be lost because of one of the events (UTC), None if not known."""
    return _first(event.lost_from for event in events if event.asks and event.starts)


def _first(moments: Iterable[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def beside_mate(
    schedule: CaseSchedule | None, judged: tuple[JudgedEvent, ...], *, begun: bool, now: datetime
) -> tuple[CaseSchedule | None, tuple[JudgedEvent, ...]]:
    """Return the schedule and the events of a node that was to start together with another one.

    `begun` says that the drain of the other one begins in this pass; `now` is UTC. If it does, the events may
    start with it. If it does not, the node starts at its own time.
    """
    if schedule is None or not schedule.with_node or schedule.planned_start is None:
        return schedule, judged
    start, alone = schedule.planned_start, schedule.alone
    if start <= now and not begun:
        because = f"{schedule.with_node} does not start now, with which it was to start"
        return replace(schedule, planned_start=alone, because=because, with_node="", alone=None), judged
    if alone is None:
        return schedule, judged

    def brought_forward(event: JudgedEvent) -> JudgedEvent:
        times = event.times
        if not event.asks or times is None or not start < times.earliest <= alone:
            return event
        return replace(
            event,
            times=replace(times, earliest=start),
            may_start=event.opening.allowed and start <= now,
            far=start - now > NEAR,
        )

    return schedule, tuple(map(brought_forward, judged))


def as_decided(schedule: CaseSchedule | None, holds: Sequence[Hold], now: datetime) -> CaseSchedule | None:
    """Return the schedule of a node whose drain does not begin in this pass, because of these holds.

    What was planned for now, and does not begin, waits for the end of its holds. `now` is UTC.
    """
    if schedule is None or schedule.started or not holds:
        return schedule
    if schedule.planned_start is None or schedule.planned_start > now:
        return schedule
    ends = [hold.until for hold in holds if hold.until is not None and hold.until > now]
    start = max(ends) if len(ends) == len(holds) else None
    because = "; ".join(dict.fromkeys(hold.reason for hold in holds[:_NAMED_AT_MOST]))
    held = replace(schedule, planned_start=start, ends=None, window=None, with_node="", alone=None)
    if schedule.missed:
        return held
    if schedule.latest_start is not None and schedule.latest_start < (start or now):
        return replace(held, missed=True, because=because, cause=f"{HELD_BY}{holds[0].code}")
    unknown = "" if start is not None else f"not known when its drain starts: {because}"
    prospect = schedule.prospect
    if unknown and not prospect.obstacles:
        prospect = Prospect(unknown=unknown)
    return replace(held, because=because, prospect=prospect)
