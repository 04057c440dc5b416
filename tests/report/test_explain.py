"""A node and a pod: what is announced, what follows, what blocks, and who can change that."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest

from reconciler.drain.workloads import owner_of
from reconciler.model.drains import ARRIVALS
from reconciler.model.event import Kind, Status
from reconciler.model.explanation import Obstacle
from reconciler.model.holds import DRAIN_BLOCKED
from reconciler.model.keys import OwnKeys
from reconciler.model.plan import Preview
from reconciler.model.pod import Owner
from reconciler.model.record import DrainRecord, State
from reconciler.model.selector import EVERYTHING
from reconciler.model.values import replace
from reconciler.report.commands import commands_in
from reconciler.report.explain import find_pod, obstacles, owner_labels, who_ends
from reconciler.report.kinds import hold_kinds
from reconciler.report.people import people
from reconciler.report.standing import ends_by_itself
from reconciler.simulation.workloads import BudgetSpec
from tests.report.explaining import Explained
from tests.report.test_explained import refused_by_a_budget
from tests.support import builders
from tests.support.builders import DRAIN_NOW, NOW, RECORD, REQUEST, known, minutes, record, signal
from tests.support.worlds import carry_on, look, world_of

NIGHT = 'windows: [{name: night, start: "22:00", end: "05:00"}]'
ASKED = {REQUEST: DRAIN_NOW}
RULE = "drain: {rules: [{name: batch, pods: {}, behavior: Skip}]}"


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


def test_a_hold_names_who_can_end_it_and_a_closed_window_when_it_opens_also_without_the_pods() -> None:
    world = world_of([builders.node(annotations=ASKED)], [builders.pod()])
    found = Explained(world, NIGHT, refused=("pods",)).node()

    assert found.drain is None
    (hold,) = found.obstacles

    assert hold.code == "windowOpen"
    assert "night, which opens at 2026-11-21T22:00:00Z" in hold.because
    assert hold.who.startswith("nobody: it ends by itself when a window opens; or the owner of the settings")


def test_mode_observe_is_what_keeps_a_drain_that_would_start_now() -> None:
    world = world_of([builders.node(annotations=ASKED)])
    (mode,) = Explained(world, "mode: Observe").node().obstacles

    assert mode == Obstacle(
        "unguarded",
        "mode Observe only shows what the reconciler would do, and drains no node",
        "the owner of the settings: `mode: Enforce` lets it act; or by hand: `reconciler drain a "
        "--ignore-daemonsets`",
    )


@pytest.mark.parametrize(
    ("code", "command"),
    [
        ("eventsGone", "reconciler request a --cancel --config FILE"),
        ("eventReadable", "reconciler request a --kind KIND --replace --config FILE"),
        ("dismissed", "reconciler release a --prefix ours.example.com"),
        ("notClaimed", "reconciler release a --prefix ours.example.com"),
        ("recordReadable", "reconciler release a --prefix ours.example.com --reset"),
    ],
)
def test_the_commands_work_with_another_prefix(code: str, command: str) -> None:
    assert command in who_ends(code, "a", OwnKeys("ours.example.com"), requested=True)
    assert "the platform" in who_ends("eventsGone", "a", OwnKeys())


def test_a_node_that_waits_for_the_end_of_its_request_names_its_cancellation() -> None:
    drained = record(drain=DrainRecord(NOW - minutes(5), done=NOW), events=(known(sources=("request",)),))
    world = world_of([builders.held_node(drained, annotations=ASKED)])

    (who,) = [one.who for one in Explained(world).node().obstacles if one.code == "eventsGone"]
    assert "`reconciler request a --cancel` ends it" in who


def test_a_source_that_can_not_be_read_says_what_to_check() -> None:
    stale = builders.quiet(at=NOW - minutes(60))
    world = world_of([builders.node(conditions=(stale,))])

    (obstacle,) = Explained(world).node().obstacles

    assert obstacle.code == "source"
    assert obstacle.because.startswith("condition:VMEventScheduled can't be read: ")
    assert "kubectl describe node a" in obstacle.who


@pytest.mark.parametrize(
    ("budgets", "who"),
    [
        (["web"], "run more replicas, or let the budget shop/web allow a disruption"),
        (["one", "two"], "let one budget select it"),
    ],
)
def test_a_budget_that_refuses_is_named_once_with_the_owner_of_its_pods(budgets: list[str], who: str) -> None:
    world = world_of([builders.node(annotations=ASKED)], [builders.pod(), builders.pod("web-2")])
    for name in budgets:
        world.cluster.add_budget(BudgetSpec("shop", name, EVERYTHING, max_unavailable=0))

    (found,) = [one for one in Explained(world).node().obstacles if one.code == "budget"]

    assert found.because.startswith("shop/web-1: ")
    assert found.who.startswith(f"the owner of ReplicaSet shop/owner: {who}; `kubectl describe ")


def test_a_pod_that_stays_is_named_with_the_setting_that_would_let_it_go() -> None:
    world = world_of([builders.node(annotations=ASKED)], [builders.pod("cache", owner="", empty_dir=True)])

    (found,) = [one for one in Explained(world).node().obstacles if one.code == "pod"]

    assert "set events.Reboot.emptyDir: Evict" in found.because
    assert found.who.startswith(
        "the owner of the pod, or the owner of the settings; `kubectl describe node a` "
    )


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


def test_every_check_that_can_hold_and_every_other_hold_names_who_can_end_it() -> None:
    facts = {
        "cordonAdopted",
        "drainAsked",
        "drainDue",
        "offerRefused",
        "preparationDue",
        "uncordonedByOthers",
    }
    silent = {code for code, kind in hold_kinds().items() if not kind.who}
    assert silent == facts, f"who ends it (`who` of @check, or of a HoldKind)? {silent ^ facts}"
    for code in hold_kinds():
        assert "{" not in who_ends(code, "a", OwnKeys())
    assert who_ends("ofAProfile", "a", OwnKeys()) == "see docs/holds.md"
    assert (ends_by_itself("eventsGone"), ends_by_itself("eventsGone", requested=True)) == (True, False)
    assert "windowOpen" in {code for code in hold_kinds() if ends_by_itself(code)} < {*hold_kinds()}


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
    assert found["source"].who.startswith("the administrator of the cluster")


def test_a_drain_that_a_budget_blocks_names_the_owner_and_a_command_in_its_first_words() -> None:
    world = refused_by_a_budget()
    for _ in range(3):
        plan, _ = look(world, builders.settings())
        carry_on(world)
        world.advance(minutes(1))
    node = builders.plan_of(plan)
    assert DRAIN_BLOCKED.code in [hold.code for hold in node.holds]

    first = obstacles(node, OwnKeys())[0]
    assert first.who.startswith("the owner of StatefulSet shop/ledger")
    assert "`kubectl -n shop scale statefulset ledger --replicas 2`" in first.who


def test_a_budget_that_refuses_now_is_named_with_its_numbers() -> None:
    world = world_of([builders.node()], [builders.pod()])
    world.cluster.add_budget(BudgetSpec("shop", "web", EVERYTHING, max_unavailable=0))

    found = Explained(world).pod()

    assert (found.verdict.action, found.owner) == ("evict", "ReplicaSet shop/owner")
    assert found.refused is not None
    assert found.refused.budget == "shop/web"
    assert [(one.key, one.allowed) for one in found.budgets] == [("shop/web", 0)]
    assert found.obstacles[0].who.startswith("the owner of ReplicaSet shop/owner: run more replicas")


@pytest.mark.parametrize(
    ("settings", "shape", "action", "said"),
    [
        ("", {"empty_dir": True}, "keep", "to evict it, set events.Reboot.emptyDir: Evict"),
        ("", {"owner": ""}, "keep", "to evict it, set events.Reboot.unmanagedPods: Evict"),
        (RULE, {}, "skip", "rule batch says to skip it"),
        ("", {"owner": "DaemonSet"}, "skip", "ignoring DaemonSet-managed Pods"),
    ],
)
def test_a_pod_that_stays_says_which_rule_keeps_it_and_whom_to_ask(
    settings: str, shape: dict[str, object], action: str, said: str
) -> None:
    pod = builders.pod(**shape)  # type: ignore[arg-type]
    found = Explained(world_of([builders.node(annotations=ASKED)], [pod]), settings).pod()

    assert found.verdict.action == action
    assert said in "; ".join(found.verdict.reasons)
    assert said in found.obstacles[0].because
    assert found.obstacles[0].who.partition(";")[0].endswith(", or the owner of the settings")


@pytest.mark.parametrize(
    ("node", "said"), [("", "it is on no node"), ("gone", "its node gone no longer exists")]
)
def test_a_pod_whose_node_does_not_exist_is_concerned_by_no_drain(node: str, said: str) -> None:
    world = world_of([builders.node()], [replace(builders.pod(on=node), phase="Pending", ready=False)])

    found = Explained(world).pod()

    assert (found.verdict.action, found.verdict.reasons) == ("none", (said,))


def test_a_pod_whose_preview_breaks_the_program_is_not_taken_for_one_that_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explained = Explained(world_of([builders.node()], [builders.pod()]))

    def broken(*_: object) -> Preview:
        raise ZeroDivisionError("no")

    monkeypatch.setattr("reconciler.drain.prospect.preview", broken)

    drain = explained.node().drain
    assert drain is not None
    assert "ZeroDivisionError" in drain.room[0]
    assert explained.pod().verdict.action == "unknown"
    assert "  drain     what a drain would do with it is not known\n" in explained.text(pod="web-1")


def test_a_pod_is_found_by_namespace_and_name() -> None:
    world = world_of([builders.node()], [builders.pod(), builders.pod(namespace="other")])
    seen = Explained(world).found.snapshot

    found = find_pod(seen, "other", "web-1")
    assert found is not None
    assert found.namespace == "other"
    assert find_pod(seen, "shop", "web-2") is None


def test_labels_that_name_a_team_are_shown_up_to_a_limit() -> None:
    labels = {
        "app": "web",
        "app.kubernetes.io/managed-by": "Helm",
        "example.com/team": "shop",
        "owner": "kim",
        "team": "",
    }
    many = {f"t{number:03}.example.com/team": "x" for number in range(100)}

    assert owner_labels(replace(builders.pod(), labels=labels)) == (
        ("app.kubernetes.io/managed-by", "Helm"),
        ("example.com/team", "shop"),
        ("owner", "kim"),
    )
    assert len(owner_labels(replace(builders.pod(), labels=many))) == 8


def test_the_owner_is_the_workload_in_words_with_a_limit() -> None:
    owner = Owner("ReplicaSet", "web-5c84", "apps/v1")
    pod = replace(builders.pod(), owner=owner, labels={"pod-template-hash": "5c84"})

    assert owner_of(pod) == "Deployment shop/web"
    assert owner_of(builders.pod(owner="")) == ""
    assert len(owner_of(replace(builders.pod(), owner=Owner("K" * 1000, "n" * 100_000)))) < 600


def test_whoever_must_act_has_the_same_command_in_every_output() -> None:
    world = world_of(
        [builders.node(annotations=ASKED)], [builders.pod("cache", owner="", empty_dir=True), builders.pod()]
    )
    world.cluster.add_budget(BudgetSpec("shop", "web", EVERYTHING, max_unavailable=0))
    explained = Explained(world)
    acted = explained.node().obstacles + explained.pod("cache").obstacles + explained.pod().obstacles
    asked = {ask.who for ask in people(explained.found.plan)}

    assert {obstacle.code for obstacle in acted} >= {"pod", "budget"}
    for obstacle in acted:
        assert commands_in(obstacle.who), obstacle
        assert f"  ask       {obstacle.who}" in explained.text(wide=True) + explained.text(pod="web-1")
    assert "`kubectl describe node a` shows its pods and conditions" in acted[-2].who
    assert all(commands_in(who) for who in asked)
    assert acted[0].who in asked


def test_who_keeps_sending_pods_is_explained_while_the_node_is_drained_and_after_it() -> None:
    world = world_of([builders.node(annotations={REQUEST: DRAIN_NOW})], [builders.pod()])
    cluster, policy = world.cluster, builders.settings()
    cluster.add_budget(BudgetSpec("shop", "web", EVERYTHING, min_available=1))
    look(world, policy)
    for number in range(3 * ARRIVALS):
        pod = builders.pod(f"try-{number}", namespace="evil")
        pod = replace(pod, owner=Owner("Job", f"try-{number}"), created=world.now + minutes(number / 10))
        world.clock.at(pod.created or NOW, partial(cluster.add_pod, pod))
    shown = []
    for least in (1, 0):
        cluster.add_budget(BudgetSpec("shop", "web", EVERYTHING, min_available=least))
        for _ in range(3):
            world.advance(minutes(1))
            look(world, policy)
            carry_on(world)
        shown.append(Explained(world, policy).text())

    command = "kubectl get pods -n evil --field-selector spec.nodeName=a -o yaml"
    for text in shown:
        words = " ".join(text.split())
        assert "new pods keep coming from namespace evil: " in words
        assert command in words
    assert '"done"' in cluster.nodes["a"].annotations[RECORD]


@pytest.mark.parametrize("code", hold_kinds())
def test_a_command_stands_between_backticks_so_that_each_output_can_show_it_whole(code: str) -> None:
    prose = re.sub(r"`[^`]*`", "", who_ends(code, "a", OwnKeys(), requested=True))

    assert not re.search(r"\bkubectl\b|(?<!the )\breconciler [a-z]", prose)
