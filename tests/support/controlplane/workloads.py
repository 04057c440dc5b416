"""Pods and what owns them: deployments, budgets, daemon sets, single pods, as plain dicts."""

from typing import Any
from uuid import uuid4

Object = dict[str, Any]

_SPOT = {
    "key": "kubernetes.azure.com/scalesetpriority",
    "operator": "Equal",
    "value": "spot",
    "effect": "NoSchedule",
}


def deployment(
    name: str,
    replicas: int,
    *,
    namespace: str = "default",
    node_selector: dict[str, str] | None = None,
    tolerate_spot: bool = False,
    grace: int = 1,
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    volumes: list[Object] | None = None,
) -> Object:
    """Spread over the nodes; `annotations` and `labels` are its pods'."""
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    spec = _pod_spec(grace, node_selector, tolerate_spot=tolerate_spot, volumes=volumes)
    spec["topologySpreadConstraints"] = [{**spread, "labelSelector": {"matchLabels": {"app": name}}}]
    # A ReplicaSet is named by its template. The controller expects the pods of a wiped one for five minutes,
    # and makes none for another of the same name until then.
    once = {"made": uuid4().hex}
    template = {
        "metadata": {
            "labels": {"app": name, **(labels or {})},
            "annotations": {**once, **(annotations or {})},
        },
        "spec": spec,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def budget(
    app: str,
    *,
    namespace: str = "default",
    max_unavailable: int | str | None = None,
    min_available: int | str | None = None,
) -> Object:
    """A PodDisruptionBudget over the pods of an app, by its name."""
    spec: Object = {"selector": {"matchLabels": {"app": app}}}
    if max_unavailable is not None:
        spec["maxUnavailable"] = max_unavailable
    if min_available is not None:
        spec["minAvailable"] = min_available
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": namespace},
        "spec": spec,
    }


def daemon_set(name: str, *, namespace: str = "default", grace: int = 1) -> Object:
    """One pod on every node, cordoned or not."""
    spec = _pod_spec(grace, None)
    spec["tolerations"] = [{"operator": "Exists"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


def pod(
    name: str,
    *,
    namespace: str = "default",
    node_name: str | None = None,
    grace: int = 1,
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    finalizers: list[str] | None = None,
    volumes: list[Object] | None = None,
) -> Object:
    """A pod without an owner; with `node_name` it needs no scheduler."""
    spec = _pod_spec(grace, None, volumes=volumes)
    if node_name is not None:
        spec["nodeName"] = node_name
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": name, **(labels or {})},
            "annotations": annotations or {},
            "finalizers": finalizers or [],
        },
        "spec": spec,
    }


def _pod_spec(
    grace: int,
    node_selector: dict[str, str] | None,
    *,
    tolerate_spot: bool = False,
    volumes: list[Object] | None = None,
) -> Object:
    return {
        "terminationGracePeriodSeconds": grace,
        "nodeSelector": node_selector or {},
        "tolerations": [_SPOT] if tolerate_spot else [],
        "containers": [{"name": "main", "image": "registry.example/app:1"}],
        "volumes": volumes or [],
    }


def last_of(kind: str) -> Object:
    """A Deployment or a ReplicaSet (by its plural name) without pods, of a name that no other has."""
    made = deployment(f"last-{uuid4().hex[:8]}", 0)
    if kind == "deployments":
        # Then it makes no ReplicaSet.
        made["spec"]["paused"] = True
    else:
        made["kind"] = "ReplicaSet"
    return made
