"""windowOpen: whether a window, or the deadline of an event, allows the drain to start now."""

from __future__ import annotations

from reconciler.model.holds import WaitsFor
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("windowOpen", waits_for=WaitsFor.PERMISSION)
def window_open(situation: Situation) -> CheckResult:
    """Pass when an event that requires a drain may start it now. Else give what each event waits for."""
    asking = situation.undrained
    starting = [one for one in asking if one.open]
    if starting:
        reason = "; ".join(dict.fromkeys(_with_overruled(one.timing, one.overruled) for one in starting))
        return passed(reason)
    reason = "; ".join(dict.fromkeys(one.timing for one in asking)) or "no event requires a drain"
    until = min((one.until for one in asking if one.until), default=None)
    return failed(reason, until)


def _with_overruled(timing: str, overruled: str) -> str:
    return f"{timing}, which overrules: {overruled}" if overruled else timing
