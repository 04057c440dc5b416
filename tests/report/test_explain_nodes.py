"""A node: what is announced and by whom, what follows, what blocks, and who can change that."""

from __future__ import annotations

import json

import pytest

from reconciler.model.event import Kind, Status
from reconciler.model.explanation import Obstacle
from reconciler.model.holds import HoldCode
from reconciler.model.keys import OwnKeys
from reconciler.model.plan import Preview
from reconciler.model.record import DrainRecord, State
from reconciler.model.selector import EVERYTHING
from reconciler.profiles.checks import CHECKS
from reconciler.report.explain import obstacles
from reconciler.report.who import WHO, ends_by_itself, who_ends, who_reads
from reconciler.simulation.workloads import BudgetSpec
from tests.report.explaining import Explained
from tests.support import builders
from tests.support.builders import DRAIN_NOW, NOW, REQUEST, known, minutes, record, signal
from tests.support.worlds import world_of

NIGHT = 'windows: [{name: night, start: "22:00", end: "05:00"}]'
ASKED = {REQUEST: DRAIN_NOW}


def test_a_node_without_an_event_says_what_a_drain_would_do_now() -> None:
    world = world_of(
        [builders.node("a"), builders.node("b")],
        [builders.pod(), builders.pod("cache", empty_dir=True), builders.pod("far", on="b")],
    )

    found = Explained(world).node()

    assert found.plan.before is found.plan.after is State.OPERATIONAL
    assert (found.plan.events, found.obstacles) == ((), ())
    assert found.assumed == "Reboot"
    assert found.drain is not None
    assert {one.pod: one.action for one in found.drain.pods} == {"shop/web-1": "evict", "shop/cache": "keep"}


def test_the_drain_is_for_the_events_of_the_node() -> None:
    asked = {REQUEST: '{"kind":"Redeploy"}'}
    world = world_of([builders.node(annotations=asked)], [builders.pod("cache", empty_dir=True)])

    found = Explained(world, NIGHT).node()

    assert found.assumed == ""
    assert found.drain is not None
    assert [one.action for one in found.drain.pods] == ["evict"]


def test_each_source_answers_for_itself() -> None:
    world = world_of([builders.node(annotations=ASKED)])
    answers = {one.source: one.answer for one in Explained(world).node().sources}

    assert answers == {"condition:VMEventScheduled": "not installed", "imds": "no event", "request": "event"}


def test_a_hold_names_who_can_end_it_and_a_closed_window_when_it_opens() -> None:
    world = world_of([builders.node(annotations=ASKED)])

    (hold,) = Explained(world, NIGHT).node().obstacles

    assert hold.code == "windowOpen"
    assert "night, which opens at 2026-11-21T22:00:00Z" in hold.because
    assert hold.who.startswith("nobody: it ends by itself when a window opens; or the owner of the settings")


def test_mode_observe_is_what_keeps_a_drain_that_would_start_now() -> None:
    world = world_of([builders.node(annotations=ASKED)])
    (mode,) = Explained(world, "mode: Observe").node().obstacles

    assert mode == Obstacle(
        "startsAllowed",
        "nothing starts in mode Observe",
        "the owner of the settings: `mode: Enforce` starts drains",
    )


def test_the_end_of_a_request_is_up_to_the_person_and_of_an_event_up_to_the_platform() -> None:
    assert "reconciler request a --cancel ends it" in who_ends("eventsGone", "a", OwnKeys(), requested=True)
    assert "the platform" in who_ends("eventsGone", "a", OwnKeys())


@pytest.mark.parametrize(
    ("code", "command"),
    [
        ("eventsGone", "reconciler request a --cancel --config FILE"),
        ("eventReadable", "reconciler request a --kind KIND --replace --config FILE"),
        ("dismissed", "reconciler drain a --prefix ours.example.com"),
        ("notClaimed", "reconciler release a --prefix ours.example.com"),
        ("recordReadable", "reconciler release a --prefix ours.example.com --reset"),
        ("preDrainHooksDone", "a hook in an annotation can be removed: kubectl annotate node a ours.example"),
    ],
)
def test_the_commands_work_with_another_prefix(code: str, command: str) -> None:
    assert command in who_ends(code, "a", OwnKeys("ours.example.com"), requested=True)


def test_a_node_that_waits_for_the_end_of_its_request_names_its_cancellation() -> None:
    drained = record(drain=DrainRecord(NOW - minutes(5), done=NOW), events=(known(sources=("request",)),))
    world = world_of([builders.held_node(drained, annotations=ASKED)])

    found = Explained(world).node()

    assert "reconciler request a --cancel" in next(
        one.who for one in found.obstacles if one.code == "eventsGone"
    )


def test_a_source_that_can_not_be_read_says_what_to_check() -> None:
    stale = builders.quiet(at=NOW - minutes(60))
    world = world_of([builders.node(conditions=(stale,))])

    (obstacle,) = Explained(world).node().obstacles

    assert obstacle.code == "source"
    assert obstacle.because.startswith("condition:VMEventScheduled can't be read: ")
    assert "kubectl describe node a" in obstacle.who
    assert "spec.nodeName=a" in who_reads("imds", "a")


def budgets(*names: str) -> list[BudgetSpec]:
    return [BudgetSpec("shop", name, EVERYTHING, max_unavailable=0) for name in names]


def test_a_budget_that_refuses_is_named_once_with_the_owner_of_its_pods() -> None:
    world = world_of([builders.node(annotations=ASKED)], [builders.pod(), builders.pod("web-2")])
    world.cluster.add_budget(*budgets("web"))

    found = [one for one in Explained(world).node().obstacles if one.code == "budget"]

    assert len(found) == 1
    assert found[0].because.startswith("shop/web-1: PodDisruptionBudget shop/web ")
    assert found[0].who == (
        "the owner of ReplicaSet shop/owner: run more replicas, or let the budget shop/web allow a disruption"
    )


def test_two_budgets_over_one_pod_are_one_too_many() -> None:
    world = world_of([builders.node(annotations=ASKED)], [builders.pod()])
    for budget in budgets("one", "two"):
        world.cluster.add_budget(budget)

    (found,) = [one for one in Explained(world).node().obstacles if one.code == "budget"]

    assert found.who == "the owner of ReplicaSet shop/owner: let one budget select it"


def test_a_pod_that_stays_is_named_with_the_setting_that_would_let_it_go() -> None:
    world = world_of([builders.node(annotations=ASKED)], [builders.pod("cache", owner="", empty_dir=True)])

    (found,) = [one for one in Explained(world).node().obstacles if one.code == "pod"]

    assert "set events.Reboot.emptyDir: Evict" in found.because
    assert found.who == "the owner of the pod, or the owner of the settings"


@pytest.mark.parametrize(
    ("labels", "settings", "said"),
    [
        ({"node-maintenance.dev/ignore": "true"}, "", "its label node-maintenance.dev/ignore excludes it"),
        ({}, "nodeSelector: {pool: x}", "nodeSelector of the settings does not select it"),
        ({"kubernetes.azure.com/hostedvm": ""}, "", "AKS manages the node itself"),
        ({}, "", ""),
    ],
)
def test_a_node_that_no_pass_acts_on_says_why(labels: dict[str, str], settings: str, said: str) -> None:
    found = Explained(world_of([builders.node(labels=labels)]), settings).node()

    assert said in found.unmanaged
    assert bool(found.unmanaged) is bool(said)


def test_without_the_pods_the_rest_is_explained() -> None:
    world = world_of([builders.node(annotations=ASKED)], [builders.pod()])

    found = Explained(world, NIGHT, refused=("pods",)).node()

    assert found.drain is None
    assert [one.code for one in found.obstacles] == ["windowOpen"]


def test_a_preview_that_breaks_the_program_harms_the_preview_only(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of([builders.node()], [builders.pod()])
    explained = Explained(world)

    def broken(*_: object) -> Preview:
        raise ZeroDivisionError("no")

    monkeypatch.setattr("reconciler.report.explain.prospect.preview", broken)

    drain = explained.node().drain
    assert drain is not None
    assert "ZeroDivisionError" in drain.room[0]


def test_every_check_that_can_hold_and_every_other_hold_names_who_can_end_it() -> None:
    facts = {"cordonAdopted", "drainAsked", "drainDue", "plannedForLater", "uncordonedByOthers"}
    assert {*CHECKS, *(code.value for code in HoldCode)} - {*WHO} == facts
    for code in WHO:
        assert "{" not in who_ends(code, "a", OwnKeys())
    assert who_ends("ofAProfile", "a", OwnKeys()) == "see docs/operating.md#checks"


def test_a_started_event_is_explained_with_the_drain_that_would_begin() -> None:
    started = builders.published(
        {"EventId": "E1", "EventType": "Reboot", "EventStatus": "Started", "Resources": ["vm"]}
    )
    world = world_of([builders.node(annotations={"node-maintenance.dev/imds": started})], [builders.pod()])

    found = Explained(world).node()

    assert [(one.event.kind, one.event.status) for one in found.plan.events] == [
        (Kind.REBOOT, Status.STARTED)
    ]
    assert found.drain == found.plan.draining.preview
    assert not any(isinstance(one, Obstacle) and one.code == "windowOpen" for one in found.obstacles)


def test_the_obstacles_of_a_plan_say_which_of_them_end_by_themselves() -> None:
    held = json.dumps({"by": "ada", "at": "2026-11-21T09:00:00Z", "reason": "a benchmark"})
    asked = signal(not_before=NOW + minutes(600), source="request")
    seen = builders.snapshot(
        builders.node(annotations={f"{builders.PREFIX}/hold": held}),
        readings={"a": (*builders.reported(asked)[1:], builders.reading(source="imds", unknown="away"))},
    )
    windows = 'windows: [{name: night, start: "22:00", end: "05:00"}]'
    plan = builders.plan_of(builders.planned(seen, builders.settings(windows)))

    found = {one.code: one for one in obstacles(plan, OwnKeys())}
    assert not found["notHeld"].by_itself
    assert not found["source"].by_itself
    assert found["windowOpen"].by_itself
    assert "reconciler resume a" in found["notHeld"].who
    assert "spec.nodeName=a" in found["source"].who


def test_the_end_of_a_requested_maintenance_waits_for_a_person() -> None:
    assert ends_by_itself("eventsGone")
    assert not ends_by_itself("eventsGone", requested=True)
    assert "windowOpen" in {code for code in WHO if ends_by_itself(code)} < {*WHO}
