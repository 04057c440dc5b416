"""Blockers before anything moves, quantities, and room elsewhere."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.drain.prospect import preview
from reconciler.drain.refusal import MOST_COVERING, BudgetIndex
from reconciler.drain.room import quantity, room
from reconciler.drain.workloads import disrupted, group_of
from reconciler.model.drains import DrainOptions, DrainOrder
from reconciler.model.node import Condition, Node, Taint
from reconciler.model.pod import Owner, Placement, Pod, PodDisruptionBudget, PodSpec, Toleration
from reconciler.model.selector import LabelSelector, Requirement
from reconciler.model.values import replace
from tests.drain.drainer.driving import START
from tests.support import builders
from tests.support.builders import NOW, pod

NAMES = st.sampled_from("ab")
REQUIREMENTS = st.builds(
    Requirement,
    NAMES,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(NAMES, max_size=2).map(tuple) | st.just(tuple("bcdefghijk")),
)
SELECTORS = st.none() | st.lists(REQUIREMENTS, max_size=3).map(lambda found: LabelSelector(tuple(found)))


@given(st.lists(st.tuples(NAMES, SELECTORS), max_size=8), NAMES, st.dictionaries(NAMES, NAMES))
def test_the_index_finds_what_a_look_at_each_budget_finds(
    shapes: list[tuple[str, LabelSelector | None]], namespace: str, labels: dict[str, str]
) -> None:
    budgets = [
        PodDisruptionBudget(where, f"b{number}", selector) for number, (where, selector) in enumerate(shapes)
    ]
    pod = replace(builders.pod(namespace=namespace), labels=labels)

    assert [*BudgetIndex(budgets).covering(pod)] == [one for one in budgets if one.covers(pod)]


def test_of_very_many_budgets_of_a_pod_some_are_found() -> None:
    every = LabelSelector(())
    budgets = [PodDisruptionBudget("shop", f"b{number}", every) for number in range(1000)]

    assert len(BudgetIndex(budgets).covering(builders.pod())) == MOST_COVERING


TRAIN = {"jobset.sigs.k8s.io/jobset-name": "train"}
LEADER = {"leaderworkerset.sigs.k8s.io/name": "serve", "leaderworkerset.sigs.k8s.io/group-index": "3"}


@pytest.mark.parametrize(
    ("labels", "group"),
    [
        pytest.param({"app": "web"}, "", id="none"),
        pytest.param(TRAIN, "JobSet shop/train", id="JobSet"),
        pytest.param(LEADER, "LeaderWorkerSet shop/serve group 3", id="LeaderWorkerSet"),
        pytest.param({"scheduling.x-k8s.io/pod-group": "gang"}, "PodGroup shop/gang", id="coscheduling"),
        pytest.param({"kueue.x-k8s.io/pod-group-name": "gang"}, "pod group shop/gang", id="Kueue"),
        pytest.param({"volcano.sh/job-name": "mpi"}, "Volcano Job shop/mpi", id="Volcano"),
        pytest.param(
            {**LEADER, "scheduling.x-k8s.io/pod-group": "gang"},
            "LeaderWorkerSet shop/serve group 3",
            id="the smaller one of two",
        ),
    ],
)
def test_a_pod_belongs_to_the_group_of_its_labels(labels: dict[str, str], group: str) -> None:
    assert group_of(replace(pod("a"), labels=labels)) == group


def test_a_pod_whose_end_disrupts_nobody_is_in_no_group() -> None:
    one = replace(pod("a"), labels=TRAIN)

    assert group_of(replace(one, phase="Succeeded")) == ""
    assert group_of(replace(one, deleting_until=NOW)) == ""
    assert group_of(replace(one, owner=Owner("DaemonSet", "agent", "apps/v1"))) == ""
    assert group_of(replace(one, annotations={"kubernetes.io/config.mirror": "x"})) == ""


def test_a_drain_disrupts_the_pods_of_a_group_on_other_nodes_too() -> None:
    going = replace(pod("a", "n0"), labels=TRAIN)
    others = [replace(pod(f"b{number}", f"n{number}"), labels=TRAIN) for number in range(7)]
    leader = replace(pod("leader", "n9"), labels=LEADER)
    plain = replace(pod("web", "n0"), labels={"app": "web"})

    assert disrupted([going, plain], [going, plain, leader, *others[:3]], "n0") == (
        "JobSet shop/train also runs on n1, n2",
    )
    (many,) = disrupted([going], others, "n0")
    assert many == "JobSet shop/train also runs on n1, n2, n3, n4, n5 and 1 more"
    assert disrupted([going, plain], [going, plain, leader], "n0") == ()
    # Pods of other namespaces are in other groups.
    assert disrupted([going], [replace(others[1], namespace="rich")], "n0") == ()


ROOMY = Node(
    "roomy",
    "u",
    "1",
    labels={"pool": "a"},
    conditions=(Condition("Ready", "True"),),
    allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"},
)
LEAVING = replace(ROOMY, name="leaving")
WEB = Pod(
    "shop",
    "web",
    "web",
    "leaving",
    labels={"app": "web"},
    owner=Owner("ReplicaSet", "web"),
    phase="Running",
    ready=True,
    placement=Placement(requests=({"cpu": "500m", "memory": "1Gi"}, {"cpu": "500m"})),
)
BUDGET = PodDisruptionBudget(
    "shop", "web", LabelSelector.of({"app": "web"}), allowed=0, desired=3, healthy=3, expected=4
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("100m", Fraction(1, 10)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("2e3", Fraction(2000)),
        ("1E", Fraction(10**18)),
        ("1Ei", Fraction(2**60)),
        ("500000000n", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("-1k", Fraction(-1000)),
        ("3.", Fraction(3)),
        ("5E2", Fraction(500)),
    ],
)
def test_quantities_are_read_exactly(text: str, value: Fraction) -> None:
    assert value == quantity(text)


@pytest.mark.parametrize("text", ["", "1K", "1 Gi", "Gi", "1.2.3", "1mi", "abc"])
def test_what_is_no_quantity_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        quantity(text)


def _preview(
    pods: list[Pod],
    budgets: list[PodDisruptionBudget],
    nodes: tuple[Node, ...] = (LEAVING, ROOMY),
    *,
    restart_singletons: bool = False,
) -> tuple[str, ...]:
    order = DrainOrder("leaving", "uid", START, None, restart_singletons=restart_singletons)
    reported = preview(order, nodes, pods, budgets, START)
    return tuple(f"{one.pod} {one.because}" for one in reported.blockers)


@pytest.mark.parametrize(
    ("pod", "budgets", "words"),
    [
        pytest.param(WEB, [BUDGET], "requires 3 healthy pods and has 3 of 4", id="none allowed"),
        pytest.param(WEB, [replace(BUDGET, allowed=1)], None, id="one allowed"),
        pytest.param(WEB, [replace(BUDGET, expected=3)], "ever", id="never allows any"),
        pytest.param(
            WEB, [BUDGET, replace(BUDGET, name="also")], "several PodDisruptionBudgets", id="two budgets"
        ),
        pytest.param(replace(WEB, ready=False), [replace(BUDGET, healthy=2)], "AlwaysAllow", id="unready"),
        pytest.param(
            replace(WEB, ready=False), [replace(BUDGET, healthy=2, unhealthy_always=True)], None, id="always"
        ),
        pytest.param(replace(WEB, ready=False), [BUDGET], None, id="unready, others are healthy"),
        pytest.param(replace(WEB, phase="Pending", ready=False), [BUDGET], None, id="never started"),
        pytest.param(
            replace(WEB, phase="Pending", ready=False),
            [replace(BUDGET, healthy=2)],
            None,
            id="no budget asks it",
        ),
        pytest.param(replace(WEB, spec=PodSpec(empty_dir=True)), [], "local storage", id="emptyDir"),
        pytest.param(replace(WEB, owner=None), [], "declare no controller", id="unmanaged"),
    ],
)
def test_what_would_block_is_named_before_anything_moves(
    pod: Pod, budgets: list[PodDisruptionBudget], words: str | None
) -> None:
    reported = _preview([pod], budgets)

    assert bool(reported) == (words is not None)
    assert words is None or words in reported[0]


def test_where_pods_are_deleted_no_budget_blocks() -> None:
    order = DrainOrder("leaving", "uid", START, None, DrainOptions(use_delete=True))

    assert preview(order, (LEAVING, ROOMY), [WEB], [BUDGET], START).blockers == ()


ALONE = replace(BUDGET, desired=1, healthy=1, expected=1)


@pytest.mark.parametrize(
    ("pod", "budget", "everywhere", "restarted"),
    [
        pytest.param(WEB, ALONE, True, True, id="by the settings"),
        pytest.param(
            replace(WEB, labels={**WEB.labels, "node-maintenance.dev/restart": "true"}),
            ALONE,
            False,
            True,
            id="by its label",
        ),
        pytest.param(WEB, ALONE, False, False, id="by nobody"),
        pytest.param(WEB, BUDGET, True, False, id="one of several"),
        pytest.param(
            replace(WEB, owner=Owner("StatefulSet", "web")), ALONE, True, False, id="of a StatefulSet"
        ),
    ],
)
def test_a_singleton_that_would_be_restarted_is_said_to_be(
    pod: Pod, budget: PodDisruptionBudget, everywhere: bool, restarted: bool
) -> None:
    (reported,) = _preview([pod], [budget], restart_singletons=everywhere)

    assert "PodDisruptionBudget" in reported
    assert ("restarted instead" in reported) == restarted


@pytest.mark.parametrize(
    ("node", "words"),
    [
        pytest.param(ROOMY, None, id="room"),
        pytest.param(replace(ROOMY, unschedulable=True), "1 cordoned", id="cordoned"),
        pytest.param(replace(ROOMY, conditions=()), "1 not Ready", id="not ready"),
        pytest.param(replace(ROOMY, taints=(Taint("gpu", "", "NoSchedule"),)), "1 tainted", id="tainted"),
        pytest.param(replace(ROOMY, taints=(Taint("x", "", "PreferNoSchedule"),)), None, id="soft taint"),
        pytest.param(
            replace(ROOMY, allocatable={**ROOMY.allocatable, "cpu": "999m"}), "enough cpu", id="too small"
        ),
        pytest.param(
            replace(ROOMY, allocatable={**ROOMY.allocatable, "pods": "0"}), "enough pods", id="pods"
        ),
    ],
)
def test_room_is_judged_by_requests_and_taints(node: Node, words: str | None) -> None:
    reported = room([LEAVING, node], [WEB], [WEB])

    assert bool(reported) == (words is not None)
    assert words is None or words in reported[0]


def test_room_is_judged_by_selectors_and_affinity() -> None:
    there = Placement(node_selector={"pool": "a"})
    other = Placement(affinity=((Requirement("pool", "NotIn", ("a",)),),))
    either = Placement(affinity=(*other.affinity, (Requirement("pool", "Exists"),)))

    def reported(placement: Placement) -> bool:
        return bool(room([ROOMY], [], [replace(WEB, placement=placement)]))

    assert [reported(there), reported(other), reported(either)] == [False, True, False]


@pytest.mark.parametrize(
    ("operator", "name", "fits"),
    [("In", "roomy", True), ("In", "other", False), ("NotIn", "roomy", False), ("NotIn", "other", True)],
)
def test_an_affinity_may_name_the_node_itself(operator: str, name: str, fits: bool) -> None:
    # As `matchFields` does. No label of a node has this key.
    placement = Placement(affinity=((Requirement("metadata.name", operator, (name,)),),))

    assert bool(room([ROOMY], [], [replace(WEB, placement=placement)])) != fits


def test_a_toleration_opens_a_tainted_node() -> None:
    node = replace(ROOMY, taints=(Taint("gpu", "yes", "NoSchedule"),))

    def reported(toleration: Toleration) -> bool:
        return bool(room([node], [], [replace(WEB, placement=Placement(tolerations=(toleration,)))]))

    assert not reported(Toleration("gpu", "Equal", "yes"))
    assert not reported(Toleration("", "Exists"))
    assert reported(Toleration("gpu", "Equal", "no"))
    assert reported(Toleration("gpu", "Exists", "", "NoExecute"))


def test_what_runs_there_already_takes_its_room() -> None:
    there = replace(
        WEB, name="there", uid="there", node="roomy", placement=Placement(requests=({"cpu": "3500m"},))
    )

    assert "enough cpu" in room([ROOMY], [there, WEB], [WEB])[0]
    assert not room([ROOMY], [replace(there, phase="Succeeded"), WEB], [WEB])


def test_what_is_not_known_is_reported() -> None:
    reported = room(
        [ROOMY], [], [replace(WEB, placement=Placement(topology=True), spec=PodSpec(claims=("data",)))]
    )

    assert any("topology" in text for text in reported)
    assert any("volumes" in text for text in reported)


@given(st.lists(st.integers(1, 3000), max_size=12), st.integers(1, 4000))
def test_more_is_never_promised_than_there_is(requests: list[int], capacity: int) -> None:
    node = replace(ROOMY, allocatable={"cpu": f"{capacity}m", "memory": "1Gi", "pods": "110"})
    pods = [
        replace(WEB, name=f"p{index}", uid=f"p{index}", placement=Placement(requests=({"cpu": f"{cpu}m"},)))
        for index, cpu in enumerate(requests)
    ]
    refused = {text.split(":")[0].removeprefix("no node has room for ") for text in room([node], pods, pods)}
    fit = sum(cpu for pod, cpu in zip(pods, requests, strict=True) if pod.key not in refused)

    assert fit <= capacity
