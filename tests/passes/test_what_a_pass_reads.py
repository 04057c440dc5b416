"""What a pass reads is what its settings need, and no less, and it is requested at the same time."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.values import replace
from reconciler.run import rehearse
from tests.support import builders
from tests.support.builders import NOW, REQUEST, codes, plan_of
from tests.support.worlds import look, world_of

SOON = '{"kind":"Redeploy","notBefore":"2026-11-21T13:10:00Z"}'
NIGHTS_OF_THE_BILLING_TEAM = (
    'windows: [{name: night, start: "22:00", end: "23:00", nodeSelector: {team: billing}},'
    ' {name: noon, start: "11:00", end: "13:00", nodeSelector: {team: search}}]'
)


@pytest.mark.parametrize(("team", "waits"), [("billing", True), ("search", False)])
def test_a_label_that_only_the_settings_name_decides_when_a_drain_starts(team: str, waits: bool) -> None:
    node = builders.node("a", labels={"team": team}, annotations={REQUEST: SOON})
    world = world_of([node, builders.node("b")])
    plan, _ = look(world, builders.settings(NIGHTS_OF_THE_BILLING_TEAM))

    assert ("windowOpen" in codes(plan_of(plan))) is waits
    assert world.cluster.nodes["a"].unschedulable is not waits


class Asked:
    """A reader that can begin reads early, and the names of what it is asked for, in order."""

    def __init__(self, cluster: object) -> None:
        self._cluster = cluster
        self.names: list[str] = []

    def read_ahead(self, **what: bool) -> None:
        self.names += ["read_ahead", *(name for name, wanted in what.items() if wanted)]

    def __getattr__(self, name: str) -> object:
        self.names.append(name)
        return getattr(self._cluster, name)


def test_the_state_of_agents_is_requested_before_the_nodes_are_listed() -> None:
    world = world_of([builders.node("a")])
    asked: Any = Asked(world.outside.reader)
    rehearse(replace(world.outside, reader=asked), builders.settings(), NOW)

    begun = asked.names[: asked.names.index("nodes")]
    assert begun[0] == "read_ahead"
    assert "agents" in begun
