"""The client of each machine provider, created when a machine of that provider is first read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

from jobs.runtime.machines import MachineClient, NotSetUp
from jobs.runtime.process import Ports, Process
from reconciler.http.retrying import Guard, read_only
from reconciler.model.machine import AKS, CLUSTER_API, KARPENTER, OPENSHIFT

if TYPE_CHECKING:
    from jobs.runtime.machines import Makers
    from reconciler.features.machines.access import MachineAccess
    from reconciler.kubernetes.connection import Connection
    from reconciler.settings.schema import Settings


class Surroundings:
    """What clients need: the connection, the lock's guard (None: only reads), and the settings."""

    def __init__(self, connection: Connection, settings: Settings, guard: Guard | None = None) -> None:
        """Create no client yet."""
        self.connection = connection
        self.settings = settings
        self.guard = guard

    @cached_property
    def access(self) -> MachineAccess:
        """What the providers in the cluster share, so that each path is read once a pass."""
        from reconciler.features.machines.access import MachineAccess

        return MachineAccess(self.connection, self.guard or read_only)


def _karpenter(around: Surroundings) -> MachineClient:
    from reconciler.features.machines.karpenter import Karpenter

    return Karpenter(around.access)


def _machine_sets(provider: str, around: Surroundings) -> MachineClient:
    from reconciler.features.machines.machine_sets import APIS, MachineSets

    return MachineSets(around.access, APIS[provider])


def _aks(around: Surroundings) -> MachineClient:
    from reconciler.features.machines.settings import REPLACE

    cluster = REPLACE.of(around.settings).aks.cluster
    if cluster is None:
        return NotSetUp("replace.aks.cluster does not say which managed cluster this is")
    from reconciler.features.machines import agent_pools

    # The cloud stands in the section of a source, which may have been removed.
    arm = getattr(around.settings.sources, "arm", None)
    pipeline = agent_pools.connect(getattr(arm, "cloud", "Public"))
    return agent_pools.AgentPools(cluster, pipeline, guard=around.guard)


CLIENTS: Mapping[str, Callable[[Surroundings], MachineClient]] = {
    KARPENTER: _karpenter,
    OPENSHIFT: partial(_machine_sets, OPENSHIFT),
    CLUSTER_API: partial(_machine_sets, CLUSTER_API),
    AKS: _aks,
}
"""What makes the client of each provider, by its name in `feature.py`."""


def _machines(given: Ports) -> Callable[[Settings], Makers]:
    def makers(settings: Settings) -> Makers:
        around = Surroundings(given.connection, settings, given.guard)
        return {provider: partial(make, around) for provider, make in CLIENTS.items()}

    return makers


PROCESS = Process(machines=_machines)
