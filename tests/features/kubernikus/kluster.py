"""A simulated cluster of Kubernikus whose servers are in the fake of OpenStack."""

from __future__ import annotations

from datetime import timedelta
from textwrap import indent

from msgspec import structs

from jobs.runtime.machines import MachineProviders
from reconciler.features.kubernikus.client import Servers
from reconciler.features.kubernikus.feature import DELETE_LABEL, POOL_LABEL
from reconciler.features.kubernikus.process import OPENSTACK
from reconciler.features.kubernikus.settings import UPDATE_LABEL
from reconciler.model.node import Node
from reconciler.model.plan import Plan
from reconciler.model.snapshot import ServerVersion
from reconciler.model.values import replace
from reconciler.run import run_pass
from reconciler.settings.schema import Settings
from reconciler.simulation.clock import Actor
from reconciler.simulation.cluster import SimulatedCluster
from tests.support import builders
from tests.support.builders import minutes
from tests.support.fakes.openstack import FakeOpenStack
from tests.support.worlds import carry_on, world_of

OLD, NEW = "v1.32.1", "v1.33.2"
ON = "kubernikus: {enabled: true}\nuncordon: {settle: 0s}\nbudget: {maxUnavailable: 1}\n"

EXAMPLE = """\
intervals: {requeue: 60s, notify: 6h}
instances:
  check:
  - {type: hasAnnotation, name: reboot_needed, config: {key: flatcar/reboot-needed, value: "true"}}
  - {type: hasLabel, name: replace_needed, config: {key: cloud.sap/kubelet-needs-update, value: "true"}}
  - {type: maxMaintenance, name: count, config: {max: 1}}
  - {type: condition, name: node_ready, config: {type: Ready, status: "True"}}
  - type: stagger
    name: stagger
    config: {duration: 8m, leaseName: maintenance-controller-stagger, leaseNamespace: kube-system}
  trigger:
  - {type: alterAnnotation, name: reboot_ok, config: {key: flatcar/reboot-ok, value: "true"}}
  - {type: alterAnnotation, name: remove_reboot_ok, config: {key: flatcar/reboot-ok, remove: true}}
  - {type: alterLabel, name: delete_node, config: {key: cloud.sap/delete-node, value: "true"}}
  - {type: alterLabel, name: remove_delete_node, config: {key: cloud.sap/delete-node, remove: true}}
profiles:
- name: kubelet
  operational:
    transitions: [{check: replace_needed, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: count && stagger, trigger: delete_node, next: in-maintenance}]
  in-maintenance:
    transitions: [{check: "!replace_needed", trigger: remove_delete_node, next: operational}]
- name: flatcar
  operational:
    transitions: [{check: reboot_needed, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: count && stagger, trigger: reboot_ok, next: in-maintenance}]
  in-maintenance:
    transitions: [{check: "!reboot_needed && node_ready", trigger: remove_reboot_ok, next: operational}]
"""
PROFILES = f"{ON}keys: {{prefix: cloud.sap}}\nprofiles:\n{indent(EXAMPLE, '  ')}"


class Kluster:
    """Nodes with a pod each, the servers behind them, and passes over both."""

    def __init__(self, cloud: FakeOpenStack, text: str = ON, *, count: int = 3, profile: str = "") -> None:
        self.cloud, self.world = cloud, world_of()
        self.settings: Settings = builders.settings(text)
        self.profile = profile
        self.ready = True
        self.cluster.server_version = ServerVersion(NEW)
        self.restart()
        for _ in range(count):
            node = self.add(OLD)
            self.cluster.add_pod(builders.pod(f"web-{node.name}", node.name))

    @property
    def cluster(self) -> SimulatedCluster:
        """The objects."""
        return self.world.cluster

    def restart(self) -> None:
        """Begin again with a client that knows nothing."""
        self.servers = Servers(lambda: self.cloud.access, lambda: None)

    def add(self, kubelet: str) -> Node:
        """Create a server and its node."""
        number = len(self.cloud.asked) + len(self.cloud.servers) + 1
        name = f"n{number}"
        server = self.cloud.add(name, number)
        labels = {POOL_LABEL: "small", "cloud.sap/maintenance-profile": self.profile}
        since = self.world.now - minutes(60 if self.ready else 0)
        node = replace(
            builders.node(name, labels=labels, ready=self.ready, ready_since=since),
            provider_id=server.provider_id,
            kubelet_version=kubelet,
        )
        self.cluster.add_node(node)
        return self.cluster.nodes[name]

    def look(self, wait: timedelta = timedelta()) -> Plan:
        """Run a pass after so long, and what its drains do."""
        self.world.advance(wait)
        machines = MachineProviders({OPENSTACK: lambda: self.servers})
        plan, _ = run_pass(
            structs.replace(self.world.outside, machines=machines), self.settings, self.world.now
        )
        carry_on(self.world)
        return plan

    def step(self) -> None:
        """Let Nova end its deletions, the cloud controller delete the nodes, and Kubernikus replace them."""
        for name in self.cloud.step():
            self.cluster.delete_node(name, Actor.PLATFORM)
            self.add(NEW)

    def names(self) -> list[str]:
        """The nodes, the oldest first."""
        return sorted(self.cluster.nodes, key=lambda name: int(name[1:]))

    def delete(self, name: str, value: str | None = "true") -> None:
        """Set the label that asks for the deletion of a node's server."""
        self.cluster.label(name, DELETE_LABEL, value)

    def marks(self) -> dict[str, str]:
        """Whether each kubelet needs an update, by its label."""
        return {name: self.cluster.nodes[name].labels.get(UPDATE_LABEL, "") for name in self.names()}

    def reasons(self, plan: Plan, name: str) -> dict[str, str]:
        """What holds a node."""
        (found,) = (node for node in plan.nodes if node.node == name)
        return {hold.code: hold.reason for hold in found.holds}
