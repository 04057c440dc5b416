"""What stays and why, what speaks for itself, and in which order the rest goes."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.drain import Action, Tier, judge, survey
from reconciler.drain.filters import (
    EMPTY_DIR_DELETED,
    EMPTY_DIR_REFUSED,
    UNMANAGED_DELETED,
    UNMANAGED_REFUSED,
)
from reconciler.model.drains import Behavior, Comebacks, DrainOptions, PodRule
from reconciler.model.pod import DO_NOT_DISRUPT, SAFE_TO_EVICT, Owner, Pod, PodSpec
from reconciler.model.selector import LabelSelector, Requirement
from reconciler.model.values import replace
from tests.drain.drainer.driving import START

WEB = Pod("shop", "web", "u1", "n", labels={"app": "web"}, owner=Owner("ReplicaSet", "web"), phase="Running")
NAKED = replace(WEB, owner=None, spec=PodSpec(empty_dir=True))


def test_every_reason_is_kept_not_only_the_last() -> None:
    judged = judge(NAKED, DrainOptions(), now=START)

    assert (judged.action, judged.reasons) == (Action.KEEP, (EMPTY_DIR_REFUSED, UNMANAGED_REFUSED))


def test_every_warning_is_kept_not_only_the_last() -> None:
    judged = judge(NAKED, DrainOptions(evict_empty_dir=True, evict_unmanaged=True), now=START)

    assert (judged.action, judged.warnings) == (Action.EVICT, (EMPTY_DIR_DELETED, UNMANAGED_DELETED))


def test_in_a_pass_a_kept_pod_keeps_only_itself() -> None:
    seen = survey([WEB, replace(NAKED, name="naked", uid="u2")], DrainOptions(), now=START)

    assert [one.pod.name for one in seen.to_go] == ["web"]
    assert [one.pod for one in seen.kept] == ["shop/naked"]
    assert not seen.refused


def test_by_hand_it_refuses() -> None:
    seen = survey([WEB, replace(NAKED, name="naked", uid="u2")], DrainOptions(strict=True), now=START)

    assert [one.pod for one in seen.refused] == ["shop/naked"]
    assert not seen.drained


@pytest.mark.parametrize(
    ("marks", "action"),
    [
        pytest.param({"labels": {"node-maintenance.dev/drain": "skip"}}, "skip", id="our label"),
        pytest.param({"annotations": {"node-maintenance.dev/drain": "skip"}}, "skip", id="our annotation"),
        pytest.param({"labels": {"node-maintenance.dev/drain": "wait-completed"}}, "wait", id="wait"),
        pytest.param({"labels": {"cluster.x-k8s.io/drain": "skip"}}, "skip", id="Cluster API's label"),
        pytest.param({"labels": {"cluster.x-k8s.io/drain": "wait-completed"}}, "wait", id="and its wait"),
        pytest.param({"labels": {"node-maintenance.dev/drain": "maybe"}}, "evict", id="no such word"),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_a_pod_speaks_for_itself_and_beats_the_rules(
    marks: dict[str, dict[str, str]], action: str, strict: bool
) -> None:
    options = DrainOptions(rules=(PodRule("all", behavior=Behavior.DRAIN),), strict=strict)
    pod = replace(WEB, **marks)  # type: ignore[arg-type]  # the marks are fields

    assert action == judge(pod, options, now=START).action


@pytest.mark.parametrize(
    ("asks", "action"),
    [
        pytest.param({DO_NOT_DISRUPT: "true"}, "wait", id="Karpenter's"),
        pytest.param({DO_NOT_DISRUPT: "false"}, "evict", id="it may be disrupted"),
        pytest.param({SAFE_TO_EVICT: "on-completion"}, "wait", id="the autoscaler's"),
        pytest.param({SAFE_TO_EVICT: "false"}, "evict", id="only no scaling down"),
        pytest.param({SAFE_TO_EVICT: "true"}, "evict", id="it may be evicted"),
        pytest.param({"node-maintenance.dev/wait-completed": "false"}, "evict", id="ours without the value"),
    ],
)
def test_a_pod_that_asks_an_autoscaler_to_finish_is_waited_for_unless_a_rule_selects_it(
    asks: dict[str, str], action: str
) -> None:
    pod = replace(WEB, annotations=asks)
    ruled = DrainOptions(rules=(PodRule("web", pods=LabelSelector.of({"app": "web"})),))
    elsewhere = DrainOptions(rules=(PodRule("web", pods=LabelSelector.of({"app": "db"})),))

    assert judge(pod, DrainOptions(), now=START).action == action
    assert judge(pod, elsewhere, now=START).action == action
    assert judge(pod, ruled, now=START).action == "evict"
    assert judge(replace(pod, phase="Succeeded"), DrainOptions(), now=START).action == "evict"


def test_the_drain_label_of_a_pod_wins_over_what_it_asks_an_autoscaler() -> None:
    pod = replace(WEB, labels={"node-maintenance.dev/drain": "skip"}, annotations={DO_NOT_DISRUPT: "true"})

    assert judge(pod, DrainOptions(), now=START).action == "skip"


def test_a_pod_that_waits_for_its_end_goes_when_it_has_ended() -> None:
    pod = replace(WEB, labels={"cluster.x-k8s.io/drain": "wait-completed"}, phase="Succeeded")

    assert judge(pod, DrainOptions(), now=START).action == Action.EVICT


def test_of_several_rules_the_first_by_name_wins() -> None:
    rules = (
        PodRule("b-drain", behavior=Behavior.DRAIN, order=7),
        PodRule("a-wait", behavior=Behavior.WAIT_COMPLETED, pods=LabelSelector.of({"app": "web"})),
        PodRule("0-elsewhere", behavior=Behavior.SKIP, namespaces=frozenset({"other"})),
    )

    assert judge(WEB, DrainOptions(rules=rules), now=START).action == Action.WAIT
    assert judge(replace(WEB, labels={}), DrainOptions(rules=rules), now=START).group == (0, 7)


def test_a_rule_selects_by_the_labels_of_namespaces() -> None:
    rule = PodRule(
        "keep",
        behavior=Behavior.SKIP,
        namespace_selector=LabelSelector((Requirement("team", "In", ("shop",)),)),
    )
    options = DrainOptions(rules=(rule,))

    assert judge(WEB, options, now=START, namespaces={"shop": {"team": "shop"}}).action == Action.SKIP
    assert judge(WEB, options, now=START, namespaces={"shop": {"team": "x"}}).action == Action.EVICT


def test_a_terminating_pod_is_waited_for_whatever_else_it_is() -> None:
    pod = replace(NAKED, deleting_until=START + timedelta(seconds=10))

    assert judge(pod, DrainOptions(), now=START).action == Action.WAIT


def test_tiers_then_rules_then_the_lowest_priority_and_we_go_last() -> None:
    daemonset = Owner("DaemonSet", "ds")
    pods = [
        replace(WEB, name="us", uid="0"),
        replace(
            WEB,
            name="critical-ds",
            uid="1",
            owner=daemonset,
            phase="Failed",
            spec=PodSpec(priority_class="system-node-critical"),
        ),
        replace(WEB, name="critical", uid="2", spec=PodSpec(2_000_000_000, "system-cluster-critical")),
        replace(WEB, name="ds", uid="3", owner=daemonset, phase="Failed"),
        replace(WEB, name="late", uid="4", labels={"late": ""}),
        replace(WEB, name="important", uid="5", spec=PodSpec(priority=1000)),
        replace(WEB, name="plain", uid="6"),
    ]
    late = PodRule("late", pods=LabelSelector((Requirement("late", "Exists"),)), order=3)
    seen = survey(pods, DrainOptions(rules=(late,)), now=START, own_pod="shop/us")

    names = [one.pod.name for one in seen.to_go]
    assert names == ["plain", "important", "late", "ds", "critical", "critical-ds", "us"]
    assert Tier.OWN is seen.to_go[-1].tier


@pytest.mark.parametrize("rules", [(), (PodRule("all", behavior=Behavior.DRAIN),)], ids=["", "with a rule"])
def test_pods_of_daemon_sets_stay_unless_a_pass_may_evict_them_and_by_hand_refuse_the_drain(
    rules: tuple[PodRule, ...],
) -> None:
    pod = replace(WEB, owner=Owner("DaemonSet", "ds"), spec=PodSpec(tolerates_cordon=True), created=START)

    def action(*, ignore: bool, begun: datetime | None = None, strict: bool = False) -> str:
        back = Comebacks(begun)
        options = DrainOptions(ignore_daemonsets=ignore, strict=strict, rules=rules, comebacks=back)
        return judge(pod, options, now=START).action

    assert action(ignore=True) == "skip"
    assert action(ignore=False) == "evict"
    assert action(ignore=False, begun=START - timedelta(minutes=1)) == "keep"
    assert action(ignore=False, strict=True) == "refuse"


_PODS = st.builds(
    replace,
    st.just(WEB),
    uid=st.text(min_size=1, max_size=8),
    name=st.sampled_from(["a", "b", "c"]),
    owner=st.sampled_from([None, Owner("ReplicaSet", "x"), Owner("DaemonSet", "x"), Owner("Job", "j")]),
    phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
    spec=st.builds(PodSpec, priority=st.integers(-10, 10), empty_dir=st.booleans()),
    labels=st.sampled_from([{}, {"app": "web"}, {"node-maintenance.dev/drain": "skip"}]),
    annotations=st.sampled_from([{}, {"kubernetes.io/config.mirror": "m"}]),
    deleting_until=st.sampled_from([None, START - timedelta(minutes=1), START + timedelta(minutes=1)]),
)
_OPTIONS = st.builds(
    DrainOptions,
    ignore_daemonsets=st.booleans(),
    evict_empty_dir=st.booleans(),
    evict_unmanaged=st.booleans(),
    strict=st.booleans(),
    use_delete=st.booleans(),
    skip_terminating_after=st.sampled_from([None, timedelta(seconds=5)]),
)


@given(
    st.lists(_PODS, max_size=12, unique_by=lambda pod: pod.uid), _OPTIONS, st.randoms(use_true_random=False)
)
def test_the_same_pods_in_any_order_give_the_same_survey(
    pods: list[Pod], options: DrainOptions, shuffle: random.Random
) -> None:
    other = list(pods)
    shuffle.shuffle(other)

    assert survey(pods, options, now=START) == survey(other, options, now=START)


@given(_PODS, _OPTIONS)
def test_every_pod_that_stays_or_is_waited_for_has_a_reason(pod: Pod, options: DrainOptions) -> None:
    judged = judge(pod, options, now=START)

    assert judged.goes or judged.reasons


@given(_PODS, _OPTIONS)
def test_allowing_more_never_keeps_more(pod: Pod, options: DrainOptions) -> None:
    more = replace(options, evict_empty_dir=True, evict_unmanaged=True)
    stays = {Action.KEEP, Action.REFUSE}
    if judge(pod, options, now=START).action not in stays:
        assert judge(pod, more, now=START).action not in stays
