"""The chart on a real API server: installed, upgraded and removed, and instead of kustomize."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.real.manifests.applying import K8S, applied_by_kubectl, kubectl
from tests.real.manifests.permissions import used
from tests.real.passes.processes import Done, Programs
from tests.real.passes.scene import Scene
from tests.real.tools.values import EVERYTHING
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.tools.helm import Helm, Refused

NAMESPACE = "node-maintenance"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
STAGGERED = {
    "instances": {
        "check": [
            {
                "type": "stagger",
                "name": "turn",
                "config": {"duration": "1h", "leaseName": "turns", "leaseNamespace": "default"},
            }
        ]
    }
}


@pytest.fixture
def helm(helm_program: Path, cluster: ControlPlane, tmp_path: Path) -> Iterator[Helm]:
    """Helm with the API server. In the end the release is removed: its policies would hinder later tests."""
    found = Helm(helm_program, tmp_path, cluster.kubeconfig)
    yield found
    found.uninstall()


@pytest.fixture
def namespace(cluster: ControlPlane) -> None:
    kubectl(cluster, "apply", "-f", str(K8S / "base" / "namespace.yaml"))


def ours(cluster: ControlPlane) -> set[tuple[str, str]]:
    """Kind and name of the objects of the release that run something, and of its kinds."""
    kinds = "cronjobs,deployments,daemonsets,customresourcedefinitions"
    text = kubectl(cluster, "get", kinds, "-A", "-l", "app.kubernetes.io/managed-by=Helm", "-o", "yaml")
    return {(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load(text)["items"]}


def test_passes_run_in_another_namespace_with_another_account(
    helm: Helm, scene: Scene, programs: Programs
) -> None:
    cluster, helm.namespace = scene.controlplane, "ops"
    cluster.api.create_namespace("ops")
    said = helm.upgrade({"serviceAccount": {"name": "drainer"}, "flowControl": {"enabled": True}})
    assert "in the namespace ops, in mode Observe" in said
    assert "node-maintenance logs" not in said
    kubeconfig = cluster.kubeconfig_for("drainer", "ops")
    programs.configure("mode: Enforce\nuncordon: {settle: 0s}\n")
    node = scene.node(0)
    scene.workload("web", node)
    scene.condition_tells(node)

    done = programs.sweep("--reconciler-namespace", "ops", "--for", "30s", kubeconfig=kubeconfig)

    assert done.code == 0, done.err
    assert scene.cordoned(node)
    asked = used(scene.asked(), "system:serviceaccount:ops:drainer")
    assert {one.name for one in asked if one.resource == "leases" and one.verb == "patch"} == {
        "reconciler-lock"
    }
    assert [one for one in asked if one.code in (401, 403)] == []
    assert cluster.api.find("leases", "reconciler-lock", "ops") is not None
    assert cluster.api.find("leases", "reconciler-lock", NAMESPACE) is None


def test_what_check_config_prints_is_for_the_account_of_the_release(
    helm: Helm, cluster: ControlPlane, programs: Programs
) -> None:
    helm.namespace = "ops"
    cluster.api.create_namespace("ops")
    helm.upgrade({"serviceAccount": {"name": "drainer"}, "settings": {"profiles": STAGGERED}})

    done = programs.run(
        "check-config", "configmap/ops/maintenance-policy", "--permissions", "--reconciler-namespace", "ops"
    )

    assert done.code == 0, done.err
    _, *roles = yaml.safe_load_all(done.out)
    (subject,) = next(one["subjects"] for one in roles if one["kind"] == "RoleBinding")
    assert (subject["name"], subject["namespace"]) == ("drainer", "ops")
    assert "the ServiceAccount of the reconciler may not create Leases" in done.err
    kubectl(cluster, "apply", "-f", str(written(programs.folder, roles)))

    def missing() -> str:
        return programs.run(
            "check-config", "configmap/ops/maintenance-policy", "--reconciler-namespace", "ops"
        ).err

    wait_for("the rights", lambda: "may not" not in missing())


def test_a_test_of_the_release_checks_the_settings_and_reports_with_rights_to_read(
    helm: Helm, scene: Scene, programs: Programs
) -> None:
    """What the containers of the Pod run, as its account: this cluster has no kubelet."""
    cluster, helm.namespace = scene.controlplane, "ops"
    cluster.api.create_namespace("ops")
    cluster.api.patch("namespaces", "ops", {"metadata": {"labels": RESTRICTED}})
    node = scene.node(0)
    scene.condition_tells(node)
    helm.upgrade({"settings": {"mode": "Enforce"}})
    results: list[tuple[str, Done]] = []
    with ThreadPoolExecutor(1) as beside:
        said = beside.submit(helm.test)
        try:
            pod = wait_for("the Pod of the test", lambda: cluster.api.find("pods", "test", "ops"))
            kubeconfig = cluster.kubeconfig_for(pod["spec"]["serviceAccountName"], "ops")
            for container in pod["spec"]["containers"]:
                arguments = [one.replace("$(POD_NAMESPACE)", "ops") for one in container["args"]]
                results.append((container["name"], programs.run(*arguments, kubeconfig=kubeconfig)))
        finally:
            ended = {"status": {"phase": "Succeeded"}}
            cluster.api.patch("pods", "test", ended, "ops", subresource="status")
        assert "Phase:          Succeeded" in said.result()

    (checked, check), (reported, report) = results
    assert (checked, check.code, check.err) == ("check-config", 0, "")
    assert (reported, report.code) == ("report", 0)
    assert node in report.out
    assert "could not see" not in report.out
    asked = used(scene.asked(), "system:serviceaccount:ops:test")
    assert {one.verb for one in asked} <= {"get", "list"}
    assert [one for one in asked if one.code in (401, 403)] == []
    wait_for("the end of its rights", lambda: cluster.api.find("serviceaccounts", "test", "ops") is None)
    # Helm 3 reads the logs only after it has deleted what may be deleted.
    assert cluster.api.find("pods", "test", "ops") is not None


def written(folder: Path, objects: list[Any]) -> Path:
    file = folder / "roles.yaml"
    file.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return file


@pytest.mark.usefixtures("namespace")
def test_an_upgrade_moves_a_cronjob_to_a_deployment(helm: Helm, cluster: ControlPlane) -> None:
    helm.upgrade({"runAs": "CronJob"})
    assert ours(cluster) == {("CronJob", "reconciler")}

    # Without any value, Helm would take those of the release before.
    helm.upgrade({"settings": {"mode": "Observe"}})

    wait_for("the Deployment alone", lambda: ours(cluster) == {("Deployment", "reconciler")})


@pytest.mark.usefixtures("namespace")
def test_a_release_is_installed_upgraded_rolled_back_and_removed(helm: Helm, cluster: ControlPlane) -> None:
    said = helm.upgrade({"runAs": "CronJob"})
    assert "runs as a CronJob in the namespace node-maintenance, in mode Observe" in said
    assert "WARNING" not in said
    assert ours(cluster) == {("CronJob", "reconciler")}

    said = helm.upgrade(
        {
            "runAs": "Deployment",
            "agent": {"enabled": True},
            "permissions": {"publish": True},
            "crd": {"enabled": True},
            "settings": {"mode": "Enforce", "publish": ["nodemaintenances"]},
        }
    )
    assert "runs as a Deployment in the namespace node-maintenance, in mode Enforce" in said
    assert "WARNING" not in said
    assert ours(cluster) == {
        ("Deployment", "reconciler"),
        ("DaemonSet", "node-maintenance-agent"),
        ("CustomResourceDefinition", "nodemaintenances.node-maintenance.dev"),
    }
    settings = cluster.api.get("configmaps", "maintenance-policy", NAMESPACE)["data"]["maintenance.yaml"]
    assert yaml.safe_load(settings)["mode"] == "Enforce"

    with pytest.raises(Refused, match="/settings/mode"):
        helm.upgrade({"settings": {"mode": "enforce"}})
    assert ("Deployment", "reconciler") in ours(cluster)

    helm.rollback(1)
    wait_for("the CronJob alone", lambda: ours(cluster) == {("CronJob", "reconciler")})
    settings = cluster.api.get("configmaps", "maintenance-policy", NAMESPACE)["data"]["maintenance.yaml"]
    assert yaml.safe_load(settings)["mode"] == "Observe"

    helm.uninstall()
    wait_for("the end of what was installed", lambda: ours(cluster) == set())
    assert cluster.api.find("namespaces", NAMESPACE) is not None


def test_the_notes_say_what_is_missing(helm: Helm, cluster: ControlPlane) -> None:
    cluster.api.create_namespace(NAMESPACE)
    said = helm.upgrade({"settings": {"publish": ["nodemaintenances"]}})

    for what in ("permissions.publish", "crd.enabled", "kubectl label namespace node-maintenance"):
        assert what in said
    assert said.count("WARNING") == 3


@pytest.mark.usefixtures("namespace")
@pytest.mark.parametrize("kind", ["Deployment", "CronJob"])
def test_the_api_server_takes_every_value(helm: Helm, cluster: ControlPlane, kind: str) -> None:
    permissions = ("escalation", "hooks", "hypervisors", "pods", "publish", "replacing", "shuffles", "report")
    values: dict[str, Any] = {
        **EVERYTHING,
        "runAs": kind,
        "crd": {"enabled": True},
        "permissions": dict.fromkeys(permissions, True),
    }
    helm.upgrade(values)
    first = cluster.api.get("configmaps", "maintenance-policy", NAMESPACE)["metadata"]["resourceVersion"]
    helm.upgrade(values)

    again = cluster.api.get("configmaps", "maintenance-policy", NAMESPACE)["metadata"]["resourceVersion"]
    assert again == first


def test_helm_takes_over_what_kustomize_has_installed_without_a_restart(
    helm: Helm, cluster: ControlPlane
) -> None:
    with applied_by_kubectl(cluster, "deployment"):
        before = cluster.api.get("deployments", "reconciler", NAMESPACE)
        with pytest.raises(Refused, match="invalid ownership metadata"):
            helm.upgrade({"replicas": 2})
        as_helm = ("--server-side", "--field-manager=helm", "--force-conflicts")
        kubectl(cluster, "apply", "-k", str(K8S / "deployment"), *as_helm)
        helm.upgrade({"replicas": 2}, "--take-ownership")
        after = cluster.api.get("deployments", "reconciler", NAMESPACE)

        # The same object, and the same Pods: a change of the template would replace them.
        assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])
        assert after["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
        # Later upgrades change and remove what kubectl has written.
        helm.upgrade(
            {
                "image": {"tag": "0.2.0"},
                "resources": {"requests": {"cpu": None}},
                "settings": {"mode": "Enforce"},
            }
        )
        spec = cluster.api.get("deployments", "reconciler", NAMESPACE)["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        assert container["image"].endswith(":0.2.0")
        assert container["resources"]["requests"] == {"memory": "128Mi"}
        settings = cluster.api.get("configmaps", "maintenance-policy", NAMESPACE)["data"]["maintenance.yaml"]
        assert yaml.safe_load(settings)["mode"] == "Enforce"
