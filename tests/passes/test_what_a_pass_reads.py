"""What a pass reads is what its settings need, and no less, and it is requested at the same time."""

from __future__ import annotations

import pytest

from tests.support import builders
from tests.support.builders import REQUEST, codes, plan_of
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
