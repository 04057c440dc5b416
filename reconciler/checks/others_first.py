"""othersFirst: the node on which the reconciler runs goes last."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation
from reconciler.model.holds import WaitsFor
from reconciler.model.plan import JudgedEvent
from reconciler.settings.schema import Settings


def cannot_wait(one: JudgedEvent, settings: Settings, now: datetime) -> bool:
    """Return whether the node may be lost at any moment because of this event.

    The event has started, its deadline is reached `now`, or it is of an exempt kind and has no deadline.
    """
    if not (one.asks and one.starts):
        return False
    if one.deadline is None and one.event.kind in settings.budget.exempt:
        return True
    return one.event.started or (one.deadline is not None and one.deadline <= now)


def next_deadline(events: Iterable[JudgedEvent]) -> datetime | None:
    """Return the first deadline of an event that requires a drain (UTC), None if no event has one."""
    deadlines = (one.deadline for one in events if one.asks and one.starts)
    return min((at for at in deadlines if at is not None), default=None)


@check("othersFirst", ordinarily="no other node goes before it", waits_for=WaitsFor.TURN)
def others_first(situation: Situation) -> CheckResult:
    """Pass for every other node, and for our own node when no other node waits for a drain.

    A drain that is stuck is not waited for, and nothing is once our own node may be lost at any moment.
    """
    if any(cannot_wait(one, situation.settings, situation.now) for one in situation.judged):
        return passed()
    if situation.own_node and situation.waiting_nodes:
        others = f"{situation.waiting_nodes} other nodes wait for a drain"
        reason = f"the reconciler runs on it, so it goes last: {others}"
        moments = (next_deadline(situation.judged), situation.others_stuck_at)
        return failed(reason, min((at for at in moments if at is not None), default=None))
    return passed()
