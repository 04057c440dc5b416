"""Which workload a pod belongs to, by the names that controllers give."""

from __future__ import annotations

import pytest

from reconciler.drain.workloads import workload_of
from reconciler.features.readiness.judging import in_turn
from reconciler.model.pod import Owner
from reconciler.model.values import replace
from tests.features.readiness.scene import pod

HASH = {"pod-template-hash": "6b7f"}
REPLICA_SET = Owner("ReplicaSet", "web-6b7f", "apps/v1")


@pytest.mark.parametrize(
    ("owner", "labels", "kind", "name"),
    [
        (REPLICA_SET, HASH, "Deployment", "web"),
        (REPLICA_SET, {"rollouts-pod-template-hash": "6b7f"}, "Rollout", "web"),
        (REPLICA_SET, {}, "ReplicaSet", "web-6b7f"),
        # Nothing is left of the name.
        (Owner("ReplicaSet", "-6b7f", "apps/v1"), HASH, "ReplicaSet", "-6b7f"),
        (Owner("ReplicaSet", "web-6b7f", "evil/v1"), HASH, "ReplicaSet", "web-6b7f"),
        (Owner("Job", "nightly-29724480", "batch/v1"), {}, "CronJob", "nightly"),
        # It ends with a date.
        (Owner("Job", "import-20261122", "batch/v1"), {}, "Job", "import-20261122"),
        (Owner("StatefulSet", "db", "apps/v1"), {}, "StatefulSet", "db"),
        (Owner("K" * 300, "x"), {}, "K" * 63, "x"),
        (None, {}, "", ""),
    ],
)
def test_the_workload_of_a_pod(owner: Owner | None, labels: dict[str, str], kind: str, name: str) -> None:
    found = workload_of(replace(pod(), owner=owner, labels=labels))

    assert (found.namespace, found.kind, found.name) == ("shop", kind, name)


def test_each_workload_has_its_turn_before_any_has_two() -> None:
    pods = [pod("web-1"), pod("web-2"), pod("web-3"), pod("zoo-1", app="zoo"), pod("zoo-2", app="zoo")]

    assert [one.name for one in in_turn(pods)] == ["web-1", "zoo-1", "web-2", "zoo-2", "web-3"]
