"""selfServiceDue: whether Azure is to be asked now to do the maintenance that it offers.

Azure answers at once and does it over many minutes, in which the VM goes away; so nothing here waits. What
is known is the record (when we asked, which boot was before), the node's boot id, and what ARM says later.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.engine.judging import is_taken
from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation
from reconciler.model.azure import vm_of
from reconciler.model.moments import to_text
from reconciler.model.record import SelfService

ATTEMPTS = 3
PAUSE = timedelta(minutes=10)
"""Between two attempts, once more for each that was made: a redeploy takes some minutes by itself."""

PATIENCE = timedelta(hours=1)
"""How long after the last attempt Azure's word and a new boot are waited for."""


@check("selfServiceDue")
def self_service_due(situation: Situation) -> CheckResult:
    """Pass when Azure is to be asked now: the node is drained, the offer stands, and nothing is under way."""
    refusal, until = why_not_due(situation)
    if refusal:
        return failed(refusal, until, holds=False)
    return passed("Azure lets us start it, and the node is empty", holds=False)


def why_not_due(situation: Situation) -> tuple[str, datetime | None]:
    """Return why Azure is not to be asked now, and until when; empty where it is."""
    record, now = situation.record, situation.now
    asking = [one.event for one in situation.judged if one.asks]
    if not any(is_taken(event, situation.settings, now) for event in asking):
        return "no maintenance is offered, or none is taken", None
    if not all(is_taken(event, situation.settings, now) for event in asking):
        return "another event is at hand: the platform is at the VM itself", None
    if vm_of(situation.node.provider_id) is None:
        return "the node's providerID is not Azure's", None
    if record.drain is None or record.drain.done is None:
        return "the node is not drained yet", None
    asked = record.self_service
    if asked is None:
        return "", None
    if has_booted(situation, asked):
        return "the node has booted since: Azure's word is waited for", None
    if asked.attempt >= ATTEMPTS:
        return f"Azure was asked {ATTEMPTS} times", None
    again = asked.asked + PAUSE * asked.attempt
    if now < again:
        return f"Azure was asked at {to_text(asked.asked)}", again
    return "", None


def has_booted(situation: Situation, asked: SelfService) -> bool:
    now = situation.node.boot_id
    return bool(asked.boot_id and now) and now != asked.boot_id
