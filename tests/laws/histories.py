"""Histories: passes over a cluster while people, platform and failures do things between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hypothesis import strategies as st

from reconciler.model.node import Condition
from reconciler.model.outcome import Outcome
from reconciler.model.plan import NodeWrite, Plan
from reconciler.model.ports import SourceClient
from reconciler.model.snapshot import Agents
from reconciler.settings.schema import Settings
from reconciler.sources import imds
from tests.support import builders, strategies
from tests.support.builders import IMDS, NOW, REQUEST
from tests.support.fakes.cluster import FakeCluster, FakeDrains, cluster_of, one_pass

MAIN = "VMEventScheduled"


@dataclass(slots=True)
class History:
    """What has happened so far; `silent` are the nodes whose detector has died."""

    cluster: FakeCluster
    settings: Settings
    now: datetime = NOW
    cloud: SourceClient | None = None
    drains: FakeDrains = field(init=False)
    silent: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with no drain under way."""
        self.drains = FakeDrains(self.cluster)

    def wait(self, time: timedelta) -> None:
        """Let time pass; detectors that live write their heartbeats."""
        self.now += time
        for name, node in list(self.cluster.objects.items()):
            told = node.condition(MAIN)
            if told is not None and name not in self.silent:
                self.cluster.set_condition(name, replace(told, heartbeat=self.now))

    def look(self) -> tuple[Plan, tuple[Outcome, ...]]:
        """One pass, and what its drains do after it."""
        done = one_pass(self.cluster, self.drains, self.settings, self.now, cloud=self.cloud)
        self.drains.carry_on(self.now)
        return done

    def until_still(self, most: int = 8) -> Plan:
        """Passes at this moment until one of them writes nothing."""
        for _ in range(most):
            before = len(self.cluster.writes)
            plan, _ = self.look()
            if len(self.cluster.writes) == before:
                return plan
        raise AssertionError(f"still writing after {most} passes: {self.cluster.writes[-1]}")


Step = Callable[[History], None]
names = st.sampled_from(("n0", "n1", "n2"))


def _on(change: Callable[[History, str], None]) -> st.SearchStrategy[Step]:
    def step(name: str) -> Step:
        def happen(history: History) -> None:
            if name in history.cluster.objects:
                change(history, name)

        return happen

    return names.map(step)


def _cordon(history: History, name: str) -> None:
    history.cluster.change(name, unschedulable=True)


def _uncordon(history: History, name: str) -> None:
    history.cluster.change(name, unschedulable=False)


def _request(history: History, name: str) -> None:
    history.cluster.annotate(name, REQUEST, builders.DRAIN_NOW)


def _withdraw(history: History, name: str) -> None:
    history.cluster.annotate(name, REQUEST, None)


def _garble(history: History, name: str) -> None:
    history.cluster.annotate(name, REQUEST, "reboot, please")


def _quiet(history: History, name: str) -> None:
    history.cluster.annotate(name, IMDS, None)
    history.cluster.set_condition(name, builders.quiet(history.now))


def _unknown(history: History, name: str) -> None:
    because = builders.condition(MAIN, "Unknown", "IMDS query failed", at=history.now)
    history.cluster.set_condition(name, because)


def _die(history: History, name: str) -> None:
    history.silent.add(name)


def _revive(history: History, name: str) -> None:
    history.silent.discard(name)


def _down(history: History, name: str) -> None:
    history.cluster.set_condition(name, Condition("Ready", "Unknown", transition=history.now))


def _up(history: History, name: str) -> None:
    history.cluster.set_condition(name, Condition("Ready", "True", transition=history.now))


def _blind(history: History, name: str) -> None:
    blind = history.cluster.daemonset.not_ready | {name}
    history.cluster.daemonset = Agents(installed=True, not_ready=blind)


def _sighted(history: History, name: str) -> None:
    blind = history.cluster.daemonset.not_ready - {name}
    history.cluster.daemonset = Agents(installed=True, not_ready=blind)


def _recreate(history: History, name: str) -> None:
    fresh = builders.node(name, uid=f"uid-{name}-{history.cluster.revision}", ready_since=history.now)
    history.cluster.pods_on.pop(name, None)
    history.cluster.put(replace(fresh, provider_id=history.cluster.objects[name].provider_id))


@st.composite
def _say(draw: st.DrawFn) -> Step:
    name, message = draw(names), draw(strategies.messages())

    def happen(history: History) -> None:
        if name in history.cluster.objects:
            told = builders.condition(MAIN, "True", message, at=history.now)
            history.cluster.set_condition(name, told)

    return happen


def _vm(history: History, name: str) -> str:
    return imds.vm_name(history.cluster.objects[name].provider_id) or name


@st.composite
def _publish(draw: st.DrawFn) -> Step:
    name, event = draw(names), draw(strategies.imds_events())

    def happen(history: History) -> None:
        if name in history.cluster.objects:
            history.cluster.annotate(name, IMDS, builders.published(event, vm=_vm(history, name)))

    return happen


_SEEN = (_request, _withdraw, _quiet, _unknown, _blind, _sighted, _down, _up, _die, _revive, _garble)
platform_steps: st.SearchStrategy[Step] = st.one_of(
    *(_on(change) for change in _SEEN), _say(), _publish(), _on(_withdraw), _on(_quiet), _on(_request)
)
second_reasons: st.SearchStrategy[Step] = st.one_of(_on(_request), _on(_withdraw))
agent_steps: st.SearchStrategy[Step] = st.one_of(_on(_blind), _on(_sighted))
people_steps: st.SearchStrategy[Step] = st.one_of(_on(_cordon), _on(_uncordon), _on(_recreate))
waits = st.sampled_from((0, 1, 1, 2, 3, 5, 20)).map(lambda count: timedelta(minutes=count))


def small_cluster() -> FakeCluster:
    """Three healthy nodes with a pod each and a detector that has nothing to say."""
    bare = [builders.node(f"n{number}", conditions=(builders.quiet(),)) for number in range(3)]
    nodes = [builders.on_vm(node, number) for number, node in enumerate(bare)]
    return cluster_of(nodes, [builders.pod(f"web-{node.name}", node.name) for node in nodes])


def patches(cluster: FakeCluster) -> list[NodeWrite]:
    """Every patch of a node so far."""
    return [write.what for write in cluster.writes if isinstance(write.what, NodeWrite)]
