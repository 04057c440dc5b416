"""approved: whether a person has approved the drain, where the settings require that."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.holds import WaitsFor
from reconciler.model.plan import JudgedEvent
from reconciler.profiles.instructed import case_of
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


def starting(situation: Situation) -> tuple[JudgedEvent, ...]:
    """Return the events for which windows and deadline allow a start now; all that ask, if there is none."""
    asking = situation.undrained
    return tuple(one for one in asking if one.open) or asking


@check("approved", ordinarily="no event waits for an approval", waits_for=WaitsFor.PERMISSION)
def approved(situation: Situation) -> CheckResult:
    """Pass for an event that needs no approval or has one; and at its deadline, if the settings say so."""
    events = starting(situation)
    found = [one.kept.approval for one in events if one.kept.approval is not None]
    if len(found) < len(events) or not found:
        reason = _by_whom(situation, events)
        return passed(reason) if reason else passed()
    until = min((one.until for one in found if one.until), default=None)
    return failed("; ".join(dict.fromkeys(one.because for one in found)), until)


def _by_whom(situation: Situation, events: Iterable[JudgedEvent]) -> str:
    approval, case = situation.instructions.approval, case_of(situation.record)
    if approval is None or not any(approval.covers(one.event, case) for one in events):
        return ""
    return f"approved {approval.word}"
