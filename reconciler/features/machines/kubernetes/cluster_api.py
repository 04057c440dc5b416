"""Cluster API: its group, and the mark by which a MachineSet deletes a machine first.

The mark counts whatever its value (internal/controllers/machineset/machineset_delete_policy.go). During a
rollout another MachineSet may be scaled down, whatever is marked (kubernetes-sigs/cluster-api#8205), so a
pool that is rolling out is busy.
"""

from __future__ import annotations

from reconciler.features.machines.kubernetes.access import MachineAccess
from reconciler.features.machines.kubernetes.machine_sets import MachineApi, MachineSets

API = MachineApi("cluster.x-k8s.io", mark=("cluster.x-k8s.io/delete-machine", "yes"))


def cluster_api(access: MachineAccess) -> MachineSets:
    """Return the client of Cluster API's Machines."""
    return MachineSets(access, API)
