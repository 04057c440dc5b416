"""Which pods belong to a group that is disrupted as a whole."""

from __future__ import annotations

import pytest

from reconciler.drain.workloads import disrupted, group_of
from reconciler.model.pod import Owner
from reconciler.model.values import replace
from tests.support.builders import NOW, pod

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
