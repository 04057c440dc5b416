"""What makes the hold of a VM that is off, for its entry in docs/holds.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reconciler.features.esx.feature import VM_POWER
from reconciler.model.plan import NodePlan
from reconciler.run import run_pass
from tests.features.esx import test_power as power
from tests.support import builders


def _switched_off() -> NodePlan:
    world, there = power.single()
    power.off(world, there)
    return builders.plan_of(run_pass(world.outside, power.SETTINGS, world.now)[0], "n0")


HOLDS: Mapping[str, Callable[[], NodePlan]] = {VM_POWER.code: _switched_off}
