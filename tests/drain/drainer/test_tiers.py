"""Whose turn it is: what can't go keeps no later tier waiting, and the time left ends every wait."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from reconciler.drain.drainer import Limits
from reconciler.drain.drainer.node_drain import AHEAD, AWAITED
from reconciler.model.drains import Behavior, DrainOptions, Escalation, Phase, PodRule, PodWaits, WaitLimit
from reconciler.model.errors import Forbidden, ReconcilerError
from reconciler.model.pod import Pod, PodSpec
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from tests.drain.drainer.driving import START, Drive, Scene

LIMITS = Limits()
DEADLINE = START + timedelta(minutes=17)
GRACE = timedelta(seconds=30)
SECOND = timedelta(seconds=1)
AT_ONCE = timedelta(seconds=3)
OWN_WAIT = DrainOptions(waits=PodWaits(WaitLimit(START, timedelta(hours=1), DEADLINE)))
RULE = DrainOptions(
    rules=(PodRule("jobs", LabelSelector.of({"app": "web"}), behavior=Behavior.WAIT_COMPLETED),)
)


def _scene(count: int = 1) -> Scene:
    """A node with an ordinary pod of a tenant, and one that the cluster needs."""
    scene = Scene("a")
    scene.deployment("web", "a", count)
    (critical,) = scene.deployment("dns", "a")
    scene.change_pod(replace(critical, spec=PodSpec(priority_class="system-cluster-critical")))
    return scene


def _critical_goes(
    scene: Scene,
    *,
    options: DrainOptions | None = None,
    own_pod: str | None = None,
    deadline: datetime | None = DEADLINE,
    minutes: float = 20,
) -> timedelta | None:
    """Return when the critical pod was evicted, counted from the start of the drain."""
    drive = Drive(scene)
    drive.start(
        "a", options=options or DrainOptions(), own_pod=own_pod, escalation=Escalation(deadline=deadline)
    )
    drive.run(minutes * 60)
    return next((one.at - START for one in scene.requests if one.pod == "shop/dns-0"), None)


def _never_allowed(scene: Scene) -> None:
    scene.add_budget("web", max_unavailable=0)


def _two_budgets(scene: Scene) -> None:
    scene.add_budget("web", max_unavailable=1)
    scene.add_budget("also", app="web", max_unavailable=1)


def _waits(scene: Scene) -> None:
    (web,) = (pod for pod in scene.there("a") if pod.name == "web-0")
    scene.change_pod(replace(web, labels={**web.labels, "node-maintenance.dev/drain": "wait-completed"}))


@pytest.mark.parametrize("holds", [_never_allowed, _two_budgets, _waits])
def test_what_can_not_go_keeps_no_later_tier(holds: Callable[[Scene], None]) -> None:
    scene = _scene(LIMITS.budgets_from if holds is _two_budgets else 1)
    holds(scene)

    went = _critical_goes(scene, options=OWN_WAIT)

    assert went is not None
    assert went <= AT_ONCE


def test_a_tier_waits_for_the_one_before_while_its_pods_leave() -> None:
    scene = _scene()
    for pod in scene.there("a"):
        scene.cluster.finalizers.update({pod.uid} if pod.name == "web-0" else set())

    went = _critical_goes(scene)

    assert went is not None
    late = GRACE + LIMITS.overdue
    assert late <= went <= late + AT_ONCE


def test_a_budget_that_may_allow_it_later_keeps_a_tier_until_the_time_left_asks_for_it() -> None:
    scene = _scene(2)
    scene.change_pod(
        replace(next(pod for pod in scene.there("a") if pod.name == "web-1"), node="spare", ready=False)
    )
    scene.add_budget("web", min_available=1)

    went = _critical_goes(scene)

    assert went is not None
    last = DEADLINE - START - GRACE - AHEAD
    assert last <= went <= last + AT_ONCE


def test_a_rule_of_the_settings_keeps_a_tier_until_the_time_left_asks_for_it() -> None:
    went = _critical_goes(_scene(), options=RULE)

    assert went is not None
    assert went >= DEADLINE - START - GRACE - AHEAD


def test_a_refusal_that_a_person_has_to_end_keeps_a_tier_for_a_minute() -> None:
    scene = _scene()

    def refuse(verb: str, pod: Pod | None) -> ReconcilerError | None:
        web = verb == "evict" and pod is not None and pod.name == "web-0"
        return Forbidden("pods/eviction is forbidden", status=403) if web else None

    scene.trouble = refuse
    went = _critical_goes(scene)

    assert went is not None
    assert AWAITED <= went <= AWAITED + AT_ONCE


def test_our_own_pod_goes_after_those_that_can_go_and_not_for_the_time_left() -> None:
    scene = _scene()
    went = _critical_goes(scene, options=RULE, own_pod="shop/dns-0")

    assert went is None


def test_a_deployment_that_is_restarted_is_waited_for() -> None:
    scene = _scene()
    scene.add_budget("web", max_unavailable=0)
    ended = Drive(scene).start("a", restart_singletons=True).run()["a"]

    assert ended.phase is Phase.DRAINED
    (critical,) = (one.at for one in scene.requests if one.pod == "shop/dns-0")
    assert critical - START > 2 * SECOND
