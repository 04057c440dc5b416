"""The program under exactly the rights that the manifests give its ServiceAccount."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.real.manifests.applying import applied
from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.api import Api, ApiError
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.waiting import wait_for
from tests.support.controlplane.workloads import budget

pytestmark = pytest.mark.slow

NAMESPACE = "node-maintenance"


def may(api: Api, verb: str, resource: str, group: str = "", subresource: str = "") -> bool:
    """What the server says of the asker's own rights, in the whole cluster."""
    attributes = {"verb": verb, "resource": resource, "group": group, "subresource": subresource}
    body = {"spec": {"resourceAttributes": attributes}}
    answer = api.request("POST", "apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    return bool(answer["status"]["allowed"])


def account(controlplane: ControlPlane) -> Path:
    wait_for("the account", lambda: controlplane.api.find("serviceaccounts", "reconciler", NAMESPACE))
    return controlplane.kubeconfig_for("reconciler", NAMESPACE)


def test_a_whole_case_goes_by_under_the_manifests_rights_and_pods_may_not_be_deleted(
    scene: Scene, programs: Programs
) -> None:
    # The server's log is older than this test, and others are refused on purpose.
    since = datetime.now(UTC)
    programs.configure("mode: Enforce\nbudget: {spacing: 1s}\nuncordon: {settle: 0s}\n")
    node = scene.node()
    names = scene.workload("web", node, replicas=3)
    scene.api.create("poddisruptionbudgets", budget("web", max_unavailable=3))
    scene.condition_tells(node)
    with applied(scene.controlplane, "base"):
        kubeconfig = account(scene.controlplane)
        with Api(kubeconfig, user_agent="tests-rights") as api:
            assert not may(api, "delete", "pods")
            assert not may(api, "deletecollection", "pods")
            assert not may(api, "update", "nodes")
            assert not may(api, "get", "secrets")
            assert may(api, "patch", "nodes")
            assert may(api, "create", "pods", subresource="eviction")
            with pytest.raises(ApiError, match="cannot delete resource"):
                api.delete("pods", names[0], "default")

        drained = programs.sweep(kubeconfig=kubeconfig)
        report = programs.run("report", kubeconfig=kubeconfig)
        ours = scene.cordoned(node), scene.pods_on(node)
        scene.condition_silent(node)
        undone = programs.sweep(kubeconfig=kubeconfig)
        refused = [
            (entry.verb, entry.uri, entry.code)
            for entry in scene.asked(since=since)
            if entry.code in (401, 403) and entry.user.endswith(f":{NAMESPACE}:reconciler")
        ]

    assert (drained.code, report.code, undone.code) == (0, 0, 0), (drained.err, report.err, undone.err)
    assert ours == (True, [])
    assert scene.is_untouched(node)
    assert refused == []
    assert drained.err == undone.err == ""


def test_a_second_sweep_may_watch_the_first_ones_lock_under_the_manifests_rights(
    scene: Scene, programs: Programs
) -> None:
    with applied(scene.controlplane, "base"):
        kubeconfig = account(scene.controlplane)
        serving = programs.start("serve", "--every", "1h", kubeconfig=kubeconfig)
        serving.wait_for("leading")

        done = programs.run("sweep", kubeconfig=kubeconfig)

        assert done.code == 0, done.err
        assert "another pass holds the lock" in done.out
        assert serving.terminate().code == 0
