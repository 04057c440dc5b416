"""The clouds that the settings name, and whoever makes machines, for as long as a process lives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from reconciler.clients.aws import ec2 as aws
from reconciler.clients.aws.ec2 import Aws
from reconciler.clients.azure.arm import Arm, connect
from reconciler.clients.kubernetes.connection import Connection
from reconciler.clients.machine_providers import MachineProviders
from reconciler.settings.schema import Settings

if TYPE_CHECKING:
    from reconciler.clients.azure.agent_pools import AgentPools
    from reconciler.clients.kubernetes.machines import ClusterMachines


class Clouds:
    """Keeps the clients over passes, and with them their tokens; follows settings that are read anew."""

    def __init__(self, guard: Callable[[], None] | None = None) -> None:
        """Take what raises LockLost where the lock is not ours; without it nothing may be written.

        Who may not write can't write down either what ARM said, so it is kept here.
        """
        self._guard = guard
        self._made: dict[str, Arm] = {}
        self._aws: Aws | None = None
        self._pools: dict[tuple[str, str], AgentPools] = {}

    def of(self, settings: Settings) -> Arm | None:
        """Return ARM, None where it is switched off."""
        source = settings.sources.arm
        if not source.enabled:
            return None
        name = source.cloud.value
        if name not in self._made:
            self._made[name] = Arm(connect(name), guard=self._guard)
        found = self._made[name]
        found.keep = 0.0 if self._guard else source.every.total_seconds()
        return found

    def ec2(self, settings: Settings) -> Aws | None:
        """Return AWS's EC2, None where it is switched off."""
        source = settings.sources.aws
        if not source.enabled:
            return None
        if self._aws is None:
            self._aws = Aws(aws.connect())
        self._aws.keep = 0.0 if self._guard else source.every.total_seconds()
        return self._aws

    def machines(self, settings: Settings, connection: Connection) -> MachineProviders:
        """Return who is asked about the machines behind nodes, and for new ones."""
        cluster, cloud = settings.replace.aks.cluster, settings.sources.arm.cloud.value

        def in_the_cluster() -> ClusterMachines:
            from reconciler.clients.kubernetes.machines import ClusterMachines

            return ClusterMachines(connection, guard=self._guard)

        return MachineProviders(
            in_the_cluster, partial(self._agent_pools, cluster, cloud) if cluster is not None else None
        )

    def _agent_pools(self, cluster: str, cloud: str) -> AgentPools:
        from reconciler.clients.azure import agent_pools

        if (cluster, cloud) not in self._pools:
            pipeline = agent_pools.connect(cloud)
            self._pools[cluster, cloud] = agent_pools.AgentPools(cluster, pipeline, guard=self._guard)
        return self._pools[cluster, cloud]
