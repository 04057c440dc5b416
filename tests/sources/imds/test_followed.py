"""Azure was asked to start an event, and does not: the node gives its place on."""

from __future__ import annotations

from datetime import timedelta

from reconciler.sources.imds.feature import FOLLOWED
from tests.laws.azure import Azure
from tests.support.builders import NOW, minutes, node, on_vm, plan_of, settings, vm_name
from tests.support.fakes.imds import event as imds_event
from tests.support.strategies import rfc1123
from tests.support.worlds import world_of

LEAD, AHEAD = minutes(15), minutes(60)
TRUSTING = "budget: {maxUnavailable: 2}\nevents: {Reboot: {acknowledge: true}}"


def test_an_event_that_azure_was_asked_to_start_and_does_not_gives_its_place_on() -> None:
    """And its next drain starts late. The record keeps the request, so it is the same in every process."""
    policy = settings(TRUSTING)
    history = Azure(world_of([on_vm(node(f"n{number}"), number) for number in range(3)]), policy)
    when = NOW + timedelta(days=3)
    history.events["A1"] = imds_event([vm_name(0)], "Reboot", event_id="A1", not_before=rfc1123(when))
    history.go_on(passes=4)
    assert history.acknowledged() == {"n0": ["A1"]}

    history.wait(FOLLOWED - minutes(1))
    history.go_on()
    assert history.cluster.nodes["n0"].unschedulable
    plan = history.look()[0]
    assert plan.next_change is not None
    assert plan.next_change <= NOW + FOLLOWED + minutes(1)
    history.wait(minutes(2))
    history.go_on()
    ending = "only the platform ends it: Azure was asked to start it at "
    assert any(ending in judged.after_drain.words for judged in plan_of(history.look()[0], "n0").events)
    history.wait(policy.uncordon.settle + minutes(1))
    history.go_on(passes=2)
    assert not history.cluster.nodes["n0"].unschedulable
    assert history.acknowledged() == {}
    schedule = plan_of(history.look()[0], "n0").schedule
    assert schedule is not None
    assert schedule.planned_start == when - LEAD - AHEAD

    history.wait(when - LEAD - AHEAD - history.now)
    history.go_on(passes=4)
    assert history.acknowledged() == {"n0": ["A1"]}
    history.wait(FOLLOWED + policy.uncordon.settle + minutes(1))
    history.go_on(passes=2)
    # It is kept for the start that comes so soon.
    assert history.cluster.nodes["n0"].unschedulable
