"""Answers of Azure about VMs in the shapes of its published API examples, with values of our own.

The examples have every field of an answer, most of which nobody here reads, and some that contradict others.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reconciler.model.machine import Scope
from reconciler.sources.arm import source as arm
from reconciler.sources.arm.source import Planned

SUB = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
COMPUTE = f"/subscriptions/{SUB}/resourceGroups/MC_shop/providers/Microsoft.Compute"
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
