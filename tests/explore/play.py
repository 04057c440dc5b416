"""Plays a history: steps, and whole passes with their drains between them, on the simulation."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from reconciler.drain.claim import claim
from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.errors import ClusterError, LockLost
from reconciler.model.keys import DEFAULT_PREFIX, Writer
from reconciler.model.machine import AKS, KARPENTER, OPENSHIFT
from reconciler.model.node import ZONE_LABEL, Node
from reconciler.model.plan import Plan
from reconciler.model.pod import Pod
from reconciler.model.ports import WritableOutside
from reconciler.model.record import Unreadable, record_of
from reconciler.model.selector import EVERYTHING, LabelSelector
from reconciler.model.snapshot import Self
from reconciler.model.values import replace
from reconciler.model.writes import NodeWrite
from reconciler.passes.release import release
from reconciler.run import PARTS, rehearse, run_pass
from reconciler.settings.schema import Mode, Settings
from reconciler.simulation.api import ProcessKilled
from reconciler.simulation.clock import Happening
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.simulation.machines import MachinePool, SimulatedMachines
from reconciler.simulation.platform import quiet_conditions
from reconciler.simulation.workloads import BudgetSpec, Workload
from reconciler.simulation.world import World
from tests.explore.choices import changed, is_good, parsed
from tests.explore.ending import end
from tests.explore.faults import Faults
from tests.explore.hands import Webhook
from tests.explore.history import MOVES, Broken, History, Scene, Step
from tests.explore.laws import Laws
from tests.explore.outside import Calendars, SimulatedCloud
from tests.explore.truth import KEYS, Truth
from tests.explore.waits import TENANT
from tests.laws.histories import MAIN
from tests.support import builders
from tests.support.of_features import from_tests
from tests.support.worlds import store_of

MOST_PASSES = 30
"""Passes at one moment until nothing is written any more; more of them do not converge."""

_SECOND = timedelta(seconds=1)
_PROVIDERS = {"openshift": OPENSHIFT, "aks": AKS, "karpenter": KARPENTER}
_JOINS_AFTER = timedelta(minutes=5)
_MACHINES_TAKE = timedelta(minutes=2)
_IDLE = timedelta(minutes=30)


@dataclass(slots=True)
class Counts:
    """What a history came to."""

    passes: int = 0
    writes: int = 0
    lasted: timedelta = timedelta()
    moves: Counter[tuple[str, str]] | None = None


class _Internal(logging.Handler):
    """Collects what the program logs as an internal error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record.getMessage())


class Play:
    """One history in the making."""

    def __init__(self, history: History) -> None:
        scene = history.scene
        self.scene = scene
        self.history = history
        self.random = Random(f"play {history.seed}")
        """Decides what becomes of each message of a watch."""
        self.lines = scene.settings
        self.world = World(builders.NOW, latency=timedelta(), on_progress=self._progressed)
        for clients in from_tests("explored", "CLIENTS"):
            self.world.clients |= {name: make(self.world) for name, make in clients.items()}
        self.calendars = Calendars()
        self.webhook = Webhook(self.cluster)
        self.laws = Laws(self.world, Truth(self.world), self.settings)
        self.faults = Faults(self.world, self.laws)
        self.faults.admit = self.webhook.answer
        self.laws.waits.denied = self.webhook.refuses
        self.counts = Counts(moves=Counter())
        self.own_node: str | None = None
        self.before: Mapping[str, Node] = {}
        """The nodes at the beginning of the last step."""
        self._dirty = True
        self._next_change: datetime | None = None
        self._made = 0
        self._repairing = False
        self._pool: MachinePool | None = None
        self._build(scene)
        self.cluster.node_listeners.append(lambda _: self.wake())
        self.world.log.listeners.append(self._heard)

    @property
    def cluster(self) -> SimulatedCluster:
        """The objects, for everyone but the program."""
        return self.world.cluster

    @property
    def clouds(self) -> list[SimulatedCloud[Any]]:
        """The clouds that sources ask."""
        return [client for client in self.world.clients.values() if isinstance(client, SimulatedCloud)]

    @property
    def now(self) -> datetime:
        """The true time."""
        return self.world.now

    @property
    def settings(self) -> Settings:
        """The settings in force, with the calendars as they are now."""
        found = parsed(self.lines)
        places = found.calendar_places()
        texts, _ = PARTS.calendars(places, self.calendars.read(places), self.cluster.ledger, self.now)
        return found.with_calendars(texts)

    @property
    def outside(self) -> WritableOutside:
        """What a pass of the running process uses."""
        return replace(self.world.outside, itself=Self(self.own_node), calendars=self.calendars)

    def wake(self) -> None:
        """Ask for a pass, as a watch does."""
        self._dirty = True

    # The whole history.

    def run(self) -> Counts:
        """Play every step, let it become calm, and return what it came to; raises Broken."""
        heard = _Internal()
        logger = logging.getLogger("reconciler")
        logger.addHandler(heard)
        propagates, logger.propagate = logger.propagate, False
        began = self.now
        try:
            self.settle()
            for step in self.history.steps:
                self._step(step)
                self._no_internal(heard)
            self.counts.lasted = self.now - began
            self._calm()
            self._no_internal(heard)
        finally:
            logger.removeHandler(heard)
            logger.propagate = propagates
        self.counts.writes = len(self.world.api.done)
        return self.counts

    def _no_internal(self, heard: _Internal) -> None:
        if heard.found:
            raise Broken("16", heard.found[0])

    def _step(self, step: Step) -> None:
        before = dict(self.cluster.nodes)
        found = MOVES[step.what]
        names = sorted(self.cluster.nodes)
        name = names[step.on % len(names)] if names else ""
        if name or not found.on_node:
            found.change(self, name, step.value)
            if self.counts.moves is not None:
                self.counts.moves[found.family, f"{step.what} {step.value}".strip()] += 1
        self.settle()
        self.wait(timedelta(minutes=step.then))
        for laws in self.laws.of_plugins:
            laws.stepped()
        self.before = before

    def _calm(self) -> None:
        """Let all events end, take all hands off, and demand that every node is back."""
        end(self)
        self.settle()
        self.wait(timedelta(hours=4))
        for laws in self.laws.of_plugins:
            laws.put_right(self)
        self.settle()
        self.laws.calm()
        self._rest()
        for name in sorted(self.cluster.nodes):
            self.release(name, reset=True, writers=(Writer.PASS, Writer.COMMAND, Writer.AGENT))
        self.laws.uninstalled()

    def _rest(self) -> None:
        """Demand that passes write nothing any more."""
        done = len(self.world.api.done)
        due = [laws.still_due(self.settings) for laws in self.laws.of_plugins]
        for _ in range(4):
            self.wait(_IDLE)
            self.wake()
            self.settle()
        for one in self.world.api.done[done:]:
            # The last answers of the clouds are stored again with every answer.
            if one.what != "write_ledger" and not any(is_due(one) for is_due in due):
                raise Broken("8", f"after all is over, passes write {one.what} {one.node}")

    # Passes.

    def wait(self, time: timedelta) -> None:
        """Let time pass, with a pass whenever something has changed or the plan says so."""
        until = self.now + time
        while True:
            moments = [until, self.world.clock.next() or until]
            if self._next_change is not None:
                moments.append(max(self._next_change, self.now + _SECOND))
            due = min(moments)
            self._advance(due)
            planned = self._next_change is not None and self.now >= self._next_change
            if self._dirty or planned:
                self.settle()
            if self.now >= until:
                return

    def settle(self) -> None:
        """Run passes at this moment until one of them asks for no write."""
        for _ in range(MOST_PASSES):
            self._dirty = False
            quiet = self._pass()
            self._advance(self.now)
            if quiet and not self._dirty:
                if self.settings.mode is not Mode.OBSERVE:
                    self.laws.still(self.settings)
                    self.rehearse()
                return
        last = [f"{one.what} {one.node}" for one in self.world.api.done[-3:]]
        raise Broken("8", f"still writing after {MOST_PASSES} passes: {last}")

    def _pass(self) -> bool:
        """Run one pass; return whether it asked for no write, and nothing failed."""
        if self.settings.mode is Mode.OBSERVE:
            return self._observe()
        api, writes = self.world.api, self.world.api.writes
        stale = api.stale is not None
        self.counts.passes += 1
        self.faults.begin()
        self.laws.begin(self.settings, stale=stale)
        try:
            plan, outcomes = run_pass(
                self.outside, self.settings, self.world.ours.now(), store_of(self.world)
            )
        except ProcessKilled:
            self._restart()
            return False
        except LockLost:
            self._restart()
            return False
        except ClusterError as error:
            if not self.faults.ends_pass:
                raise Broken("13", f"a pass ended with {error!r}") from error
            return False
        except Exception as error:
            raise Broken("13", f"a pass ended with {error!r}") from error
        finally:
            api.stale = None
        if self.faults.one_pass:
            # The process that lost its lock has had its last pass.
            self._restart()
            return False
        struck = self.faults.struck
        self.laws.planned(plan, outcomes, self.settings)
        # The plan goes by the slowest clock, and the process may not.
        ahead = self.world.ours.ahead - (plan.disagreement.behind if plan.disagreement else timedelta())
        self._next_change = None if plan.next_change is None else plan.next_change - ahead
        self._mend_machines()
        return api.writes == writes and not struck and not stale

    def _observe(self) -> bool:
        """Look, as a process in mode Observe does: it gives up its lock, and its drains end."""
        if self.world.drainer.progress():
            self.world.restart()
        self.world.api.stale = None
        self.faults.one_pass = False
        self.laws.under(self.settings)
        self.rehearse()
        self._next_change = None
        return True

    def rehearse(self) -> None:
        """Make a dry run thrice: it writes nothing (law 10), and the plans are the same (laws 11, 20)."""
        api, writes = self.world.api, self.world.api.writes
        for law in ("10", "11", "20"):
            self.laws.checked[law] += 1
        with self.faults.off():
            # A read that fails once would fail in the first of them only.
            now = self.world.ours.now()
            plans = [
                rehearse(self.outside, self.settings, now, store)
                for store in (None, None, store_of(self.world))
            ]
        if api.writes != writes:
            raise Broken("10", "a dry run wrote something")
        if plans[0] != plans[1]:
            raise Broken("11", "two dry runs of one moment differ")
        if plans[0] != plans[2]:
            raise Broken("20", "the plan from what changed is not that of a new process")

    def looked(self) -> Plan:
        """Return what a person's machine sees in a dry run, whose clock is right."""
        with self.faults.off():
            return rehearse(self.outside, self.settings, self.now)

    def _advance(self, until: datetime) -> None:
        try:
            self.world.clock.advance(until)
        except ProcessKilled:
            self._restart()
        self.laws.evicted()

    def _restart(self) -> None:
        self.faults.one_pass = False
        self.world.restart()
        self.wake()

    def _progressed(self, progress: DrainProgress) -> None:
        if progress.phase is not Phase.RUNNING:
            self.wake()

    # What hands do that need more than the cluster.

    def claim(self, name: str, who: str) -> None:
        """Drain a node by hand, as `reconciler drain` begins it."""
        node = self.cluster.nodes[name]
        write = claim(node, DEFAULT_PREFIX, who, self.world.ours.now())
        if isinstance(write, NodeWrite):
            self._by_hand(write)

    def release(self, name: str, *, reset: bool = False, writers: Collection[Writer] = ()) -> None:
        """Run `reconciler release`; with `--all` it removes the keys of these writers."""
        node = self.cluster.nodes[name]
        signs = PARTS.removed(node, DEFAULT_PREFIX)
        write = release(node, DEFAULT_PREFIX, signs, reset=reset, writers=writers)
        if isinstance(record_of(node, DEFAULT_PREFIX), Unreadable):
            self.laws.record_lost(node)
        if write is not None:
            self._by_hand(write)
        with self.faults.off():
            for one in signs.writes:
                one.send(self.world.outside.client)

    def _by_hand(self, write: NodeWrite) -> None:
        with self.faults.off():
            self.world.api.patch_node(write)

    # The scene.

    def _build(self, scene: Scene) -> None:
        if scene.provider:
            self._pool = MachinePool("np", scene.nodes, [], _PROVIDERS[scene.provider])
            self.world.machines = SimulatedMachines(self.world.api, [self._pool], slow=True)
        for _ in range(scene.nodes):
            self._join()
        for workload in _workloads(scene):
            self.cluster.add_workload(workload)
        if "budget" in scene.pods:
            self.tighten(1)
        self.world.advance(timedelta(minutes=1))

    def tighten(self, allowed: int) -> None:
        """Let the budget of the pods under one allow so many disruptions."""
        guarded = LabelSelector.of({"app": "guarded"})
        self.cluster.add_budget(BudgetSpec("shop", "guarded", guarded, max_unavailable=allowed))

    def blocks(self, *, on: bool) -> None:
        """Let the tenant's budget allow no disruption, or remove it."""
        budget = BudgetSpec(TENANT, "all", EVERYTHING, max_unavailable=0)
        if on:
            self.cluster.add_budget(budget)
        elif budget.key in self.cluster.budget_specs:
            self.cluster.drop_budget(budget.key)

    def tenants_pods(self, name: str) -> list[Pod]:
        """Return the pods of the tenant on a node, after creating some if there are none in the cluster."""
        if f"{TENANT}/app" not in self.cluster.workloads:
            self.cluster.add_workload(Workload(TENANT, "app", replicas=self.scene.nodes))
        return [one for one in self.cluster.pods_on(name) if one.namespace == TENANT]

    def _join(self) -> None:
        number = self._made
        self._made += 1
        name = f"n{number}"
        zone = ("one", "two")[number % 2]
        if self._pool is not None:
            node = self._pool.node(name, since=self.now)
            self._pool.members.append(name)
        else:
            node = Node(name, uid="", resource_version="", labels={"agentpool": "np"})
        if self.scene.cloud == "aws":
            node = replace(node, provider_id=f"aws:///eu-west-1a/i-{number:017x}")
        elif self.scene.provider != "aks":
            node = builders.on_vm(node, number)
        labels = {**node.labels, ZONE_LABEL: zone, "zone": zone, KEYS.maintenance_profile: "first--second"}
        detector = quiet_conditions() if self.scene.cloud == "azure" else ()
        conditions = (*node.conditions, *detector)
        self.cluster.add_node(replace(node, labels=labels, conditions=conditions))

    def _heard(self, happening: Happening) -> None:
        """Let what was lost come back: an autoscaler, or the provider of machines, brings another node."""
        if happening.what == "node joined":
            self.wake()
            name = happening.node
            if self.scene.cloud == "azure" and self.cluster.nodes[name].condition(MAIN) is None:
                for quiet in quiet_conditions():
                    self.cluster.set_condition(name, quiet)
        elif happening.what == "node gone":
            self.wake()
            if self._pool is None:
                self.world.clock.after(_JOINS_AFTER, self._fill)
            else:
                if happening.node in self._pool.members:
                    self._pool.members.remove(happening.node)
                self._mend_soon()

    def _fill(self) -> None:
        if len(self.cluster.nodes) < self.scene.nodes:
            self._join()

    def _mend_machines(self) -> None:
        machines, pool = self.world.machines, self._pool
        if machines is not None and pool is not None:
            waits = machines.deleting or set(machines.marked) & set(pool.members)
            if waits or len(pool.members) != pool.wanted:
                self._mend_soon()

    def _mend_soon(self) -> None:
        if not self._repairing:
            self._repairing = True
            self.world.clock.after(_MACHINES_TAKE, self._mend)

    def _mend(self) -> None:
        self._repairing = False
        if self.world.machines is not None:
            self.world.machines.step()
        self._mend_machines()

    def set_line(self, line: str) -> None:
        """Change the settings file, with one line in place of that with its key.

        A file with a mistake changes nothing: the last good one stays in force.
        """
        lines = changed(self.lines, line)
        if is_good(lines):
            self.lines = lines
        self.wake()


def _workloads(scene: Scene) -> list[Workload]:
    found = [Workload("shop", "web", replicas=scene.nodes, labels={"app": "web"})]
    if "scratch" in scene.pods:
        found.append(Workload("shop", "scratch", replicas=2, empty_dir=True))
    if "bare" in scene.pods:
        found.append(Workload("shop", "bare", kind="", replicas=2))
    if "budget" in scene.pods:
        found.append(Workload("shop", "guarded", replicas=3))
    if "slow" in scene.pods:
        found.append(Workload("shop", "slow", replicas=1, grace=600, stops_after=timedelta(minutes=9)))
    if "group" in scene.pods:
        jobset = {"jobset.sigs.k8s.io/jobset-name": "train"}
        found.append(Workload("shop", "train", replicas=scene.nodes, labels=jobset))
    if "tenant" in scene.pods:
        found.append(Workload(TENANT, "app", replicas=2, labels={KEYS.drain: "wait-completed"}))
    return found
