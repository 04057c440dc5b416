"""The APIs of Azure and AWS over the nodes of a simulated cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Generic, TypeVar

from reconciler.model.errors import CloudError
from reconciler.model.machine import InstanceEvent, PerformMaintenance, Planned, Scope, vm_of
from reconciler.model.polling import Listing
from reconciler.simulation.clock import Actor
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.sources.arm import source as arm
from reconciler.sources.aws import source as aws

Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True)
class Said(Generic[Fact]):
    """What a cloud answered last about a node: facts, or the problem for which it refused."""

    found: tuple[Fact, ...] = ()
    problem: str = ""


DOWN = timedelta(minutes=4)
"""How long a VM is away in a maintenance that we start."""


@dataclass(slots=True)
class SimulatedArm:
    """ARM: a SourceClient and MaintenanceStarter. `plans` are statuses of VMs, by node; `problem` refuses."""

    cluster: SimulatedCluster
    plans: dict[str, dict[str, object]] = field(default_factory=dict)
    problem: str = ""
    said: dict[str, Said[Planned]] = field(default_factory=dict)

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

    def perform_maintenance(self, action: PerformMaintenance) -> None:
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


@dataclass(slots=True)
class SimulatedEc2:
    """DescribeInstanceStatus: `events` of each instance, by node; `problem` refuses."""

    cluster: SimulatedCluster
    events: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    problem: str = ""
    said: dict[str, Said[InstanceEvent]] = field(default_factory=dict)

    def ask(self, scopes: Sequence[str]) -> tuple[Listing[str, InstanceEvent], ...]:
        """List the events of these regions."""
        return tuple(self._answer(scope) for scope in scopes)

    def _answer(self, region: str) -> Listing[str, InstanceEvent]:
        listing: Listing[str, InstanceEvent] = Listing(region, problem=self.problem)
        if not self.problem:
            listing = aws.listing(region, self._statuses(region))
        for name, node in self.cluster.nodes.items():
            place = aws.instance_of(node.provider_id)
            if place is not None and place[0] == region:
                found = tuple(event for of, event in listing.found if of == place[1])
                self.said[name] = Said(found, self.problem)
        return listing

    def _statuses(self, region: str) -> list[dict[str, object]]:
        statuses: list[dict[str, object]] = []
        for name, node in self.cluster.nodes.items():
            place = aws.instance_of(node.provider_id)
            if place is not None and place[0] == region and self.events.get(name):
                statuses.append({"InstanceId": place[1], "Events": list(self.events[name])})
        return statuses
