"""docs/migrating.md on kured: both run, and this is what they see of each other.

kured (github.com/kubereboot/kured, README.md) "cordons & drains worker nodes before reboot, uncordoning them
after".
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from reconciler.model.event import Kind
from reconciler.model.plan import Plan
from reconciler.model.unguarded import UnguardedWhy
from reconciler.settings.load import parse_settings
from reconciler.simulation.platform import VmEvent
from reconciler.simulation.world import World
from tests.examples.playing import MINUTE, WEB, play
from tests.simulation.building import START, name, world
from tests.support import builders
from tests.support.builders import codes, plan_of
from tests.support.worlds import look

PAGE = (Path(__file__).parents[2] / "docs" / "migrating.md").read_text(encoding="utf-8")
BESIDE = PAGE.partition("\n## kured\n")[2].partition("```yaml\n")[2].partition("```")[0]
ONE = builders.settings("budget: {maxUnavailable: 1}")
SOON = START + 12 * MINUTE


def planned(there: World) -> Plan:
    return look(there, ONE)[0]


def test_no_drain_starts_while_kured_may_reboot_but_at_a_deadline() -> None:
    kept = parse_settings(BESIDE, "migrating.md")
    night = datetime(2026, 11, 25, 1, 30, tzinfo=UTC)

    opening = kept.calendar.at(night, {})
    assert (opening.open, "kured" in opening.because) == (False, True)
    assert kept.calendar.at(night.replace(hour=4), {}).open
    assert not any(freeze.absolute for freeze in kept.not_allowed)


def test_a_node_that_kured_has_cordoned_holds_a_place() -> None:
    there = world(4, WEB)
    there.cluster.cordon(name(1))
    there.platform.announce(VmEvent(name(0), Kind.REBOOT, START + 60 * MINUTE))

    assert codes(plan_of(planned(there), name(0))) == {"budgetLeft"}


def test_a_cordon_that_kured_takes_from_us_is_said_to_leave_the_node_unguarded() -> None:
    there = world(4, WEB)
    there.platform.announce(VmEvent(name(0), Kind.REBOOT, SOON))
    play(there, ONE, 2)
    assert there.cluster.nodes[name(0)].unschedulable
    there.cluster.cordon(name(0), on=False)
    play(there, ONE, 1)

    left = plan_of(planned(there), name(0)).unguarded
    assert left is not None
    assert left.why is UnguardedWhy.UNCORDONED_BY_HAND
    assert f"reconciler release {name(0)}" in left.who


def test_a_cordon_of_kured_stays_after_the_maintenance() -> None:
    there = world(4, WEB)
    there.cluster.cordon(name(0))
    there.platform.announce(VmEvent(name(0), Kind.REBOOT, SOON))
    play(there, ONE, 40)

    assert there.cluster.nodes[name(0)].unschedulable
    assert not there.cluster.nodes[name(0)].annotations
