"""The client of each machine provider, created when a machine of that provider is first read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from reconciler.http.retrying import Guard, read_only
from reconciler.model.machine import (
    AKS,
    CLUSTER_API,
    KARPENTER,
    OPENSHIFT,
    Machine,
    MachineRef,
    Remove,
    ScaleUp,
)
from reconciler.model.ports import MachineReader, MachineWriter

if TYPE_CHECKING:
    from reconciler.features.machines.access import MachineAccess
    from reconciler.kubernetes.connection import Connection
    from reconciler.settings.schema import Settings


class MachineClient(MachineReader, MachineWriter, Protocol):
    """The client of one provider: it shows machines, scales up a pool, and deletes a machine."""


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

    def forget(self) -> None:
        """Forget what was read for an earlier pass."""
        if "access" in self.__dict__:
            self.access.forget()


def _karpenter(around: Surroundings) -> MachineClient:
    from reconciler.features.machines.karpenter import Karpenter

    return Karpenter(around.access)


def _machine_sets(provider: str, around: Surroundings) -> MachineClient:
    from reconciler.features.machines.machine_sets import APIS, MachineSets

    return MachineSets(around.access, APIS[provider])


def _aks(around: Surroundings) -> MachineClient:
    cluster = around.settings.replace.aks.cluster
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


class NotSetUp(Struct, frozen=True):
    """A provider without the settings that it needs; `problem` says what is missing."""

    problem: str

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Return each machine with the problem."""
        return tuple(Machine(ref, problem=self.problem) for ref in refs)

    def scale_up(self, action: ScaleUp) -> None:
        """Raise ValueError: every machine from here has a problem."""
        raise ValueError(f"{action.node}: {self.problem}")

    def remove(self, action: Remove) -> None:
        """Raise ValueError, as `scale_up` does."""
        raise ValueError(f"{action.node}: {self.problem}")


class MachineProviders:
    """All providers as MachineReader and MachineWriter; each request goes to the machine's own provider."""

    def __init__(
        self,
        around: Surroundings,
        clients: Mapping[str, Callable[[Surroundings], MachineClient]] = CLIENTS,
    ) -> None:
        """Create no client yet: most passes replace nothing."""
        self._around = around
        self._clients = clients
        self._made: dict[str, MachineClient] = {}

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Return each machine as it is now, in order; raises nothing."""
        self._around.forget()
        found: dict[MachineRef, Machine] = {}
        for provider in dict.fromkeys(ref.provider for ref in refs):
            of_it = [ref for ref in refs if ref.provider == provider]
            found |= dict(zip(of_it, self._client(provider).machines(of_it), strict=True))
        return tuple(found[ref] for ref in refs)

    def scale_up(self, action: ScaleUp) -> None:
        """Scale the machine's pool to `wanted` machines; raises ClusterError or CloudError."""
        self._client(action.machine.ref.provider).scale_up(action)

    def remove(self, action: Remove) -> None:
        """Delete the machine; raises ClusterError or CloudError."""
        self._client(action.machine.ref.provider).remove(action)

    def _client(self, provider: str) -> MachineClient:
        if provider not in self._made:
            self._made[provider] = self._clients[provider](self._around)
        return self._made[provider]
