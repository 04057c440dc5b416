"""A simulated cluster in mode Observe, in which the platform acts, and a test follows the passes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from reconciler.features.observed.cases import ObservedCase
from reconciler.features.observed.following import Following
from reconciler.model.event import Kind
from reconciler.model.plan import Plan
from reconciler.model.reconciler import Reconciler, Running
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from reconciler.passes.store import Store
from reconciler.run import PARTS, rehearse
from reconciler.simulation.platform import SimulatedPool, VmEvent
from reconciler.simulation.workloads import BudgetSpec, Workload
from reconciler.simulation.world import World
from tests.support.builders import minutes, settings
from tests.support.worlds import world_of

POOL = SimulatedPool("web")
WEB = Workload("shop", "web", replicas=6)
LEDGER = Workload("shop", "ledger")
NEVER = BudgetSpec("shop", "ledger", LabelSelector.of({"app": "ledger"}), min_available=1)


class Observing:
    """Passes of `serve` in mode Observe, one each minute, and what is observed of them."""

    def __init__(self, text: str = "", *, nodes: int = 3, workloads: Sequence[Workload] = (WEB,)) -> None:
        """Begin with so many nodes, on which the workloads run."""
        self.settings = settings(text, mode="Observe")
        self.world: World = world_of(POOL.node(instance) for instance in range(nodes))
        for workload in workloads:
            self.world.cluster.add_workload(workload)
        self.world.advance(minutes(10))
        self.following = Following()
        self.said: list[ObservedCase] = []
        """What is said of cases, one after the other."""
        self._store = Store(PARTS)

    def announces(
        self, *instances: int, kind: Kind = Kind.REBOOT, in_minutes: float = 60, lasts: timedelta = minutes(6)
    ) -> list[VmEvent]:
        """Announce an event of each of these nodes."""
        date = self.world.now + minutes(in_minutes)
        events = [
            VmEvent(POOL.node(instance).name, kind, date, starts=date, lasts=lasts, id=f"E{instance}-{date}")
            for instance in instances
        ]
        for event in events:
            self.world.platform.announce(event)
        return events

    def passes(self) -> Plan:
        """Make a pass."""
        acts = Reconciler(running=Running.RUNNING)
        outside = replace(self.world.outside, reconciler=acts)
        plan = rehearse(outside, self.settings, self.world.now, self._store)
        self.said += self.following.see(plan, self.settings)
        return plan

    def goes_on(self, for_minutes: int) -> None:
        """Let time pass, with a pass each minute."""
        for _ in range(for_minutes):
            self.world.advance(minutes(1))
            self.passes()

    @property
    def cases(self) -> list[ObservedCase]:
        """What was said last of each case, in the order of their nodes."""
        last = {case.identity: case for case in self.said}
        return sorted(last.values(), key=lambda case: (case.announced, case.node))
