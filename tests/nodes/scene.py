"""What several scenarios have: the reconciler that acts, the workloads, and the node that they begin on."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from tests.nodes.cluster import Cluster, Object
from tests.nodes.node import Node

WORK = "work"
"""The namespace of the workloads."""

SETTLE = 10
"""Seconds."""

LATE = 1.5
"""Seconds by which a Pod may end late, because it shares its cores with a whole cluster."""


def enforcing(cluster: Cluster, places: int = 1) -> AbstractContextManager[list[Object]]:
    """Have the reconciler in mode Enforce, with so many places; it yields its Pods."""
    return cluster.reconciler(
        mode="Enforce", budget={"maxUnavailable": places}, uncordon={"settle": f"{SETTLE}s"}
    )


def without_replica(cluster: Cluster, replicas: Iterable[Object]) -> Node:
    """Return a node without any of these Pods of the reconciler, whose own node has a scenario of its own."""
    taken = {pod["spec"]["nodeName"] for pod in replicas}
    return next(node for node in cluster.nodes if node.name not in taken)


def namespace() -> Object:
    """Return the namespace of the workloads."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WORK}}


def prefer(node: Node) -> Any:
    """Return what a Pod's spec needs to begin on a node, and to go elsewhere when that is cordoned."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node.name]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}
    return {"affinity": {"nodeAffinity": preferred}}


def controller(kind: str, name: str, spec: Object, **more: Any) -> Object:
    """Return a Deployment, StatefulSet or DaemonSet; `more` are other fields of its spec."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": WORK},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
            **more,
        },
    }


def bare_pod(name: str, spec: Object) -> Object:
    """Return a Pod without a controller."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": WORK, "labels": {"app": name}},
        "spec": spec,
    }


def longest_without(cluster: Cluster, app: str) -> float:
    """Return for how long no Pod of an app was there for its users, between its first and its last."""
    lives = [life for life in cluster.lives(WORK) if life.pod.startswith(f"{app}-")]
    spans = sorted((life.start, life.hook_began or life.sigterm or life.last) for life in lives)
    longest, until = 0.0, spans[0][1]
    for start, end in spans[1:]:
        longest = max(longest, start - until)
        until = max(until, end)
    return longest
