"""How long cases take whose end we decide: the schedule expects the next one to take as long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from reconciler.model.event import Kind
from reconciler.model.plan import NodePlan
from reconciler.model.record import CaseRecord

LONGEST = timedelta(days=1)
"""A case that took longer says nothing about the next one."""


def lasted(
    before: Mapping[Kind, timedelta], plans: Iterable[NodePlan], now: datetime
) -> Mapping[Kind, timedelta]:
    """Return how long such cases take by kind, with those that end `now` (UTC), which count a third."""
    found = dict(before)
    for plan in plans:
        case = plan.ended
        began = case.facts.drain_began if case is not None else None
        if case is None or began is None or not case.events or not _ended_by_us(case):
            continue
        kind = max((event.kind for event in case.events), key=lambda one: one.severity)
        took = now - began
        if timedelta() < took <= LONGEST:
            known = found.get(kind, took)
            found[kind] = timedelta(seconds=(2 * known + took).total_seconds() // 3)
    return found if found != before else before


def _ended_by_us(case: CaseRecord) -> bool:
    """Whether the maintenance began when we wanted it to."""
    return bool(case.acknowledged) or case.self_service is not None or case.replacement is not None
