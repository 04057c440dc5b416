"""surgeDue: whether the node's pool is asked now for the machine that will take the node's place.

It is asked before the drain with `replace.surge`; after the drain for a pool that a deletion lowers, where
we restore its number. One node of a pool at a time: two requests at once could not be told apart.
"""

from __future__ import annotations

from datetime import timedelta

from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation
from reconciler.model.moments import to_text
from reconciler.model.record import State

PAUSE = timedelta(minutes=2)
"""Between two requests for the same: a pool takes a while to show what it was asked for."""


@check("surgeDue")
def surge_due(situation: Situation) -> CheckResult:
    """Pass when one more machine is wanted before this node's own goes, and was not asked for yet."""
    refusal = why_no_surge(situation) or _not_now(situation)
    if refusal:
        return failed(refusal, holds=False)
    assert situation.machine is not None
    reason = f"{situation.machine.pool} is to have one machine more"
    return passed(reason, holds=False)


def why_no_surge(situation: Situation) -> str:
    """Return why no replacement is ever asked for this node's machine; empty where one is."""
    if not situation.replacing:
        return "nothing is to be replaced"
    if situation.control_plane:
        return "control-plane nodes are never replaced"
    machine = situation.machine
    if machine is None or machine.problem or machine.pool is None:
        return "nobody can be asked for another machine"
    if not wants_surge(situation):
        return "a new machine comes after the old one, without our asking"
    if not machine.pool.scales or machine.pool.wanted is None:
        return f"{machine.pool} is not ours to scale"
    return ""


def wants_surge(situation: Situation) -> bool:
    """Whether the settings want one more machine before this one goes."""
    wishes, machine = situation.settings.replace, situation.machine
    if situation.state is not State.IN_MAINTENANCE:
        return wishes.surge
    lowered = machine is not None and machine.pool is not None and machine.pool.lowered_by_deletion
    return lowered and machine is not None and wishes.restores(machine.ref.provider)


def is_late(situation: Situation) -> bool:
    """Whether an event that asks for the drain is due, for example by its deadline: then nothing waits."""
    return any(one.due for one in situation.asking)


def _not_now(situation: Situation) -> str:
    machine, before = situation.machine, situation.record.replacement
    assert machine is not None
    assert machine.pool is not None
    if situation.state is State.IN_MAINTENANCE:
        if situation.record.drain is None or situation.record.drain.done is None:
            return "the node is not drained yet"
    elif is_late(situation):
        return "the deadline has come: nothing is waited for"
    if machine.deleting or (before is not None and before.removals):
        return "its machine is going already"
    if machine.pool.busy:
        return machine.pool.busy
    if situation.before_us:
        return f"node {situation.before_us} of {machine.pool} is replaced first"
    if before is not None and before.wanted is not None:
        shown = machine.pool.wanted is not None and machine.pool.wanted >= before.wanted
        if shown or situation.now < before.asked + PAUSE:
            return f"{machine.pool} was asked for {before.wanted} machines at {to_text(before.asked)}"
    return ""
