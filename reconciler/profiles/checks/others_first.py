"""othersFirst: the node on which the reconciler runs goes last."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from reconciler.model.holds import WaitsFor
from reconciler.model.plan import JudgedEvent
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


def first_lost_from(events: Iterable[JudgedEvent]) -> datetime | None:
    """Return from when on the node may be lost because of one of the events (UTC), None if not known."""
    moments = (one.lost_from for one in events if one.asks and one.starts)
    return min((at for at in moments if at is not None), default=None)


@check("othersFirst", ordinarily="no other node goes before it", waits_for=WaitsFor.TURN)
def others_first(situation: Situation) -> CheckResult:
    """Pass for every other node, and for our own node when no other node waits for a drain.

    A drain that is stuck is not waited for, and nothing is once our own node may be lost at any moment.
    """
    if any(one.cannot_wait(situation.now) for one in situation.judged):
        return passed()
    if situation.own_node and situation.waiting_nodes:
        others = f"{situation.waiting_nodes} other nodes wait for a drain"
        reason = f"the reconciler runs on it, so it goes last: {others}"
        moments = (first_lost_from(situation.judged), situation.others_stuck_at)
        return failed(reason, min((at for at in moments if at is not None), default=None))
    return passed()
