"""The laws, checked on the states and plans of a history. A law that does not hold ends the history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciler.model.event import Answer, Kind
from reconciler.model.holds import HoldCode
from reconciler.model.keys import DEFAULT_PREFIX, OwnKeys
from reconciler.model.node import MECHANIC_LABEL, Node
from reconciler.model.outcome import Outcome
from reconciler.model.plan import NodePlan, NodeWrite, Plan
from reconciler.model.record import Record, State
from reconciler.model.record_text import record_of
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from reconciler.sources import registry as sources
from reconciler.sources.polled import PolledSource
from reconciler.sources.source import SourceContext
from tests.laws import checked

KEYS = OwnKeys(DEFAULT_PREFIX)
MOST_AT_ONCE = 200
"""Requests about pods at one moment, which is as long as a history lets the drainer work without a pause."""

CHECK_EVERY = timedelta(seconds=4)
"""A drain reads its node every three seconds before it evicts, and a request takes a moment."""


class Broken(BaseException):
    """A law does not hold; `law` is its number or name.

    It is no Exception, because the program's boundaries would catch it where a hook raises it.
    """

    def __init__(self, law: str, text: str) -> None:
        """Create it with what was seen."""
        super().__init__(f"law {law}: {text}")
        self.law = law


class Laws:
    """What is known of a history beside the cluster itself, and what must hold in it.

    `ours` and `foreign` are nodes by UID that are cordoned by us, or by somebody else. Nobody can say of an
    `unclear` one whose cordon it is: it was undone and done again while no pass could see it.
    """

    def __init__(self, world: World) -> None:
        """Watch this world from its beginning."""
        self.world = world
        self.checked: Counter[str] = Counter()
        self.ours: set[str] = set()
        self.foreign: set[str] = set()
        self.unclear: set[str] = set()
        self.opened: dict[str, datetime] = {}
        self.restless: dict[str, datetime] = {}
        self._requests = 0
        self._at_once = (world.now, 0)

    # What hands do, as far as laws depend on it.

    def cordoned_by_hand(self, node: Node) -> None:
        """Note that a person cordons a node that is open."""
        record = _record(node)
        if record is not None and record.cordon is not None:
            self.unclear.add(node.uid)
        else:
            self.foreign.add(node.uid)

    def opened_by_hand(self, node: Node) -> None:
        """Note that a person uncordons a node."""
        self.ours.discard(node.uid)
        self.foreign.discard(node.uid)
        self.opened[node.name] = self.world.now

    def record_lost(self, node: Node) -> None:
        """Note that nobody can say any more whose cordon it is: it counts as somebody else's."""
        if node.unschedulable and node.uid in self.ours:
            self.ours.discard(node.uid)
            self.foreign.add(node.uid)

    # Writes.

    def wrote(self, write: Call) -> None:
        """Check a write of the program that has taken effect."""
        if not isinstance(write.content, NodeWrite):
            return
        patch = write.content
        if patch.unschedulable is True:
            self.ours.add(patch.uid)
        if patch.unschedulable is False:
            mechanics = any(key == MECHANIC_LABEL for key in patch.labels)
            self.checked["2"] += 1
            if not (patch.uid in self.ours or patch.uid in self.unclear or mechanics):
                raise Broken("2", f"{patch.node}: somebody else's cordon was undone")
            self.ours.discard(patch.uid)
            self.opened[patch.node] = self.world.now

    def asked(self, write: Call) -> None:
        """Check, before a request about a pod, that it is not one of an endless row."""
        if write.what not in ("evict", "delete"):
            return
        at, count = self._at_once
        self._at_once = (self.world.now, count + 1 if at == self.world.now else 1)
        if count > MOST_AT_ONCE:
            raise Broken("17", f"{write.what} {write.subject} again and again, without a pause")

    def evicted(self) -> None:
        """Check the requests about pods since the last time."""
        fresh = self.world.api.pod_requests[self._requests :]
        self._requests += len(fresh)
        for request in fresh:
            self.checked["1"] += 1
            opened = self.opened.get(request.node)
            just_now = opened is not None and request.at - opened <= CHECK_EVERY
            if not request.cordoned and request.node in self.world.cluster.nodes and not just_now:
                raise Broken("1", f"{request.verb} {request.pod} on {request.node}, which is open")

    # Passes.

    def planned(
        self, plan: Plan, outcomes: Iterable[Outcome], policy: Settings, *, faulty: bool, stale: bool
    ) -> None:
        """Check a plan that was carried out, against the nodes that the pass read."""
        del outcomes
        listed = {node.name: node for node in self.world.api.listed}
        self._starts(plan, listed, policy)
        for one in plan.nodes:
            for hold in one.holds:
                if hold.code == HoldCode.INTERNAL:
                    raise Broken("16", f"{one.node}: {hold.reason}")
                if not hold.reason:
                    raise Broken("7", f"{one.node}: {hold.code} without a reason")
            self._held(one)
            self._uncordoned(one, listed.get(one.node), policy, faulty=faulty or stale)
        for note in plan.notes:
            if note.startswith("internal error"):
                raise Broken("16", note)
        if not stale:
            self._remember(plan, listed)

    def _starts(self, plan: Plan, listed: dict[str, Node], policy: Settings) -> None:
        """Laws 3 and 4, as in their properties."""
        if not any(one.starts for one in plan.nodes):
            return
        now, budget = plan.now, policy.budget
        fleet = {name: node for name, node in listed.items() if policy.in_fleet(node.labels)}
        out = checked.out(fleet.values(), policy, now)
        for one in plan.nodes:
            node = listed.get(one.node)
            if node is None or not one.starts:
                continue
            adopted = bool(policy.adopt) and MECHANIC_LABEL in node.labels
            if not adopted:
                self._timed(one, node, policy, now)
            if one.node in out:
                continue
            if not adopted and not checked.exempt(one, node, policy, now):
                self.checked["3"] += 1
                zone = {name for name, other in fleet.items() if other.zone == one.zone}
                pool = {name for name, other in fleet.items() if other.pool == one.pool}
                if (
                    checked.full(budget.max_unavailable, out, set(fleet))
                    or (one.zone and checked.full(budget.per_zone, out, zone))
                    or (one.pool and checked.full(budget.per_pool, out, pool))
                ):
                    raise Broken("3", f"{one.node} starts though {sorted(out)} are out of service")
            out.add(one.node)

    def _timed(self, one: NodePlan, node: Node, policy: Settings, now: datetime) -> None:
        self.checked["4"] += 1
        asking = [event for event in one.events if event.asks and event.starts]
        if not asking:
            raise Broken("4", f"{one.node} starts without an event that requires a drain")
        if policy.calendar.at(now, node.labels).open:
            return
        if not any(checked.deadline_lets(event, node, policy, now) for event in asking):
            raise Broken("4", f"{one.node} starts outside of every window")

    def _held(self, one: NodePlan) -> None:
        if any(event.asks or event.event.kind is Kind.UNKNOWN for event in one.events):
            self.checked["7"] += 1
            if not (one.acts or one.holds):
                raise Broken("7", f"{one.node} has an event, and neither an action nor a hold")

    def _uncordoned(self, one: NodePlan, node: Node | None, policy: Settings, *, faulty: bool) -> None:
        """Laws 5 and 6: what a pass uncordons is Ready, and its events are gone, both for long."""
        write = one.todo.write
        if node is None or write is None or write.unschedulable is not False:
            return
        self.checked["6"] += 1
        known = checked.case_of(node)
        if not node.ready:
            raise Broken("6", f"{one.node} is uncordoned, and not Ready")
        for event in one.events:
            dismissed = one.record is not None and any(
                kept.matches(event.event) for kept in one.record.dismissed
            )
            if event.asks and event.event.plan is None and not dismissed:
                raise Broken("6", f"{one.node} is uncordoned while {event.event.kind} is reported")
        self.checked["5"] += 1
        unknown = self._unknown(node, policy, plan_now=self.world.ours.now())
        told = {source for event in known.events for source in event.sources}
        if unknown & told:
            raise Broken("5", f"{one.node} is uncordoned while {sorted(unknown & told)} can't be read")
        if any(event.event.plan is not None for event in one.events):
            # A plan weeks ahead is no current event, and law 6 does not apply to it.
            return
        last = self.restless.get(node.uid)
        settle = policy.uncordon.settle - timedelta(seconds=1)
        if last is not None and not faulty and self.world.now - last < settle:
            raise Broken("6", f"{one.node} is uncordoned {self.world.now - last} after the last event")

    def _unknown(self, node: Node, policy: Settings, plan_now: datetime) -> set[str]:
        context = SourceContext(policy, plan_now, self.world.cluster.agents, {})
        return {
            reading.source
            for source in sources.switched_on(policy)
            if not isinstance(source, PolledSource)
            for reading in source.read(node, context)
            if reading.answer is Answer.UNKNOWN
        }

    def _remember(self, plan: Plan, listed: dict[str, Node]) -> None:
        """Remember when each node in maintenance last had an event, or was not Ready."""
        for one in plan.nodes:
            node = listed.get(one.node)
            known = checked.case_of(node) if node is not None else None
            if node is None or known is None or known.state is not State.IN_MAINTENANCE:
                continue
            asks = any(
                event.asks and any(own.matches(event.event) for own in known.events) for event in one.events
            )
            if asks or not node.ready:
                self.restless[node.uid] = self.world.now

    # States.

    def still(self, policy: Settings, *, writes: bool) -> None:
        """Check the state after passes that have nothing more to do."""
        if writes:
            self.checked["12"] += 1
            wrong = checked.wrongly_acknowledged(self.world.cluster, policy, self.world.now)
            if wrong:
                raise Broken("12", "; ".join(wrong))

    def calm(self) -> None:
        """Check that every node is back, and that nothing of ours is left."""
        cluster = self.world.cluster
        self.checked["calm"] += 1
        for name, node in cluster.nodes.items():
            left = [key for key in (*node.labels, *node.annotations) if KEYS.owns(key) and key != KEYS.imds]
            if left:
                text = node.annotations.get(KEYS.record, "")
                raise Broken("calm", f"{name} still has {left} {text}")
            closed = node.unschedulable
            if node.uid in self.foreign and not closed and node.uid not in self.unclear:
                raise Broken("2", f"{name}: somebody else's cordon has gone")
            if closed and node.uid not in self.foreign | self.unclear:
                raise Broken("calm", f"{name} is still cordoned")
        left = [name for name, one in sorted((cluster.maintenances or {}).items()) if one.finished is None]
        if left:
            raise Broken("calm", f"NodeMaintenances go on: {left}")
        if cluster.ledger.replaced:
            raise Broken("calm", f"the ledger still waits for {cluster.ledger.replaced}")


def _record(node: Node) -> Record | None:
    found = record_of(node, DEFAULT_PREFIX)
    return found if isinstance(found, Record) else None
