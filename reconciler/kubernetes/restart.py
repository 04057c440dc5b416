"""Restarts of the Deployment that owns a pod, in place of its eviction."""

from __future__ import annotations

import math
from datetime import datetime

from reconciler.http.retrying import Guard, write_until_settled
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import Connection, api, core
from reconciler.kubernetes.json_patch import Patch, send_patch
from reconciler.kubernetes.wire.reducing import owner_of, to_selector
from reconciler.kubernetes.wire.shapes import ObjectMeta, Selector, decode
from reconciler.model.errors import Conflict, NotFound, Rejected, Unreachable
from reconciler.model.limits import count_of, is_object_name, quoted
from reconciler.model.moments import to_text
from reconciler.model.pod import Owner, Pod

RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
# Azure's EvictionAutoScaler adds a pod to a Deployment that such an object targets
# (github.com/Azure/eviction-autoscaler, api/v1/evictionautoscaler_types.go).
AUTOSCALERS = "eviction-autoscaler.azure.com"
_APPS = "apps"
_KIND = 63
"""Characters: the longest kind of an object. A reference can name any text."""
_ONE_NODE_ONLY = ("ReadWriteOnce", "ReadWriteOncePod")


def restart(connection: Connection, guard: Guard, pod: Pod, now: datetime) -> str:
    """Restart the Deployment that owns the pod, as `kubectl rollout restart` does; return its name.

    The author of a pod can write any ownerReference, and the API server checks none. So a Deployment is
    restarted only if it owns the pod: at each step, the reference has the UID of the object that is read, and
    the object selects the pod.

    Raises Rejected with the reason if it does not, or if the new pod could not be up before the old one goes,
    and Conflict or Unreachable after the last try. A pod that a restart is already replacing is not restarted
    again.
    """
    owner = _deployment_of(connection, pod)
    name, place = owner.name, api(_APPS, "v1", pod.namespace) / "deployments" / owner.name

    def write() -> None:
        deployment = objects.get(connection, place, objects.Deployment)
        spec = decode(objects.DeploymentSpec, bytes(deployment.spec))
        _check_owner(pod, owner, deployment.metadata, spec.selector)
        misfit = (
            why_not(spec) or _bound_volume(connection, pod) or _left_to_azure(connection, pod.namespace, name)
        )
        if misfit:
            raise Rejected(f"Deployment {pod.namespace}/{name} is not restarted: {misfit}")
        annotations = spec.template.metadata.annotations if spec.template.metadata else None
        if (annotations or {}).get(RESTARTED_AT) != pod.annotations.get(RESTARTED_AT):
            # The pod is of an older template: a restart, perhaps ours of an earlier pass, is replacing it.
            # A restart with every pass would never end if the pod starts slowly.
            return
        patch = Patch(deployment.metadata.uid)
        # A rollout or scaling that began since then is checked again.
        patch.expect(deployment.spec, "spec")
        at = "spec", "template", "metadata", "annotations"
        patch.change_texts({}, {RESTARTED_AT: to_text(now)}, *at, exists=bool(annotations))
        guard()
        send_patch(connection, place, patch)

    # What was checked may have changed, and an answer that was lost may have been a yes.
    write_until_settled(write, on=(Conflict, Unreachable), sleep=connection.sleep)
    return name


def why_not(spec: objects.DeploymentSpec) -> str:
    """Return why a rollout would not bring up the new pod first, empty if it would."""
    replicas = 1 if spec.replicas is None else spec.replicas
    if replicas != 1:
        return f"it has {count_of(replicas, 'replica')}, not one"
    if spec.paused:
        return "its rollouts are paused"
    if spec.strategy.type != "RollingUpdate":
        return f"its strategy is {spec.strategy.type}, not RollingUpdate"
    rolling = spec.strategy.rollingUpdate or objects.RollingUpdate()
    added = resolved(rolling.maxSurge, replicas, up=True)
    unavailable = resolved(rolling.maxUnavailable, replicas, up=False)
    if added < 1:
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


def _deployment_of(connection: Connection, pod: Pod) -> Owner:
    """Return the Deployment that controls the pod's ReplicaSet, by the references of both."""
    owner = pod.owner
    if owner is None or not owner.is_a("ReplicaSet", _APPS):
        what = f"a {owner.kind[:_KIND]}" if owner else "no controller"
        raise Rejected(f"pod {pod.key} belongs to {what}, not to a Deployment")
    _check_name(pod, owner)
    place = api(_APPS, "v1", pod.namespace) / "replicasets" / owner.name
    found = objects.get(connection, place, objects.ReplicaSet)
    _check_owner(pod, owner, found.metadata, found.spec.selector)
    deployment = owner_of(found.metadata.ownerReferences)
    if deployment is None or not deployment.is_a("Deployment", _APPS):
        raise Rejected(f"ReplicaSet {pod.namespace}/{owner.name} belongs to no Deployment")
    _check_name(pod, deployment)
    return deployment


def _check_name(pod: Pod, owner: Owner) -> None:
    if not owner.named:
        raise Rejected(f"pod {pod.key} names an owner that can't exist: {owner.kind} {quoted(owner.name)}")


def _check_owner(pod: Pod, owner: Owner, found: ObjectMeta, selector: Selector | None) -> None:
    """Raise Rejected unless the object that was read is the owner, and selects the pod.

    The UID alone proves nothing: everybody who may read the object can put it into the pod. A controller
    keeps only the pods that its selector matches (kubernetes, pkg/controller, ClaimPods).
    """
    what = f"{owner.kind} {pod.namespace}/{owner.name}"
    if (found.namespace, found.name) != (pod.namespace, owner.name):
        raise Rejected(f"asked for {what}, the answer is {found.namespace}/{found.name}")
    if not owner.uid or found.uid != owner.uid:
        raise Rejected(f"{what} does not own pod {pod.key}: it has another UID")
    chosen = to_selector(selector)
    if chosen is None or not chosen.matches(pod.labels):
        raise Rejected(f"{what} does not own pod {pod.key}: it does not select the pod")


def _bound_volume(connection: Connection, pod: Pod) -> str:
    for claim in pod.spec.claims:
        if not is_object_name(claim):
            return f"its volume claim has a name that can't exist: {quoted(claim)}"
        place = core(pod.namespace) / "persistentvolumeclaims" / claim
        modes = objects.get(connection, place, objects.VolumeClaim).spec.accessModes or ()
        # With two modes the volume may be mounted in either; only one that all nodes share is safe.
        bound = next((mode for mode in modes if mode in _ONE_NODE_ONLY), None)
        if bound:
            return f"its volume {claim} is {bound}: the new pod could not mount it beside the old one"
    return ""


def _left_to_azure(connection: Connection, namespace: str, deployment: str) -> str:
    place = api(AUTOSCALERS, "v1", namespace) / "evictionautoscalers"
    try:
        scalers, _ = objects.get_list(connection, place, objects.EvictionAutoScaler)
    except NotFound:
        return ""
    for scaler in scalers:
        if scaler.spec.targetKind.lower() == "deployment" and scaler.spec.targetName == deployment:
            return f"Azure's EvictionAutoScaler {scaler.metadata.name} manages it"
    return ""
