"""selfServiceDue: whether to ask Azure now to do the maintenance that it offers.

Azure answers at once, but the maintenance takes many minutes, during which the VM is down. So nothing here
waits. Known are the record (when we asked, the boot id before), the node's boot id, and later answers of ARM.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.model.azure import vm_of
from reconciler.model.moments import to_text
from reconciler.model.record import SelfService
from reconciler.profiles.judging import is_taken
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation

ATTEMPTS = 3
PAUSE = timedelta(minutes=10)
"""Between two attempts, times the number of attempts. A redeploy itself takes some minutes."""

PATIENCE = timedelta(hours=1)
"""How long after the last attempt the node waits for a boot and for the end of Azure's plan."""


@check("selfServiceDue")
def self_service_due(situation: Situation) -> CheckResult:
    """Pass when the node is drained, the offer is valid, and no attempt is in progress."""
    refusal, until = why_not_due(situation)
    if refusal:
        return failed(refusal, until, holds=refusal == _twin(situation))
    return passed("Azure allows us to start it, and the node is drained", holds=False)


def why_not_due(situation: Situation) -> tuple[str, datetime | None]:
    """Return why not to ask Azure now, and until when. An empty reason: ask it."""
    record, now = situation.record, situation.now
    asking = [one.event for one in situation.judged if one.asks]
    if not any(is_taken(event, now) for event in asking):
        return "Azure offers no maintenance, or the settings do not use the offer", None
    if not all(is_taken(event, now) for event in asking):
        return "there is another event, so the platform is already working on the VM", None
    if vm_of(situation.node.provider_id) is None:
        return "the node's providerID is not Azure's", None
    if record.drain is None or record.drain.done is None:
        return "the node is not drained yet", None
    if situation.undrained:
        return "a drain for it may not start yet", None
    if situation.twin:
        return _twin(situation), None
    asked = record.self_service
    if asked is None:
        return "", None
    if has_booted(situation, asked):
        return "the node has booted since; waits until Azure no longer reports the plan", None
    if asked.attempt >= ATTEMPTS:
        return f"Azure was asked {ATTEMPTS} times", None
    again = asked.asked + PAUSE * asked.attempt
    if now < again:
        return f"Azure was asked at {to_text(asked.asked)}", again
    return "", None


def _twin(situation: Situation) -> str:
    return f"Azure is not asked: node {situation.twin} has the same providerID"


def has_booted(situation: Situation, asked: SelfService) -> bool:
    now = situation.node.boot_id
    return bool(asked.boot_id and now) and now != asked.boot_id
