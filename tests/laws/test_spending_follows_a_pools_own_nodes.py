"""Whatever nodes say of themselves, a pool grows, and loses machines, for its own nodes in maintenance only.

The passes run on the simulated cluster, with the real client of agent pools and AKS's own answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.features.machines.agent_pools import AgentPools
from reconciler.model.node import Node
from reconciler.model.values import replace
from reconciler.simulation.world import World
from tests.features.machines.fake_agent_pools import CLUSTER, FakeAgentPools, vm_id
from tests.support import builders
from tests.support.builders import REQUEST, minutes
from tests.support.controlplane.fill import Pool
from tests.support.searching import examples
from tests.support.worlds import carry_on, look, world_of

POOLS = ("np", "gpu")
OWN = {Pool(pool).node_name(number): pool for pool in POOLS for number in range(2)}
SOON = '{"kind":"Redeploy"}'
FAR = '{"kind":"Redeploy","notBefore":"2026-11-22T12:00:00Z"}'
REPLACES = "budget: {maxUnavailable: 100%}\nevents: {Redeploy: {replace: true}}\n"
SURGES = f"{REPLACES}replace: {{surge: true}}\n"


def honest(name: str, pool: str) -> Node:
    return replace(builders.node(name, pool=pool), uid="", provider_id=f"azure://{vm_id(name, pool)}")


@dataclass(slots=True)
class Spending:
    """A cluster of two pools; `asked` counts how often the own nodes of each began to want a replacement."""

    world: World
    azure: FakeAgentPools
    policy: str
    asked: dict[str, int] = field(default_factory=dict)
    wanted: set[str] = field(default_factory=set)
    deleted: list[str] = field(default_factory=list)

    def ask(self, name: str, request: str | None) -> None:
        node = self.world.cluster.nodes[name]
        if request is not None:
            self.wanted.add(name)
            if REQUEST not in node.annotations:
                self.asked[OWN[name]] = self.asked.get(OWN[name], 0) + 1
        self.world.cluster.annotate(name, REQUEST, request)

    def go_on(self, pause: timedelta = timedelta()) -> None:
        self.world.advance(pause)
        for _ in range(3):
            look(self.world, builders.settings(self.policy))
            carry_on(self.world)

    def raises(self, pool: str) -> int:
        return sum(one == f"PUT {pool}" for one in self.azure.writes)


@contextmanager
def two_pools(policy: str) -> Iterator[Spending]:
    with FakeAgentPools() as azure:
        world = world_of([honest(name, pool) for name, pool in OWN.items()])
        made = Spending(world, azure, policy)

        def gone(name: str) -> None:
            made.deleted.append(name)
            if name in world.cluster.nodes:
                world.cluster.delete_node(name)

        def come(name: str) -> None:
            pool = next(one for one in POOLS if f"-{one}-" in name)
            world.cluster.add_node(honest(name, pool))

        azure.deleted, azure.added = gone, come
        for pool in POOLS:
            azure.pool(pool, 2)
        # The client itself is the machine provider of every node here.
        world.machines = AgentPools(CLUSTER, azure.pipeline(), guard=lambda: None)  # type: ignore[assignment]
        yield made


Step = Callable[[Spending], None]
names = st.sampled_from(sorted(OWN))


def _on(change: Callable[[Spending, str], None]) -> st.SearchStrategy[Step]:
    def step(name: str) -> Step:
        return lambda history: change(history, name) if name in history.world.cluster.nodes else None

    return names.map(step)


@st.composite
def _labels(draw: st.DrawFn) -> Step:
    name, pool = draw(names), draw(st.sampled_from((*POOLS, "..", "gone", None)))
    key = draw(st.sampled_from(("agentpool", "kubernetes.azure.com/agentpool")))

    def happen(history: Spending) -> None:
        if name in history.world.cluster.nodes:
            history.world.cluster.label(name, key, pool)

    return happen


@st.composite
def _claims(draw: st.DrawFn) -> Step:
    """A kubelet registers its node again, with another pool and VM; what was wanted of it is kept."""
    name, other, pool = draw(names), draw(names), draw(st.sampled_from(POOLS))

    def happen(history: Spending) -> None:
        cluster = history.world.cluster
        if name in cluster.nodes:
            reported = cluster.nodes[name].annotations.get(REQUEST)
            cluster.replace_node(
                replace(honest(name, pool), provider_id=f"azure://{vm_id(other, OWN[other])}")
            )
            cluster.annotate(name, REQUEST, reported)

    return happen


steps: st.SearchStrategy[Step] = st.one_of(
    _labels(),
    _claims(),
    _on(lambda history, name: history.ask(name, SOON)),
    _on(lambda history, name: history.ask(name, FAR)),
    _on(lambda history, name: history.ask(name, None)),
    st.sampled_from((1, 3, 20)).map(lambda count: lambda history: history.go_on(minutes(count))),
)


@settings(max_examples=examples(25))
@given(st.sampled_from((REPLACES, SURGES)), st.lists(steps, min_size=3, max_size=10))
def test_over_any_history_a_pool_grows_for_its_own_nodes_only(policy: str, course: list[Step]) -> None:
    with two_pools(policy) as history:
        for step in course:
            step(history)
            history.go_on()

        for pool in POOLS:
            assert history.raises(pool) <= history.asked.get(pool, 0)
        assert set(history.deleted) <= history.wanted
        assert history.azure.violations == []


def test_without_a_lie_a_pool_grows_once_for_each_of_its_nodes_and_ends_as_it_began() -> None:
    with two_pools(REPLACES) as history:
        first, second = (name for name, pool in OWN.items() if pool == "np")
        history.ask(first, SOON)
        history.go_on()
        history.go_on(minutes(3))
        history.ask(second, SOON)
        history.go_on()
        history.go_on(minutes(3))

        assert history.deleted == [first, second]
        assert (history.raises("np"), history.raises("gpu")) == (2, 0)
        assert history.azure.count("np") == 2


def test_a_forged_label_makes_no_pool_grow_however_often() -> None:
    with two_pools(SURGES) as history:
        liar = next(name for name, pool in OWN.items() if pool == "np")
        for key in ("agentpool", "kubernetes.azure.com/agentpool"):
            history.world.cluster.label(liar, key, "gpu")
        for _ in range(5):
            for request in (SOON, FAR, None):
                history.ask(liar, request)
                history.go_on(minutes(30))

        assert history.azure.writes == []
        assert history.deleted == []
