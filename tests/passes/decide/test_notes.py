"""The notes about the whole cluster."""

from __future__ import annotations

import pytest

from reconciler.model.snapshot import Agents
from tests.support import builders
from tests.support.builders import IMDS, node
from tests.support.worlds import look, world_of


@pytest.mark.parametrize(
    ("agents", "text", "noted"),
    [
        pytest.param(Agents(), "", True, id="no DaemonSet"),
        pytest.param(Agents(installed=True), "", False, id="installed"),
        pytest.param(Agents(problem="403"), "", False, id="nobody knows"),
        pytest.param(Agents(), "sources: {imds: {enabled: false}}", False, id="the source is off"),
    ],
)
def test_an_annotation_of_an_agent_that_is_not_installed_is_noted(
    agents: Agents, text: str, noted: bool
) -> None:
    published = {IMDS: builders.published(vm=builders.vm_name(0))}
    world = world_of([builders.on_vm(node("a", annotations=published), 0), node("b")])
    world.cluster.agents = agents
    plan, _ = look(world, builders.settings(text))

    assert any(f"{IMDS} stays in force" in note and "(1 of 2 nodes)" in note for note in plan.notes) is noted
