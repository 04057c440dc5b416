"""OpenShift's machine API: its group, and the mark by which a MachineSet deletes a machine first.

The mark counts unless it is empty (machine-api-operator, pkg/controller/machineset/delete_policy.go). The
version is fixed: the group prefers v1, which has no machines.
"""

from __future__ import annotations

from reconciler.features.machines.kubernetes.access import MachineAccess
from reconciler.features.machines.kubernetes.machine_sets import MachineApi, MachineSets

API = MachineApi("machine.openshift.io", "v1beta1", ("machine.openshift.io/delete-machine", "true"))


def openshift(access: MachineAccess) -> MachineSets:
    """Return the client of OpenShift's Machines."""
    return MachineSets(access, API)
