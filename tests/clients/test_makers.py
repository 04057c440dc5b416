"""Everybody who makes machines behind one port: each is asked about its own, and not before it is needed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reconciler.clients.makers import Makers
from reconciler.model.machine import Machine, MachineRef, Maker, Raise, Remove


class Asked:
    """A maker that remembers what it was asked."""

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


def ref(node: str, maker: Maker) -> MachineRef:
    return MachineRef(node, f"uid-{node}", maker, node)


REFS = (ref("a", Maker.AKS), ref("b", Maker.KARPENTER), ref("c", Maker.AKS), ref("d", Maker.OPENSHIFT))


def test_each_is_asked_once_about_its_own_and_the_answers_are_in_order() -> None:
    cluster, aks = Asked("cluster"), Asked("aks")
    found = Makers(lambda: cluster, lambda: aks).machines(REFS)

    assert [machine.name for machine in found] == ["aks-a", "cluster-b", "aks-c", "cluster-d"]
    assert (aks.did, cluster.did) == (["machines a c"], ["machines b d"])


def test_who_is_not_needed_is_not_made() -> None:
    def nobody() -> Asked:
        raise AssertionError("made without need")

    cluster, aks = Asked("cluster"), Asked("aks")
    assert Makers(nobody, nobody).machines(()) == ()
    Makers(lambda: cluster, nobody).machines(REFS[1:2])
    Makers(nobody, lambda: aks).machines(REFS[:1])

    assert (aks.did, cluster.did) == (["machines a"], ["machines b"])


def test_what_is_wanted_goes_to_the_machine_s_own_maker() -> None:
    cluster, aks = Asked("cluster"), Asked("aks")
    makers = Makers(lambda: cluster, lambda: aks)
    for one in REFS[:2]:
        makers.raise_pool(Raise(one.node, Machine(one), 4))
        makers.remove(Remove(one.node, Machine(one)))

    assert (aks.did, cluster.did) == (["raise a", "remove a"], ["raise b", "remove b"])


def test_without_a_cluster_s_name_an_agent_pool_can_t_be_asked() -> None:
    makers = Makers(lambda: Asked("cluster"))
    found = makers.machines(REFS)

    assert ["replace.aks.cluster" in machine.problem for machine in found] == [True, False, True, False]
    with pytest.raises(ValueError, match=r"replace\.aks\.cluster"):
        makers.remove(Remove("a", found[0]))
