"""Drains on a real API server with kwok's kubelets: each thing that a drain promises, once for real."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler import USER_AGENT
from reconciler.drain.drainer import Drainer
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.scale.evictions import SharedEvictions
from reconciler.model.drains import (
    DrainOptions,
    DrainOrder,
    DrainProgress,
    Escalation,
    Phase,
    PodWaits,
    WaitLimit,
)
from tests.support.controlplane.audit import AuditEntry
from tests.support.controlplane.configuration import make_certificates
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.webhooks import Guard, webhook
from tests.support.controlplane.workloads import budget, daemon_set, deployment, pod
from tests.support.fakes.clock import SystemClock
from tests.support.stub import Answer, Asked, Stub, json_answer

_POOL = Pool("np")
_LONGEST = 2**63 - 1
_PATIENCE = 120.0
_AGENT = USER_AGENT.split("/")[0]


class Bench:
    """Two nodes and a drainer; the first node will be drained."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.api = plane.api
        self.since = datetime.now(UTC)
        self.node = str(self.api.create("nodes", _POOL.node(0))["metadata"]["name"])
        self.connection = Connection(str(plane.kubeconfig))
        self.evictor = SharedEvictions(self.connection, guard=lambda: None, prefix="node-maintenance.dev")
        self.drainer = Drainer(self.evictor, SystemClock())

    def close(self) -> None:
        """End it."""
        self.drainer.close()
        self.connection.close()

    def run_app(self, name: str, replicas: int, *, namespace: str = "default") -> None:
        """Run a Deployment; its pods are ready when this returns, all on the node to be drained."""
        made = deployment(name, replicas, namespace=namespace)
        made["spec"]["template"]["spec"].pop("topologySpreadConstraints", None)
        self.api.create("deployments", made)
        mark = made["spec"]["template"]["metadata"]["annotations"]["made"]

        def here() -> bool:
            pods = self.pods(name, namespace)
            if self.api.delete_strays(pods, mark):
                return False
            return len(pods) == replicas and all(
                _ready(one) and one["spec"]["nodeName"] == self.node for one in pods
            )

        wait_for(
            f"{replicas} ready pods of {name}, and no others",
            here,
            seconds=_PATIENCE,
            instead=lambda: self.api.pods_in_brief(f"app={name}"),
        )

    def wait_ready(self, app: str, count: int) -> None:
        """Wait for so many ready pods of an app."""
        wait_for(f"{count} ready pods of {app}", lambda: sum(map(_ready, self.pods(app))) >= count)

    def pods(self, app: str, namespace: str = "default") -> list[dict[str, Any]]:
        """All pods of an app."""
        return self.api.list("pods", namespace, labels=f"app={app}")

    def cordon(self, *, cordoned: bool = True) -> None:
        """Cordon the node, and make another."""
        self.cordon_alone(cordoned=cordoned)
        if self.api.find("nodes", _POOL.node_name(1)) is None:
            self.api.create("nodes", _POOL.node(1))

    def cordon_alone(self, *, cordoned: bool = True) -> None:
        """Cordon the node. Pods that are evicted have no other node."""
        self.api.patch("nodes", self.node, {"spec": {"unschedulable": cordoned or None}})

    def start(self, **options: Any) -> None:
        """Start the drain."""
        order: dict[str, Any] = {
            "since": datetime.now(UTC),
            "timeout": timedelta(minutes=5),
            "options": DrainOptions(evict_unmanaged=True),
            "uid": self.api.get("nodes", self.node)["metadata"]["uid"],
        }
        self.drainer.start(DrainOrder(self.node, **{**order, **options}))

    def finish(self) -> DrainProgress:
        """Wait for its end."""

        def ended() -> DrainProgress | None:
            one = self.drainer.progress().get(self.node)
            return one if one is not None and one.phase is not Phase.RUNNING else None

        while (one := ended()) is None:
            assert self.drainer.wait(_PATIENCE), "the drain did not end"
        return one

    def until(self, what: str, holds: Callable[[DrainProgress], bool]) -> DrainProgress:
        """Wait until the progress shows something. Fail at once if the drain has ended without it."""

        def seen() -> DrainProgress | None:
            one = self.drainer.progress().get(self.node)
            if one is None or holds(one):
                return one
            assert one.phase is Phase.RUNNING, f"the drain ended without {what}: {one}"
            return None

        return wait_for(what, seen, seconds=_PATIENCE)

    def asked(self, verb: str) -> list[AuditEntry]:
        """Requests of ours of one verb."""
        return self.plane.audit_entries(_AGENT, [verb], self.since)


@pytest.fixture
def bench(cluster: ControlPlane) -> Iterator[Bench]:
    """A node to drain."""
    made = Bench(cluster)
    yield made
    made.close()


def test_a_node_is_drained_under_its_budgets_with_hardly_more_requests_than_pods(bench: Bench) -> None:
    for name in ("one", "two"):
        bench.run_app(name, 5)
        bench.api.create("poddisruptionbudgets", budget(name, max_unavailable=1))
        wait_for("a budget", lambda name=name: _allowed(bench, name) == 1)  # type: ignore[misc]  # bound now
    bench.api.create("daemonsets", daemon_set("agent"))
    bench.wait_ready("agent", 1)
    bench.cordon()
    bench.start()
    progress = bench.finish()

    assert Phase.DRAINED is progress.phase
    assert progress.evicted == 10
    assert {"agent"} == {one["metadata"]["labels"]["app"] for one in _on(bench, bench.node)}
    ours = bench.plane.audit_entries(_AGENT, since=bench.since)
    assert len(ours) <= 1.15 * 10 + 10


def test_a_blocking_budget_is_named_and_asked_again_when_it_changes(bench: Bench) -> None:
    bench.run_app("web", 3)
    bench.api.create("poddisruptionbudgets", budget("web", min_available=3))
    wait_for("the budget's count", lambda: _status(bench, "web").get("desiredHealthy") == 3)
    bench.cordon()
    bench.start()
    blocked = bench.until("a blocker", lambda one: len(one.blockers) == 3)
    bench.api.patch("poddisruptionbudgets", "web", {"spec": {"minAvailable": 1}}, "default")
    progress = bench.finish()

    assert {"default/web"} == {one.budget for one in blocked.blockers}
    assert {"waits for PDB default/web: needs 3 healthy, has 3"} == {one.because for one in blocked.blockers}
    assert Phase.DRAINED is progress.phase


def test_law_1_pods_that_appear_after_an_uncordon_are_not_evicted(bench: Bench) -> None:
    bench.run_app("web", 2)
    bench.api.create("poddisruptionbudgets", budget("web", max_unavailable=0))
    bench.cordon()
    bench.start()
    bench.until("a blocker", lambda one: bool(one.blockers))
    bench.cordon(cordoned=False)
    for number in range(5):
        bench.api.create("pods", pod(f"new-{number}", node_name=bench.node))
    progress = bench.finish()

    left = _on(bench, bench.node)

    assert Phase.STOPPED is progress.phase
    assert len(left) == 2 + 5
    assert not any("deletionTimestamp" in one["metadata"] for one in left)


def test_a_stuck_pod_on_a_dead_node_is_deleted_without_grace_where_that_is_allowed(bench: Bench) -> None:
    bench.api.create("pods", pod("stuck", node_name=bench.node, labels={"test/stuck-terminating": "true"}))
    bench.wait_ready("stuck", 1)
    bench.cordon()
    dead = {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}}
    bench.api.patch("nodes", bench.node, dead, kind="strategic", subresource="status")
    bench.start(node_ready=False, escalation=Escalation(force_stuck_after=timedelta(seconds=1)))

    assert Phase.DRAINED is bench.finish().phase
    assert len(bench.asked("delete")) == 1


def test_what_a_budget_holds_is_deleted_before_the_deadline_where_that_is_allowed(bench: Bench) -> None:
    bench.run_app("web", 1)
    bench.api.create("poddisruptionbudgets", budget("web", max_unavailable=0))
    bench.cordon()
    deadline = datetime.now(UTC) + timedelta(seconds=8)
    bench.start(escalation=Escalation(delete_before_deadline=True, deadline=deadline))
    progress = bench.finish()

    assert Phase.DRAINED is progress.phase
    assert len(bench.asked("delete")) == 1


def test_a_singletons_new_pod_is_ready_before_the_old_one_goes(bench: Bench) -> None:
    bench.run_app("web", 1)
    bench.api.create("poddisruptionbudgets", budget("web", max_unavailable=0))
    # maxSurge 25 % of one is one, maxUnavailable 25 % of one is none: a Deployment's defaults fit.
    wait_for("the budget's count", lambda: _status(bench, "web").get("currentHealthy") == 1)
    bench.run_app("many", 6)
    bench.cordon()
    bench.start(restart_singletons=True)
    progress = bench.finish()

    assert Phase.DRAINED is progress.phase
    assert not any(one.resource == "pods" and "web" in one.name for one in bench.asked("create"))
    assert len(bench.asked("patch")) == 1
    bench.wait_ready("web", 1)


def _ready(found: dict[str, Any]) -> bool:
    conditions = found["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _status(bench: Bench, name: str) -> dict[str, Any]:
    status: dict[str, Any] = bench.api.get("poddisruptionbudgets", name, "default").get("status", {})
    return status


def _allowed(bench: Bench, name: str) -> int:
    return int(_status(bench, name).get("disruptionsAllowed", 0))


def _on(bench: Bench, node: str) -> list[dict[str, Any]]:
    return bench.api.list("pods", fields=f"spec.nodeName={node}")


@pytest.mark.parametrize("deletes", [True, False], ids=["deleted", "evicted"])
def test_a_grace_of_thousands_of_years_stops_no_drain(bench: Bench, deletes: bool) -> None:
    bench.run_app("web", 3)
    marks = {"node-maintenance.dev/drain": "wait-completed"}
    bench.api.create("pods", pod("evil", node_name=bench.node, grace=_LONGEST, labels=marks))
    bench.wait_ready("evil", 1)
    bench.cordon()
    deadline = datetime.now(UTC) + timedelta(seconds=10)
    limit = WaitLimit(datetime.now(UTC), timedelta(hours=1), deadline)
    bench.start(
        options=DrainOptions(evict_unmanaged=True, waits=PodWaits(limit)),
        escalation=Escalation(delete_before_deadline=deletes, deadline=deadline),
    )
    progress = bench.finish()

    assert progress.phase is Phase.DRAINED
    assert any("default/evil" in step for step in progress.escalations)


def test_a_pod_that_terminates_for_thousands_of_years_is_named(bench: Bench) -> None:
    held = pod("evil", node_name=bench.node, grace=_LONGEST, finalizers=["test.example/hold"])
    bench.run_app("web", 3)
    bench.api.create("pods", held)
    bench.wait_ready("evil", 1)
    bench.cordon()
    bench.start(timeout=timedelta(seconds=2))
    progress = bench.finish()
    bench.api.patch("pods", "evil", {"metadata": {"finalizers": None}})

    assert progress.phase is Phase.TIMED_OUT
    # Within two seconds the other pods may not be gone either.
    assert "default/evil" in [blocker.pod for blocker in progress.blockers]


def test_a_webhook_that_denies_evictions_and_moves_the_pod_is_waited_for(
    bench: Bench, tmp_path: Path
) -> None:
    """As Strimzi's drain cleaner does it: 500, and an operator that deletes the pod a while later."""
    bench.run_app("kafka", 1)
    (before,) = bench.pods("kafka")
    certificates = make_certificates(tmp_path)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificates.serving, certificates.serving_key)
    stub = Stub(_denied_like_strimzi, serving)
    try:
        guard = Guard("cleaner", f"{stub.url}/", certificates.authority.read_bytes())
        with webhook(bench.api, guard, "kafka", "will be rolled"):
            bench.cordon()
            bench.start()
            denied = bench.until("a denial", lambda one: bool(one.blockers))
            bench.api.delete("pods", before["metadata"]["name"], "default")
            progress = bench.finish()
    finally:
        stub.close()

    (blocker,) = denied.blockers
    assert blocker.because.startswith(
        "denied by webhook cleaner.example.com: The pod will be rolled by the Strimzi Cluster Operator; "
    )
    assert denied.slot.blocked_since is None
    assert (progress.phase, progress.evicted) == (Phase.DRAINED, 0)
    bench.wait_ready("kafka", 1)


def _denied_like_strimzi(asked: Asked) -> Answer:
    request = json.loads(asked.body)["request"]
    status = {"code": 500, "message": "The pod will be rolled by the Strimzi Cluster Operator"}
    says = {"uid": request["uid"], "allowed": False, "status": status}
    return json_answer({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": says})
