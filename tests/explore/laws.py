"""The laws, checked on the states and plans of a history. A law that does not hold ends the history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciler.model.event import Kind
from reconciler.model.holds import INTERNAL
from reconciler.model.keys import DEFAULT_PREFIX, OwnKeys, Writer
from reconciler.model.node import LIFECYCLE, MECHANIC_LABEL, Node
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import NodePlan, Notice, Plan
from reconciler.model.record import ClaimKind, Cordon, Record, from_annotation, record_of
from reconciler.model.writes import NodeWrite
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.explore.cases import Cases
from tests.explore.history import Broken
from tests.explore.obeyed import Obeyed
from tests.explore.of_plugins import LawsOfPlugin
from tests.explore.shown import Strikes
from tests.explore.truth import Truth
from tests.explore.waits import Waits
from tests.laws import checked
from tests.support.builders import IMDS
from tests.support.of_features import annotations_of_signs, from_tests

KEYS = OwnKeys(DEFAULT_PREFIX)
MOST_AT_ONCE = 200
"""Requests about pods at one moment, which is as long as a history lets the drainer work without a pause."""

CHECK_EVERY = timedelta(seconds=4)
"""A drain reads its node every three seconds before it evicts, and a request takes a moment."""


class Laws:
    """What is known of a history beside the cluster itself, and what must hold in it.

    `ours` and `foreign` are nodes by UID that are cordoned by us, or by somebody else. Nobody can say of an
    `unclear` one whose cordon it is: it was undone and done again while no pass could see it.
    """

    def __init__(self, world: World, truth: Truth, policy: Settings) -> None:
        """Watch this world from its beginning, under these settings."""
        self.world = world
        self.by_hand = False
        """Whether a person writes, not a pass."""
        self.stale = False
        """Whether the pass that runs sees old nodes."""
        self.checked: Counter[str] = Counter()
        self._obeyed = Obeyed(world, truth, self.checked)
        self.cases = Cases(world, truth, self.checked, self._obeyed)
        self.waits = Waits(world, self.checked)
        self.strikes = Strikes(world, truth, self.checked, self._excused)
        self.of_plugins: list[LawsOfPlugin] = [
            laws(world, truth, self.checked, self.strikes.missed) for laws in from_tests("explored", "LAWS")
        ]
        self.under(policy)
        self.ours: set[str] = set()
        self.foreign: set[str] = set()
        self.unclear: set[str] = set()
        self._by_workflow: set[str] = set()
        """Nodes that a workflow has cordoned, and no event of the platform since then."""
        self.opened: dict[str, datetime] = {}
        self._requests = 0
        self._at_once = (world.now, 0)
        self._written: set[str] = set()
        """The nodes that the pass which runs has asked to write."""

    def left(self, node: Node) -> None:
        """Note that a person opens a node, or takes data of it away."""
        for laws in self.of_plugins:
            laws.left(node)

    def _works(self, node: Node) -> bool:
        return any(laws.works(node) for laws in self.of_plugins)

    def _excused(self, node: Node, kind: Kind) -> bool:
        return node.uid in self.unclear or self.cases.ignores(node, kind)

    def under(self, policy: Settings) -> None:
        """Note the settings in force."""
        self.policy = self.strikes.policy = policy
        for laws in self.of_plugins:
            laws.under(policy)

    # What hands do, as far as laws depend on it.

    def cordoned_by_hand(self, node: Node) -> None:
        """Note that a person cordons a node that is open."""
        record = _record(node)
        if (record is not None and record.cordon is not None) or self._works(node):
            self.unclear.add(node.uid)
        else:
            self.foreign.add(node.uid)

    def opened_by_hand(self, node: Node) -> None:
        """Note that a person uncordons a node."""
        self.ours.discard(node.uid)
        self.foreign.discard(node.uid)
        self.opened[node.name] = self.world.now
        self._by_workflow.discard(node.uid)
        self.left(node)
        self.cases.opened_by_hand(node, self.policy)
        self.strikes.forget(node.uid)

    def record_lost(self, node: Node) -> None:
        """Note that a node has no record any more: a pass may find out whose cordon it is, or leave it."""
        self.cases.ends(node)
        self.left(node)
        self.strikes.forget(node.uid)
        # A workflow undoes a cordon of which nothing is recorded.
        if self._works(node) or (node.unschedulable and node.uid in self.ours):
            self.unclear.add(node.uid)

    # Writes.

    def wrote(self, write: Call) -> None:
        """Check a write of the program that has taken effect."""
        node = self.world.cluster.nodes.get(write.node)
        if isinstance(write.content, Notice) and node is not None:
            self.strikes.told(node.uid, write.content)
        if not isinstance(write.content, NodeWrite) or node is None:
            return
        patch = write.content
        self.checked["22"] += 1
        unknown = {key for key in (*patch.labels, *patch.annotations) if KEYS.owns(key)} - {*KEYS.on_nodes}
        if unknown:
            raise Broken("22", f"{patch.node}: {sorted(unknown)} are keys that no release knows")
        if self.by_hand:
            self.strikes.forget(node.uid)
            self.left(node)
        else:
            for laws in self.of_plugins:
                laws.wrote(patch, node, self.policy)
        if patch.unschedulable is True:
            self.ours.add(patch.uid)
            if not self.by_hand:
                self._closes(node, patch)
        elif patch.unschedulable is None and MECHANIC_LABEL in patch.labels:
            self.cases.adopts(node)
        elif patch.unschedulable is None and node.uid in self._by_workflow and checked.in_our_hands(node):
            self._by_workflow.discard(node.uid)
            self.cases.cordons(node, self.policy, known=not self.stale)
        if patch.unschedulable is False:
            mechanics = any(key == MECHANIC_LABEL for key in patch.labels)
            self.checked["2"] += 1
            if not (patch.uid in self.ours or patch.uid in self.unclear or mechanics):
                raise Broken("2", f"{patch.node}: somebody else's cordon was undone")
            self.ours.discard(patch.uid)
            self._by_workflow.discard(patch.uid)
            self.opened[patch.node] = self.world.now
            self.cases.ends(node)

    def _closes(self, node: Node, patch: NodeWrite) -> None:
        if _is_for_events(patch, node.uid):
            self._by_workflow.discard(node.uid)
            self.cases.cordons(node, self.policy, known=not self.stale)
        else:
            self._by_workflow.add(node.uid)

    def asked(self, write: Call) -> None:
        """Check a write before it is done: an uncordon, and that no request about a pod comes endlessly."""
        if isinstance(write.content, NodeWrite):
            self._written.add(write.node)
        patch, node = write.content, self.world.cluster.nodes.get(write.node)
        uid = patch.uid if isinstance(patch, NodeWrite) and patch.unschedulable is False else None
        if node is not None and isinstance(patch, NodeWrite) and patch.unschedulable is True:
            self._begins(node, patch)
        watched = node is not None and node.uid == uid and not self.stale and not self.by_hand
        if watched and node is not None and checked.in_upgrade(node):
            raise Broken("6", f"{write.node} is uncordoned while AKS upgrades it")
        if node is not None and node.uid == uid and not self.stale and not self._ends_workflow(node):
            steady = self.world.cluster.skew == timedelta()
            asked_azure = checked.case_of(node).asked_by("selfService") is not None
            self.cases.uncordons(node, self.policy, steady=steady, asked_azure=asked_azure)
        if write.what not in ("evict", "delete"):
            return
        if node is not None:
            self._obeyed.evicts(node)
            for laws in self.of_plugins:
                laws.evicts(node, self.policy)
        at, count = self._at_once
        self._at_once = (self.world.now, count + 1 if at == self.world.now else 1)
        if count > MOST_AT_ONCE:
            raise Broken("17", f"{write.what} {write.subject} again and again, without a pause")

    def _begins(self, node: Node, patch: NodeWrite) -> None:
        """Check the cordon by which the maintenance of a node begins."""
        if self.by_hand or self.stale or node.uid != patch.uid or checked.in_our_hands(node):
            return
        for_events = _is_for_events(patch, node.uid)
        if for_events or not self._works(node):
            self._obeyed.starts(node, self.policy, for_events=for_events)

    def _ends_workflow(self, node: Node) -> bool:
        """Whether the uncordon of a node is that of a workflow, which asks its own checks only."""
        return bool(self.policy.profile_names) and not checked.in_our_hands(node)

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

    def begin(self, policy: Settings, *, stale: bool) -> None:
        """Note that a pass begins that acts under these settings; a `stale` one sees old nodes."""
        self.under(policy)
        self.stale = stale
        self._written.clear()
        if not stale:
            self.cases.looks(policy)

    def planned(self, plan: Plan, outcomes: Iterable[Outcome], policy: Settings) -> None:
        """Check a plan that was carried out, against the nodes that the pass read."""
        listed = {node.name: node for node in self.world.api.listed}
        self.strikes.planned(plan.nodes)
        for laws in self.of_plugins:
            laws.planned(plan.nodes, policy)
        self._carried_out(plan, outcomes)
        self._starts(plan, listed, policy)
        for one in plan.nodes:
            for hold in one.holds:
                if hold.code == INTERNAL.code:
                    raise Broken("16", f"{one.node}: {hold.reason}")
                if not hold.reason:
                    raise Broken("7", f"{one.node}: {hold.code} without a reason")
            self._held(one)
        for note in plan.notes:
            if note.startswith("internal error"):
                raise Broken("16", note)

    def _carried_out(self, plan: Plan, outcomes: Iterable[Outcome]) -> None:
        """Law 13: what fails for one node keeps nothing from the others."""
        failed = {one.node for one in outcomes if one.result not in (Result.DONE, Result.RUNNING)}
        if "" in failed:
            # Without the ledger, no drain may begin and no machine may go.
            return
        self.checked["13"] += bool(failed)
        for one in plan.nodes:
            # What comes before its write, such as a Lease, may have failed for the node itself.
            if one.todo.write is not None and one.node not in {*self._written, *failed}:
                raise Broken("13", f"{one.node} is not written, after {sorted(failed)} failed")
            order = one.todo.drain
            if order is not None and one.node not in failed and one.node not in self.world.drainer.orders:
                raise Broken("13", f"{one.node} is not drained, after {sorted(failed)} failed")

    def _starts(self, plan: Plan, listed: dict[str, Node], policy: Settings) -> None:
        """Laws 3 and 4, as in their properties."""
        if not any(map(_starts_for_events, plan.nodes)):
            return
        now, budget = plan.now, policy.budget
        # By the faster clock, a deadline may have come.
        latest = now + plan.disagreement.spread if plan.disagreement is not None else now
        fleet = {name: node for name, node in listed.items() if policy.in_fleet(node.labels)}
        out = checked.out(fleet.values(), policy, now)
        for one in plan.nodes:
            node = listed.get(one.node)
            if node is None or not _starts_for_events(one):
                continue
            # So is a cordon of ours whose record somebody has removed; its case may end in the same pass.
            adopted = (one.record is not None and one.record.cordon is Cordon.ADOPTED_MECHANIC) or any(
                notice.reason == "MaintenanceAdopted" for notice in one.todo.notices
            )
            if not adopted:
                self._timed(one, node, policy, now, latest)
            if one.node in out:
                continue
            if not adopted and not checked.exempt(one, node, policy, latest):
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

    def _timed(self, one: NodePlan, node: Node, policy: Settings, now: datetime, latest: datetime) -> None:
        self.checked["4"] += 1
        asking = [event for event in one.events if event.asks and event.starts]
        if not asking:
            raise Broken("4", f"{one.node} starts without an event that requires a drain")
        if policy.calendar.at(now, node.labels).open:
            return
        clocks = (now, latest)
        if not any(checked.deadline_lets(event, node, policy, at) for event in asking for at in clocks):
            raise Broken("4", f"{one.node} starts outside of every window")

    def _held(self, one: NodePlan) -> None:
        if any(event.asks or event.event.kind is Kind.UNKNOWN for event in one.events):
            self.checked["7"] += 1
            if not (one.acts or one.holds):
                raise Broken("7", f"{one.node} has an event, and neither an action nor a hold")

    # States.

    def still(self, policy: Settings) -> None:
        """Check the state after passes that act and have nothing more to do."""
        self.cases.rests(policy)
        self.strikes.rests()
        for laws in self.of_plugins:
            laws.rests(policy)
        self.waits.rests(policy)
        self.checked["12"] += 1
        wrong = checked.wrongly_acknowledged(self.world.cluster, policy, self.world.now)
        if wrong:
            raise Broken("12", "; ".join(wrong))

    def calm(self) -> None:
        """Check that every node is back, and that nothing of ours is left."""
        cluster = self.world.cluster
        self.checked["calm"] += 1
        for name, node in cluster.nodes.items():
            stays = [IMDS, KEYS.maintenance_profile, KEYS.maintenance_state, KEYS.maintenance_data]
            # The UID says whose data the workflows have left.
            stays += [KEYS.uid] if KEYS.maintenance_data in node.annotations else []
            left = [key for key in (*node.labels, *node.annotations) if KEYS.owns(key) and key not in stays]
            if self._works(node):
                raise Broken("calm", f"work on {name} goes on: {node.annotations}")
            if left:
                text = node.annotations.get(KEYS.record, "")
                raise Broken("calm", f"{name} still has {left} {text}")
            closed = node.unschedulable
            if node.uid in self.foreign and not closed and node.uid not in self.unclear:
                raise Broken("2", f"{name}: somebody else's cordon has gone")
            if closed and node.uid not in self.foreign | self.unclear:
                raise Broken("calm", f"{name} is still cordoned")
            if any(KEYS.owns(taint.key) for taint in node.taints):
                raise Broken("calm", f"{name} still has {node.taints}")
        for laws in self.of_plugins:
            laws.calm()
        if cluster.ledger.replaced:
            raise Broken("calm", f"the ledger still waits for {cluster.ledger.replaced}")

    def uninstalled(self) -> None:
        """Check that what a release of all nodes has left was written by people, with kubectl."""
        for name, node in self.world.cluster.nodes.items():
            left = {*node.labels, *node.annotations, *(one.key for one in node.taints)}
            ours = [key for key, one in KEYS.on_nodes.items() if one.writer is not Writer.HAND]
            if stays := left.intersection((*ours, *annotations_of_signs())):
                raise Broken("22", f"{name} still has {sorted(stays)} after its release")
            if signs := [one.type for one in node.conditions if one.type in LIFECYCLE]:
                raise Broken("22", f"{name} still has the conditions {signs} after its release")


def _starts_for_events(plan: NodePlan) -> bool:
    """Whether the maintenance of the platform begins on a node; workflows ask for no window and no place."""
    return any(step.begins and step.profile == "default" for step in plan.transitions)


def _is_for_events(write: NodeWrite, uid: str) -> bool:
    """Whether the cordon that a write makes is claimed for the maintenance of the platform."""
    found = from_annotation(write.annotations.get(KEYS.record) or "null", uid)
    cordon = found.cordon if found is not None else None
    return cordon is None or any(one.kind == ClaimKind.PROFILE for one in cordon.claims)


def _record(node: Node) -> Record | None:
    found = record_of(node, DEFAULT_PREFIX)
    return found if isinstance(found, Record) else None
