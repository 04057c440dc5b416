"""Drains of more nodes than have a watch each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from reconciler import USER_AGENT
from reconciler.drain.drainer import Drainer
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.scale.evictions import SharedEvictions
from reconciler.kubernetes.scale.pod_watches import ALONE
from reconciler.model.drains import DrainOptions, DrainOrder, Phase
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.workloads import pod
from tests.support.fakes.clock import SystemClock

_POOL = Pool("np")
_MANY = ALONE + 4
_PATIENCE = 120


def test_the_nodes_without_a_watch_of_their_own_are_drained_by_one_for_all(cluster: ControlPlane) -> None:
    api, since = cluster.api, datetime.now(UTC)

    def make(number: int) -> tuple[str, str]:
        made = api.create("nodes", {**_POOL.node(number), "spec": {"unschedulable": True}})
        name = str(made["metadata"]["name"])
        # Those of the last node, whose watch is shared, do not leave at first.
        held = {"test/stuck-terminating": "true"} if number == _MANY - 1 else {}
        api.create("pods", pod(f"on-{number}", node_name=name, labels=held))
        return name, str(made["metadata"]["uid"])

    with ThreadPoolExecutor(8) as threads:
        nodes = list(threads.map(make, range(_MANY)))
    connection = Connection(str(cluster.kubeconfig))
    drainer = Drainer(
        SharedEvictions(connection, guard=lambda: None, prefix="node-maintenance.dev"), SystemClock()
    )
    options = DrainOptions(evict_unmanaged=True)
    for node, uid in nodes:
        drainer.start(DrainOrder(node, uid, datetime.now(UTC), timedelta(minutes=5), options))
    last = nodes[-1][0]

    def drained() -> int:
        return sum(each.phase is Phase.DRAINED for each in drainer.progress().values())

    wait_for("the drains of all other nodes", lambda: drained() == _MANY - 1, seconds=_PATIENCE)
    api.create("pods", pod("late", node_name=last))
    wait_for("the end of the late pod", lambda: api.find("pods", "late", "default") is None)
    api.delete("pods", f"on-{_MANY - 1}", grace=0)
    wait_for("the last drain", lambda: drained() == _MANY)
    drainer.close()
    connection.close()

    asked = cluster.audit_entries(USER_AGENT.split("/")[0], {"watch"}, since)
    assert any("nodeName%21%3D" in entry.uri for entry in asked)
    assert not any(last in entry.uri for entry in asked)
