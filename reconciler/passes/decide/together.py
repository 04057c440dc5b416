"""Nodes that start together because they run pods of one group: a drain of one disrupts the whole group."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from reconciler.model.plan import JudgedEvent, NodePlan
from reconciler.model.schedule import CaseSchedule
from reconciler.model.values import replace
from reconciler.profiles.start_times import NEAR


def schedule_beside(
    schedule: CaseSchedule | None, plans: Sequence[NodePlan], now: datetime
) -> CaseSchedule | None:
    """Return the schedule of a node as the decisions so far leave it; `now` is UTC.

    A node that was to start now with another one starts at its own time if the other one does not start.
    """
    if schedule is None or not schedule.with_node or schedule.planned_start is None:
        return schedule
    if schedule.planned_start > now:
        return schedule
    mate = next((plan for plan in plans if plan.node == schedule.with_node), None)
    if mate is not None and mate.drain_begins:
        return schedule
    because = f"{schedule.with_node} does not start now, with which it was to start"
    return replace(schedule, planned_start=schedule.alone, because=because, with_node="", alone=None)


def brought_forward(
    judged: tuple[JudgedEvent, ...], schedule: CaseSchedule | None, now: datetime
) -> tuple[JudgedEvent, ...]:
    """Return the events of a node, of which those that start with another node may start at that time."""
    if schedule is None or not schedule.with_node or schedule.alone is None:
        return judged
    start, alone = schedule.planned_start, schedule.alone
    return tuple(_at(one, start, now) if start is not None and _moves(one, alone) else one for one in judged)


def _moves(one: JudgedEvent, alone: datetime) -> bool:
    return one.asks and one.times is not None and one.times.earliest <= alone


def _at(one: JudgedEvent, start: datetime, now: datetime) -> JudgedEvent:
    assert one.times is not None
    if one.times.earliest <= start:
        return one
    times = replace(one.times, earliest=start)
    return replace(one, times=times, may_start=one.open and start <= now, far=start - now > NEAR)
