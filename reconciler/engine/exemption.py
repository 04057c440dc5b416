"""Which nodes wait for no place and no spacing, because they are lost anyway."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from reconciler.engine.situation import Situation


def is_exempt(situation: Situation) -> bool:
    """Whether an event of an exempt kind is due: the node is lost soon, with or without a place.

    Before that, it waits like any other.
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
