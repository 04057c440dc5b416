"""Events on pods in namespaces that refuse them: only their own are lost."""

from __future__ import annotations

from datetime import UTC, datetime

from reconciler.features.events.pod_events import EVICTED, PodEvents
from reconciler.kubernetes.connection import Connection
from reconciler.model.drains import DrainOrder
from reconciler.model.pod import Pod
from tests.support.controlplane.api import Api, ApiError
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane

ORDER = DrainOrder("n", "uid-n", datetime(2026, 5, 11, tzinfo=UTC), None, why="Reboot without a date")


def pod(namespace: str, number: int) -> Pod:
    return Pod(namespace, f"web-{number}", f"uid-{namespace}-{number}", "n")


def terminates(api: Api, namespace: str) -> bool:
    """Whether the server creates nothing in the namespace any more."""
    try:
        api.create("configmaps", {"metadata": {"generateName": "a-", "namespace": namespace}})
    except ApiError as error:
        return error.status == 403
    return False


def test_a_namespace_that_terminates_or_is_gone_loses_only_its_own_events(
    cluster: ControlPlane, connection: Connection
) -> None:
    cluster.api.create_namespace("ending")
    # No controller empties a namespace here, so it terminates for ever.
    cluster.api.delete("namespaces", "ending")
    wait_for("the end to begin", lambda: terminates(cluster.api, "ending"))
    warned: list[str] = []
    # A process that begins again sends the same Events under the same names.
    for _ in range(2):
        queue = PodEvents(connection, lambda: None, warn=warned.append, per_second=1000, behind=0.0)
        for number in range(3):
            for namespace in ("ending", "never-there", "default"):
                queue.evicted(ORDER, pod(namespace, number))
        queue.close(30)

    found = [one for one in cluster.api.list("events") if one["reason"] == EVICTED]
    assert sorted(one["involvedObject"]["name"] for one in found) == ["web-0", "web-1", "web-2"]
    assert {one["metadata"]["namespace"] for one in found} == {"default"}
    assert len(warned) == 2
    assert all("in the namespace ending" in one for one in warned)
