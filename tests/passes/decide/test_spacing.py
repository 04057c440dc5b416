"""Which starts count for `budget.spacing`."""

from __future__ import annotations

from tests.support import builders
from tests.support.builders import NOW, REQUEST, minutes, node
from tests.support.worlds import carry_on, look, world_of

SPACED = builders.settings("budget: {maxUnavailable: 100%, spacing: 10m}")


def test_spot_nodes_that_go_every_eight_minutes_keep_no_other_node_waiting() -> None:
    world = world_of([node(f"spot{number}") for number in range(4)] + [node("n0"), node("n1")])
    started: dict[str, float] = {}
    for minute in range(26):
        if minute % 8 == 0:
            world.cluster.annotate(f"spot{minute // 8}", REQUEST, '{"kind":"Preempt"}')
        if minute == 1:
            world.cluster.annotate("n0", REQUEST, builders.DRAIN_NOW)
            world.cluster.annotate("n1", REQUEST, builders.DRAIN_NOW)
        plan, _ = look(world, SPACED)
        started |= {one.node: minute for one in plan.nodes if one.starts}
        carry_on(world)
        world.advance(minutes(1))

    assert started == {"spot0": 0, "n0": 1, "spot1": 8, "n1": 11, "spot2": 16, "spot3": 24}
    assert world.cluster.ledger.last_start == NOW + minutes(11)
