"""replaceDue: whether to delete the machine of the drained node now, so that a new one comes."""

from __future__ import annotations

from datetime import UTC, datetime

from reconciler.model.event import Kind, Status
from reconciler.model.moments import to_text
from reconciler.model.plan import JudgedEvent
from reconciler.profiles.checks.surge_due import PAUSE, wants_surge
from reconciler.profiles.plugins import CheckResult, check, failed, passed, unknown
from reconciler.profiles.situation import Situation

ATTEMPTS = 5
"""Requests to delete one machine: a provider that accepted so many of them will not delete it."""

_TAKE_THE_MACHINE = frozenset({Kind.REDEPLOY, Kind.TERMINATE, Kind.PREEMPT})
"""With these events the platform ends the machine, with its local data and its pods."""

_NAMED_AT_MOST = 3


@check("replaceDue")
def replace_due(situation: Situation) -> CheckResult:
    """Pass when the node is drained for an event with `replace`, and a new machine is certain to come.

    Pods that the drain left on the node hold it until they are gone, or until the platform takes the machine:
    then they are lost anyway. A Reboot and a condition take no machine.
    """
    record = situation.record
    if not situation.replacing:
        return failed("no event replaces the machine", holds=False)
    if record.drain is None or record.drain.done is None:
        return failed("the node is not drained yet", holds=False)
    if situation.twin and not situation.control_plane:
        return failed(f"it is not replaced: node {situation.twin} has the same providerID")
    machine = situation.machine
    if machine is not None and machine.problem and not situation.control_plane:
        reason = f"it can't be replaced: {machine.problem}"
        return unknown(reason)
    refusal, until = _why_not(situation)
    if refusal:
        return failed(refusal, until)
    assert machine is not None
    reason = f"the node is drained, and {machine.pool} creates a new machine"
    return passed(reason, holds=False)


def _why_not(situation: Situation) -> tuple[str, datetime | None]:
    machine, before = situation.machine, situation.record.replacement
    if situation.control_plane:
        return "control-plane nodes are never replaced; handle this one by hand", None
    if machine is None:
        return "it can't be replaced: the node does not name a machine provider", None
    held, until = _pods_on_it(situation)
    if held:
        return held, until
    if machine.pool is None:
        return "it is not replaced: nothing would create a new machine", None
    if machine.pool.lowered_by_deletion and machine.pool.wanted is None:
        return f"it is not replaced: {machine.pool} has no single count that could be restored", None
    if machine.deleting:
        return "its machine is being deleted", None
    if machine.pool.busy:
        return machine.pool.busy, None
    if machine.stalls:
        return f"its deletion would not end: {machine.stalls}", None
    if before is not None and before.removals >= ATTEMPTS:
        return f"its machine is still there after {before.removals} requests to delete it", None
    if before is not None and before.removals:
        again = before.asked + PAUSE * before.removals
        if situation.now < again:
            return f"the deletion of its machine was requested at {to_text(before.asked)}", again
    elif machine.pool.lowered_by_deletion and wants_surge(situation) and machine.pool.scales:
        # Without one more machine first, the pool would stay one machine short.
        wanted = before.wanted if before is not None else None
        if wanted is None:
            first = (
                f"node {situation.before_us} goes first" if situation.before_us else "it is being requested"
            )
            return f"{machine.pool} must have one more machine before this one is deleted: {first}", None
        if machine.pool.ready is None or machine.pool.ready < wanted:
            return f"{machine.pool} must have {wanted} machines before this one is deleted", None
    return "", None


def _pods_on_it(situation: Situation) -> tuple[str, datetime | None]:
    """Return which pods would go with the machine, and when the platform takes it; empty if none holds it."""
    if situation.record.replacement is not None and situation.record.replacement.removals:
        # The deletion was requested when no pod held it.
        return "", None
    taken = [_taken_at(one) for one in situation.replacing if one.event.kind in _TAKE_THE_MACHINE]
    ends = min((moment for moment in taken if moment is not None), default=None)
    if ends is not None and situation.now >= ends:
        return "", None
    staying = situation.staying
    if staying.unknown:
        return f"it is not replaced while its pods are not known: {staying.unknown}", ends
    if not staying.pods:
        return "", None
    named = [f"{one.pod} ({one.because})" for one in staying.pods]
    more = f" and {len(named) - _NAMED_AT_MOST} more" if len(named) > _NAMED_AT_MOST else ""
    return f"it is not replaced while pods stay on it: {', '.join(named[:_NAMED_AT_MOST])}{more}", ends


def _taken_at(one: JudgedEvent) -> datetime | None:
    """Return when the platform takes the machine; one that has started does so now."""
    if one.event.status is Status.STARTED:
        return datetime.min.replace(tzinfo=UTC)
    return one.event.not_before
