"""Every manifest is accepted by a real API server, valid by the schemas, and safe by what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.model.node import HOSTED_LABEL
from tests.real.manifests.applying import applied, built, kubectl
from tests.real.manifests.schemas import keeps_its_schema
from tests.support.controlplane.api import ApiError
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane

Object = dict[str, Any]
FOLDERS = (
    *(
        "base",
        "agent",
        "cronjob",
        "deployment",
        "escalation",
        "flow-control",
        "hooks",
        "hypervisors",
        "metrics",
        "pods",
        "publish",
        "replacing",
        "report",
        "report-job",
        "report-configmap",
        "service",
        "shuffles",
        "crd",
    ),
)


def pod_of(found: Object) -> Object | None:
    """The pod's spec in any object that creates pods."""
    spec = found.get("spec", {})
    template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
    return None if template is None else dict(template["spec"])


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_object_keeps_its_schema(folder: str) -> None:
    for found in built(folder):
        keeps_its_schema(found)


def test_a_real_api_server_accepts_everything_twice_without_a_warning(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    objects = [each for folder in FOLDERS for each in built(folder)]
    named = {
        (each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]): each for each in objects
    }
    file = tmp_path / "everything.yaml"
    file.write_text(yaml.safe_dump_all(named.values()), encoding="utf-8")
    try:
        assert "created" in kubectl(cluster, "apply", "-f", str(file))
        again = kubectl(cluster, "apply", "-f", str(file))
    finally:
        kubectl(cluster, "delete", "-f", str(file), "--ignore-not-found", "--wait=false")

    # kubectl sends a budget's selector each time, since the server would replace it as a whole.
    changed = [line for line in again.splitlines() if not line.startswith("poddisruptionbudget.")]
    assert [line for line in changed if not line.endswith(" unchanged")] == []


@pytest.mark.parametrize("folder", ["agent", "cronjob", "deployment", "report-job"])
def test_pods_are_as_restricted_as_can_be(folder: str) -> None:
    pods = [pod for found in built(folder) if (pod := pod_of(found))]
    assert pods
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 65532
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["enableServiceLinks"] is False
        assert not any(pod.get(shared) for shared in ("hostPID", "hostIPC", "shareProcessNamespace"))
        assert not any("hostPath" in volume for volume in pod.get("volumes", []))
        assert not pod.get("initContainers")
        for container in pod["containers"]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True
            assert security["allowPrivilegeEscalation"] is False
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert not security.get("privileged")
            assert "memory" in container["resources"]["limits"]
        # A pod with one is kept where the settings say so: ours would hold up its own node's drain.
        assert not any("emptyDir" in volume for volume in pod.get("volumes", []))


def test_each_kind_of_pod_has_its_component_and_no_budget_selects_two_kinds() -> None:
    every = [one for folder in FOLDERS for one in built(folder)]
    labels = {}
    for one in every:
        if pod_of(one) is not None:
            spec = one["spec"]
            template = spec.get("jobTemplate", {}).get("spec", spec)["template"]
            labels[one["kind"], one["metadata"]["name"]] = template["metadata"]["labels"]
    components = [one["app.kubernetes.io/component"] for one in labels.values()]

    assert sorted(components) == ["agent", "report", "serve", "sweep"]
    budgets = [one for one in every if one["kind"] == "PodDisruptionBudget"]
    assert budgets
    for one in budgets:
        chosen = one["spec"]["selector"]["matchLabels"].items()
        assert [who for who, own in labels.items() if chosen <= own.items()] == [("Deployment", "reconciler")]


@pytest.mark.parametrize("folder", ["agent", "deployment"])
def test_what_keeps_running_has_both_probes(folder: str) -> None:
    containers = [one for found in built(folder) if (pod := pod_of(found)) for one in pod["containers"]]

    assert containers
    for one in containers:
        paths = [one[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")]
        assert paths == ["/healthz", "/readyz"]


@pytest.mark.parametrize("folder", ["agent", "cronjob", "deployment", "report-job"])
def test_no_pod_tolerates_every_taint(folder: str) -> None:
    tolerations = [one for found in built(folder) if (pod := pod_of(found)) for one in pod["tolerations"]]

    assert tolerations
    assert all(one.get("key") for one in tolerations)


def test_the_agent_leaves_nodes_alone_that_aks_manages_itself() -> None:
    (pod,) = [pod for found in built("agent") if (pod := pod_of(found))]
    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    for term in required["nodeSelectorTerms"]:
        assert {"key": HOSTED_LABEL, "operator": "DoesNotExist"} in term["matchExpressions"]


@pytest.mark.parametrize("folder", ["agent", "cronjob", "deployment", "report-job"])
def test_a_token_is_mounted_only_where_a_pod_asks_for_it(folder: str) -> None:
    objects = built(folder)

    accounts = [found for found in objects if found["kind"] == "ServiceAccount"]
    assert [found["automountServiceAccountToken"] for found in accounts] == [False]
    pods = [pod for found in objects if (pod := pod_of(found))]
    assert [pod["automountServiceAccountToken"] for pod in pods] == [True]
    assert {pod["serviceAccountName"] for pod in pods} == {found["metadata"]["name"] for found in accounts}


def policies(folder: str) -> dict[str, Object]:
    """The NetworkPolicies of a folder by name; each selects the folder's own pods."""
    found = {one["metadata"]["name"]: one for one in built(folder) if one["kind"] == "NetworkPolicy"}
    templates = [one["spec"] for one in built(folder) if pod_of(one)]
    labels = [
        one.get("jobTemplate", {}).get("spec", one)["template"]["metadata"]["labels"] for one in templates
    ]
    for one in found.values():
        chosen = one["spec"]["podSelector"].get("matchLabels", {}).items()
        assert all(chosen <= each.items() for each in labels)
    return found


def reached(policy: Object) -> set[tuple[str, object]]:
    """To where it lets traffic go: an address, or `*`, and a port."""
    return {
        (peer["ipBlock"]["cidr"] if peer else "*", port["port"])
        for rule in policy["spec"]["egress"]
        for peer in rule.get("to", [None])
        for port in rule["ports"]
    }


def test_no_one_connects_to_a_sweep_and_only_monitoring_to_a_server() -> None:
    for folder in ("cronjob", "deployment"):
        found = policies(folder)
        assert found["deny-ingress"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress"]}
        inwards = [name for name, one in found.items() if one["spec"].get("ingress")]
        assert inwards == ([] if folder == "cronjob" else ["reconciler-http"])
    (rule,) = policies("deployment")["reconciler-http"]["spec"]["ingress"]
    (server,) = [pod for one in built("deployment") if (pod := pod_of(one))]

    assert [port["port"] for port in rule["ports"]] == [server["containers"][0]["ports"][0]["name"]]
    (peer,) = rule["from"]
    (names,) = peer["namespaceSelector"]["matchExpressions"]
    # A label that tenants could set would let them in.
    assert (names["key"], names["operator"]) == ("kubernetes.io/metadata.name", "In")


def test_metrics_are_permitted_to_other_namespaces_only_by_a_folder_of_its_own() -> None:
    (rule,) = policies("metrics")["reconciler-metrics"]["spec"]["ingress"]
    (served,) = policies("deployment")["reconciler-http"]["spec"]["ingress"]

    assert rule["ports"] == served["ports"]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"node-maintenance.dev/metrics": "true"}}}]


def test_pods_reach_what_they_need_and_the_reconciler_not_the_metadata_service() -> None:
    ours = reached(policies("deployment")["reconciler-egress"])
    agents = policies("agent")

    assert ours == {("*", 443), ("*", 6443), ("*", 53), ("169.254.170.23/32", 80), ("fd00:ec2::23/128", 80)}
    assert agents["deny-all"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    (scraping,) = agents["agent-metrics"]["spec"]["ingress"]
    (served,) = policies("deployment")["reconciler-http"]["spec"]["ingress"]
    (agent,) = [pod for one in built("agent") if (pod := pod_of(one))]
    assert scraping["from"] == served["from"]
    assert f"--listen=127.0.0.1:{scraping['ports'][0]['port']}" in agent["containers"][0]["args"]
    assert reached(agents["agent-egress"]) == {("169.254.169.254/32", 80), ("*", 443), ("*", 6443)}


def test_the_namespace_of_the_reconciler_refuses_what_is_not_restricted(cluster: ControlPlane) -> None:
    pod: Object = {
        "metadata": {"name": "loose", "namespace": "node-maintenance"},
        "spec": {"containers": [{"name": "a", "image": "none"}]},
    }
    with applied(cluster, "base"), pytest.raises(ApiError, match="violates PodSecurity"):
        cluster.api.create("pods", pod)


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_pods_of_the_deployment_run(cluster: ControlPlane, nodes: int) -> None:
    """The standard of the namespace, the priority class and the spreading permit them, also on one node."""
    for instance in range(nodes):
        cluster.api.create("nodes", Pool("np").node(instance))
    with applied(cluster, "deployment"):

        def places() -> bool:
            pods = cluster.api.list("pods", "node-maintenance")
            used = [pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"]]
            return (len(used), len(set(used))) == (2, nodes)

        wait_for(f"two replicas on {nodes} nodes", places)


def test_no_budget_selects_the_pods_of_jobs_after_a_move_from_the_cronjob(cluster: ControlPlane) -> None:
    """A budget that selects a Pod of a Job permits no eviction at all, and an upgrade of the nodes waits."""
    cluster.api.create("nodes", Pool("np").node(0))
    jobs = {"reconciler": "cronjob", "report": "report-job"}
    with applied(cluster, "cronjob"), applied(cluster, "report-job"):
        for cronjob in jobs:
            kubectl(
                cluster,
                "-n",
                "node-maintenance",
                "create",
                "job",
                f"{cronjob}-1",
                f"--from=cronjob/{cronjob}",
            )

        def pods(component: str) -> list[Object]:
            every = cluster.api.list("pods", "node-maintenance")
            return [
                one for one in every if one["metadata"]["labels"]["app.kubernetes.io/component"] == component
            ]

        wait_for("the Pods of the Jobs", lambda: pods("sweep") and pods("report"))
        with applied(cluster, "deployment"):

            def budget() -> Object:
                found = cluster.api.get("poddisruptionbudgets", "reconciler", "node-maintenance")
                return dict(found.get("status", {}))

            wait_for("the Pods of the Deployment", lambda: len(pods("serve")) == 2)
            wait_for("the budget that counts two Pods", lambda: budget().get("expectedPods") == 2)
            reasons = [one["reason"] for one in budget()["conditions"]]
            assert "SyncFailed" not in reasons


def test_as_shipped_the_program_only_looks() -> None:
    policy = next(found for found in built("base") if found["kind"] == "ConfigMap")

    assert (
        policy["metadata"]["name"] == "maintenance-policy"
    )  # no hash: the name binds CronJob and Deployment
    assert yaml.safe_load(policy["data"]["maintenance.yaml"])["mode"] == "Observe"


def test_only_escalation_may_delete_pods() -> None:
    for folder in FOLDERS:
        rules = [rule for found in built(folder) if found["kind"].endswith("Role") for rule in found["rules"]]
        deletes = any("delete" in rule["verbs"] and "pods" in rule["resources"] for rule in rules)
        assert deletes is (folder == "escalation"), folder
        deletable = [rule["resources"] for rule in rules if "delete" in rule["verbs"]]
        # Views; and where machines are replaced, those.
        machines = [["nodeclaims"], ["machines"], ["machines"]]
        told = [[["configmaps"]]] if folder == "pods" else []
        allowed = [machines] if folder == "replacing" else [[], [["nodemaintenances"]], *told]
        assert folder == "escalation" or deletable in allowed
        assert not any("*" in rule["verbs"] + rule["resources"] + rule["apiGroups"] for rule in rules)


def test_the_right_to_replace_machines_covers_only_the_scale_of_a_pool() -> None:
    (role,) = [found for found in built("replacing") if found["kind"] == "ClusterRole"]
    writing = {
        resource
        for rule in role["rules"]
        for resource in rule["resources"]
        if set(rule["verbs"]) - {"get", "list"}
    }

    assert writing == {"nodeclaims", "machines", "machinesets/scale", "machinedeployments/scale"}
