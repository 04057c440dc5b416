"""Law 11: same snapshot, settings and now: same plan."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.model.values import replace
from reconciler.passes.assess import assess
from reconciler.passes.decide import decide
from reconciler.passes.observe import observe
from reconciler.run import PARTS
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.laws.hits import Hits
from tests.support import strategies
from tests.support.builders import NOW
from tests.support.searching import examples


def _plan(seen: Snapshot, policy: Settings, now: datetime) -> Plan:
    return decide(seen, assess(seen, now), policy, now, PARTS)


REPEATED = Hits()


@REPEATED.at_least(30)
@settings(max_examples=examples(100))
@given(strategies.worlds(), strategies.policies(), st.integers(0, 300))
def test_a_decision_can_be_repeated(world: World, policy: Settings, later: int) -> None:
    seen, now = observe(world.outside, policy, NOW, PARTS), NOW + timedelta(minutes=later)
    first = _plan(seen, policy, now)
    _plan(seen, policy, now + timedelta(hours=1))  # what it was asked between does not matter

    REPEATED.count(any(one.acts for one in first.nodes))
    assert _plan(seen, policy, now) == first


SHUFFLED = Hits()


@SHUFFLED.at_least(25)
@settings(max_examples=examples(100))
@given(strategies.worlds(), strategies.policies(), st.randoms(use_true_random=False))
def test_the_order_in_which_things_were_seen_changes_nothing(
    world: World, policy: Settings, chance: random.Random
) -> None:
    seen = observe(world.outside, policy, NOW, PARTS)
    nodes, pods = list(seen.nodes), {name: list(each) for name, each in seen.pods.items()}
    chance.shuffle(nodes)
    for each in pods.values():
        chance.shuffle(each)
    names = [node.name for node in nodes]
    shuffled = replace(
        seen,
        nodes=tuple(nodes),
        readings={name: seen.readings[name] for name in names},
        pods={name: tuple(pods[name]) for name in names if name in pods},
    )

    plan = _plan(seen, policy, NOW)
    SHUFFLED.count(sum(one.acts for one in plan.nodes) > 1)
    assert _plan(shuffled, policy, NOW) == plan


@pytest.mark.heavy
def test_the_plan_does_not_hang_on_how_this_process_hashes_text() -> None:
    code = "from tests.laws.one_report import report; print(report())"
    reported = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            encoding="utf-8",
        ).stdout
        for seed in ("1", "2", "3")
    ]

    assert len(set(reported)) == 1
    assert '"n0"' in reported[0]
