"""Restarts the Deployment of a single pod, so that the new pod is up before the old one goes."""

from __future__ import annotations

import math
from datetime import datetime
from urllib.parse import quote

from reconciler.clients.guard import Guard
from reconciler.clients.kubernetes import objects
from reconciler.clients.kubernetes.connection import MERGE_PATCH, Connection, Request
from reconciler.clients.kubernetes.wire.shapes import Page, decode
from reconciler.clients.retrying import patiently, write_until_settled
from reconciler.errors import Conflict, NotFound, Rejected, Unreachable
from reconciler.model.moments import to_text
from reconciler.model.pod import Pod

RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
# Azure's EvictionAutoScaler surges a Deployment that such an object targets
# (github.com/Azure/eviction-autoscaler, api/v1/evictionautoscaler_types.go).
AUTOSCALERS = "/apis/eviction-autoscaler.azure.com/v1/namespaces/{}/evictionautoscalers"
_ONE_NODE_ONLY = ("ReadWriteOnce", "ReadWriteOncePod")


def restart(connection: Connection, guard: Guard, pod: Pod, now: datetime) -> str:
    """Restart the Deployment that owns the pod, as `kubectl rollout restart` does; return its name.

    Raises Rejected with the reason if the new pod could not be up before the old one goes, and Conflict or
    Unreachable after the last try. A pod that a restart is already replacing is not restarted again.
    """
    name = _deployment_of(connection, pod)
    # A Conflict may be a mere change of its status, and an answer that was lost may have been a yes.
    write_until_settled(
        lambda: _restart_once(connection, guard, pod, name, now),
        on=(Conflict, Unreachable),
        sleep=connection.sleep,
    )
    return name


def _restart_once(connection: Connection, guard: Guard, pod: Pod, name: str, now: datetime) -> None:
    place = f"/apis/apps/v1/namespaces/{pod.namespace}/deployments/{name}"
    found = objects.get(connection, place, objects.Deployment)
    misfit = (
        why_not(found.spec)
        or _bound_volume(connection, pod)
        or _left_to_azure(connection, pod.namespace, name)
    )
    if misfit:
        raise Rejected(f"Deployment {pod.namespace}/{name} is not restarted: {misfit}")
    annotations = found.spec.template.metadata.annotations if found.spec.template.metadata else None
    if (annotations or {}).get(RESTARTED_AT) != pod.annotations.get(RESTARTED_AT):
        # The pod is of an older template: a restart, perhaps ours of an earlier pass, is replacing it.
        # A restart with every pass would never end if the pod starts slowly.
        return
    body = {
        # The version that was checked: a rollout or scaling that began since then is checked again.
        "metadata": {"uid": found.metadata.uid, "resourceVersion": found.metadata.resourceVersion},
        "spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: to_text(now)}}}},
    }
    guard()
    connection.send(Request("PATCH", place, body=body, content_type=MERGE_PATCH))


def why_not(spec: objects.DeploymentSpec) -> str:
    """Return why a rollout would not bring up the new pod first, empty if it would."""
    replicas = 1 if spec.replicas is None else spec.replicas
    if replicas != 1:
        return f"it has {replicas} replicas, not one"
    if spec.paused:
        return "its rollouts are paused"
    if spec.strategy.type != "RollingUpdate":
        return f"its strategy is {spec.strategy.type}, not RollingUpdate"
    rolling = spec.strategy.rollingUpdate or objects.RollingUpdate()
    surge = resolved(rolling.maxSurge, replicas, up=True)
    unavailable = resolved(rolling.maxUnavailable, replicas, up=False)
    if surge < 1:
        return "its maxSurge allows no second pod"
    if unavailable > 0:
        return "its maxUnavailable lets the old pod go before the new one is up"
    return ""


def resolved(value: int | str | None, replicas: int, *, up: bool) -> int:
    """Return the number of pods that a number or a percentage means; None is the API's default, 25%.

    Percentages of maxSurge round up, those of maxUnavailable down (k8s.io/kubectl, ResolveFenceposts).
    """
    if isinstance(value, int):
        return value
    try:
        share = int((value or "25%").removesuffix("%")) * replicas / 100
    except ValueError:
        return 0 if up else replicas
    return math.ceil(share) if up else math.floor(share)


def _deployment_of(connection: Connection, pod: Pod) -> str:
    if pod.owner is None or pod.owner.kind != "ReplicaSet":
        owner = f"a {pod.owner.kind}" if pod.owner else "no controller"
        raise Rejected(f"pod {pod.key} belongs to {owner}, not to a Deployment")
    place = f"/apis/apps/v1/namespaces/{pod.namespace}/replicasets/{pod.owner.name}"
    for reference in objects.get(connection, place, objects.OnlyMetadata).metadata.ownerReferences or ():
        if reference.controller and reference.kind == "Deployment":
            return reference.name
    raise Rejected(f"ReplicaSet {pod.namespace}/{pod.owner.name} belongs to no Deployment")


def _bound_volume(connection: Connection, pod: Pod) -> str:
    for claim in pod.claims:
        place = f"/api/v1/namespaces/{pod.namespace}/persistentvolumeclaims/{claim}"
        modes = objects.get(connection, place, objects.VolumeClaim).spec.accessModes or ()
        # With two modes the volume may be mounted in either; only one that all nodes share is safe.
        bound = next((mode for mode in modes if mode in _ONE_NODE_ONLY), None)
        if bound:
            return f"its volume {claim} is {bound}: the new pod could not mount it beside the old one"
    return ""


def _left_to_azure(connection: Connection, namespace: str, deployment: str) -> str:
    request = Request("GET", AUTOSCALERS.format(quote(namespace)))
    try:
        body = patiently(lambda: connection.send(request), sleep=connection.sleep)
    except NotFound:
        return ""
    for one in decode(Page[objects.EvictionAutoScaler], body).items or ():
        if one.spec.targetKind.lower() == "deployment" and one.spec.targetName == deployment:
            return f"Azure's EvictionAutoScaler {one.metadata.name} manages it"
    return ""
