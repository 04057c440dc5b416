"""The control plane keeps its promises: version, running pods, budgets, identities, restarts, no orphans."""

import json
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.controlplane.api import CLUSTER_WIDE, NAMESPACED, Api, ApiError, Object
from tests.support.controlplane.audit import AuditEntry
from tests.support.controlplane.binaries import kubernetes_version
from tests.support.controlplane.fill import Pool, patch_conditions, vm_event
from tests.support.controlplane.processes import alive
from tests.support.controlplane.server import ControlPlane, remove_stale_folders
from tests.support.controlplane.waiting import wait_for
from tests.support.controlplane.workloads import budget, deployment, pod

POOL = Pool("np")


@pytest.fixture
def node(cluster: ControlPlane) -> str:
    made = cluster.api.create("nodes", POOL.node(10))
    return str(made["metadata"]["name"])


def test_the_server_is_of_the_pinned_version(controlplane: ControlPlane) -> None:
    if controlplane.given_binaries is not None:
        pytest.skip(f"the API server is of another's choice: {controlplane.given_binaries}")

    assert controlplane.api.request("GET", "version")["gitVersion"] == kubernetes_version()


@pytest.mark.parametrize(
    "what",
    [
        pytest.param({"labels": {"test/stuck-terminating": "true"}}, id="by the label"),
        pytest.param({"finalizers": ["test/stay"]}, id="by a finalizer"),
    ],
)
def test_a_stuck_pod_stays_terminating(cluster: ControlPlane, node: str, what: Object) -> None:
    cluster.api.create("pods", pod("stuck", node_name=node, **what))
    cluster.api.create("pods", pod("other", node_name=node))
    wait_for("a running pod", lambda: running(cluster, "stuck"))

    cluster.api.delete("pods", "stuck")
    cluster.api.delete("pods", "other")

    wait_for("the end of the other", lambda: cluster.api.find("pods", "other") is None)
    assert "deletionTimestamp" in cluster.api.get("pods", "stuck")["metadata"]


def test_a_pod_deleted_without_grace_is_not_deleted_once_more_a_moment_later(
    cluster: ControlPlane, node: str
) -> None:
    names = [f"brief-{number}" for number in range(50)]
    began = datetime.now(UTC)
    for name in [*names, "passing"]:
        cluster.api.create("pods", pod(name, node_name=node))
    wait_for("running pods", lambda: all(running(cluster, name) for name in [*names, "passing"]))
    with ThreadPoolExecutor(max_workers=16) as threads:
        list(threads.map(lambda name: cluster.api.delete("pods", name, grace=0), names))
    # What kwok does to the others it would have done by the time another pod has gone.
    cluster.api.delete("pods", "passing")
    wait_for("its end", lambda: cluster.api.find("pods", "passing") is None)

    def deleted() -> set[str]:
        found = {each.name for each in cluster.audit_entries("kwok", {"delete"}, began)}
        return found & {*names, "passing"}

    assert wait_for("kwok's word", deleted) == {"passing"}


def test_an_eviction_beyond_the_budget_answers_429(cluster: ControlPlane, node: str) -> None:
    cluster.api.create("deployments", deployment("web", 2))
    cluster.api.create("poddisruptionbudgets", budget("web", max_unavailable=1))
    first, second = wait_for("two ready pods", lambda: ready_pods(cluster.api, "web", 2))
    wait_for("a budget that was counted", lambda: allowed(cluster.api, "web") == 1)

    cluster.api.evict(first["metadata"]["name"])
    with pytest.raises(ApiError) as refusal:
        cluster.api.evict(second["metadata"]["name"])

    assert refusal.value.status == 429
    assert refusal.value.body["details"]["causes"][0]["reason"] == "DisruptionBudget"


def test_conditions_stay_as_they_are_set(cluster: ControlPlane, node: str) -> None:
    event = vm_event("Reboot", datetime.now(UTC) + timedelta(minutes=15))
    patch_conditions(cluster.api, node, event, {"type": "Ready", "status": "False", "reason": "Test"})
    # What kwok does to nodes it would have done by the time a pod has come and gone.
    cluster.api.create("pods", pod("passing", node_name=node))
    wait_for("a running pod", lambda: running(cluster, "passing"))
    cluster.api.delete("pods", "passing")
    wait_for("its end", lambda: cluster.api.find("pods", "passing") is None)

    conditions = {each["type"]: each for each in cluster.api.get("nodes", node)["status"]["conditions"]}
    assert conditions["Ready"]["status"] == "False"
    assert conditions["VMEventScheduled"]["message"] == event["message"]
    assert conditions["KernelDeadlock"]["status"] == "False"


def test_a_node_is_as_big_and_named_as_on_aks(cluster: ControlPlane, node: str) -> None:
    stored = cluster.api.get("nodes", node)

    assert node == "aks-np-12345678-vmss00000a"
    assert stored["spec"]["providerID"].endswith(
        "/virtualMachineScaleSets/aks-np-12345678-vmss/virtualMachines/10"
    )
    assert POOL.vm_name(10) == "aks-np-12345678-vmss_10"
    assert POOL.node_name(150).endswith("vmss000046")
    assert 22_000 <= len(json.dumps(stored)) <= 28_000


def test_the_audit_log_names_the_client(cluster: ControlPlane) -> None:
    began = datetime.now(UTC)
    cluster.api.create("serviceaccounts", {"metadata": {"name": "asker"}})
    with (
        Api(cluster.kubeconfig_for("asker"), user_agent="asker/1") as asker,
        pytest.raises(ApiError) as refusal,
    ):
        asker.delete("nodes", "none")

    def entry() -> list[AuditEntry]:
        return cluster.audit_entries("asker/1", {"delete"}, began)

    (seen,) = wait_for("an audit entry", entry)
    assert refusal.value.status == seen.code == 403
    assert seen.user == "system:serviceaccount:default:asker"
    assert (seen.resource, seen.name, seen.uri) == ("nodes", "none", "/api/v1/nodes/none")
    assert not cluster.audit_entries("asker/1", {"delete"}, datetime.now(UTC))


def test_a_watch_that_began_before_the_cleaning_is_not_in_the_audit_log(cluster: ControlPlane) -> None:
    with Api(cluster.kubeconfig, user_agent="watcher/1") as watcher, ThreadPoolExecutor() as threads:
        query = {"watch": "true", "timeoutSeconds": "1"}
        watch = threads.submit(watcher.request, "GET", "api/v1/configmaps", query=query)
        wait_for("its beginning", lambda: cluster.audit_entries("watcher/1"))
        cluster.clean()
        watch.exception(timeout=30)
        watcher.list("configmaps")

    assert {each.verb for each in wait_for("a list", lambda: cluster.audit_entries("watcher/1"))} == {"list"}


def test_the_server_goes_and_comes_back_with_its_data(cluster: ControlPlane, node: str) -> None:
    cluster.stop_apiserver()
    with pytest.raises(Exception, match="refused"):
        cluster.api.get("nodes", node)

    # From a thread that ends: the server must outlive it.
    starter = threading.Thread(target=cluster.start_apiserver)
    starter.start()
    starter.join()

    assert cluster.api.get("nodes", node)["metadata"]["name"] == node
    cluster.api.create("deployments", deployment("web", 1))
    wait_for("a ready pod", lambda: ready_pods(cluster.api, "web", 1), seconds=60)


def test_cleaning_leaves_what_a_new_cluster_has(cluster: ControlPlane, node: str) -> None:
    before = names(cluster.api)
    cluster.api.create_namespace("team")
    cluster.api.create("deployments", deployment("web", 2, namespace="team", grace=30))
    cluster.api.create("configmaps", {"metadata": {"name": "ours", "namespace": "kube-system"}})
    cluster.api.create("leases", {"metadata": {"name": "ours", "namespace": "kube-system"}})
    cluster.api.create("pods", pod("stuck", node_name=node, finalizers=["test/stay"]))
    wait_for("two ready pods", lambda: ready_pods(cluster.api, "web", 2))

    cluster.clean()

    assert names(cluster.api) == before - {("nodes", None, node)}


def test_what_was_going_when_a_test_ended_is_not_deleted_in_the_next_one(
    cluster: ControlPlane, node: str
) -> None:
    """kwok deletes by the name: in the next test that may be another pod."""
    names = [f"web-{number}" for number in range(20)]
    for name in names:
        cluster.api.create("pods", pod(name, node_name=node))
    wait_for("running pods", lambda: all(running(cluster, name) for name in names))
    with ThreadPoolExecutor(max_workers=16) as threads:
        list(threads.map(lambda name: cluster.api.delete("pods", name), names))

    cluster.clean()

    # What kwok had planned it would have done by the time another pod has gone.
    cluster.api.create("nodes", POOL.node(10))
    cluster.api.create("pods", pod("passing", node_name=node))
    wait_for("a running pod", lambda: running(cluster, "passing"))
    cluster.api.delete("pods", "passing")
    wait_for("its end", lambda: cluster.api.find("pods", "passing") is None)
    deleted = wait_for("kwok's word", lambda: cluster.audit_entries("kwok", {"delete"}))
    assert {each.name for each in deleted} == {"passing"}


def test_no_process_outlives_an_owner_that_was_killed(controlplane: ControlPlane) -> None:
    program = """
import time
from tests.support.controlplane.server import ControlPlane, remove_stale_folders
with ControlPlane() as server:
    print(server.folder, *server.pids().values(), flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, encoding="utf-8") as owner:
        assert owner.stdout is not None
        folder, *pids = owner.stdout.readline().split()
        assert len(pids) == 5
        assert all(alive(int(pid)) for pid in pids)

        owner.send_signal(signal.SIGKILL)

    wait_for("end of all", lambda: not any(alive(int(pid)) for pid in pids))
    remove_stale_folders()
    assert not Path(folder).exists()
    assert controlplane.folder.exists()


def running(cluster: ControlPlane, name: str) -> bool:
    """Whether kwok has started the pod."""
    return bool(cluster.api.get("pods", name)["status"]["phase"] == "Running")


def ready_pods(api: Api, app: str, count: int) -> list[Object] | None:
    """The app's pods once so many are Ready and not on their way out."""
    found = [
        each
        for each in api.list("pods", labels=f"app={app}")
        if "deletionTimestamp" not in each["metadata"]
        and any(c["type"] == "Ready" and c["status"] == "True" for c in each["status"].get("conditions", []))
    ]
    return found if len(found) == count else None


def allowed(api: Api, name: str) -> int:
    """How many more evictions the budget allows."""
    return int(api.get("poddisruptionbudgets", name).get("status", {}).get("disruptionsAllowed", -1))


def names(api: Api) -> set[tuple[str, str | None, str]]:
    """Of all that cleaning looks at, save what the controllers write by themselves."""
    return {
        (resource, each["metadata"].get("namespace"), each["metadata"]["name"])
        for resource in (CLUSTER_WIDE | NAMESPACED).keys() - {"events", "nodemaintenances"}
        for each in api.list(resource, metadata_only=True)
    }
