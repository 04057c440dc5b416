"""Histories: passes over a cluster while people, platform and failures do things between them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hypothesis import strategies as st

from reconciler.drain.claim import claim
from reconciler.model.azure import vm_name
from reconciler.model.node import Condition
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Agents
from reconciler.model.values import replace
from reconciler.model.writes import NodeWrite
from reconciler.settings.schema import Settings
from reconciler.simulation.api import SimulatedApi
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.simulation.world import World
from tests.support import builders, strategies
from tests.support.builders import IMDS, RECORD, REQUEST, STATE
from tests.support.worlds import carry_on, look, world_of

MAIN = "VMEventScheduled"


@dataclass(slots=True)
class History:
    """What has happened so far in a world; `silent` are the nodes whose detector has died."""

    world: World
    settings: Settings
    silent: set[str] = field(default_factory=set)

    @property
    def cluster(self) -> SimulatedCluster:
        """The objects, for everyone but the program."""
        return self.world.cluster

    @property
    def api(self) -> SimulatedApi:
        """The cluster as the program reaches it."""
        return self.world.api

    @property
    def now(self) -> datetime:
        """The time (aware, UTC)."""
        return self.world.now

    def wait(self, time: timedelta) -> None:
        """Let time pass; detectors that live write their heartbeats."""
        self.world.advance(time)
        for name, node in list(self.cluster.nodes.items()):
            reported = node.condition(MAIN)
            if reported is not None and name not in self.silent:
                self.cluster.set_condition(name, replace(reported, heartbeat=self.now))

    def look(self) -> tuple[Plan, tuple[Outcome, ...]]:
        """Run one pass, and what its drains do after it."""
        done = look(self.world, self.settings)
        carry_on(self.world)
        return done

    def until_still(self, most: int = 8) -> Plan:
        """Run passes at this moment until one of them asks for no write, refused ones included."""
        for _ in range(most):
            before = self.api.writes
            plan, _ = self.look()
            if self.api.writes == before:
                return plan
        raise AssertionError(f"still writing after {most} passes: {self.api.done[-1:]}")


_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
# Only the process that drains a node counts the pods that leave, and the count is lost with it.
_MOVED = re.compile(r',"moved":\d+')


def visible(world: World) -> dict[str, object]:
    """The cluster as anybody can see it; times, resource versions and what a process counted aside."""
    return {
        name: (
            node.unschedulable,
            dict(node.labels),
            {key: _MOVED.sub("", _TIME.sub("T", text)) for key, text in node.annotations.items()},
            [pod.key for pod in world.cluster.pods_on(name)],
        )
        for name, node in world.cluster.nodes.items()
    }


Step = Callable[[History], None]
names = st.sampled_from(("n0", "n1", "n2"))


def _on(change: Callable[[History, str], None]) -> st.SearchStrategy[Step]:
    def step(name: str) -> Step:
        def happen(history: History) -> None:
            if name in history.cluster.nodes:
                change(history, name)

        return happen

    return names.map(step)


def _cordon(history: History, name: str) -> None:
    history.cluster.cordon(name)


def _uncordon(history: History, name: str) -> None:
    history.cluster.cordon(name, on=False)


def by_hand(history: History, name: str) -> None:
    """A person drains the node by hand, as `reconciler drain` claims it."""
    asked = claim(history.cluster.nodes[name], builders.PREFIX, "ann", history.now)
    if isinstance(asked, NodeWrite):
        history.cluster.annotate(name, RECORD, asked.annotations[RECORD])
        history.cluster.label(name, STATE, asked.labels[STATE])
        history.cluster.cordon(name)


def _by_hand_and_open(history: History, name: str) -> None:
    """A person drains the node by hand, and it is uncordoned before a pass sees it."""
    by_hand(history, name)
    _uncordon(history, name)


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
    blind = history.cluster.agents.not_ready | {name}
    history.cluster.agents = Agents(installed=True, not_ready=blind)


def _sighted(history: History, name: str) -> None:
    blind = history.cluster.agents.not_ready - {name}
    history.cluster.agents = Agents(installed=True, not_ready=blind)


def _recreate(history: History, name: str) -> None:
    fresh = builders.node(name, ready_since=history.now)
    place = history.cluster.nodes[name].provider_id
    history.cluster.replace_node(replace(fresh, uid="", provider_id=place))


@st.composite
def _say(draw: st.DrawFn) -> Step:
    name, message = draw(names), draw(strategies.messages())

    def happen(history: History) -> None:
        if name in history.cluster.nodes:
            reported = builders.condition(MAIN, "True", message, at=history.now)
            history.cluster.set_condition(name, reported)

    return happen


def _vm(history: History, name: str) -> str:
    return vm_name(history.cluster.nodes[name].provider_id) or name


@st.composite
def _publish(draw: st.DrawFn) -> Step:
    name, event = draw(names), draw(strategies.imds_events())

    def happen(history: History) -> None:
        if name in history.cluster.nodes:
            history.cluster.annotate(name, IMDS, builders.published(event, vm=_vm(history, name)))

    return happen


_SEEN = (_request, _withdraw, _quiet, _unknown, _blind, _sighted, _down, _up, _die, _revive, _garble)
platform_steps: st.SearchStrategy[Step] = st.one_of(
    *(_on(change) for change in _SEEN), _say(), _publish(), _on(_withdraw), _on(_quiet), _on(_request)
)
second_reasons: st.SearchStrategy[Step] = st.one_of(_on(_request), _on(_withdraw))
agent_steps: st.SearchStrategy[Step] = st.one_of(_on(_blind), _on(_sighted))
people_steps: st.SearchStrategy[Step] = st.one_of(_on(_cordon), _on(_uncordon), _on(_recreate))
hand_steps: st.SearchStrategy[Step] = st.one_of(_on(by_hand), _on(_by_hand_and_open), _on(_uncordon))
waits = st.sampled_from((0, 1, 1, 2, 3, 5, 20)).map(lambda count: timedelta(minutes=count))


def small_world() -> World:
    """Three healthy nodes with a pod each and a detector that has nothing to say."""
    bare = [builders.node(f"n{number}", conditions=(builders.quiet(),)) for number in range(3)]
    nodes = [builders.on_vm(node, number) for number, node in enumerate(bare)]
    return world_of(nodes, [builders.pod(f"web-{node.name}", node.name) for node in nodes])


def patches(api: SimulatedApi) -> list[NodeWrite]:
    """Return every patch of a node so far."""
    return [call.content for call in api.done if isinstance(call.content, NodeWrite)]


def come_to_an_end(history: History) -> None:
    """Let every event go and every source be readable again, as happens when maintenance is over."""
    for name in history.cluster.nodes:
        for change in (_withdraw, _quiet, _sighted, _revive, _up):
            change(history, name)


def nothing(history: History) -> None:
    """Let nothing happen."""
    del history
