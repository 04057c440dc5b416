"""Which nodes wait for no place and no spacing, because they are lost or out of service anyway."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from reconciler.model.case_outcome import reports_start
from reconciler.model.plan import JudgedEvent
from reconciler.profiles.case import known
from reconciler.profiles.situation import Situation


def has_struck(judged: JudgedEvent) -> bool:
    """Whether the platform has started an event that requires a drain, so that the node goes down anyway."""
    return judged.asks and judged.starts and judged.event.started and reports_start(known(judged.event))


def is_exempt(situation: Situation) -> bool:
    """Whether an event of an exempt kind is due, or the platform has started an event.

    The node is lost or out of service soon, with or without a place. Before that, it waits like any other.
    """
    return any(moment <= situation.now for moment in _lost_from(situation))


def exempt_from(situation: Situation) -> datetime | None:
    """Return the next moment from which the node is exempt (UTC), None if there is none."""
    return min((moment for moment in _lost_from(situation) if moment > situation.now), default=None)


def _lost_from(situation: Situation) -> Iterator[datetime]:
    exempt = situation.settings.budget.exempt
    for one in situation.asking:
        if one.event.kind in exempt and one.lost_from is not None:
            yield one.lost_from
    yield from (situation.now for one in situation.undrained if has_struck(one))
