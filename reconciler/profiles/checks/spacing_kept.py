"""spacingKept: whether the last start is long enough ago."""

from __future__ import annotations

from datetime import timedelta

from reconciler.model.holds import WaitsFor
from reconciler.model.moments import to_text
from reconciler.profiles.exemption import exempt_from, is_exempt
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("spacingKept", ordinarily="budget.spacing holds nothing now", waits_for=WaitsFor.TURN)
def spacing_kept(situation: Situation) -> CheckResult:
    """Pass when `budget.spacing` has passed since the last start, or an exempt event is due.

    A node that is drained again, for another event, has had its start.
    """
    if situation.record.drain is not None:
        return passed()
    spacing, last = situation.settings.budget.spacing, situation.ledger.last_start
    if spacing <= timedelta() or last is None or is_exempt(situation) or situation.now >= last + spacing:
        return passed()
    until = min(one for one in (last + spacing, exempt_from(situation)) if one)
    reason = f"the last start was at {to_text(last)}, and budget.spacing is {spacing}"
    return failed(reason, until)
