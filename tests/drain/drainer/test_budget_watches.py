"""Which PodDisruptionBudgets a drain watches, and how much work it is to know those of a pod."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest

from reconciler.drain.drainer import Limits, shared
from reconciler.drain.drainer.messages import Evict, Unwatch, WatchBudgets
from reconciler.drain.drainer.shared import PdbTracker
from reconciler.drain.refusal import MOST_COVERING
from reconciler.model.drains import Phase
from reconciler.model.errors import ReconcilerError, Unreachable
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import BudgetGone, Listed
from reconciler.model.selector import LabelSelector, Requirement
from reconciler.model.values import replace
from reconciler.simulation.workloads import BudgetSpec, Workload
from tests.drain.drainer.driving import START, CountedSelector, Drive, Scene

PODS = Limits().budgets_from
FEW = [f"team-{number}" for number in range(Limits().namespaces)]
MANY = [*FEW, "team-more"]


def _run(scene: Scene, namespace: str, node: str) -> None:
    """Run ready pods on a node, under a budget that lets one go at a time."""
    workload = Workload(namespace, "web", replicas=PODS, pools=("spare",), starts_after=timedelta(seconds=2))
    made = (workload.pod(sum(map(ord, namespace)) * 1000 + number) for number in range(PODS))
    scene.cluster.adopt(workload, *(replace(pod, node=node, phase="Running", ready=True) for pod in made))
    _add_budget(scene, namespace, "web", "web")


def _add_budget(scene: Scene, namespace: str, name: str, app: str) -> None:
    selector = LabelSelector.of({"app": app})
    scene.cluster.add_budget(BudgetSpec(namespace, name, selector, max_unavailable=1))


def _watched(drive: Drive) -> list[str]:
    return [command.namespace for _, command in drive.commands if isinstance(command, WatchBudgets)]


def test_the_budgets_of_other_namespaces_do_not_reach_a_drain() -> None:
    scene = Scene("a")
    _run(scene, "rich", "a")
    for number in range(100):
        _add_budget(scene, "evil", f"b-{number}", "old")
    drive = Drive(scene).start("a")
    for number in range(100):
        drive.at(1 + number / 50, lambda number=number: _add_budget(scene, "evil", f"b-{number}", "new"))  # type: ignore[misc]  # bound now

    assert drive.run()["a"].phase is Phase.DRAINED
    assert _watched(drive) == ["rich"]
    assert set(drive.counting.heard) == {"rich"}
    assert not scene.overdrawn


def test_few_namespaces_have_a_watch_each_and_many_one_for_all() -> None:
    for namespaces, watched in ((FEW, FEW), (MANY, [""])):
        scene = Scene("a")
        for namespace in namespaces:
            _run(scene, namespace, "a")
        drive = Drive(scene).start("a")

        assert drive.run()["a"].phase is Phase.DRAINED
        assert _watched(drive) == watched
        assert not scene.overdrawn
        assert len(scene.requests) == PODS * len(namespaces)


def test_a_drain_with_another_namespace_adds_its_watch_and_waits_for_that_alone() -> None:
    scene = Scene("a", "b")
    _run(scene, "first", "a")
    _run(scene, "second", "b")
    drive = Drive(scene).start("a")
    drive.at(3, lambda: drive.start("b"))

    drive.run(8)
    assert _watched(drive) == ["first", "second"]
    assert not [command for _, command in drive.commands if isinstance(command, Unwatch)]
    drive.run()
    # None was tried before its budget was known.
    assert len(scene.requests) == 2 * PODS
    assert not scene.overdrawn


def test_the_namespace_that_is_one_too_many_replaces_all_watches_by_one() -> None:
    scene = Scene("a", "b")
    for namespace in FEW:
        _run(scene, namespace, "a")
    _run(scene, "team-more", "b")
    drive = Drive(scene).start("a")
    drive.at(3, lambda: drive.start("b"))

    ended = drive.run()

    assert {one.phase for one in ended.values()} == {Phase.DRAINED}
    assert _watched(drive) == [*FEW, ""]
    assert len(scene.requests) == PODS * len(MANY)


def test_a_watch_that_says_nothing_keeps_only_the_drain_that_needs_it_waiting() -> None:
    scene = Scene("a", "b")
    _run(scene, "first", "a")
    _run(scene, "second", "b")
    drive = Drive(scene)
    opened = scene.cluster.watch_budgets

    def silent(namespace: str = "") -> object:
        watch = opened(namespace)
        if namespace == "second":
            watch.items.clear()
        return watch

    scene.cluster.watch_budgets = silent  # type: ignore[method-assign, assignment]  # says nothing
    drive.start("a")
    drive.at(1, lambda: drive.start("b"))

    ended = drive.run()

    assert {one.phase for one in ended.values()} == {Phase.DRAINED}
    times = {
        namespace: [
            at for at, one in drive.commands if isinstance(one, Evict) and one.pod.namespace == namespace
        ]
        for namespace in ("first", "second")
    }
    assert max(later - sooner for sooner, later in pairwise(times["first"])) < timedelta(seconds=10)
    assert START + Limits().reread_every <= times["second"][0] <= START + timedelta(seconds=40)


def test_a_watch_that_ends_is_opened_again_with_the_others() -> None:
    scene = Scene("a")
    for namespace in FEW:
        _run(scene, namespace, "a")
    drive = Drive(scene)

    def refuse(verb: str, pod: Pod | None) -> ReconcilerError | None:
        del pod
        return (
            Unreachable("cut")
            if verb == "watch_budgets" and drive.now < START + timedelta(seconds=5)
            else None
        )

    scene.trouble = refuse
    drive.start("a")

    assert drive.run()["a"].phase is Phase.DRAINED
    assert _watched(drive)[-len(FEW) :] == FEW
    assert len(_watched(drive)) <= 4 * len(FEW)
    assert not scene.overdrawn


def _budget(namespace: str, name: str, *apps: str) -> PodDisruptionBudget:
    return PodDisruptionBudget(namespace, name, CountedSelector((Requirement("app", "In", apps),)))


def _pods(namespace: str, count: int) -> list[Pod]:
    return [
        Pod(namespace, f"web-{number}", f"{namespace}-{number}", "a", {"app": "web"}, phase="Running")
        for number in range(count)
    ]


EVIL = [_budget("evil", f"b-{number}", "other") for number in range(300)]


def _tracker() -> PdbTracker:
    tracker = PdbTracker()
    for budget in (*EVIL, _budget("rich", "web", "web"), _budget("rich", "api", "api")):
        tracker.see(budget)
    tracker.see(Listed())
    return tracker


def _matches() -> int:
    return CountedSelector.taken()


def test_a_budget_that_changes_is_matched_with_the_pods_of_its_namespace_alone() -> None:
    tracker, rich, evil = _tracker(), _pods("rich", 60), _pods("evil", 5)
    _matches()
    for pod in (*rich, *evil):
        tracker.covering(pod)
    assert _matches() == 60 * 2 + 5 * len(EVIL)

    for number, budget in enumerate(EVIL):
        tracker.see(replace(budget, selector=CountedSelector((Requirement("app", "In", (f"v-{number}",)),))))
        for pod in (*rich, *evil):
            tracker.covering(pod)

    assert _matches() == 5 * len(EVIL)


def test_a_status_that_changes_is_no_match() -> None:
    tracker, pods = _tracker(), _pods("rich", 60)
    for pod in pods:
        tracker.covering(pod)
    _matches()
    for allowed in range(50):
        tracker.see(replace(_budget("rich", "web", "web"), allowed=allowed))
        assert {tracker.covering(pod)[0].allowed for pod in pods} == {allowed}

    assert _matches() == 0


def test_what_is_known_of_a_pod_follows_the_budgets() -> None:
    tracker, (pod,) = _tracker(), _pods("rich", 1)

    def covering() -> list[str]:
        return sorted(budget.name for budget in tracker.covering(pod))

    assert covering() == ["web"]
    tracker.see(_budget("rich", "api", "api", "web"))
    assert covering() == ["api", "web"]
    tracker.see(_budget("rich", "web", "api"))
    assert covering() == ["api"]
    tracker.see(BudgetGone("rich/api"))
    assert covering() == []
    tracker.see(_budget("rich", "new", "web"))
    assert covering() == ["new"]
    pod = replace(pod, labels={"app": "api"})
    assert covering() == ["web"]


def test_of_very_many_budgets_of_a_pod_some_are_enough() -> None:
    tracker, (pod,) = _tracker(), _pods("evil", 1)
    for number in range(100):
        tracker.see(_budget("evil", f"all-{number}", "web"))

    assert len(tracker.covering(pod)) == MOST_COVERING


def test_a_limited_number_of_pods_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "REMEMBERED", 10)
    tracker, pods = _tracker(), _pods("rich", 40)
    for pod in pods:
        assert len(tracker.covering(pod)) == 1
    _matches()
    tracker.see(_budget("rich", "web", "web", "more"))

    assert _matches() <= 10
