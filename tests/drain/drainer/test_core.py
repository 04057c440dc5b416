"""The drainer's core against the fake scene, in virtual time.

What is asked: the laws of eviction, each answer that the API server may give, what happens when a drain
does not finish, singletons, and what counts as drained.
"""

from __future__ import annotations

import itertools
from datetime import timedelta
from itertools import pairwise

import pytest

from reconciler.drain.drainer import DrainCore, Limits
from reconciler.drain.drainer.messages import (
    CheckNode,
    CordonChecks,
    Delete,
    Evict,
    Start,
    Tick,
    WatchBudgets,
    WatchPods,
)
from reconciler.model.drains import Behavior, DrainOptions, DrainProgress, Escalation, Grace, Phase, PodRule
from reconciler.model.errors import (
    Conflict,
    Forbidden,
    LockLost,
    NotFound,
    ReconcilerError,
    TooManyRequests,
    Unreachable,
)
from reconciler.model.instructions import PersonHold, Word, hold_text
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.node import Condition
from reconciler.model.pod import Owner, Pod, PodSpec
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from tests.drain.drainer.driving import START, Drive, Scene, order_for


def _because(progress: DrainProgress) -> str:
    return "; ".join(f"{blocker.pod} {blocker.because}" for blocker in progress.blockers)


def _fail_times(scene: Scene, error: ReconcilerError, times: int, verb: str = "evict") -> None:
    left = [times]

    def trouble(asked: str, _: Pod | None) -> ReconcilerError | None:
        if asked == verb and left[0]:
            left[0] -= 1
            return error
        return None

    scene.trouble = trouble


# Law 1, and whose pods they are.


def test_law_1_nothing_is_evicted_from_a_node_that_is_not_cordoned() -> None:
    scene = Scene("a")
    scene.cluster.cordon("a", on=False)
    scene.deployment("web", "a", 3)
    progress = Drive(scene).start("a").run()["a"]

    assert progress.phase is Phase.STOPPED
    assert "no longer cordoned" in progress.error
    assert not scene.requests


def test_law_1_a_cordon_that_goes_away_in_mid_drain_stops_it() -> None:
    scene = Scene("a", ready_after=10)
    scene.deployment("web", "a", 20, allowed=1)
    drive = Drive(scene).start("a")
    drive.at(35, lambda: scene.cluster.cordon("a", on=False))
    progress = drive.run()["a"]

    assert progress.phase is Phase.STOPPED
    assert scene.requests
    slack = Limits().cordon.within.total_seconds()
    assert all(one.cordoned or (one.at - START).total_seconds() < 35 + slack for one in scene.requests)


def test_law_1_a_restored_backup_from_before_the_cordon_stops_the_drain() -> None:
    scene = Scene("a", ready_after=10)
    scene.cluster.cordon("a", on=False)
    scene.deployment("web", "a", 20, allowed=1)
    backup = scene.cluster.back_up()
    scene.cluster.cordon("a")
    drive = Drive(scene).start("a")
    drive.at(35, lambda: scene.cluster.restore(backup, ends_watches=False))
    progress = drive.run()["a"]

    assert progress.phase is Phase.STOPPED
    slack = Limits().cordon.within.total_seconds()
    assert all(one.cordoned or (one.at - START).total_seconds() < 35 + slack for one in scene.requests)
    assert any(one.cordoned for one in scene.requests)


@pytest.mark.parametrize("gone", [False, True], ids=["leave", "are gone"])
@pytest.mark.parametrize("breaks", [False, True], ids=["lists", "a watch that begins again"])
def test_pods_that_a_restored_backup_brings_back_are_evicted_again(gone: bool, breaks: bool) -> None:
    scene = Scene("a", terminates_in=1.0 if gone else 100.0)
    scene.deployment("web", "a", 3, grace=600)
    # It keeps the drain going.
    scene.deployment("kept", "a", 1, allowed=0)
    backup = scene.cluster.back_up()
    drive = Drive(scene).start("a", timeout=timedelta(minutes=9))
    drive.at(20, lambda: scene.cluster.restore(backup, ends_watches=breaks))
    drive.run(60)

    evicted = [(one.at - START).total_seconds() for one in scene.requests if one.granted]
    assert len(evicted) == 6
    assert all(at < 5 for at in evicted[:3])
    assert all(20 < at < 55 for at in evicted[3:])


def test_no_pod_is_evicted_once_a_hold_with_now_was_seen_and_the_drain_goes_on_after_it() -> None:
    scene = Scene("a", ready_after=10)
    scene.deployment("web", "a", 20, allowed=1)
    drive = Drive(scene).start("a")
    hold = hold_text(PersonHold(Word("alice@laptop"), stops=True))
    drive.at(35, lambda: scene.cluster.annotate("a", f"{DEFAULT_PREFIX}/hold", hold))
    progress = drive.run()["a"]

    assert progress.phase is Phase.STOPPED
    assert "held by alice@laptop" in progress.error
    assert scene.requests
    slack = Limits().cordon.within.total_seconds()
    assert all((one.at - START).total_seconds() < 35 + slack for one in scene.requests)

    scene.cluster.annotate("a", f"{DEFAULT_PREFIX}/hold", None)
    drive.start("a")
    assert drive.run()["a"].phase is Phase.DRAINED


def test_law_1_pods_that_appear_after_an_uncordon_are_not_evicted() -> None:
    scene = Scene("a", ready_after=10)
    scene.deployment("web", "a", 20, allowed=1)
    drive = Drive(scene).start("a")

    def uncordon() -> None:
        scene.cluster.cordon("a", on=False)
        scene.deployment("new", "a", 30)

    drive.at(10.5, uncordon)
    progress = drive.run()["a"]

    assert progress.phase is Phase.STOPPED
    assert progress.finished is not None
    assert progress.finished < START + timedelta(seconds=10.6)
    assert scene.requests
    assert not any("new-" in one.uid for one in scene.requests)


def test_law_1_pods_that_appear_while_there_is_no_watch_are_not_evicted_after_an_uncordon() -> None:
    scene = Scene("a", ready_after=10)
    scene.deployment("web", "a", 20, allowed=1)
    # No read of the node is due when the pods are listed again.
    never = timedelta(days=1)
    drive = Drive(scene, limits=Limits(cordon=CordonChecks(never, never, never))).start("a")

    def uncordon() -> None:
        drive.lose_watches()
        scene.cluster.cordon("a", on=False)
        scene.deployment("new", "a", 30)

    drive.at(10.5, uncordon)
    progress = drive.run()["a"]

    assert progress.phase is Phase.STOPPED
    assert not any("new-" in one.uid for one in scene.requests)


def test_pods_that_appear_on_a_cordoned_node_are_evicted_without_a_look_at_it_for_each() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", 4)
    drive = Drive(scene).start("a")

    def ten_more() -> None:
        scene.deployment("new", "a", 10)

    drive.at(0.5, ten_more)

    assert drive.run()["a"].phase is Phase.DRAINED
    assert len(scene.requests) == 14
    # At the start, for the first new pod, and for those that appeared before the answer.
    assert scene.reads.count("node") == 3


def test_the_other_pods_do_not_wait_for_the_look_at_the_node() -> None:
    scene = Scene("a", ready_after=0.2, terminates_in=0.2)
    scene.deployment("web", "a", 9, allowed=1)
    count = itertools.count()

    def one_more() -> None:
        # As a Deployment does whose template names the node.
        scene.deployment(f"pinned{next(count)}", "a")

    drive = Drive(scene, latency=1).start("a")
    for tenth in range(10, 400, 5):
        drive.at(tenth / 10, one_more)
    others = drive.run(60)["a"]

    assert others.phase is Phase.DRAINED
    looks = [at for at, command in drive.commands if isinstance(command, CheckNode)]
    assert all(after - before >= timedelta(seconds=1) for before, after in pairwise(looks))
    web = [one.at for one in scene.requests if one.uid.startswith("shop/web-")]
    assert len(web) == 9
    assert max(web) < START + timedelta(seconds=30)


@pytest.mark.parametrize(
    "pod",
    [
        Pod("shop", "agent", "shop/agent#1", "a", owner=Owner("DaemonSet", "agent", "apps/v1")),
        Pod("shop", "static", "shop/static#1", "a", annotations={"kubernetes.io/config.mirror": "1"}),
    ],
    ids=lambda pod: pod.name,
)
def test_a_pod_that_is_never_evicted_causes_no_look_at_the_node(pod: Pod) -> None:
    def looks(*, appears: bool) -> int:
        scene = Scene("a")
        scene.deployment("web", "a", 4, allowed=1)
        drive = Drive(scene).start("a")
        if appears:
            drive.at(0.5, lambda: scene.change_pod(pod))
        assert drive.run()["a"].phase is Phase.DRAINED
        return scene.reads.count("node")

    assert looks(appears=True) == looks(appears=False)


def test_another_node_under_the_name_is_left_alone() -> None:
    scene = Scene("a")
    scene.add_node("a", cordoned=True, uid="another")
    scene.deployment("web", "a")

    assert Drive(scene).start("a").run()["a"].phase is Phase.NODE_GONE
    assert not scene.requests


def test_a_node_that_vanishes_ends_its_drain() -> None:
    scene = Scene("a", ready_after=100)
    scene.deployment("web", "a", 6, allowed=1)
    drive = Drive(scene).start("a")
    drive.at(20, lambda: scene.cluster.delete_node("a", collect=False))

    assert drive.run()["a"].phase is Phase.NODE_GONE


def test_a_statefulsets_new_pod_of_the_same_name_is_never_touched() -> None:
    scene = Scene("a")
    scene.stateful_set("db", "a")

    assert Drive(scene).start("a").run()["a"].phase is Phase.DRAINED
    assert {"db-0#old"} == {one.uid for one in scene.requests}


# Budgets.


def test_no_budget_is_overdrawn_nor_asked_in_vain_when_its_watch_says_no() -> None:
    scene = Scene("a")
    for app in range(4):
        scene.deployment(f"web{app}", "a", 10)
        scene.add_budget(f"web{app}", max_unavailable=2)

    assert Drive(scene).start("a").run()["a"].phase is Phase.DRAINED
    assert not scene.overdrawn
    assert len(scene.requests) + len(scene.reads) <= 1.15 * 40 + 10


def test_budgets_go_on_side_by_side() -> None:
    def needs(apps: int) -> timedelta:
        scene = Scene("a")
        for app in range(apps):
            scene.deployment(f"web{app}", "a", 5)
            scene.add_budget(f"web{app}", max_unavailable=1)
        drive = Drive(scene).start("a")
        drive.run()
        return drive.now - START

    assert needs(10) < 1.5 * needs(1)


def test_one_eviction_is_in_flight_per_budget_over_all_nodes() -> None:
    scene = Scene("b", "a")
    scene.deployment("web", "a", 6)
    scene.deploy("web", replace(scene.there("a")[0], name="other", uid="other", node="b"))
    scene.add_budget("web", max_unavailable=100)
    drive = Drive(scene, latency=1.0).start("a")
    drive.start("b")
    drive.run()
    sent = sorted(at for at, command in drive.commands if isinstance(command, Evict))

    assert len(sent) >= 7
    assert all(later - earlier >= timedelta(seconds=1) for earlier, later in pairwise(sent[1:]))


def test_a_blocking_budget_is_named_with_its_numbers() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", 3)
    scene.add_budget("web", min_available=3)
    progress = Drive(scene).start("a", timeout=timedelta(minutes=5)).run()["a"]

    assert progress.phase is Phase.TIMED_OUT
    assert {"waits for PDB shop/web: needs 3 healthy, has 3"} == {one.because for one in progress.blockers}
    assert {"shop/web"} == {one.budget for one in progress.blockers}


def test_a_blocking_budget_is_asked_again_when_its_status_changes() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", 3, allowed=0)
    drive = Drive(scene).start("a")
    drive.at(61, lambda: scene.change_budget("shop/web", max_unavailable=3))
    progress = drive.run()["a"]

    assert progress.phase is Phase.DRAINED
    first = min(one.at for one in scene.requests if one.granted)
    assert first - START < timedelta(seconds=61.1)


def test_a_refused_pod_is_never_asked_again_without_a_pause() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", 3, allowed=0)
    Drive(scene).start("a", timeout=timedelta(minutes=10)).run()
    asked = sorted(one.at for one in scene.requests)

    assert len(asked) < 60
    first_round = timedelta(seconds=0.5)
    rounds = [at for at in asked if at - START > first_round]
    assert rounds
    assert all(later - earlier >= timedelta(seconds=1) for earlier, later in pairwise(rounds))


def test_without_a_readable_budget_refusals_and_patience_do() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", 8, allowed=1)
    denied = Forbidden("poddisruptionbudgets is forbidden", status=403)
    scene.trouble = lambda verb, _: denied if verb == "watch_budgets" else None

    assert Drive(scene).start("a").run()["a"].phase is Phase.DRAINED
    assert not scene.overdrawn


def test_few_pods_open_no_watch_of_budgets_until_one_refuses() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", 2)
    drive = Drive(scene).start("a")
    drive.run()

    assert not any(isinstance(command, WatchBudgets) for _, command in drive.commands)


def test_two_budgets_on_a_pod_are_both_named() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", 6, allowed=1)
    scene.add_budget("also", app="web", max_unavailable=1)
    progress = Drive(scene).start("a", timeout=timedelta(minutes=5)).run()["a"]

    assert "shop/also" in _because(progress)
    assert "shop/web" in _because(progress)
    assert len(scene.requests) <= 6 * 6


# Answers.


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Unreachable("connection reset"), id="a lost connection"),
        pytest.param(TooManyRequests("busy", status=429, retry_after=7), id="an overloaded server"),
        pytest.param(TooManyRequests("migrating", status=429), id="a webhook that wants patience"),
        pytest.param(
            Forbidden("denied", status=403, causes=("NamespaceTerminating",)), id="a namespace being deleted"
        ),
    ],
)
def test_what_may_pass_is_tried_again_later(error: ReconcilerError) -> None:
    scene = Scene("a")
    scene.deployment("web", "a")
    _fail_times(scene, error, 2)

    assert Drive(scene).start("a").run()["a"].phase is Phase.DRAINED
    refused, again, granted = (one.at for one in scene.requests)
    pause = timedelta(seconds=getattr(error, "retry_after", None) or 1)
    assert again - refused >= pause
    assert granted - again >= pause


@pytest.mark.parametrize("error", [NotFound("no such pod", status=404), Conflict("another UID", status=409)])
def test_a_pod_that_is_gone_already_is_done(error: ReconcilerError) -> None:
    scene = Scene("a")
    pod = scene.deployment("web", "a")[0]

    def trouble(verb: str, _: Pod | None) -> ReconcilerError | None:
        if verb != "evict":
            return None
        scene.cluster.drop_pod(pod.uid)
        return error

    scene.trouble = trouble

    assert Drive(scene).start("a").run()["a"].phase is Phase.DRAINED
    assert len(scene.requests) == 1


def test_a_pod_wrongly_said_to_be_gone_is_found_before_the_node_is_called_drained() -> None:
    scene = Scene("a")
    scene.deployment("web", "a")
    _fail_times(scene, Conflict("transient", status=409), 1)

    assert Drive(scene).start("a").run()["a"].phase is Phase.DRAINED
    assert not scene.there("a")


def test_a_lost_lock_stops_every_drain() -> None:
    scene = Scene("b", "a")
    scene.deployment("web", "a", 3)
    scene.deployment("api", "b", 3)
    _fail_times(scene, LockLost("frozen for a minute"), 1_000)
    drive = Drive(scene).start("a")
    drive.start("b")
    progress = drive.run()

    assert {Phase.STOPPED} == {one.phase for one in progress.values()}


def test_watches_that_break_are_opened_again() -> None:
    scene = Scene("a", ready_after=5)
    scene.deployment("web", "a", 8, allowed=1)
    left = [5]

    def trouble(verb: str, _: Pod | None) -> ReconcilerError | None:
        if verb.startswith("watch") and left[0]:
            left[0] -= 1
            return Unreachable("gone")
        return None

    scene.trouble = trouble

    assert Drive(scene).start("a").run()["a"].phase is Phase.DRAINED


def test_what_is_deleted_without_a_watch_is_noticed() -> None:
    scene = Scene("a", terminates_in=20)
    scene.deployment("web", "a", 3)
    drive = Drive(scene).start("a")
    drive.at(10, drive.lose_watches)
    scene.trouble = lambda verb, _: (
        Unreachable("gone")
        if verb == "watch_pods" and timedelta(seconds=5) < scene.now - START < timedelta(seconds=60)
        else None
    )
    progress = drive.run()["a"]

    assert Phase.DRAINED is progress.phase
    assert not progress.blockers


# When it does not finish.


def test_nothing_escalates_by_itself() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", 2, allowed=0)
    progress = Drive(scene).start("a", node_ready=False).run()["a"]

    assert {"evict"} >= {one.verb for one in scene.requests}
    assert not progress.warnings
    assert not progress.escalations


def test_the_blocker_is_named_loudly_after_a_while() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", allowed=0)
    drive = Drive(scene).start("a", escalation=Escalation(warn_after=timedelta(minutes=5)))
    quiet = drive.run(299)["a"]
    drive.run(301)
    loud = drive.core.progress()["a"]

    assert not quiet.escalations
    assert any("shop/web-0 waits for PDB shop/web" in text for text in loud.escalations)


def test_before_the_deadline_minus_the_pods_grace_it_is_deleted_where_that_is_allowed() -> None:
    scene = Scene("a", terminates_in=1000)
    scene.deployment("web", "a", grace=60, allowed=0)
    deadline = START + timedelta(minutes=10)
    progress = (
        Drive(scene)
        .start("a", escalation=Escalation(delete_before_deadline=True, deadline=deadline))
        .run()["a"]
    )
    deleted = [one for one in scene.requests if one.verb == "delete"]

    assert len(deleted) == 1
    assert abs(deadline - timedelta(seconds=60) - deleted[0].at) <= timedelta(seconds=1)
    assert progress.finished is not None
    assert progress.finished <= deadline + timedelta(seconds=1)
    # The pod is gone because of it, and it is still reported.
    assert progress.escalations == ("shop/web-0 is deleted instead of evicted, to be gone by the deadline",)


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        pytest.param(Forbidden("no", status=403), False, id="refused"),
        pytest.param(Unreachable("connection reset"), True, id="perhaps done"),
    ],
)
def test_a_stage_that_was_refused_is_not_reported_as_taken(error: ReconcilerError, reported: bool) -> None:
    scene = Scene("a", terminates_in=1000)
    scene.deployment("web", "a", grace=60, allowed=0)
    _fail_times(scene, error, 1000, "delete")
    drive = Drive(scene)
    deadline = START + timedelta(minutes=10)
    drive.start("a", escalation=Escalation(delete_before_deadline=True, deadline=deadline))
    progress = drive.run(545)["a"]

    assert "delete" in {one.verb for one in scene.requests}
    assert bool(progress.escalations) == reported


def test_a_pod_stuck_on_a_dead_node_is_deleted_without_grace_where_that_is_allowed() -> None:
    scene = Scene("a")
    scene.cluster.set_condition("a", Condition("Ready", "Unknown"))
    scene.deployment("web", "a")
    progress = (
        Drive(scene).start("a", escalation=Escalation(force_stuck_after=timedelta(minutes=2))).run()["a"]
    )

    assert progress.phase is Phase.DRAINED
    assert (scene.requests[-1].verb, scene.requests[-1].grace) == ("delete", 0)
    assert scene.requests[-1].at - START >= timedelta(seconds=150)
    assert [text.partition(",")[0] for text in progress.escalations] == [
        "shop/web-0 is deleted with grace period 0"
    ]


@pytest.mark.parametrize("late", [True, False])
def test_a_pod_that_outlives_twice_its_grace_period_is_deleted_without_grace_where_that_is_allowed(
    late: bool,
) -> None:
    scene = Scene("a")
    scene.deployment("web", "a", grace=20)
    scene.cluster.set_condition("a", Condition("Ready", "Unknown"))
    progress = Drive(scene).start("a", escalation=Escalation(force_late=late)).run(120)["a"]

    deletions = [(one.at - START).seconds for one in scene.requests if (one.verb, one.grace) == ("delete", 0)]
    assert deletions == [40] * late
    assert (progress.phase is Phase.DRAINED) == late


@pytest.mark.parametrize(
    ("options", "grace"),
    [
        pytest.param(DrainOptions(), None, id="the pod's own"),
        pytest.param(DrainOptions(grace=Grace(3)), 3, id="replaced"),
        pytest.param(DrainOptions(grace=Grace(longest=timedelta(seconds=20))), 20, id="capped"),
        pytest.param(DrainOptions(grace=Grace(longest=timedelta(seconds=90))), None, id="short enough"),
    ],
)
def test_grace(options: DrainOptions, grace: int | None) -> None:
    scene = Scene("a")
    scene.deployment("web", "a", grace=60)
    Drive(scene).start("a", options=options).run()

    assert [grace] == [one.grace for one in scene.requests]


# Singletons.


def test_a_singleton_is_restarted_so_that_its_new_pod_is_there_first() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", allowed=0)
    scene.deployment("many", "a", 5)

    assert Drive(scene).start("a", restart_singletons=True).run()["a"].phase is Phase.DRAINED
    assert scene.restarts == ["shop/web"]
    assert not scene.overdrawn


def test_a_singleton_is_not_restarted_unless_the_settings_or_its_label_allow_it() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", allowed=0)
    Drive(scene).start("a").run()

    assert not scene.restarts


def test_a_singleton_that_can_not_be_restarted_is_reported_with_the_reason() -> None:
    scene = Scene("a")
    scene.restart_refusal = "maxSurge is 0"
    pod = scene.deployment("web", "a")[0]
    scene.change_pod(replace(pod, labels={**pod.labels, "node-maintenance.dev/restart": "true"}))
    scene.add_budget("web", max_unavailable=0)
    progress = Drive(scene).start("a").run()["a"]

    # The budget is what holds it, and no longer than that: the refused restart is no reason to wait.
    assert "waits for PDB shop/web" in _because(progress)
    assert "can't be restarted instead: maxSurge is 0" in _because(progress)


def test_a_singleton_that_does_not_fit_goes_as_soon_as_its_budget_lets_it() -> None:
    scene = Scene("a")
    scene.restart_refusal = "maxSurge is 0"
    scene.deployment("web", "a", allowed=0)
    drive = Drive(scene).start("a", restart_singletons=True)
    drive.at(20, lambda: scene.change_budget("shop/web", max_unavailable=1))

    assert drive.run(25)["a"].phase is Phase.DRAINED


@pytest.mark.parametrize(
    ("error", "restarts"),
    [
        pytest.param(NotFound("no such Deployment", status=404), 0, id="its Deployment is gone"),
        pytest.param(Forbidden("no right to patch", status=403), 0, id="no rights"),
        pytest.param(Conflict("somebody keeps changing it", status=409), 1, id="changed meanwhile"),
        pytest.param(Unreachable("connection reset"), 1, id="a lost connection"),
    ],
)
def test_an_answer_about_the_deployment_is_not_one_about_the_pod(
    error: ReconcilerError, restarts: int
) -> None:
    scene = Scene("a")
    scene.deployment("web", "a", allowed=0)
    _fail_times(scene, error, 1, "restart")
    progress = Drive(scene).start("a", restart_singletons=True).run(50)["a"]

    # Neither is the pod taken for gone (which would be asked for again after a minute), nor is it given up.
    assert len(scene.restarts) == restarts
    assert progress.phase is (Phase.DRAINED if restarts else Phase.RUNNING)
    assert restarts or str(error) in _because(progress)


# Order, and the end.


def test_the_next_order_goes_when_the_former_is_gone() -> None:
    scene = Scene("a")
    scene.deployment("first", "a", 2)
    scene.deployment("second", "a", 2)
    rule = PodRule("second", pods=LabelSelector.of({"app": "second"}), order=1)
    Drive(scene).start("a", options=DrainOptions(rules=(rule,))).run()

    assert [one.pod.split("/")[1].rpartition("-")[0] for one in scene.requests] == [
        "first",
        "first",
        "second",
        "second",
    ]
    assert scene.requests[2].at - scene.requests[1].at >= timedelta(seconds=1)


def test_a_pod_that_may_complete_is_waited_for_and_not_evicted() -> None:
    scene = Scene("a")
    job = scene.deployment("job", "a")[0]
    rule = PodRule("jobs", behavior=Behavior.WAIT_COMPLETED, pods=LabelSelector.of({"app": "job"}))
    drive = Drive(scene).start("a", options=DrainOptions(rules=(rule,)))
    drive.at(100, lambda: scene.change_pod(replace(job, phase="Succeeded", ready=False)))
    progress = drive.run()["a"]

    assert progress.phase is Phase.DRAINED
    assert progress.finished is not None
    assert progress.finished - START >= timedelta(seconds=100)
    assert [one.at - START >= timedelta(seconds=100) for one in scene.requests] == [True]


def test_our_own_pod_goes_when_all_others_have_gone() -> None:
    scene = Scene("a")
    scene.deployment("us", "a")
    scene.deployment("web", "a", 6, allowed=1)
    drive = Drive(scene).start("a", own_pod="shop/us-0")
    drive.run()

    assert scene.requests[-1].pod == "shop/us-0"
    asked = [command for _, command in drive.commands if isinstance(command, Evict | Delete)]
    assert [command.pod.key for command in asked if command.own] == ["shop/us-0"]
    assert len(asked) >= 7


def test_drained_waits_for_volumes_within_a_bound() -> None:
    scene = Scene("a")
    scene.deployment("web", "a")
    scene.attached["a"] = ("csi-1",)
    drive = Drive(scene).start("a")
    drive.at(20, scene.attached.clear)
    progress = drive.run()["a"]

    assert progress.finished is not None
    assert timedelta(seconds=20) <= progress.finished - START < timedelta(seconds=30)
    assert not progress.warnings


def test_a_volume_that_stays_attached_does_not_hold_the_node_for_ever() -> None:
    scene = Scene("a")
    scene.attached["a"] = ("csi-1",)
    progress = Drive(scene).start("a").run()["a"]

    assert progress.phase is Phase.DRAINED
    assert any("csi-1" in text for text in progress.warnings)


def test_a_volume_of_a_pod_that_stays_is_not_awaited_and_that_of_one_that_left_is() -> None:
    scene = Scene("a")
    scene.deployment("web", "a")
    owner, claim = Owner("DaemonSet", "log"), PodSpec(claims=("log-data",))
    kept = Pod("shop", "log", "uid-log", "a", owner=owner, phase="Running", spec=claim)
    scene.cluster.add_pod(kept)
    scene.attached["a"] = ("shop/log-data", "shop/web-data")
    drive = Drive(scene).start("a")
    drive.at(20, lambda: scene.attached.update(a=("shop/log-data",)))
    progress = drive.run()["a"]

    assert progress.finished is not None
    assert timedelta(seconds=20) <= progress.finished - START < timedelta(seconds=30)
    assert not any("attached" in text for text in progress.warnings)


def test_by_hand_one_refused_pod_refuses_all_as_kubectl_does() -> None:
    scene = Scene("a")
    scene.deployment("web", "a")
    scene.cluster.add_pod(Pod("shop", "naked", "naked", "a", phase="Running"))
    progress = Drive(scene).start("a", options=DrainOptions(strict=True)).run()["a"]

    assert progress.phase is Phase.FAILED
    assert [one.pod for one in progress.kept] == ["shop/naked"]
    assert not scene.requests


def test_stopped_means_no_more_evictions_and_a_new_start_resumes() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", 8, allowed=1)
    drive = Drive(scene).start("a")
    drive.at(5, lambda: drive.stop("a"))
    stopped = drive.run()["a"]
    before = len(scene.requests)
    drive.start("a")
    resumed = drive.run()["a"]

    assert Phase.STOPPED is stopped.phase
    assert 0 < before < 8
    assert Phase.DRAINED is resumed.phase


def test_the_clock_may_go_back_without_a_drain_standing_still() -> None:
    scene = Scene("a")
    scene.deployment("web", "a")
    _fail_times(scene, Unreachable("reset"), 1)
    drive = Drive(scene).start("a")
    drive.run(0.1)
    commands = drive.core.step(Tick(), START - timedelta(hours=1))

    assert any(isinstance(command, CheckNode) for command in commands)


def test_a_pod_that_appears_is_evicted_only_after_a_read_that_was_sent_since() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", 1)
    drive = Drive(scene).start("a")
    drive.at(0.5, lambda: scene.deployment("late", "a", 1))
    drive.run()

    checks = [(at, command.since) for at, command in drive.commands if isinstance(command, CheckNode)]
    assert checks[0] == (START, START - CordonChecks().ahead / 2)
    assert any(since is None for at, since in checks if at > START)


class Unsteady(str):
    """A name that no mapping finds again."""

    hashes = itertools.count()

    def __hash__(self) -> int:
        return next(self.hashes)


def test_after_an_error_of_the_core_nothing_that_was_due_before_breaks_it_again() -> None:
    core = DrainCore()
    # What breaks the core may be what it looks at next: a node that it does not find again.
    with pytest.raises(KeyError):
        core.step(Start(order_for(Unsteady("a"))), START)
    core.fail_all("broken", START)

    commands = core.step(Start(order_for("a")), START)
    assert any(isinstance(one, WatchPods) for one in commands)
