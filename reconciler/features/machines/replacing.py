"""How the machine of a node is replaced, whichever feature knows it: two offers.

One is one more machine in its pool, the other one the deletion of its own. A pool is never scaled down alone,
because this could delete any node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice

from msgspec import Struct

from reconciler.features.machines.settings import REPLACE as SECTION
from reconciler.features.machines.settings import REPLACES
from reconciler.model.drains import Blocker
from reconciler.model.event import Kind, MaintenanceEvent, Status
from reconciler.model.holds import SETTINGS
from reconciler.model.limits import count_of, first_of
from reconciler.model.machine import RAISE_POOL, REPLACE_MACHINE, Machine, Remove, ScaleUp
from reconciler.model.moments import to_text
from reconciler.model.node import CONTROL_PLANE_LABELS, Node
from reconciler.model.plan import Ending, JudgedEvent, Notice, NoticeType
from reconciler.model.record import CaseRecord, State
from reconciler.model.values import replace
from reconciler.passes.decide.facts import pods_staying
from reconciler.passes.decision import CaseDecision
from reconciler.passes.node_facts import Decider, NodeFacts, PassContext
from reconciler.profiles.case import waits
from reconciler.profiles.endings import Means
from reconciler.profiles.situation import Offer, Request, Situation
from reconciler.profiles.vocabulary import CheckResult, failed, passed, unknown
from reconciler.settings.policies import EventPolicy

NAME = "machines"

SURGE, REPLACE = "surge", "replace"
"""The names of the two offers: one more machine in the pool, and the deletion of that of the node."""

ATTEMPTS = 5
"""Requests to change a pool for one node, of each sort: after so many without an effect, none has one."""

PAUSE = timedelta(minutes=2)
"""After the first request, and as much longer after each one: a pool takes a while to show its new count."""


class Around(Struct, frozen=True):
    """What the feature knows of a node beside the rest.

    `before_us` names a node of the same pool that is being replaced, empty if there is none. `staying` are
    the pods that the drain leaves on the node, and `pods_unknown` says why they are not known, empty if they
    are.
    """

    before_us: str = ""
    staying: tuple[Blocker, ...] = ()
    pods_unknown: str = ""


_NOTHING = Around()


def _around(situation: Situation) -> Around:
    around: Around = situation.of_features.get(NAME, _NOTHING)
    return around


def replacing(situation: Situation) -> tuple[JudgedEvent, ...]:
    """Return the events for which the machine of the node is replaced.

    On a drained node, not those for which a drain may not begin yet.
    """
    wanted = tuple(judged for judged in situation.judged if judged.asks and judged.after_drain.by(REPLACE))
    if situation.record.drain is not None:
        return tuple(judged for judged in wanted if not waits(situation.record, judged.event))
    starting = any(judged.may_start for judged in situation.asking)
    return tuple(judged for judged in wanted if judged.may_start or not starting)


def is_control_plane(node: Node, machine: Machine | None) -> bool:
    """Whether the node runs the cluster's own control plane."""
    declared = machine is not None and machine.control_plane
    return declared or any(label in node.labels for label in CONTROL_PLANE_LABELS)


def wanted_machines(record: CaseRecord) -> int | None:
    """Return to how many machines the pool was scaled up for the node, None if it was not."""
    asked = record.asked_by(SURGE)
    return int(asked.own) if asked is not None and asked.own.isdecimal() else None


def why_never_replaced(node: Node, machine: Machine | None, twin: str, record: CaseRecord) -> str:
    """Return why the machine is not replaced as things stand, whatever is waited for; empty if it may be."""
    if is_control_plane(node, machine):
        return "control-plane nodes are never replaced; handle this one by hand"
    if twin:
        return f"it is not replaced: node {twin} has the same providerID"
    if machine is None:
        return "it can't be replaced: the node does not name a machine provider"
    if machine.problem:
        return f"it can't be replaced: {machine.problem}"
    pool = machine.pool
    if machine.deleting:
        return ""
    if pool is None:
        return "it is not replaced: nothing would create a new machine"
    if pool.lowered_by_deletion and pool.wanted is None:
        return f"it is not replaced: {pool} has no single count that could be restored"
    if machine.stalls:
        return f"its deletion would not end: {machine.stalls}"
    removal, surge, wanted = record.asked_by(REPLACE), record.asked_by(SURGE), wanted_machines(record)
    if removal is not None and removal.attempts >= ATTEMPTS:
        return f"its machine is still there after {count_of(removal.attempts, 'request')} to delete it"
    if surge is not None and wanted is not None and removal is None:
        grown = pool.wanted is not None and pool.wanted >= wanted
        if not grown and surge.attempts >= ATTEMPTS:
            return (
                f"{pool} does not have {count_of(wanted, 'machine')} after "
                f"{count_of(surge.attempts, 'request')}"
            )
    return ""


def surge_due(situation: Situation) -> CheckResult:
    """Pass when the pool must be scaled up for this node, and this was not requested yet."""
    if refusal := why_no_surge(situation):
        return failed(refusal)
    machine, asked = situation.machine, situation.record.asked_by(SURGE)
    assert machine is not None
    assert machine.pool is not None
    if situation.state is State.IN_MAINTENANCE:
        if situation.record.drain is None or situation.record.drain.done is None:
            return failed("the node is not drained yet")
    elif is_late(situation):
        return failed("the deadline has come, so the drain does not wait")
    if machine.deleting or situation.record.asked_by(REPLACE) is not None:
        return failed("its machine is already being deleted")
    if machine.pool.busy:
        return failed(machine.pool.busy)
    if _around(situation).before_us:
        return failed(f"node {_around(situation).before_us} of {machine.pool} is replaced first")
    wanted = wanted_machines(situation.record)
    if asked is not None and wanted is not None:
        shown = machine.pool.wanted is not None and machine.pool.wanted >= wanted
        if shown or situation.now < asked.last + PAUSE * asked.attempts:
            scaled = f"{machine.pool} was scaled to {count_of(wanted, 'machine')}"
            return failed(f"{scaled} at {to_text(asked.last)}")
        if asked.attempts >= ATTEMPTS:
            return failed(
                f"{machine.pool} does not have {count_of(wanted, 'machine')} after "
                f"{count_of(asked.attempts, 'request')}"
            )
    return passed(f"{machine.pool} gets one more machine")


def why_no_surge(situation: Situation) -> str:
    """Return why the pool is never scaled up for this node, or an empty text."""
    if not replacing(situation):
        return "no event replaces the machine"
    if is_control_plane(situation.node, situation.machine):
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
    wishes, machine = SECTION.of(situation.settings), situation.machine
    if situation.state is not State.IN_MAINTENANCE:
        return wishes.surge
    lowered = machine is not None and machine.pool is not None and machine.pool.lowered_by_deletion
    return lowered and machine is not None and wishes.restores(machine.ref.provider)


def is_late(situation: Situation) -> bool:
    """Whether an event that requires the drain is due, for example by its deadline. Then nothing waits."""
    return any(judged.due for judged in situation.asking)


def machine_stays(situation: Situation) -> CheckResult:
    """Pass when the machine is not being deleted: no deletion was requested, or it did not happen."""
    machine, asked = situation.machine, situation.record.asked_by(REPLACE)
    if situation.state is not State.IN_MAINTENANCE:
        return passed()
    if machine is not None and machine.deleting:
        return failed("its machine is being deleted")
    if asked is None:
        return passed()
    request = f"the deletion of its machine was requested at {to_text(asked.last)}"
    if machine is None or machine.problem:
        because = machine.problem if machine is not None else "it has no known provider"
        return unknown(f"{request}, and its state is unknown: {because}")
    if machine.pool is not None and machine.pool.busy:
        return failed(f"{request}; {machine.pool.busy}")
    until = asked.last + PAUSE
    if situation.now < until:
        return failed(request, until)
    return passed(f"{request}, but did not happen")


def replacement_ready(situation: Situation) -> CheckResult:
    """Pass when the drain need not wait: there is no surge, the replacement is Ready, or the time is up."""
    if situation.state is State.IN_MAINTENANCE:
        return passed()
    if not SECTION.of(situation.settings).surge or not replacing(situation):
        return passed()
    refusal = why_no_surge(situation)
    if refusal:
        return passed(f"no surge: {refusal}")
    if is_late(situation):
        return passed("the deadline has come before the replacement is Ready")
    assert situation.machine is not None
    pool, wanted = situation.machine.pool, wanted_machines(situation.record)
    assert pool is not None
    if wanted is not None:
        if pool.ready is not None and pool.ready >= wanted:
            return passed(f"its replacement in {pool} is Ready")
        have = "an unknown number" if pool.ready is None else str(pool.ready)
        reason = f"{pool} must have {count_of(wanted, 'machine')} Ready before the drain, and has {have}"
    elif _around(situation).before_us:
        reason = f"node {_around(situation).before_us} of {pool} is replaced first"
    else:
        reason = pool.busy or f"{pool} must have one more machine before the drain"
    until = min((judged.deadline for judged in situation.asking if judged.deadline is not None), default=None)
    return failed(reason, until)


_TAKE_THE_MACHINE = frozenset({Kind.REDEPLOY, Kind.TERMINATE, Kind.PREEMPT})
"""With these events the platform ends the machine, with its local data and its pods."""


def replace_due(situation: Situation) -> CheckResult:
    """Pass when the node is drained for an event with `replace`, and a new machine is certain to come.

    Pods that the drain left on the node hold it until they are gone, or until the platform takes the machine:
    then they are lost anyway. A Reboot and a condition take no machine.
    """
    record = situation.record
    if not replacing(situation):
        return failed("no event replaces the machine", holds=False)
    if record.drain is None or record.drain.done is None:
        return failed("the node is not drained yet", holds=False)
    machine = situation.machine
    never = why_never_replaced(situation.node, machine, situation.twin, record)
    if never and machine is not None and machine.problem and never.endswith(machine.problem):
        return unknown(never)
    if never:
        return failed(never)
    refusal, until = _why_not(situation)
    if refusal:
        return failed(refusal, until)
    assert machine is not None
    return passed(f"the node is drained, and {machine.pool} creates a new machine")


def _why_not(situation: Situation) -> tuple[str, datetime | None]:
    machine, asked = situation.machine, situation.record.asked_by(REPLACE)
    assert machine is not None
    held, until = _pods_on_it(situation)
    if held:
        return held, until
    if machine.deleting:
        return "its machine is being deleted", None
    assert machine.pool is not None
    if machine.pool.busy:
        return machine.pool.busy, None
    if asked is not None:
        again = asked.last + PAUSE * asked.attempts
        if situation.now < again:
            return f"the deletion of its machine was requested at {to_text(asked.last)}", again
    elif machine.pool.lowered_by_deletion and wants_surge(situation) and machine.pool.scales:
        # Without one more machine first, the pool would stay one machine short.
        wanted = wanted_machines(situation.record)
        if wanted is None:
            before_us = _around(situation).before_us
            first = f"node {before_us} goes first" if before_us else "it is being requested"
            return f"{machine.pool} must have one more machine before this one is deleted: {first}", None
        if machine.pool.ready is None or machine.pool.ready < wanted:
            return f"{machine.pool} must have {count_of(wanted, 'machine')} before this one is deleted", None
    return "", None


def _pods_on_it(situation: Situation) -> tuple[str, datetime | None]:
    """Return which pods would go with the machine, and when the platform takes it; empty if none holds it."""
    if situation.record.asked_by(REPLACE) is not None:
        # The deletion was requested when no pod held it.
        return "", None
    events = [judged.event for judged in replacing(situation) if judged.event.kind in _TAKE_THE_MACHINE]
    taken = [
        datetime.min.replace(tzinfo=UTC) if event.status is Status.STARTED else event.not_before
        for event in events
    ]
    ends = min((moment for moment in taken if moment is not None), default=None)
    if ends is not None and situation.now >= ends:
        return "", None
    if _around(situation).pods_unknown:
        return f"it is not replaced while its pods are not known: {_around(situation).pods_unknown}", ends
    if not _around(situation).staying:
        return "", None
    named = [f"{blocker.pod} ({blocker.because})" for blocker in _around(situation).staying]
    return f"it is not replaced while pods stay on it: {first_of(named)}", ends


def surge(situation: Situation) -> Request | None:
    """Return the request for one more machine, with the count that the pool then has."""
    machine = situation.machine
    if machine is None or machine.pool is None or machine.pool.wanted is None:
        return None
    wanted = machine.pool.wanted + 1
    message = f"scales {machine.pool} up to {count_of(wanted, 'machine')}, for the replacement of this node"
    task = ScaleUp(situation.node.name, machine, wanted)
    return Request(Notice("MaintenanceSurge", message), task, own=str(wanted))


def deletion(situation: Situation) -> Request | None:
    """Return the request to delete the machine of the node. A pool that was scaled up for it is lowered."""
    machine, asked = situation.machine, situation.record.asked_by(REPLACE)
    if machine is None or machine.pool is None:
        return None
    pool, wanted, lower = machine.pool, wanted_machines(situation.record), None
    if wanted is not None and not pool.lowered_by_deletion:
        # Do not lower a count that someone else has changed since.
        lower = wanted - 1 if pool.wanted == wanted else None
    there = wanted is not None and pool.ready is not None and pool.ready >= wanted
    again = f" (attempt {asked.attempts + 1})" if asked is not None else ""
    message = f"deletes its machine; {pool} creates a new one{again}"
    return Request(
        Notice("MaintenanceReplacing", message),
        Remove(situation.node.name, machine, lower, replaced_already=there),
    )


def surplus(situation: Situation) -> Notice | None:
    """Return the Event that a pool has one machine too many, because the node is not replaced."""
    wanted, machine = wanted_machines(situation.record), situation.machine
    if wanted is None or situation.record.asked_by(REPLACE) is not None:
        return None
    pool = str(machine.pool) if machine is not None and machine.pool is not None else "its pool"
    message = (
        f"{pool} was scaled up to {count_of(wanted, 'machine')} for this node, which is not "
        f"replaced; scale it down"
    )
    return Notice("MaintenanceSurplus", message, NoticeType.WARNING)


def ends(
    event: MaintenanceEvent, policy: EventPolicy, node: Node, means: Means, now: datetime
) -> Ending | None:
    """Return how an event ends whose machine is replaced; None if neither settings nor event want that."""
    del now
    if not (policy.says(REPLACES.key) or event.replaces):
        return None
    machine = means.machine
    refused = why_never_replaced(node, machine, means.twin, means.record)
    if not refused and means.record.drain is None and machine is not None and machine.pool is not None:
        # A drained node waits for its pool. One that is in service need not stand empty meanwhile.
        refused = machine.pool.busy
    return Ending(REPLACE, "once the node is drained, its machine is replaced", refused)


ONE_MORE = Offer(
    SURGE,
    "the machine provider",
    surge_due,
    surge,
    (RAISE_POOL,),
    answered=replacement_ready,
    answers="the administrator of the node pool: the new machine must become Ready",
    left=surplus,
    prepares=True,
    ends_machine=True,
)

DELETION = Offer(
    REPLACE,
    "the machine provider",
    replace_due,
    deletion,
    (REPLACE_MACHINE,),
    who=f"the owner of what the reason names; or {SETTINGS}: `replace` of the kind",
    answered=machine_stays,
    answers="the machine provider, which deletes the machine",
    ends_machine=True,
    ends=ends,
)

REPLACING = (ONE_MORE, DELETION)
"""What can be asked of machine providers."""


PoolKey = tuple[str, str, str, str]
"""The provider, kind, namespace and name of a pool."""


def pool_key(machine: Machine | None) -> PoolKey | None:
    """Return what identifies the machine's pool, None if the pool is unknown."""
    if machine is None or machine.pool is None:
        return None
    return (machine.ref.provider, machine.pool.kind, machine.pool.namespace, machine.pool.name)


class OneAtATime(Decider):
    """Which node of each pool is replaced first, and what the others know of that, in one pass."""

    def __init__(self, nodes: Sequence[NodeFacts], context: PassContext) -> None:
        """Begin with the pools that were scaled up for a node that still exists."""
        machines = context.snapshot.for_settings.machines
        self._pools: dict[PoolKey, str] = {}
        self._decided = 0
        for node in nodes if machines else ():
            key = context.faults.of(
                node.name, "its pool is not known", partial(_in_hand, node, machines), None
            )
            if key is not None:
                self._pools.setdefault(key, node.name)

    def decide(
        self, decision: CaseDecision, node: NodeFacts, situation: Situation, context: PassContext
    ) -> tuple[NodeFacts, Situation]:
        """Return both with what is known around the node; unchanged if nobody knows its machine."""
        if situation.machine is None:
            return node, situation
        for plan in islice(situation.earlier.values(), self._decided, None):
            for task in plan.todo.tasks:
                key = pool_key(task.machine) if isinstance(task, ScaleUp) else None
                if key is not None:
                    self._pools[key] = plan.node
        self._decided = len(situation.earlier)
        key = pool_key(situation.machine)
        first = self._pools.get(key, "") if key is not None else ""
        staying, unknown_pods = pods_staying(node, situation.record, context)
        around = Around(first if first != node.name else "", staying, unknown_pods)
        return node, replace(situation, of_features={**situation.of_features, NAME: around})


def _in_hand(node: NodeFacts, machines: Mapping[str, Machine]) -> PoolKey | None:
    return pool_key(machines.get(node.name)) if wanted_machines(node.case) is not None else None
