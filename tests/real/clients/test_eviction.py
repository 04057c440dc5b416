"""Evictions, deletions and restarts on the real API server: what each refusal becomes."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.eviction import Evictions
from reconciler.kubernetes.objects import DeploymentSpec, RollingUpdate, Strategy
from reconciler.kubernetes.restart import RESTARTED_AT, why_not
from reconciler.model.errors import Conflict, Forbidden, LockLost, NotFound, Rejected, TooManyRequests
from reconciler.model.pod import Owner, Pod, PodSpec
from reconciler.model.values import replace
from tests.real.clients.conftest import PREFIX, alone_and_shared
from tests.support.controlplane import workloads
from tests.support.controlplane.api import ApiError, Object
from tests.support.controlplane.fill import fill
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane

NOW = datetime(2026, 11, 21, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def web(cluster: ControlPlane, evictions: Evictions) -> Pod:
    """A Deployment's only pod, which is Ready."""
    return start(cluster, evictions, workloads.deployment("web", 1))


def start(cluster: ControlPlane, evictions: Evictions, deployment: Object) -> Pod:
    """Start a Deployment of one replica; its pod, as soon as it is Ready."""
    fill(cluster.kubeconfig, nodes=1)
    cluster.api.create("deployments", deployment)
    return wait_for("pod", lambda: next((pod for pod in evictions.pods() if pod.ready), None))


def protect(cluster: ControlPlane, name: str = "web") -> None:
    """A budget that allows no disruption, once the server has counted."""
    made = workloads.budget("web", min_available=1)
    made["metadata"]["name"] = name
    cluster.api.create("poddisruptionbudgets", made)
    wait_for("budget", lambda: counted(cluster, name))


def counted(cluster: ControlPlane, name: str) -> bool:
    """Whether the budget's status includes its pod."""
    return bool(cluster.api.get("poddisruptionbudgets", name)["status"].get("currentHealthy"))


def test_an_eviction_takes_the_pod(cluster: ControlPlane, evictions: Evictions, web: Pod) -> None:
    evictions.evict(web, grace=None)

    wait_for("end of the pod", lambda: cluster.api.find("pods", web.name) is None)


@pytest.mark.parametrize("how", ["evict", "delete"])
def test_a_pod_of_another_uid_is_never_touched(
    cluster: ControlPlane, evictions: Evictions, web: Pod, how: str
) -> None:
    stale = replace(web, uid="00000000-0000-0000-0000-000000000000")

    with pytest.raises(Conflict):
        getattr(evictions, how)(stale, grace=0)
    assert cluster.api.get("pods", web.name)["metadata"]["uid"] == web.uid


@pytest.mark.parametrize("how", ["evict", "delete"])
def test_a_pod_that_has_gone_is_not_found(evictions: Evictions, web: Pod, how: str) -> None:
    with pytest.raises(NotFound):
        getattr(evictions, how)(replace(web, name="nobody"), grace=None)


@pytest.mark.parametrize("how", ["evict", "delete"])
def test_the_grace_may_be_another(cluster: ControlPlane, evictions: Evictions, web: Pod, how: str) -> None:
    cluster.api.patch("pods", web.name, {"metadata": {"finalizers": ["test.example/hold"]}})
    getattr(evictions, how)(web, grace=7)

    going = cluster.api.get("pods", web.name)["metadata"]
    assert going["deletionGracePeriodSeconds"] == 7
    cluster.api.patch("pods", web.name, {"metadata": {"finalizers": None}})


def test_a_budget_that_refuses_is_named(cluster: ControlPlane, evictions: Evictions, web: Pod) -> None:
    protect(cluster)

    with pytest.raises(TooManyRequests) as caught:
        evictions.evict(web, grace=None)
    assert caught.value.reason == "DisruptionBudget"
    assert caught.value.causes == ("The disruption budget web needs 1 healthy pods and has 1 currently",)


def test_two_budgets_over_one_pod_are_refused_for_good(
    cluster: ControlPlane, evictions: Evictions, web: Pod
) -> None:
    protect(cluster, "one")
    protect(cluster, "two")

    with pytest.raises(Rejected, match="more than one PodDisruptionBudget") as caught:
        evictions.evict(web, grace=None)
    assert caught.value.status == 500


def test_a_pod_of_a_namespace_that_is_ending_says_so(cluster: ControlPlane, evictions: Evictions) -> None:
    node = fill(cluster.kubeconfig, nodes=1)[0]
    cluster.api.create_namespace("ending")
    made = workloads.pod("held", namespace="ending", node_name=node, finalizers=["test.example/hold"])
    cluster.api.create("pods", made)
    cluster.api.delete("namespaces", "ending")
    pod = wait_for("pod", lambda: next(iter(evictions.pods(node)), None))
    try:
        with pytest.raises((Forbidden, NotFound)) as caught:
            evictions.evict(pod, grace=None)
        if isinstance(caught.value, Forbidden):
            assert caught.value.reason == "NamespaceTerminating"
    finally:
        cluster.api.patch("pods", "held", {"metadata": {"finalizers": None}}, "ending")


def test_a_lost_lock_evicts_deletes_and_restarts_nothing(
    cluster: ControlPlane, connection: Connection, web: Pod
) -> None:
    def lost() -> None:
        raise LockLost("gone")

    evictions = Evictions(connection, guard=lost, prefix=PREFIX)
    for act in (
        lambda: evictions.evict(web, grace=None),
        lambda: evictions.delete(web, grace=None),
        lambda: evictions.restart(web, NOW),
    ):
        with pytest.raises(LockLost):
            act()
    found = cluster.api.get("pods", web.name)["metadata"]
    assert "deletionTimestamp" not in found


@alone_and_shared
def test_one_node_as_it_is_now(evictions: Evictions, web: Pod) -> None:
    found = evictions.node(web.node)

    assert found is not None
    assert found.ready
    assert evictions.node("nobody") is None


@alone_and_shared
def test_attachments_of_one_node(cluster: ControlPlane, evictions: Evictions) -> None:
    for name, node in (("a", "one"), ("b", "two")):
        spec = {"attacher": "disk.csi.azure.com", "nodeName": node, "source": {"persistentVolumeName": name}}
        cluster.api.create("volumeattachments", {"metadata": {"name": name}, "spec": spec})

    assert evictions.attachments("one") == ("a",)


@alone_and_shared
def test_attachments_without_those_of_claims_whose_pods_stay(
    cluster: ControlPlane, evictions: Evictions
) -> None:
    for name in ("kept", "left", "unknown"):
        source = {"persistentVolumeName": name}
        spec = {"attacher": "disk.csi.azure.com", "nodeName": "three", "source": source}
        cluster.api.create("volumeattachments", {"metadata": {"name": name}, "spec": spec})
    for name in ("kept", "left"):
        volume = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
            "claimRef": {"namespace": "shop", "name": f"data-{name}"},
        }
        cluster.api.create("persistentvolumes", {"metadata": {"name": name}, "spec": volume})

    assert evictions.attachments("three", frozenset({"shop/data-kept"})) == ("left", "unknown")


def surging(name: str = "web", **extra: Any) -> Object:
    """A Deployment whose rollout brings the new pod up first."""
    made = workloads.deployment(name, 1, **extra)
    made["spec"]["strategy"] = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
    }
    return made


def test_a_singleton_is_restarted_as_kubectl_does(cluster: ControlPlane, evictions: Evictions) -> None:
    pod = start(cluster, evictions, surging())

    assert evictions.restart(pod, NOW) == "web"
    template = cluster.api.get("deployments", "web")["spec"]["template"]
    assert template["metadata"]["annotations"][RESTARTED_AT] == "2026-11-21T03:04:05Z"
    # As after an answer that was lost, and as in the next pass: what replaces the pod is under way already.
    generation = cluster.api.get("deployments", "web")["metadata"]["generation"]
    assert evictions.restart(pod, NOW) == "web"
    assert evictions.restart(pod, NOW + timedelta(minutes=1)) == "web"
    assert cluster.api.get("deployments", "web")["metadata"]["generation"] == generation
    wait_for("the new pod", lambda: {p.uid for p in evictions.pods() if p.ready} - {pod.uid})


def test_a_volume_for_one_node_keeps_a_singleton(cluster: ControlPlane, evictions: Evictions) -> None:
    claim = {
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    cluster.api.create("persistentvolumeclaims", claim)
    cluster.api.create("deployments", surging())
    name = wait_for("ReplicaSet", lambda: next(iter(cluster.api.list("replicasets", "default")), None))
    made = name["metadata"]
    owner = Owner("ReplicaSet", made["name"], "apps/v1", made["uid"])
    labels = name["spec"]["selector"]["matchLabels"]
    pod = Pod("default", "p", "u", "n", labels, owner=owner, spec=PodSpec(claims=("data",)))

    with pytest.raises(Rejected, match="data is ReadWriteOnce"):
        evictions.restart(pod, NOW)


@dataclass(frozen=True, slots=True)
class Tenants:
    """A Deployment in `default`, and one of another tenant in `rich`, each with its ReplicaSet."""

    cluster: ControlPlane
    mine: Pod

    def of(self, plural: str, namespace: str) -> Object:
        """Return the one object of that kind there."""
        return self.cluster.api.list(plural, namespace)[0]

    def generations(self) -> list[int]:
        """Return how often each Deployment was changed."""
        found = [self.of("deployments", namespace) for namespace in ("default", "rich")]
        return [one["metadata"]["generation"] for one in found]


@pytest.fixture
def tenants(cluster: ControlPlane, evictions: Evictions) -> Tenants:
    """Two tenants; the pod is that of `default`, which really belongs to its Deployment."""
    cluster.api.create_namespace("rich")
    victim = surging("victim")
    victim["metadata"]["namespace"] = "rich"
    cluster.api.create("deployments", victim)
    mine = start(cluster, evictions, surging())
    mine = wait_for(
        "pod", lambda: next((p for p in evictions.pods() if p.ready and p.namespace == "default"), None)
    )
    wait_for("the other ReplicaSet", lambda: cluster.api.list("replicasets", "rich"))
    return Tenants(cluster, mine)


def test_a_forged_pod_of_the_real_server_restarts_nothing(tenants: Tenants, evictions: Evictions) -> None:
    # The server takes the name of an owner as it is, and keeps the UID, although they are another tenant's.
    other = tenants.of("replicasets", "rich")["metadata"]
    made = workloads.pod("forged", node_name=tenants.mine.node)
    made["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": f"../../rich/replicasets/{other['name']}",
            "uid": other["uid"],
            "controller": True,
        }
    ]
    api, before = tenants.cluster.api, tenants.generations()
    api.create("pods", made)
    forged = next(pod for pod in evictions.pods(tenants.mine.node) if pod.name == "forged")
    assert forged.owner is not None

    with pytest.raises(Rejected, match="an owner that can't exist"):
        evictions.restart(forged, NOW)
    assert tenants.generations() == before


def test_what_azures_autoscaler_manages_is_left_to_it(cluster: ControlPlane, evictions: Evictions) -> None:
    pod = start(cluster, evictions, surging())
    group, plural = "eviction-autoscaler.azure.com", "evictionautoscalers"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "EvictionAutoScaler"},
            "versions": [version],
        },
    }
    cluster.api.create("customresourcedefinitions", crd)
    path = f"apis/{group}/v1/namespaces/default/{plural}"
    scaler = {
        "apiVersion": f"{group}/v1",
        "kind": "EvictionAutoScaler",
        "metadata": {"name": "web-pdb"},
        "spec": {"targetName": "web", "targetKind": "deployment"},
    }
    wait_for("CRD", lambda: served(cluster, path))
    cluster.api.request("POST", path, scaler)

    with pytest.raises(Rejected, match="EvictionAutoScaler web-pdb"):
        evictions.restart(pod, NOW)


def served(cluster: ControlPlane, path: str) -> bool:
    """Whether the server serves the new kind."""
    try:
        cluster.api.request("GET", path)
    except ApiError:
        return False
    return True


def spec(**changes: Any) -> DeploymentSpec:
    """A Deployment's spec that fits, but for the changes."""
    rolling = RollingUpdate(changes.pop("surge", 1), changes.pop("unavailable", 0))
    strategy = Strategy(changes.pop("strategy", "RollingUpdate"), rolling)
    return DeploymentSpec(**{"replicas": 1, "strategy": strategy, **changes})


@pytest.mark.parametrize(
    ("found", "words"),
    [
        pytest.param(spec(), "", id="it fits"),
        pytest.param(spec(replicas=None), "", id="one is the default"),
        pytest.param(spec(replicas=2), "2 replicas", id="two"),
        pytest.param(spec(replicas=0), "0 replicas", id="none"),
        pytest.param(spec(paused=True), "paused", id="paused"),
        pytest.param(spec(strategy="Recreate"), "Recreate", id="Recreate"),
        pytest.param(spec(surge=0), "maxSurge", id="no surge"),
        pytest.param(spec(surge="0%"), "maxSurge", id="no surge in percent"),
        pytest.param(spec(surge="25%", unavailable="25%"), "", id="the defaults: one more, none less"),
        pytest.param(spec(surge=None, unavailable=None), "", id="the defaults, absent"),
        pytest.param(spec(unavailable=1), "maxUnavailable", id="the old one may go first"),
        pytest.param(spec(unavailable="100%"), "maxUnavailable", id="it may in percent"),
        pytest.param(spec(unavailable="often"), "maxUnavailable", id="what can't be read is no permission"),
    ],
)
def test_which_deployments_fit(found: DeploymentSpec, words: str) -> None:
    reason = why_not(found)

    assert (words in reason) if words else not reason
