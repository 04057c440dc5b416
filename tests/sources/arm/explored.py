"""ARM in the histories of the exploration: what it plans, and what it does about that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from reconciler.model.errors import CloudError
from reconciler.model.event import Kind
from reconciler.model.machine import Scope, vm_of
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.polling import Listing
from reconciler.settings.schema import Settings
from reconciler.simulation.clock import Actor
from reconciler.simulation.world import World
from reconciler.sources.arm import source as arm
from reconciler.sources.arm.source import SECTION, PerformMaintenance, Planned
from tests.explore.history import move
from tests.explore.outside import Said, SimulatedCloud
from tests.explore.truth import Channel, Told

if TYPE_CHECKING:
    from tests.explore.play import Play

DOWN = timedelta(minutes=4)
"""How long a VM is away in a maintenance that we start."""


@dataclass(slots=True)
class SimulatedArm(SimulatedCloud[Planned]):
    """ARM: a SourceClient and PlatformWriter. `plans` are statuses of VMs, by node."""

    plans: dict[str, dict[str, object]] = field(default_factory=dict)

    def ask(self, scopes: Sequence[Scope]) -> tuple[Listing[Scope, Planned], ...]:
        """List the VMs of these scopes."""
        return tuple(self._answer(scope) for scope in scopes)

    def _answer(self, scope: Scope) -> Listing[Scope, Planned]:
        listing: Listing[Scope, Planned] = Listing(scope, problem=self.problem)
        if not self.problem:
            listing = arm.listing(scope, self._listed(scope))
        for name, node in self.cluster.nodes.items():
            vm = vm_of(node.provider_id)
            if vm is not None and vm.scope == scope:
                found = tuple(fact for of, fact in listing.found if of == vm.name)
                self.said[name] = Said(found, self.problem)
        return listing

    def _listed(self, scope: Scope) -> list[dict[str, object]]:
        documents: list[dict[str, object]] = []
        for name, node in self.cluster.nodes.items():
            vm = vm_of(node.provider_id)
            if vm is not None and vm.scope == scope:
                status = self.plans.get(name, {})
                documents.append(
                    {
                        "id": node.provider_id.removeprefix("azure://"),
                        "instanceId": vm.name,
                        "properties": {"instanceView": {"maintenanceRedeployStatus": status}},
                    }
                )
        return documents

    def perform(self, action: PerformMaintenance, /) -> None:
        """Restart the VM on another host, which ends its plan."""
        if self.problem or action.node not in self.plans:
            raise CloudError("409 OperationNotAllowed")
        cluster, name = self.cluster, action.node
        cluster.note(Actor.US, "performs maintenance", name)
        uid = cluster.nodes[name].uid
        cluster.node_down(name, "self-service maintenance")

        def back() -> None:
            self.plans.pop(name, None)
            if name in cluster.nodes and cluster.nodes[name].uid == uid:
                cluster.node_up(name)

        cluster.clock.after(DOWN, back)

    def over(self) -> None:
        """Take every plan back."""
        self.plans.clear()


CLIENTS = {"arm": lambda world: SimulatedArm(world.cluster)}


def channels(world: World, node: Node, policy: Settings) -> Iterator[Channel]:
    """Yield what ARM has answered last about a node."""
    if SECTION.of(policy).enabled:
        said: Said[Planned] = world.clients["arm"].said.get(node.name, Said())
        yield Channel("arm", not said.problem, tuple(_planned(one) for one in said.found))


def _planned(plan: Planned) -> Told:
    return Told("arm", "plan", Kind.REDEPLOY, plan.start)


_PLANS = ("", "in 60", "in 600", "in 20160", "offered in 20160", "offered in 600")


@move("arm", 8, values=_PLANS)
def arm_plan(play: Play, name: str, value: str) -> None:
    """Let ARM plan a redeploy weeks ahead, offer it, or take it back."""
    plans: dict[str, dict[str, object]] = play.world.clients["arm"].plans
    if not value:
        plans.pop(name, None)
        return
    start = play.now + timedelta(minutes=int(value.rpartition(" ")[2]))
    plan: dict[str, object] = {
        "maintenanceWindowStartTime": to_text(start),
        "maintenanceWindowEndTime": to_text(start + timedelta(hours=4)),
    }
    if value.startswith("offered"):
        plan |= {
            "isCustomerInitiatedMaintenanceAllowed": True,
            "preMaintenanceWindowStartTime": to_text(play.now - timedelta(hours=1)),
            "preMaintenanceWindowEndTime": to_text(start),
        }
    plans[name] = plan
