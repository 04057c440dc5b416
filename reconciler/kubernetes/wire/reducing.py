"""From a decoded node, pod or budget to our own values: a few fields stay, the rest is dropped.

The classes of protobuf messages are made at run time, so types do not know them. In a message an absent list
is empty, an absent object is a default one, and `HasField` says whether it was there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from itertools import islice
from sys import intern
from typing import Any, TypeVar

from reconciler.model import limits
from reconciler.model.node import (
    AUTOSCALER_TAINT,
    CORDON_TAINT,
    OUT_OF_SERVICE_TAINTS,
    PREFERENCE,
    Condition,
    Node,
    Taint,
    Wanted,
)
from reconciler.model.pod import (
    DO_NOT_DISRUPT,
    SAFE_TO_EVICT,
    Owner,
    Placement,
    Pod,
    PodDisruptionBudget,
    PodSpec,
    Toleration,
    grace_seconds,
)
from reconciler.model.selector import EVERYTHING, LabelSelector, Requirement

READ_OF_PODS = (
    "kubernetes.io/config.mirror",
    "kubectl.kubernetes.io/restartedAt",
    DO_NOT_DISRUPT,
    SAFE_TO_EVICT,
)
"""The annotations of a pod that are read, besides ours."""

DRAIN_WORDS = 8
"""Annotations of a pod that may be ours, and labels that ask something of us: each prefix has one."""

LABELS = 100
"""Labels of a pod that are kept. Pods have ten; Kubernetes has no limit."""

CLAIMS = 256
"""Volume claims of a pod that are kept."""

SELECTOR = 16 << 10
"""Characters of a PodDisruptionBudget's selector that are kept."""

BUDGET_FAILED = 300
"""Characters that are kept of why the controller of a PodDisruptionBudget can't count its pods."""

UNPLACED = 200
"""Characters that are kept of why the scheduler finds no node for a pod."""

PREFERENCES = 8
"""Preferences of a pod for the maintenance state of nodes that are kept: each prefix has one."""

_OURS = ("/drain", "/wait-completed")
_OUR_KEY = limits.NAME + max(map(len, _OURS))
_STATE = "/maintenance-state"
_HOLDER = "/pre-drain."
_HOLDER_KEY = limits.NAME + 64
_WORD = 128
_REFERENCE = limits.NAME + 1
_LARGEST_SUM = 2**63 // 10**9


Value = TypeVar("Value")


def moment_of(time: Any) -> datetime | None:
    """Return a time, None if there is none, `limits.UNREADABLE` for what no calendar has.

    It is never an exception: it is one object's problem.
    """
    # Zero seconds is no time, as in the reader of metav1.Time; kubelets write whole seconds.
    seconds = time.seconds
    return limits.unix_moment(seconds) if seconds else None


def node_reducer(wanted: Wanted) -> Callable[[Any], Node]:
    """Return the function that reduces a decoded Node to the parts that are wanted."""
    conditions = wanted.conditions
    prefix = f"{wanted.annotation_prefix.rstrip('/')}/"
    capacity = wanted.capacity
    others = wanted.annotations
    chosen = wanted.labels
    names = wanted.names
    system_uuid = wanted.system_uuid

    def kept(labels: Mapping[str, str]) -> dict[str, str]:
        if chosen is None:
            return interned(labels)
        return {
            intern(key): intern(labels[key])
            for key in labels
            if key in chosen or key.startswith(prefix) or (names and key.rpartition("/")[2] in names)
        }

    def reduce(found: Any) -> Node:
        meta, spec, status = found.metadata, found.spec, found.status
        annotations = meta.annotations
        node = Node(
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resourceVersion,
            labels=kept(meta.labels),
            annotations={
                intern(key): limits.cut_annotation(annotations[key])
                for key in annotations
                if key.startswith(prefix) or key in others or (names and key.rpartition("/")[2] in names)
            },
            provider_id=limits.text(spec.providerID),
            unschedulable=spec.unschedulable,
            taints=tuple(
                Taint(intern(taint.key), intern(taint.value), intern(taint.effect)) for taint in spec.taints
            ),
            tainted_since=_tainted_since(spec.taints),
            conditions=tuple(
                Condition(
                    type=intern(condition.type),
                    status=intern(condition.status),
                    reason=intern(limits.text(condition.reason)),
                    message=intern(limits.text(condition.message, limits.MESSAGE)),
                    heartbeat=moment_of(condition.lastHeartbeatTime),
                    transition=moment_of(condition.lastTransitionTime),
                )
                for condition in status.conditions
                if condition.type in conditions
            ),
            boot_id=limits.text(status.nodeInfo.bootID, limits.NAME),
            allocatable=_quantities(status.allocatable) if capacity else {},
            finalizers=tuple(
                intern(limits.text(finalizer)) for finalizer in meta.finalizers[: limits.ENTRIES]
            ),
            kubelet_version=intern(limits.text(status.nodeInfo.kubeletVersion, limits.NAME)),
            system_uuid=limits.text(status.nodeInfo.systemUUID, limits.NAME) if system_uuid else "",
        )
        return node.without_copies(wanted.annotation_prefix)

    return _mending(reduce)


def _tainted_since(taints: Iterable[Any]) -> datetime | None:
    """Return when the first taint came that keeps pods away, None if no such taint has a time.

    The node lifecycle controller dates the taint of a cordon. The autoscaler writes the time as the value.
    """
    found: list[datetime] = []
    for taint in taints:
        known = taint.key == CORDON_TAINT or taint.key in OUT_OF_SERVICE_TAINTS
        if not known or taint.effect == PREFERENCE:
            continue
        since = moment_of(taint.timeAdded)
        if since is None and taint.key == AUTOSCALER_TAINT and taint.value.isdecimal():
            since = limits.unix_moment(int(taint.value))
        if since is not None and since != limits.UNREADABLE:
            found.append(since)
    return min(found, default=None)


def pod_reducer(*, placement: bool) -> Callable[[Any], Pod]:
    """Return the function that reduces a decoded Pod, with its placement if `placement` asks for it."""

    def reduce(found: Any) -> Pod:
        meta, spec, status = found.metadata, found.spec, found.status
        return Pod(
            namespace=intern(meta.namespace),
            name=meta.name,
            uid=meta.uid,
            node=intern(spec.nodeName),
            labels=_labels_of_pod(meta.labels),
            annotations=_annotations_of_pod(meta.annotations),
            owner=owner_of(meta.ownerReferences),
            phase=intern(status.phase),
            ready=any(
                condition.type == "Ready" and condition.status == "True" for condition in status.conditions
            ),
            spec=_spec(spec),
            deleting_until=_end(moment_of(meta.deletionTimestamp), meta.deletionGracePeriodSeconds),
            resource_version=meta.resourceVersion,
            placement=_placement(spec) if placement else None,
            created=moment_of(meta.creationTimestamp),
            unplaced="" if spec.nodeName else _why_unplaced(status.conditions),
        )

    return _mending(reduce)


def _why_unplaced(conditions: Iterable[Any]) -> str:
    """Return why the scheduler finds no node for a pod, empty if it has not said so."""
    found = (
        condition
        for condition in conditions
        if condition.type == "PodScheduled" and condition.reason == "Unschedulable"
    )
    return next((limits.text(one.message or one.reason, UNPLACED) for one in found), "")


def _mending(reduce: Callable[[Any], Value]) -> Callable[[Any], Value]:
    """Return the reducer for messages whose texts may be no UTF-8.

    The API server stores such a text where a client sends protobuf. The decoder then gives bytes, with which
    every function for texts raises TypeError. These texts get U+FFFD, as the API server writes them in JSON.
    """

    def reduce_mended(found: Any) -> Value:
        try:
            return reduce(found)
        except TypeError:
            _mend(found)
            return reduce(found)

    return reduce_mended


def _mend(message: Any) -> None:
    for field, value in message.ListFields():
        if isinstance(value, bytes):
            setattr(message, field.name, _text(value))
        elif hasattr(value, "ListFields"):
            _mend(value)
        elif hasattr(value, "items"):
            for key in list(value):
                _mend_one(value, key)
        elif not isinstance(value, str | int):
            for position in range(len(value)):
                _mend_one(value, position)


def _mend_one(some: Any, where: Any) -> None:
    one = some[where]
    if isinstance(one, bytes):
        some[where] = _text(one)
    elif hasattr(one, "ListFields"):
        _mend(one)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def interned(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels with each text stored once: thousands of nodes have the same few."""
    # By way of a dict: a protobuf map's own items() is slower than both steps together.
    return {intern(key): intern(value) for key, value in dict(labels).items()}


def requirement(found: Any) -> Requirement:
    """Return an expression of a label selector or a node selector."""
    return Requirement(intern(found.key), intern(found.operator), tuple(found.values or ()))


def _end(moment: datetime | None, grace: int) -> datetime | None:
    """Return when a pod that is being deleted ends; `grace` are the seconds that it was given."""
    if moment is None:
        return None
    # Its grace may put its end beyond the limits. The API server's own sum overflows from 292 years on.
    return limits.LATEST if moment == limits.UNREADABLE or grace > _LARGEST_SUM else moment


def _quantities(quantities: Mapping[str, Any]) -> dict[str, str]:
    return {intern(name): intern(quantity.string) for name, quantity in quantities.items()}


def _annotations_of_pod(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the few annotations of a pod that are read; their author decides about all the others.

    The prefix of our keys is a setting, so every key that ends with `/drain` or `/wait-completed` may be
    ours. What it says is a word: a longer text says nothing. The same applies to annotations that hold a
    step, of which a pod may have several.
    """
    kept = {key: limits.text(annotations[key][:_WORD]) for key in READ_OF_PODS if key in annotations}
    ours = [key for key in dict(annotations) if key.endswith(_OURS) and len(key) <= _OUR_KEY]
    holders = [key for key in dict(annotations) if _HOLDER in key and len(key) <= _HOLDER_KEY]
    chosen = (*sorted(ours)[:DRAIN_WORDS], *sorted(holders)[: limits.HOLDERS])
    return kept | {key: limits.text(annotations[key][:_WORD]) for key in chosen}


def _labels_of_pod(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a pod, which selectors ask for; of very many, the first ones by their keys.

    Kubernetes limits each label, but not their number. The labels that ask something of us are always kept.
    """
    found = dict(labels)
    if len(found) > LABELS:
        asked = [key for key in sorted(found) if key.endswith((*_OURS, "/restart"))]
        chosen = dict.fromkeys([*asked[:DRAIN_WORDS], *sorted(found)])
        found = {key: found[key] for key in [*chosen][:LABELS]}
    return interned(found)


def budget_of(found: Any) -> PodDisruptionBudget:
    """Reduce a decoded PodDisruptionBudget, also one with texts that are no UTF-8.

    A selector that is too large to keep counts as one of every pod in its namespace: the budget's author can
    only hold up pods of that namespace, as every budget there can.
    """
    return _mended_budget(found)


def _budget(found: Any) -> PodDisruptionBudget:
    meta, spec, status = found.metadata, found.spec, found.status
    selector = to_selector(spec.selector if spec.HasField("selector") else None)
    if selector is not None and _size(selector) > SELECTOR:
        selector = EVERYTHING
    # Nobody but its controller knows why it can't count the pods (kubernetes, disruption.go, failSafe).
    conditions = (
        condition
        for condition in status.conditions
        if condition.type == "DisruptionAllowed" and condition.status == "False"
    )
    failed = next(
        (
            condition.message or condition.reason
            for condition in conditions
            if condition.reason == "SyncFailed"
        ),
        "",
    )
    return PodDisruptionBudget(
        namespace=intern(meta.namespace),
        name=meta.name,
        selector=selector,
        allowed=status.disruptionsAllowed,
        desired=status.desiredHealthy,
        healthy=status.currentHealthy,
        expected=status.expectedPods,
        unhealthy_always=spec.unhealthyPodEvictionPolicy == "AlwaysAllow",
        more_replicas_help=spec.HasField("minAvailable") and not spec.minAvailable.type,
        failed=limits.text(failed, BUDGET_FAILED),
        resource_version=meta.resourceVersion,
    )


_mended_budget = _mending(_budget)


def to_selector(found: Any) -> LabelSelector | None:
    """Reduce a label selector, a message or an object of JSON; None stays None, and selects nothing."""
    if found is None:
        return None
    return LabelSelector.of(
        interned(found.matchLabels or {}), *(requirement(one) for one in found.matchExpressions or ())
    )


def _size(selector: LabelSelector) -> int:
    return sum(len(one.key) + sum(map(len, one.values)) for one in selector.requirements)


def owner_of(references: Iterable[Any] | None) -> Owner | None:
    """Return the owner that is the controller, None if no reference says `controller: true`."""
    for reference in references or ():
        if reference.controller:
            # The API server accepts any text here. A text that was cut is no name of an object, and no UID.
            parts = (reference.kind, reference.name, reference.apiVersion, reference.uid)
            kind, name, version, uid = (limits.text(part[:_REFERENCE]) for part in parts)
            return Owner(intern(kind), name, intern(version), uid)
    return None


def _spec(spec: Any) -> PodSpec:
    sources = [volume.volumeSource for volume in spec.volumes]
    claims = tuple(
        source.persistentVolumeClaim.claimName[:_REFERENCE]
        for source in sources
        if source.HasField("persistentVolumeClaim")
    )[:CLAIMS]
    grace = spec.terminationGracePeriodSeconds if spec.HasField("terminationGracePeriodSeconds") else None
    # Claims may be long, and those of a StatefulSet are of one pod.
    make = PodSpec if claims else _shared_spec
    return make(
        spec.priority,
        intern(spec.priorityClassName),
        grace_seconds(grace),
        any(source.HasField("emptyDir") for source in sources),
        claims,
        any(map(_is_of_cordon, spec.tolerations)),
    )


_shared_spec = lru_cache(maxsize=1024)(PodSpec)


def _placement(spec: Any) -> Placement:
    affinity, of_nodes = spec.affinity, spec.affinity.nodeAffinity
    required = of_nodes.requiredDuringSchedulingIgnoredDuringExecution
    # An init container that always restarts is a sidecar, and keeps its share while the pod runs.
    running = [
        *spec.containers,
        *(container for container in spec.initContainers if container.restartPolicy == "Always"),
    ]
    requests = [container.resources.requests for container in running]
    # What the pod prefers about the maintenance state of nodes, of any prefix. A preference with a second
    # value is another one, so no more of its values are kept.
    terms = of_nodes.preferredDuringSchedulingIgnoredDuringExecution
    expressions = (expression for term in terms for expression in term.preference.matchExpressions)
    longest = limits.NAME + len(_STATE)
    ours = (each for each in expressions if each.key.endswith(_STATE) and len(each.key) <= longest)
    preferences = tuple(
        Requirement(
            intern(each.key),
            intern(each.operator),
            tuple(limits.text(value[:_WORD]) for value in each.values[:2]),
        )
        for each in islice(ours, PREFERENCES)
        if each.values
    )
    return Placement(
        requests=tuple(_quantities(request) for request in (*requests, spec.overhead) if request),
        node_selector=interned(spec.nodeSelector),
        affinity=tuple(
            tuple(map(requirement, (*term.matchExpressions, *term.matchFields)))
            for term in required.nodeSelectorTerms
        ),
        tolerations=tuple(
            Toleration(
                intern(toleration.key),
                intern(toleration.operator or "Equal"),
                toleration.value,
                intern(toleration.effect),
            )
            for toleration in spec.tolerations
        ),
        topology=bool(
            affinity.HasField("podAffinity")
            or affinity.HasField("podAntiAffinity")
            or spec.topologySpreadConstraints
        ),
        prefers=preferences,
    )


def _is_of_cordon(one: Any) -> bool:
    if one.key not in ("", CORDON_TAINT) or one.effect not in ("", "NoSchedule"):
        return False
    return one.operator == "Exists" or (one.key == CORDON_TAINT and not one.value)
