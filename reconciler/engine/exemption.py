"""Which nodes wait for no place and no spacing, because they are lost anyway."""

from __future__ import annotations

from datetime import datetime

from reconciler.engine.situation import Situation


def is_exempt(situation: Situation) -> bool:
    """Whether an event of an exempt kind is due: the node is lost soon, with or without a place.

    Before its deadline such an event waits like any other.
    """
    exempt = situation.settings.budget.exempt
    return any(one.latest and one.event.kind in exempt for one in situation.asking)


def exempt_from(situation: Situation) -> datetime | None:
    """Return the moment from which the node is exempt, by the first deadline of an exempt kind (UTC)."""
    exempt = situation.settings.budget.exempt
    dates = (one.deadline for one in situation.asking if one.event.kind in exempt and not one.latest)
    return min((one for one in dates if one is not None), default=None)
