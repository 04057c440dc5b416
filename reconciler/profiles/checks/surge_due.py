"""surgeDue: whether to scale the pool of the node up by one now, for its replacement.

With `replace.surge` this happens before the drain. It happens after the drain if a deletion lowers the count
of the pool and we restore it. One node of a pool at a time, because two requests cannot be distinguished.
"""

from __future__ import annotations

from datetime import timedelta

from reconciler.model.moments import to_text
from reconciler.model.record import State
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation

PAUSE = timedelta(minutes=2)
"""After the first request, and as much longer after each one: a pool takes a while to show its new count."""

ATTEMPTS = 5
"""Requests to scale a pool up for one node: a pool that shows none of them will not grow."""


@check("surgeDue")
def surge_due(situation: Situation) -> CheckResult:
    """Pass when the pool must be scaled up for this node, and this was not requested yet."""
    refusal = why_no_surge(situation) or _not_now(situation)
    if refusal:
        return failed(refusal, holds=False)
    assert situation.machine is not None
    reason = f"{situation.machine.pool} gets one more machine"
    return passed(reason, holds=False)


def why_no_surge(situation: Situation) -> str:
    """Return why the pool is never scaled up for this node, or an empty text."""
    if not situation.replacing:
        return "no event replaces the machine"
    if situation.control_plane:
        return "control-plane nodes are never replaced"
    if situation.twin:
        return f"node {situation.twin} has the same providerID"
    machine = situation.machine
    if machine is None or machine.problem or machine.pool is None:
        return "no machine provider can create another machine"
    if not wants_surge(situation):
        return "the provider creates the new machine by itself, after the old one"
    if not machine.pool.scales or machine.pool.wanted is None:
        return f"the count of {machine.pool} belongs to another tool"
    return ""


def wants_surge(situation: Situation) -> bool:
    """Whether the settings want one more machine before this one is deleted."""
    wishes, machine = situation.settings.replace, situation.machine
    if situation.state is not State.IN_MAINTENANCE:
        return wishes.surge
    lowered = machine is not None and machine.pool is not None and machine.pool.lowered_by_deletion
    return lowered and machine is not None and wishes.restores(machine.ref.provider)


def is_late(situation: Situation) -> bool:
    """Whether an event that requires the drain is due, for example by its deadline. Then nothing waits."""
    return any(one.due for one in situation.asking)


def _not_now(situation: Situation) -> str:
    machine, before = situation.machine, situation.record.replacement
    assert machine is not None
    assert machine.pool is not None
    if situation.state is State.IN_MAINTENANCE:
        if situation.record.drain is None or situation.record.drain.done is None:
            return "the node is not drained yet"
    elif is_late(situation):
        return "the deadline has come, so the drain does not wait"
    if machine.deleting or (before is not None and before.removals):
        return "its machine is already being deleted"
    if machine.pool.busy:
        return machine.pool.busy
    if situation.before_us:
        return f"node {situation.before_us} of {machine.pool} is replaced first"
    if before is not None and before.wanted is not None:
        shown = machine.pool.wanted is not None and machine.pool.wanted >= before.wanted
        tries = before.retries + 1
        if shown or situation.now < before.asked + PAUSE * tries:
            return f"{machine.pool} was scaled to {before.wanted} machines at {to_text(before.asked)}"
        if tries >= ATTEMPTS:
            return f"{machine.pool} does not have {before.wanted} machines after {tries} requests"
    return ""
