"""Everybody who makes machines behind one port: each is asked about its own, and not before it is needed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reconciler.clients.machine_providers import MachineProviders
from reconciler.model.machine import Machine, MachineProvider, MachineRef, Raise, Remove


class Asked:
    """A provider that remembers what it was asked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.did: list[str] = []

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        self.did.append(f"machines {' '.join(ref.node for ref in refs)}")
        return tuple(Machine(ref, name=f"{self.name}-{ref.node}") for ref in refs)

    def raise_pool(self, action: Raise) -> None:
        self.did.append(f"raise {action.node}")

    def remove(self, action: Remove) -> None:
        self.did.append(f"remove {action.node}")


def ref(node: str, provider: MachineProvider) -> MachineRef:
    return MachineRef(node, f"uid-{node}", provider, node)


REFS = (
    ref("a", MachineProvider.AKS),
    ref("b", MachineProvider.KARPENTER),
    ref("c", MachineProvider.AKS),
    ref("d", MachineProvider.OPENSHIFT),
)


def test_each_is_asked_once_about_its_own_and_the_answers_are_in_order() -> None:
    cluster, aks = Asked("cluster"), Asked("aks")
    found = MachineProviders(lambda: cluster, lambda: aks).machines(REFS)

    assert [machine.name for machine in found] == ["aks-a", "cluster-b", "aks-c", "cluster-d"]
    assert (aks.did, cluster.did) == (["machines a c"], ["machines b d"])


def test_who_is_not_needed_is_not_made() -> None:
    def nobody() -> Asked:
        raise AssertionError("made without need")

    cluster, aks = Asked("cluster"), Asked("aks")
    assert MachineProviders(nobody, nobody).machines(()) == ()
    MachineProviders(lambda: cluster, nobody).machines(REFS[1:2])
    MachineProviders(nobody, lambda: aks).machines(REFS[:1])

    assert (aks.did, cluster.did) == (["machines a"], ["machines b"])


def test_what_is_wanted_goes_to_the_machine_s_own_maker() -> None:
    cluster, aks = Asked("cluster"), Asked("aks")
    providers = MachineProviders(lambda: cluster, lambda: aks)
    for one in REFS[:2]:
        providers.raise_pool(Raise(one.node, Machine(one), 4))
        providers.remove(Remove(one.node, Machine(one)))

    assert (aks.did, cluster.did) == (["raise a", "remove a"], ["raise b", "remove b"])


def test_without_a_cluster_s_name_an_agent_pool_can_t_be_asked() -> None:
    providers = MachineProviders(lambda: Asked("cluster"))
    found = providers.machines(REFS)

    assert ["replace.aks.cluster" in machine.problem for machine in found] == [True, False, True, False]
    with pytest.raises(ValueError, match=r"replace\.aks\.cluster"):
        providers.remove(Remove("a", found[0]))
