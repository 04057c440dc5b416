"""What waits for Karpenter, which reads the scheduled events of EC2 itself."""

from __future__ import annotations

import pytest

from reconciler.model.node import Node, Taint
from reconciler.model.values import replace
from reconciler.profiles.instructed import others_at_work
from tests.support import builders
from tests.support.builders import NOW, minutes, node, plan_of

KARPENTERS = node("a", labels={"karpenter.sh/nodepool": "np"}, taints=("karpenter.sh/disrupted",))


def tainted(one: Node, key: str) -> Node:
    return replace(one, taints=(Taint(key, "", "NoSchedule"),))


@pytest.mark.parametrize(("source", "waits"), [("aws", True), ("request", False)])
def test_an_event_of_ec2_waits_for_karpenter_that_replaces_the_node_until_its_latest_start(
    source: str, waits: bool
) -> None:
    def starts(after: float, on: Node = KARPENTERS) -> bool:
        given = {"a": builders.reported(builders.signal(source=source, not_before=NOW + minutes(after)))}
        plan = plan_of(builders.planned(builders.snapshot(on, node("b"), readings=given)))
        kept = [hold.reason for hold in plan.holds if hold.code == "leftToUs"]
        because = "Karpenter is replacing the node (taint karpenter.sh/disrupted)"
        assert kept == ([] if plan.drain_begins else [because])
        return plan.drain_begins

    assert starts(60) is not waits
    assert starts(15)
    # It is in a maintenance that began before, which may be why Karpenter replaces it.
    assert starts(60, replace(KARPENTERS, unschedulable=True))
    assert starts(60, replace(KARPENTERS, labels={}))
    assert starts(60, replace(KARPENTERS, taints=()))


def test_an_event_that_a_person_requests_too_does_not_wait_for_karpenter() -> None:
    event = builders.judged(builders.event(sources=("aws", "request")))

    assert others_at_work(event, KARPENTERS, builders.settings(""), "") == ()


@pytest.mark.parametrize("key", ["karpenter.sh/disrupted", "karpenter.sh/disruption"])
def test_both_taints_of_karpenter_count(key: str) -> None:
    event = builders.judged(builders.event(sources=("aws",)))

    assert others_at_work(event, tainted(KARPENTERS, key), builders.settings(""), "") != ()


@pytest.mark.parametrize("leave", ["[]", "[Reboot]"])
def test_with_a_list_of_kinds_nothing_waits_for_karpenter(leave: str) -> None:
    chosen = builders.settings(f"coexist: {{karpenter: {{leave: {leave}}}}}")
    event = builders.judged(builders.event(sources=("aws",)))

    assert others_at_work(event, KARPENTERS, chosen, "") == ()


def test_a_note_says_what_waits_for_karpenter() -> None:
    left = "events of EC2 on nodes that it replaces, until their latest start (coexist.karpenter.leave)"

    assert builders.planned(builders.snapshot(KARPENTERS)).notes == (
        f"Karpenter manages 1 node; left to it: {left}",
    )
