"""Which VM a node is: by its UUID, also as VMware's firmware writes it, and by its name."""

from __future__ import annotations

import pytest

from reconciler.features.esx.vm import Named, Vm, identify

UUID, SWAPPED = "42031a2b-3c4d-5e6f-7081-92a3b4c5d6e7", "2b1a0342-4d3c-6f5e-7081-92a3b4c5d6e7"
OTHER = "99999999-3c4d-5e6f-7081-92a3b4c5d6e7"


@pytest.mark.parametrize(
    ("uuid", "vms", "problem"),
    [
        pytest.param(UUID, [Vm("1", "n", UUID)], "", id="its UUID"),
        pytest.param(UUID.upper(), [Vm("1", "N", UUID)], "", id="in capitals"),
        pytest.param(SWAPPED, [Vm("1", "n", UUID)], "", id="in the other order of bytes"),
        pytest.param(UUID, [Vm("1", "n", OTHER, UUID)], "", id="that of the instance"),
        pytest.param("", [Vm("1", "n", OTHER), Vm("2", "m", UUID)], "", id="no UUID, one of its name"),
        pytest.param(UUID, [Vm("1", "n", OTHER)], f"{UUID}, and the VM of its name has {OTHER}"),
        pytest.param(UUID, [Vm("1", "m", UUID)], f"{UUID}, which the VM m has"),
        pytest.param(UUID, [Vm("1", "n", UUID), Vm("2", "n", UUID)], "which the VM n and the VM n has"),
        pytest.param(UUID, [Vm("1", "n", UUID), Vm("2", "m", UUID)], "which the VM m and the VM n has"),
        pytest.param(UUID, [Vm("1", "m", OTHER)], f"{UUID}, which no VM has"),
        pytest.param(UUID, [Vm("1", "n")], "and the VM of its name has none"),
        pytest.param("", [Vm("1", "n"), Vm("2", "N")], "no UUID, and 2 VMs have its name"),
        pytest.param("", [Vm("1", "m")], "no UUID, and no VM has its name"),
        pytest.param(UUID, [Vm("1", "m", "?")], "which no VM has", id="no UUID at all"),
    ],
)
def test_a_node_is_the_vm_of_its_uuid_and_name(uuid: str, vms: list[Vm], problem: str) -> None:
    found = identify(Named("n", "a", uuid), vms)

    assert found.vm == (None if problem else vms[0])
    assert found.problem.endswith(problem)
    assert bool(found.problem) is bool(problem)
