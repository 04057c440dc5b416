"""The check by which a start waits for an approval."""

from __future__ import annotations

from datetime import datetime

from reconciler.features.approvals.permissions import APPROVED
from reconciler.features.approvals.settings import APPROVAL, APPROVAL_MISSING, ApprovalMissing
from reconciler.model.instructions import Wait
from reconciler.model.outcome import WaitsFor
from reconciler.model.plan import JudgedEvent
from reconciler.profiles.checks.people import starting
from reconciler.profiles.instructed import Said, case_of
from reconciler.profiles.situation import Situation
from reconciler.profiles.vocabulary import CheckResult, check, failed, passed
from reconciler.settings.policies import EventPolicy


def _missing(said: Said, judged: JudgedEvent, policy: EventPolicy, demanded: datetime | None) -> Wait | None:
    if not APPROVAL.in_policy(policy):
        return None
    approval = said.instructions.permission(APPROVED.name)
    if approval is not None and approval.covers(judged.event, case_of(said.case)):
        return None
    proceeds = demanded if APPROVAL_MISSING.in_policy(policy) is ApprovalMissing.PROCEED else None
    if proceeds is not None and proceeds <= said.now:
        return None
    name = judged.event.condition or judged.event.kind
    command = said.keys.permit(APPROVED.command, said.node.name)
    because = f"nobody has approved the drain for {name} yet; {command} does"
    if approval is not None and approval.word.problem:
        because = f"{because}; {approval.word.problem}"
    elif approval is not None:
        because = f"{because}; the approval {approval.word.once} is for another event"
    return Wait(because, proceeds)


@check(
    APPROVED.name,
    ordinarily="no event waits for an approval",
    waits_for=WaitsFor.PERMISSION,
    who="whoever may approve it: `reconciler approve {node}{config}`",
    waits=True,
    wait=_missing,
)
def approved(situation: Situation) -> CheckResult:
    """Pass for an event that needs no approval or has one; and at its deadline, if the settings say so."""
    events = starting(situation)
    missing = [wait for event in events if (wait := event.kept.of(APPROVED.name)) is not None]
    if missing and len(missing) == len(events):
        until = min((wait.until for wait in missing if wait.until), default=None)
        return failed("; ".join(dict.fromkeys(wait.because for wait in missing)), until)
    approval, case = situation.instructions.permission(APPROVED.name), case_of(situation.record)
    if approval is None or not any(approval.covers(event.event, case) for event in events):
        return passed()
    return passed(f"approved {approval.word.once}")
