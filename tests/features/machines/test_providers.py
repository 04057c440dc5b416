"""All machine providers as one: each is asked about its own machines, and made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from jobs.runtime.machines import MachineProviders
from reconciler.features.machines.feature import PROVIDERS
from reconciler.features.machines.process import CLIENTS, Surroundings
from reconciler.kubernetes.connection import Connection
from reconciler.model.machine import AKS, KARPENTER, OPENSHIFT, Machine, MachineRef, Remove, ScaleUp
from tests.features.machines.all_providers import all_machines
from tests.support.stub import connection_to_nowhere


class Asked:
    """A provider that remembers what it was asked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.did: list[str] = []

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        self.did.append(f"machines {' '.join(ref.node for ref in refs)}")
        return tuple(Machine(ref, name=f"{self.name}-{ref.node}") for ref in refs)

    def scale_up(self, action: ScaleUp) -> None:
        self.did.append(f"scale up {action.node}")

    def remove(self, action: Remove) -> None:
        self.did.append(f"remove {action.node}")

    def forget(self) -> None:
        pass


def ref(node: str, provider: str) -> MachineRef:
    return MachineRef(node, f"uid-{node}", provider, node)


REFS = (ref("a", AKS), ref("b", KARPENTER), ref("c", AKS), ref("d", OPENSHIFT))


def providers(connection: Connection, *needed: Asked) -> MachineProviders:
    """Providers of which only the needed ones can be made, and each of those once."""
    made = {asked.name: asked for asked in needed}

    def factory_of(name: str) -> Callable[[Surroundings], Asked]:
        def make(_: Surroundings) -> Asked:
            assert name in made, f"{name} was made without need"
            return made.pop(name)

        return make

    return all_machines(connection, clients={name: factory_of(name) for name in CLIENTS})


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    """A connection that nothing here uses."""
    with connection_to_nowhere(tmp_path) as made:
        yield made


def test_every_provider_has_a_client_of_its_name() -> None:
    assert list(CLIENTS) == [provider.name for provider in PROVIDERS]


def test_each_is_asked_once_about_its_own_and_the_answers_are_in_order(connection: Connection) -> None:
    agents, claims, sets = Asked(AKS), Asked(KARPENTER), Asked(OPENSHIFT)
    found = providers(connection, agents, claims, sets).machines(REFS)

    assert [machine.name for machine in found] == ["AKS-a", "Karpenter-b", "AKS-c", "OpenShift-d"]
    assert (agents.did, claims.did, sets.did) == (["machines a c"], ["machines b"], ["machines d"])


def test_a_client_is_created_only_if_needed_and_then_kept(connection: Connection) -> None:
    claims = Asked(KARPENTER)
    ours = providers(connection, claims)

    assert ours.machines(()) == ()
    ours.machines(REFS[1:2])
    ours.machines(REFS[1:2])
    assert claims.did == ["machines b", "machines b"]


def test_what_is_wanted_goes_to_the_machine_s_own_provider(connection: Connection) -> None:
    agents, claims = Asked(AKS), Asked(KARPENTER)
    ours = providers(connection, agents, claims)
    for one in REFS[:2]:
        ours.scale_up(ScaleUp(one.node, Machine(one), 4))
        ours.remove(Remove(one.node, Machine(one)))

    assert (agents.did, claims.did) == (["scale up a", "remove a"], ["scale up b", "remove b"])


def test_without_a_cluster_s_name_an_agent_pool_can_t_be_asked(connection: Connection) -> None:
    ours = all_machines(connection)
    found = ours.machines(REFS[:1])

    assert "replace.aks.cluster" in found[0].problem
    with pytest.raises(ValueError, match=r"replace\.aks\.cluster"):
        ours.remove(Remove("a", found[0]))
    with pytest.raises(ValueError, match=r"replace\.aks\.cluster"):
        ours.scale_up(ScaleUp("a", found[0], 4))
