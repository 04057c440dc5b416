"""Answers of Azure in the shapes of its published API examples, with values of our own.

The examples have every field of an answer, most of which nobody here reads, and some that contradict others.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest

from reconciler.features.calendars.aks_maintenance import is_aks, parse_aks
from reconciler.features.machines.agent_pools import AgentPools
from reconciler.model.machine import AKS as AKS_MACHINES
from reconciler.model.machine import Machine, MachineRef, Scope
from reconciler.sources.arm import source as arm
from reconciler.sources.arm.source import Planned
from tests.support.fakes.arm import RecordedArm

SUB = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
COMPUTE = f"/subscriptions/{SUB}/resourceGroups/MC_shop/providers/Microsoft.Compute"
AKS = f"/subscriptions/{SUB}/resourcegroups/shop/providers/Microsoft.ContainerService/managedClusters/shop"
SET, SINGLES = Scope(SUB, "mc_shop", "aks-np-123-vmss"), Scope(SUB)
SAME = "2026-11-30T12:58:26.531Z"
AT = datetime(2026, 11, 30, 12, 58, 26, tzinfo=UTC)
STATUSES = [{"code": "PowerState/running", "level": "Info", "displayStatus": "VM running", "time": SAME}]


def status(**changes: object) -> dict[str, object]:
    """Return the status of an example: each of its dates is the same moment."""
    dates = dict.fromkeys(
        (
            "preMaintenanceWindowStartTime",
            "preMaintenanceWindowEndTime",
            "maintenanceWindowStartTime",
            "maintenanceWindowEndTime",
        ),
        SAME,
    )
    message = {"lastOperationResultCode": "None", "lastOperationMessage": "aaaaaaaaaaaa"}
    return {"isCustomerInitiatedMaintenanceAllowed": True, **dates, **message, **changes}


def view(**changes: object) -> dict[str, object]:
    """Return the instance view of an example."""
    return {
        "placementGroupId": "f79e82f0-3480-4eb3-a893-5cf9bfd74daf",
        "platformUpdateDomain": 0,
        "platformFaultDomain": 0,
        "computerName": "aks-np-123-vmss000007",
        "rdpThumbPrint": "aaaa",
        "vmAgent": {"vmAgentVersion": "2.2.45", "statuses": STATUSES, "extensionHandlers": []},
        "disks": [{"name": "os", "encryptionSettings": [], "statuses": STATUSES}],
        "bootDiagnostics": {"consoleScreenshotBlobUri": "https://example.com/{x}", "status": STATUSES[0]},
        "extensions": [{"name": "vmssCSE", "substatuses": STATUSES}],
        "vmHealth": {"status": STATUSES[0]},
        "assignedHost": None,
        "statuses": STATUSES,
        **changes,
    }


ALL_AT_ONCE = Planned(True, AT, AT, AT, AT)


@pytest.mark.parametrize(
    ("instance", "seen", "planned"),
    [
        pytest.param(view(maintenanceRedeployStatus=status()), True, ALL_AT_ONCE, id="with maintenance"),
        pytest.param(view(), True, None, id="without maintenance"),
        pytest.param(view(maintenanceRedeployStatus=None), True, None, id="null"),
        pytest.param(
            view(maintenanceRedeployStatus={"additionalProperties": {}, **status(lastOperationMessage=None)}),
            True,
            ALL_AT_ONCE,
            id="as the command line prints it",
        ),
        pytest.param({}, False, None, id="an empty view says nothing"),
        pytest.param(None, False, None, id="no view says nothing"),
    ],
)
def test_an_instance_of_a_scale_set(
    instance: dict[str, object] | None, seen: bool, planned: Planned | None
) -> None:
    document: dict[str, object] = {
        "name": "aks-np-123-vmss_7",
        "id": f"{COMPUTE}/virtualMachineScaleSets/aks-np-123-vmss/virtualMachines/7",
        "type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
        "location": "westeurope",
        "tags": {"aks-managed-poolName": "np"},
        "instanceId": "7",
        "sku": {"name": "Standard_D4s_v5", "tier": "Standard"},
        "zones": ["1"],
        "etag": '"1"',
        "properties": {"latestModelApplied": True, "vmId": "x", "instanceView": instance},
    }
    listing = arm.listing(SET, [document])

    assert listing.seen == (frozenset({"7"}) if seen else frozenset())
    assert dict(listing.found).get("7") == planned


def test_a_vm_in_the_list_of_a_subscription() -> None:
    def document(name: str, instance: dict[str, object]) -> dict[str, object]:
        vm = f"{COMPUTE}/virtualMachines/{name}"
        return {"id": vm, "name": name, "properties": {"vmId": "x", "instanceView": instance}}

    planned = view(maintenanceRedeployStatus=status())
    quiet: dict[str, object] = {"statuses": STATUSES}
    listing = arm.listing(SINGLES, [document("aks-vms-1", planned), document("aks-vms-2", quiet)])

    assert listing.found == (("mc_shop/aks-vms-1", ALL_AT_ONCE),)
    assert listing.silent == {"mc_shop/aks-vms-2"}


def test_the_instance_view_of_one_vm() -> None:
    scope = Scope(SUB, "mc_shop", vm="aks-vms-1")
    of_vm = {key: value for key, value in view().items() if key != "placementGroupId"}

    assert arm.one_vm(scope, of_vm).found == ()
    listing = arm.one_vm(scope, {**of_vm, "maintenanceRedeployStatus": status()})
    assert listing.found == (("mc_shop/aks-vms-1", ALL_AT_ONCE),)


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


VM = f"{COMPUTE}/virtualMachineScaleSets/aks-np-123-vmss/virtualMachines/0"
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


CONFIGURATIONS = [
    {
        "id": f"{AKS}/maintenanceConfigurations/aksManagedNodeOSUpgradeSchedule",
        "name": "aksManagedNodeOSUpgradeSchedule",
        "properties": {
            "maintenanceWindow": {
                "schedule": {"daily": {"intervalDays": 5}},
                "durationHours": 10,
                "utcOffset": "-07:00",
                "startDate": "2026-01-01",
                "startTime": "13:30",
            }
        },
    },
    {
        "id": f"{AKS}/maintenanceConfigurations/default",
        "name": "default",
        "properties": {
            "notAllowedTime": [{"start": "2026-11-26T03:00:00Z", "end": "2026-11-30T12:00:00Z"}],
            "timeInWeek": [{"day": "Monday", "hourSlots": [1, 2]}],
        },
    },
]


@pytest.mark.parametrize(
    ("document", "first"),
    [
        pytest.param(CONFIGURATIONS[0], "2026-11-22T20:30", id="a schedule"),
        pytest.param({"value": CONFIGURATIONS[1:]}, "2026-11-23T01:00", id="the older form, in a list"),
    ],
)
def test_a_maintenance_configuration(document: dict[str, Any], first: str) -> None:
    assert is_aks(document)
    (run,) = islice(parse_aks(document).runs(datetime(2026, 11, 22, 12, tzinfo=UTC)), 1)
    assert f"{run.start:%Y-%m-%dT%H:%M}" == first


def test_a_list_of_several_configurations_is_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match="has 2 configurations; use a file for each"):
        parse_aks({"value": CONFIGURATIONS})
