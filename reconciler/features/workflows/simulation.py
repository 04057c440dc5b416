"""What workflows read and change in a simulated cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.features.workflows.services import (
    CHANGE_HYPERVISOR,
    SERVICES,
    TAKE_LEASE,
    Hypervisor,
    HypervisorWrite,
    KubernikusReader,
    PrometheusReader,
)
from reconciler.model.errors import Conflict, NotFound
from reconciler.model.leases import LeaseRef, LeaseSeen, LeaseTake
from reconciler.model.values import replace
from reconciler.simulation.api import SimulatedApi
from reconciler.simulation.clock import Actor

LEASES, HYPERVISORS = "leases", "hypervisors"
"""The kinds, as `ObjectStore.others` has them."""


class Nobody:
    """A service that answers nothing."""

    def ask(self, queries: Sequence[Any], /) -> Mapping[Any, Any]:
        """Return no answer."""
        del queries
        return {}


class SimulatedServices:
    """Services over a simulated cluster. Reads and writes call the hooks of its API."""

    def __init__(self, api: SimulatedApi) -> None:
        self.api = api
        self.prometheus: PrometheusReader = Nobody()
        self.kubernikus: KubernikusReader = Nobody()

    @property
    def leases(self) -> Mapping[LeaseRef, LeaseSeen]:
        """The Leases."""
        return self.api.cluster.others.get(LEASES) or {}

    def put_lease(self, ref: LeaseRef, lease: LeaseSeen) -> None:
        """Store a Lease as it is now, with a new resourceVersion."""
        revision = self.api.cluster.next_revision()
        stored = replace(lease, resource_version=revision, uid=f"lease-{ref}")
        self.api.cluster.others[LEASES] = {**self.leases, ref: stored}

    def put_hypervisors(self, *hypervisors: Hypervisor) -> None:
        """Store Hypervisors as they are now. The kind is installed then."""
        before = self.api.cluster.others.get(HYPERVISORS, {})
        self.api.cluster.others[HYPERVISORS] = {**before, **{each.name: each for each in hypervisors}}

    def lease(self, ref: LeaseRef) -> LeaseSeen | None:
        """Return a Lease."""
        self.api.begin_read("lease", str(ref))
        return self.leases.get(ref)

    def take_lease(self, take: LeaseTake) -> None:
        """Take a Lease. One that has changed since it was read is not taken."""
        call = self.api.begin_write("take_lease", take.holder, str(take.ref), take)
        now = self.leases.get(take.ref)
        ours = now is not None and (now.holder, now.renewed) == (take.holder, take.at)
        if now != take.seen and not ours:
            raise Conflict(f"the Lease {take.ref} has changed", status=409)
        count = now.transitions + 1 if now is not None else 0
        self.put_lease(take.ref, LeaseSeen(take.holder, take.at, take.duration, transitions=count))
        self.api.cluster.note(Actor.US, TAKE_LEASE.name, take.holder, str(take.ref))
        self.api.end_write(call)

    def hypervisors(self) -> tuple[Hypervisor, ...] | None:
        """Return all Hypervisors; None where the kind is not installed."""
        self.api.begin_read("hypervisors")
        stored = self.api.cluster.others.get(HYPERVISORS)
        return None if stored is None else tuple(stored[name] for name in sorted(stored))

    def write_hypervisor(self, write: HypervisorWrite) -> None:
        """Set fields of a Hypervisor. One with another UID is not changed."""
        call = self.api.begin_write("write_hypervisor", write.name, content=write)
        stored = self.api.cluster.others.get(HYPERVISORS, {}).get(write.name)
        if stored is None:
            raise NotFound(f"the Hypervisor {write.name} not found", status=404)
        if stored.uid != write.uid:
            raise Conflict(f"the Hypervisor {write.name} was deleted and created again", status=409)
        self.put_hypervisors(replace(stored, spec={**stored.spec, **write.fields}))
        self.api.cluster.note(Actor.US, CHANGE_HYPERVISOR.name, write.name)
        self.api.end_write(call)


SIMULATED = {SERVICES.name: SimulatedServices}
