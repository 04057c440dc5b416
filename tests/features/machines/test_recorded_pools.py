"""Answers of AKS about agent pools and their machines in the shapes of its published API examples.

The values are our own. The examples have every field of an answer, most of which nobody here reads.
"""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.features.machines.agent_pools import AgentPools
from reconciler.model.machine import AKS as AKS_MACHINES
from reconciler.model.machine import Machine, MachineRef
from tests.support.fakes.arm import RecordedArm

SUB = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
AKS = f"/subscriptions/{SUB}/resourcegroups/shop/providers/Microsoft.ContainerService/managedClusters/shop"
VM = (
    f"/subscriptions/{SUB}/resourceGroups/MC_shop/providers/Microsoft.Compute"
    "/virtualMachineScaleSets/aks-np-123-vmss/virtualMachines/0"
)


def pool(**properties: object) -> dict[str, Any]:
    """Return an agent pool of an example; one that was never changed has no type."""
    return {
        "id": f"{AKS}/agentPools/np",
        "type": "Microsoft.ContainerService/managedClusters/agentPools",
        "name": "np",
        "properties": {
            "provisioningState": "Succeeded",
            "maxPods": 110,
            "osType": "Linux",
            "orchestratorVersion": "1.34.1",
            "currentOrchestratorVersion": "1.34.1",
            "nodeImageVersion": "AKSUbuntu-2404gen2containerd",
            "upgradeSettings": {"maxSurge": "33%"},
            **properties,
        },
    }


MACHINES = [
    {
        "id": f"{AKS}/agentPools/np/machines/aks-np-123-vmss000000",
        "name": "aks-np-123-vmss000000",
        "type": "Microsoft.ContainerService/managedClusters/agentPools/machines",
        "zones": ["1"],
        "properties": {"network": {"ipAddresses": [{"ip": "10.0.0.1", "family": "IPv4"}]}, "resourceId": VM},
    },
    {"name": "aks-np-123-vmss000001", "properties": {"network": {}}},
]
"""The second one is being made, and has no VM yet."""


def machine(document: dict[str, Any], node: str) -> Machine:
    """Return the machine of a node of the pool with this document."""
    arm = RecordedArm({"/np": document, "/np/machines": {"value": MACHINES}})
    ref = MachineRef(node, "uid", AKS_MACHINES, node, pool="np", provider_id=f"azure://{VM}")
    (found,) = AgentPools(AKS, arm).machines([ref])
    return found


TWO_SIZES = [{"size": "Standard_D2_v2", "count": 3}, {"size": "Standard_D2_v3", "count": 2}]


@pytest.mark.parametrize(
    ("document", "wanted", "ready", "busy"),
    [
        pytest.param(pool(count=3, vmSize="Standard_D2_v2", eTag="ebw"), 3, 3, "", id="a scale set"),
        pytest.param(
            pool(count=3, eTag="ebw", provisioningState="Upgrading"),
            3,
            None,
            "agent pool np is Upgrading",
            id="in an upgrade",
        ),
        pytest.param(
            pool(count=3, eTag="ebw", powerState={"code": "Stopped"}),
            3,
            None,
            "agent pool np is Stopped",
            id="stopped",
        ),
        pytest.param(
            pool(
                type="VirtualMachines",
                virtualMachinesProfile={"scale": {"manual": TWO_SIZES}},
                virtualMachineNodesStatus=TWO_SIZES,
            ),
            None,
            None,
            "",
            id="virtual machines of two sizes",
        ),
        pytest.param(
            pool(type="VirtualMachines", virtualMachinesProfile={"scale": {"manual": TWO_SIZES[:1]}}),
            3,
            3,
            "",
            id="virtual machines of one size",
        ),
    ],
)
def test_an_agent_pool(document: dict[str, Any], wanted: int | None, ready: int | None, busy: str) -> None:
    found = machine(document, "aks-np-123-vmss000000").pool

    assert found is not None
    assert (found.wanted, found.ready, found.busy) == (wanted, ready, busy)


def test_the_machines_of_a_pool() -> None:
    found = machine(pool(count=3), "aks-np-123-vmss000000")

    assert (found.problem, found.name) == ("", "aks-np-123-vmss000000")
    assert "has no machine of its name" in machine(pool(count=3), "aks-np-123-vmss000001").problem
