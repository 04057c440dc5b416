"""`approval` and `approvalMissing`, for each kind of event: whether a person has to approve its drain."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum

from reconciler.settings.fields import Flag
from reconciler.settings.mistakes import KeyWarning
from reconciler.settings.policies import LOST, EventPolicy
from reconciler.settings.schema import PolicyKey, PolicyWords, Settings


class ApprovalMissing(StrEnum):
    """What happens at the deadline if nobody has approved the drain."""

    HOLD = "Hold"
    """No drain starts without an approval."""

    PROCEED = "Proceed"
    """From the deadline on, the drain starts without an approval."""


class _Approval(PolicyKey[bool], frozen=True, kw_only=True):
    def words(self, policy: EventPolicy, settings: Settings) -> PolicyWords:
        if not self.in_policy(policy):
            return PolicyWords()
        proceeds = APPROVAL_MISSING.in_policy(policy) is ApprovalMissing.PROCEED
        return PolicyWords(
            waits="after a person has approved it" + (", or at the deadline" if proceeds else "")
        )

    def warnings(self, settings: Settings, now: datetime) -> Iterator[KeyWarning]:
        for key, kind, policy in settings.draining():
            proceeds = APPROVAL_MISSING.in_policy(policy) is ApprovalMissing.PROCEED
            if self.in_policy(policy) and not proceeds and kind in LOST:
                message = "is true: without an approval in time the node is lost with its pods"
                yield KeyWarning(f"{key}.{kind}.approval", message, "set approvalMissing: Proceed")
            if proceeds and not self.in_policy(policy):
                message = "has no effect, because no approval is required"
                change = "set approval: true, or remove it"
                yield KeyWarning(f"{key}.{kind}.approvalMissing", message, change)


APPROVAL = _Approval(
    key="approval",
    type=Flag,
    default=False,
    description="Whether a person has to approve (docs/approvals.md) the drain.",
    conditions=True,
    after="unmanaged_pods",
)

APPROVAL_MISSING: PolicyKey[ApprovalMissing] = PolicyKey(
    key="approval_missing",
    type=ApprovalMissing,
    default=ApprovalMissing.HOLD,
    description="What happens at the deadline if nobody has approved the drain. Hold: it does not start. "
    "Proceed: it starts.",
    after="ahead",
)

SECTIONS = (APPROVAL, APPROVAL_MISSING)
