"""The detector of a simulation: the source reads its condition."""

from __future__ import annotations

from reconciler.model.event import Kind, Reading
from reconciler.simulation.platform import Reporter
from reconciler.simulation.world import World
from reconciler.sources.condition.source import MAIN, read
from tests.simulation.building import name, world
from tests.simulation.reported import MINUTE, Reported, event


class TestReported(Reported):
    reporter, other = Reporter.CONDITION, Reporter.AGENT

    def read(self, there: World) -> Reading:
        return read(there.cluster.nodes[name(0)])[0]


def test_a_recreated_vm_has_none_of_the_old_one_s_events() -> None:
    there = world(1)
    there.platform.announce(event(Kind.REBOOT))
    there.cluster.recreate_node(name(0))

    there.advance(60 * MINUTE)

    assert there.cluster.nodes[name(0)].ready
    assert there.cluster.nodes[name(0)].condition(MAIN) is None


def test_of_several_events_the_condition_shows_one() -> None:
    """The detector sorts dates as text, so that a Thursday comes before the Wednesday that precedes it."""
    there = world(1)
    there.platform.announce(event(Kind.REBOOT, minutes=60))
    there.platform.announce(event(Kind.FREEZE, minutes=24 * 60))

    assert [one.kind for one in read(there.cluster.nodes[name(0)])[0].signals] == [Kind.FREEZE]
