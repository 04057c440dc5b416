"""How a drain evicts pods, restarts their workloads, and watches them end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any, TypeVar

from reconciler.http.retrying import Guard, read_only, write_until_settled
from reconciler.kubernetes import node_writing, objects
from reconciler.kubernetes.connection import (
    PODS,
    VOLUMES,
    ApiPath,
    Connection,
    Request,
    api,
    budgets_in,
    core,
    on_node,
)
from reconciler.kubernetes.json_patch import Patch, send_patch
from reconciler.kubernetes.watching import KnownObjects, Watched, Watching
from reconciler.kubernetes.wire.formats import budget_format, pod_format
from reconciler.kubernetes.wire.lists import list_pods
from reconciler.kubernetes.wire.reducing import owner_of, to_selector
from reconciler.kubernetes.wire.shapes import ObjectMeta, Selector, decode
from reconciler.model.errors import Conflict, NotFound, Rejected, Unreachable
from reconciler.model.limits import count_of, is_object_name, quoted
from reconciler.model.moments import to_text
from reconciler.model.node import Node, Wanted
from reconciler.model.pod import Owner, Pod
from reconciler.model.ports import BudgetChange, BudgetGone, Listed, PodChange, PodGone

RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
# Azure's EvictionAutoScaler surges a Deployment that such an object targets
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
    # What was checked may have changed, and an answer that was lost may have been a yes.
    write_until_settled(
        lambda: _restart_once(connection, guard, pod, owner, now),
        on=(Conflict, Unreachable),
        sleep=connection.sleep,
    )
    return owner.name


def _restart_once(connection: Connection, guard: Guard, pod: Pod, owner: Owner, now: datetime) -> None:
    name = owner.name
    place = api(_APPS, "v1", pod.namespace) / "deployments" / name
    found = objects.get(connection, place, objects.Deployment)
    spec = decode(objects.DeploymentSpec, bytes(found.spec))
    _check_owner(pod, owner, found.metadata, spec.selector)
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
    patch = Patch(found.metadata.uid)
    # A rollout or scaling that began since then is checked again.
    patch.expect(found.spec, "spec")
    at = "spec", "template", "metadata", "annotations"
    patch.change_texts({}, {RESTARTED_AT: to_text(now)}, *at, exists=bool(annotations))
    guard()
    send_patch(connection, place, patch)


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
        found, _ = objects.get_list(connection, place, objects.EvictionAutoScaler)
    except NotFound:
        return ""
    for one in found:
        if one.spec.targetKind.lower() == "deployment" and one.spec.targetName == deployment:
            return f"Azure's EvictionAutoScaler {one.metadata.name} manages it"
    return ""


ATTACHMENTS = api("storage.k8s.io", "v1") / "volumeattachments"

Value = TypeVar("Value")
Gone = TypeVar("Gone")


def attachments(connection: Connection, nodes: Set[str]) -> Mapping[str, tuple[objects.Attachment, ...]]:
    """Return the VolumeAttachments on each of these nodes, sorted by name; raises ClusterError.

    The API has no field selector for their nodes, so this lists those of the whole cluster.
    """
    listed, _ = objects.get_list(connection, ATTACHMENTS, objects.Attachment)
    found: dict[str, tuple[objects.Attachment, ...]] = dict.fromkeys(nodes, ())
    for each in sorted(listed, key=lambda each: each.metadata.name):
        if each.spec.nodeName in nodes:
            found[each.spec.nodeName] += (each,)
    return found


def left(
    connection: Connection, attached: Iterable[objects.Attachment], staying: frozenset[str]
) -> tuple[str, ...]:
    """Return the names of those whose volumes are bound to none of the claims that stay; raises ClusterError.

    A volume says itself to which claim it is bound. It is read only where pods with claims stay.
    """

    def claim(attachment: objects.Attachment) -> str:
        volume = attachment.spec.source.persistentVolumeName
        if not volume or not is_object_name(volume):
            return ""
        try:
            bound = objects.get(connection, VOLUMES / volume, objects.PersistentVolume).spec.claimRef
        except NotFound:
            return ""
        return f"{bound.namespace}/{bound.name}" if bound is not None else ""

    return tuple(one.metadata.name for one in attached if not staying or claim(one) not in staying)


class Evictions:
    """Evictor for the API server: a request for each read, a watch for each node; safe for threads.

    `scale/evictions.py` does the same for many nodes that drain at the same time.
    """

    def __init__(self, connection: Connection, *, guard: Guard | None = None, prefix: str) -> None:
        """Use this connection and prefix of our keys, and call the guard before each write."""
        self._connection = connection
        self._guard = guard or read_only
        self._wanted = Wanted(frozenset({"Ready"}), prefix)

    def node(self, name: str) -> Node | None:
        """Return one node as it is now, with its Ready condition and our annotations; None if it is gone."""
        try:
            return node_writing.read_node(self._connection, name, self._wanted)
        except NotFound:
            return None

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """Return the pods of one node, or of all, sorted by namespace and name."""
        return list_pods(self._connection, node, placement=placement)

    def watch_pods(self, node: str) -> AbstractContextManager[Iterator[PodChange]]:
        """List, then watch the pods of one node; see Evictor."""
        watched = Watched(self._connection, PODS, pod_format(), lambda pod: pod.uid, fields=on_node(node))
        watching = Watching(self._connection, watched, KnownObjects(watched))
        return _mapped(watching, lambda pod: PodGone(pod.uid))

    def watch_budgets(self, namespace: str = "") -> AbstractContextManager[Iterator[BudgetChange]]:
        """List, then watch the PodDisruptionBudgets of a namespace, or all; see Evictor."""
        # A budget that was deleted and created again is the same one for those that watch.
        watched = Watched(self._connection, budgets_in(namespace), budget_format(), lambda budget: budget.key)
        return _mapped(
            Watching(self._connection, watched, KnownObjects(watched)), lambda budget: BudgetGone(budget.key)
        )

    def evict(self, pod: Pod, *, grace: int | None) -> None:
        """Evict by policy/v1 with the UID as precondition; see Evictor for what it raises."""
        body = eviction(pod, _options(pod, grace))
        self._guard()
        self._connection.send(Request("POST", place_of(pod) / "eviction", body=body))

    def delete(self, pod: Pod, *, grace: int | None) -> None:
        """Delete with the UID as precondition; see Evictor for what it raises."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **_options(pod, grace)}
        self._guard()
        self._connection.send(Request("DELETE", place_of(pod), body=body))

    def restart(self, pod: Pod, now: datetime) -> str:
        """Restart the Deployment that owns the pod and return its name; Rejected with the reason."""
        return restart(self._connection, self._guard, pod, now)

    def attachments(self, node: str, staying: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """Return the names of the VolumeAttachments that are still on the node; see Evictor."""
        return left(self._connection, attachments(self._connection, {node})[node], staying)


@contextmanager
def _mapped(
    watching: Watching[Value, tuple[bool, Value]], gone: Callable[[Value], Gone]
) -> Iterator[Iterator[Value | Gone | Listed]]:
    with watching as changes:
        yield (
            Listed() if change is None else change[1] if change[0] else gone(change[1]) for change in changes
        )


def _options(pod: Pod, grace: int | None) -> dict[str, Any]:
    options: dict[str, Any] = {"preconditions": {"uid": pod.uid}}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    return options


def eviction(pod: Pod, options: dict[str, Any]) -> dict[str, Any]:
    """Return the body of an eviction by policy/v1, with these DeleteOptions."""
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": options,
    }


def place_of(pod: Pod) -> ApiPath:
    """Return the path of a pod; Rejected for a bad name."""
    return core(pod.namespace) / "pods" / pod.name
