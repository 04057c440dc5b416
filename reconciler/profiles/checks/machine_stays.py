"""machineStays: whether the node keeps its machine, so that it can be uncordoned."""

from __future__ import annotations

from reconciler.model.moments import to_text
from reconciler.profiles.checks.surge_due import PAUSE
from reconciler.profiles.plugins import CheckResult, check, failed, passed, unknown
from reconciler.profiles.situation import Situation


@check("machineStays", ordinarily="its machine stays")
def machine_stays(situation: Situation) -> CheckResult:
    """Pass when the machine is not being deleted: no deletion was requested, or it did not happen."""
    machine, asked = situation.machine, situation.record.replacement
    if machine is not None and machine.deleting:
        return failed("its machine is being deleted")
    if asked is None or not asked.removals:
        return passed()
    request = f"the deletion of its machine was requested at {to_text(asked.asked)}"
    if machine is None or machine.problem:
        because = machine.problem if machine is not None else "it has no known provider"
        return unknown(f"{request}, and its state is unknown: {because}")
    if machine.pool is not None and machine.pool.busy:
        return failed(f"{request}; {machine.pool.busy}")
    until = asked.asked + PAUSE
    if situation.now < until:
        return failed(request, until)
    return passed(f"{request}, but did not happen")
