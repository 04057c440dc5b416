"""The control plane keeps its promises: version, running pods, budgets, identities, restarts, no orphans."""

import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.controlplane.api import CLUSTER_WIDE, NAMESPACED, Api, Object
from tests.support.controlplane.binaries import kubernetes_version
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.processes import alive, wait_for
from tests.support.controlplane.server import ControlPlane, lock_folder, remove_stale_folders
from tests.support.controlplane.workloads import deployment, pod

POOL = Pool("np")


@pytest.fixture
def node(cluster: ControlPlane) -> str:
    made = cluster.api.create("nodes", POOL.node(10))
    return str(made["metadata"]["name"])


def test_the_server_is_of_the_pinned_version(controlplane: ControlPlane) -> None:
    if controlplane.given_binaries is not None:
        pytest.skip(f"the API server is of another's choice: {controlplane.given_binaries}")

    assert controlplane.api.request("GET", "version")["gitVersion"] == kubernetes_version()


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


def test_a_watch_that_began_before_the_cleaning_is_not_in_the_audit_log(cluster: ControlPlane) -> None:
    with Api(cluster.kubeconfig, user_agent="watcher/1") as watcher, ThreadPoolExecutor() as threads:
        query = {"watch": "true", "timeoutSeconds": "1"}
        watch = threads.submit(watcher.request, "GET", "api/v1/configmaps", query=query)
        wait_for("its beginning", lambda: cluster.audit_entries("watcher/1"))
        cluster.clean()
        watch.exception(timeout=30)
        watcher.list("configmaps")

    assert {each.verb for each in wait_for("a list", lambda: cluster.audit_entries("watcher/1"))} == {"list"}


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


def test_a_folder_stays_while_its_owner_runs_in_another_container(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Such an owner has an id that nobody has here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / "node-maintenance-controlplane-0-x"
    folder.mkdir()
    lock = lock_folder(folder)

    remove_stale_folders()
    assert folder.exists()

    os.close(lock)
    remove_stale_folders()
    assert not folder.exists()


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


def names(api: Api) -> set[tuple[str, str | None, str]]:
    """Of all that cleaning looks at, save what the controllers write by themselves."""
    return {
        (resource, each["metadata"].get("namespace"), each["metadata"]["name"])
        for resource in (CLUSTER_WIDE | NAMESPACED).keys() - {"events", "nodemaintenances"}
        for each in api.list(resource, metadata_only=True)
    }
