"""AKS upgrades a node pool: no second node of the pool is drained, and the upgraded node is left alone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.plan import Plan
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import IN_UPGRADE, NOW, REQUEST, codes, minutes, plan_of
from tests.support.worlds import world_of

UPGRADES = "AKS upgrades pool np"
FREE = "budget: {maxUnavailable: 100%}"


def history(text: str = FREE) -> History:
    """A pool of three nodes, and another of one."""
    places = {"n0": "np", "n1": "np", "n2": "np", "n3": "other"}
    nodes = [builders.node(name, pool=pool, conditions=(builders.quiet(),)) for name, pool in places.items()]
    pods = [builders.pod(f"web-{name}", name) for name in places]
    return History(world_of(nodes, pods), builders.settings(f"{text}\nuncordon: {{settle: 0s}}"))


def upgrade(there: History, name: str, *, on: bool = True) -> None:
    for key, value in IN_UPGRADE.items():
        there.cluster.annotate(name, key, value if on else None)


def request(there: History, name: str, within: float | None = None) -> None:
    at = f',"notBefore":"{(there.now + minutes(within)).isoformat()}"' if within is not None else ""
    there.cluster.annotate(name, REQUEST, f'{{"kind":"Reboot"{at}}}')


def cordoned(there: History) -> list[str]:
    there.until_still()
    return sorted(name for name, node in there.cluster.nodes.items() if node.unschedulable)


def reason(plan: Plan, name: str, code: str = "leftToUs") -> str:
    return next((one.reason for one in plan_of(plan, name).holds if one.code == code), "")


def test_no_drain_starts_in_the_pool_until_the_upgrade_is_over() -> None:
    there = history()
    upgrade(there, "n0")
    for name in ("n1", "n3"):
        request(there, name)

    assert cordoned(there) == ["n3"]
    plan = there.until_still()
    assert (reason(plan, "n1"), codes(plan_of(plan, "n1"))) == (UPGRADES, {"leftToUs"})
    schedule = plan_of(plan, "n1").schedule
    assert schedule is not None
    assert schedule.because == UPGRADES

    upgrade(there, "n0", on=False)
    assert cordoned(there) == ["n1", "n3"]


def test_at_its_latest_start_a_drain_does_not_wait_for_the_upgrade() -> None:
    there = history("budget: {maxUnavailable: 2}")
    upgrade(there, "n0")
    request(there, "n1", within=120)
    plan = there.until_still()
    (hold,) = plan_of(plan, "n1").holds
    assert (hold.code, hold.reason, hold.until) == ("leftToUs", UPGRADES, NOW + minutes(105))

    there.wait(minutes(104))
    assert cordoned(there) == []
    there.wait(minutes(1))
    assert cordoned(there) == ["n1"]


def test_a_window_before_the_deadline_is_not_missed_because_of_the_upgrade() -> None:
    night = 'windows: [{name: now, start: "11:00", end: "13:00"}]'
    there = history(f"{FREE}\n{night}\nevents: {{Reboot: {{outsideWindow: Never}}}}")
    upgrade(there, "n0")
    request(there, "n1", within=300)
    assert cordoned(there) == []
    # The last moment of the window that leaves the lead time.
    there.wait(minutes(45))
    assert cordoned(there) == ["n1"]


@pytest.mark.parametrize("event", ['{"kind":"Preempt"}', '{"kind":"Terminate"}'])
def test_a_node_that_may_be_lost_at_any_moment_does_not_wait(event: str) -> None:
    there = history()
    upgrade(there, "n0")
    there.cluster.annotate("n1", REQUEST, event)

    assert cordoned(there) == ["n1"]


def test_the_upgraded_node_holds_a_place_in_the_budget() -> None:
    there = history("budget: {maxUnavailable: 1}")
    upgrade(there, "n0")
    request(there, "n3")

    assert cordoned(there) == []
    assert "n0 (upgraded by AKS)" in reason(there.until_still(), "n3", "budgetLeft")
    upgrade(there, "n0", on=False)
    assert cordoned(there) == ["n3"]


def test_a_node_in_upgrade_is_never_uncordoned() -> None:
    there = history()
    request(there, "n0")
    assert cordoned(there) == ["n0"]
    upgrade(there, "n0")
    there.cluster.annotate("n0", REQUEST, None)
    for _ in range(3):
        assert cordoned(there) == ["n0"]
        there.wait(timedelta(hours=1))
    assert reason(there.until_still(), "n0", "leftByRemediator") == UPGRADES

    upgrade(there, "n0", on=False)
    assert cordoned(there) == []


def test_a_drain_that_runs_goes_on_when_the_upgrade_begins() -> None:
    there = history()
    request(there, "n1")
    assert cordoned(there) == ["n1"]
    upgrade(there, "n0")

    assert cordoned(there) == ["n1"]
    assert not there.cluster.pods_on("n1")


@pytest.mark.parametrize(
    "annotations",
    [pytest.param({key: IN_UPGRADE[key]}, id=f"only {key.partition('/')[0]}") for key in IN_UPGRADE],
)
def test_one_annotation_alone_is_no_upgrade(annotations: dict[str, str]) -> None:
    there = history()
    for key, value in annotations.items():
        there.cluster.annotate("n0", key, value)
    request(there, "n1")

    assert cordoned(there) == ["n1"]


def test_a_node_that_the_upgrade_left_undrained_is_not_upgraded_any_more() -> None:
    there = history()
    upgrade(there, "n0")
    there.cluster.label("n0", "kubernetes.azure.com/upgrade-status", "Quarantined")
    request(there, "n1")

    assert cordoned(there) == ["n1"]


def test_an_upgraded_node_without_a_pool_concerns_itself_only() -> None:
    there = history()
    for name in ("n0", "n1"):
        there.cluster.label(name, "agentpool", None)
        request(there, name)
    upgrade(there, "n0")

    assert cordoned(there) == ["n1"]
    assert reason(there.until_still(), "n0") == "AKS upgrades the node"
