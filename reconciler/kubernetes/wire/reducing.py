"""From a decoded node or pod, JSON or protobuf, to our own values: a few fields stay, the rest is dropped.

Both decoders give objects with the attributes of shapes.py; the types here are those of JSON, because the
classes of protobuf messages are made at run time. In a message an absent list is empty and an absent object
is a default one; in JSON both are None. `or ()` and `HasField` read both alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import islice
from sys import intern
from typing import Any, TypeVar

from msgspec import Struct

from reconciler.kubernetes.wire import shapes
from reconciler.model import limits
from reconciler.model.moments import from_text
from reconciler.model.node import CORDON_TAINT, Condition, Node, Taint, Wanted
from reconciler.model.pod import (
    DO_NOT_DISRUPT,
    SAFE_TO_EVICT,
    Owner,
    Placement,
    Pod,
    PodDisruptionBudget,
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

PREFERENCES = 8
"""Preferences of a pod for the maintenance state of nodes that are kept: each prefix has one."""

_OURS = ("/drain", "/wait-completed")
_OUR_KEY = limits.NAME + max(map(len, _OURS))
_STATE = "/maintenance-state"
_HOOK = "/pre-drain."
_HOOK_KEY = limits.NAME + 64
_WORD = 128
_REFERENCE = limits.NAME + 1
_LARGEST_SUM = 2**63 // 10**9


Value = TypeVar("Value")


class Leaves(Struct, frozen=True):
    """What the two formats encode differently: a time, None if there is none, and a quantity.

    A time that can't be read is `limits.UNREADABLE`, never an exception: it is one object's problem.
    """

    moment: Callable[[Any], datetime | None]
    quantity: Callable[[Any], str]


def _moment_of_message(time: Any) -> datetime | None:
    # Zero seconds is no time, as in the reader of metav1.Time; kubelets write whole seconds.
    seconds = time.seconds
    return limits.unix_moment(seconds) if seconds else None


def _moment_of_json(time: str | None) -> datetime | None:
    if not time:
        return None
    try:
        return from_text(time).replace(microsecond=0)
    except ValueError:
        return limits.UNREADABLE


FROM_MESSAGES = Leaves(_moment_of_message, lambda quantity: intern(quantity.string))
FROM_JSON = Leaves(_moment_of_json, lambda quantity: intern(str(quantity)))


def node_reducer(wanted: Wanted, leaves: Leaves) -> Callable[[shapes.NodeObject], Node]:
    """Return the function that reduces a decoded Node to the parts that are wanted."""
    conditions = wanted.conditions
    prefix = f"{wanted.annotation_prefix.rstrip('/')}/"
    capacity = wanted.capacity
    others = wanted.annotations
    chosen = wanted.labels
    names = wanted.names
    moment = leaves.moment

    def kept(labels: Mapping[str, str]) -> dict[str, str]:
        if chosen is None:
            return interned(labels)
        return {
            intern(key): intern(labels[key])
            for key in labels
            if key in chosen or key.startswith(prefix) or (names and key.rpartition("/")[2] in names)
        }

    def reduce(found: shapes.NodeObject) -> Node:
        meta, spec, status = found.metadata, found.spec, found.status
        info = status.nodeInfo
        annotations = meta.annotations or {}
        return Node(
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resourceVersion,
            labels=kept(meta.labels or {}),
            annotations={
                intern(key): limits.cut_annotation(annotations[key])
                for key in annotations
                if key.startswith(prefix) or key in others or (names and key.rpartition("/")[2] in names)
            },
            provider_id=limits.text(spec.providerID),
            unschedulable=bool(spec.unschedulable),
            taints=tuple(
                Taint(intern(taint.key), intern(taint.value), intern(taint.effect))
                for taint in spec.taints or ()
            ),
            conditions=tuple(
                Condition(
                    type=intern(condition.type),
                    status=intern(condition.status),
                    reason=intern(limits.text(condition.reason)),
                    message=intern(limits.text(condition.message, limits.MESSAGE)),
                    heartbeat=moment(condition.lastHeartbeatTime),
                    transition=moment(condition.lastTransitionTime),
                )
                for condition in status.conditions or ()
                if condition.type in conditions
            ),
            boot_id=limits.text(info.bootID, limits.NAME) if info is not None else "",
            allocatable=_quantities(status.allocatable, leaves) if capacity else {},
            finalizers=tuple(intern(limits.text(one)) for one in (meta.finalizers or ())[: limits.ENTRIES]),
            kubelet_version=intern(limits.text(info.kubeletVersion, limits.NAME)) if info is not None else "",
        )

    return _mending(reduce)


def pod_reducer(leaves: Leaves, *, placement: bool) -> Callable[[shapes.PodObject], Pod]:
    """Return the function that reduces a decoded Pod, with its placement if `placement` asks for it."""
    moment = leaves.moment

    def reduce(found: shapes.PodObject) -> Pod:
        meta, spec, status = found.metadata, found.spec, found.status
        sources = [volume.volumeSource for volume in spec.volumes or ()]
        grace = spec.terminationGracePeriodSeconds if spec.HasField("terminationGracePeriodSeconds") else None
        return Pod(
            namespace=intern(meta.namespace),
            name=meta.name,
            uid=meta.uid,
            node=intern(spec.nodeName),
            labels=_labels_of_pod(meta.labels or {}),
            annotations=_annotations_of_pod(meta.annotations or {}),
            owner=owner_of(meta.ownerReferences),
            phase=intern(status.phase),
            ready=any(
                condition.type == "Ready" and condition.status == "True"
                for condition in status.conditions or ()
            ),
            priority=spec.priority or 0,
            priority_class=intern(spec.priorityClassName),
            grace=grace_seconds(grace),
            deleting_until=_end(moment(meta.deletionTimestamp), meta.deletionGracePeriodSeconds or 0),
            empty_dir=any(source.HasField("emptyDir") for source in sources),
            claims=tuple(
                source.persistentVolumeClaim.claimName[:_REFERENCE]
                for source in sources
                if source.HasField("persistentVolumeClaim") and source.persistentVolumeClaim
            )[:CLAIMS],
            resource_version=meta.resourceVersion,
            placement=_placement(spec, leaves) if placement else None,
            created=moment(meta.creationTimestamp),
            tolerates_cordon=any(map(_is_of_cordon, spec.tolerations or ())),
        )

    return _mending(reduce)


def _mending(reduce: Callable[[Any], Value]) -> Callable[[Any], Value]:
    """Return the reducer for messages whose texts may be no UTF-8.

    The API server stores such a text where a client sends protobuf. The decoder then gives bytes, with which
    every function for texts raises TypeError. These texts get U+FFFD, as the API server writes them in JSON.
    """

    def reduce_mended(found: Any) -> Value:
        try:
            return reduce(found)
        except TypeError:
            if not hasattr(found, "ListFields"):
                raise
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


def requirement(found: shapes.Expression) -> Requirement:
    """Return an expression of a label selector or a node selector."""
    return Requirement(intern(found.key), intern(found.operator), tuple(found.values or ()))


def _end(moment: datetime | None, grace: int) -> datetime | None:
    """Return when a pod that is being deleted ends; `grace` are the seconds that it was given."""
    if moment is None:
        return None
    # Its grace may put its end beyond the limits. The API server's own sum overflows from 292 years on.
    return limits.LATEST if moment == limits.UNREADABLE or grace > _LARGEST_SUM else moment


def _quantities(quantities: Mapping[str, Any] | None, leaves: Leaves) -> dict[str, str]:
    text = leaves.quantity
    return {intern(name): text(quantity) for name, quantity in (quantities or {}).items()}


def _annotations_of_pod(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the few annotations of a pod that are read; their author decides about all the others.

    The prefix of our keys is a setting, so every key that ends with `/drain` or `/wait-completed` may be
    ours. What it says is a word: a longer text says nothing. The same applies to hooks, of which a pod may
    have several.
    """
    kept = {key: limits.text(annotations[key][:_WORD]) for key in READ_OF_PODS if key in annotations}
    ours = [key for key in dict(annotations) if key.endswith(_OURS) and len(key) <= _OUR_KEY]
    hooks = [key for key in dict(annotations) if _HOOK in key and len(key) <= _HOOK_KEY]
    chosen = (*sorted(ours)[:DRAIN_WORDS], *sorted(hooks)[: limits.HOOKS])
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


def budget_of(found: shapes.BudgetObject) -> PodDisruptionBudget:
    """Reduce a decoded PodDisruptionBudget, also one with texts that are no UTF-8.

    A selector that is too large to keep counts as one of every pod in its namespace: the budget's author can
    only hold up pods of that namespace, as every budget there can.
    """
    return _mended_budget(found)


def _budget(found: shapes.BudgetObject) -> PodDisruptionBudget:
    meta, spec, status = found.metadata, found.spec, found.status
    selector = to_selector(spec.selector if spec.HasField("selector") else None)
    if selector is not None and _size(selector) > SELECTOR:
        selector = EVERYTHING
    return PodDisruptionBudget(
        namespace=intern(meta.namespace),
        name=meta.name,
        selector=selector,
        allowed=status.disruptionsAllowed,
        desired=status.desiredHealthy,
        healthy=status.currentHealthy,
        expected=status.expectedPods,
        unhealthy_always=spec.unhealthyPodEvictionPolicy == "AlwaysAllow",
        resource_version=meta.resourceVersion,
    )


_mended_budget = _mending(_budget)


def to_selector(found: shapes.Selector | None) -> LabelSelector | None:
    """Reduce a label selector; None stays None, and selects nothing."""
    if found is None:
        return None
    return LabelSelector.of(
        interned(found.matchLabels or {}),
        *(requirement(one) for one in found.matchExpressions or ()),
    )


def _size(selector: LabelSelector) -> int:
    return sum(len(one.key) + sum(map(len, one.values)) for one in selector.requirements)


def owner_of(references: list[shapes.OwnerReference] | None) -> Owner | None:
    """Return the owner that is the controller, None if no reference says `controller: true`."""
    for reference in references or ():
        if reference.controller:
            # The API server accepts any text here. A text that was cut is no name of an object, and no UID.
            parts = (reference.kind, reference.name, reference.apiVersion, reference.uid)
            kind, name, version, uid = (limits.text(part[:_REFERENCE]) for part in parts)
            return Owner(intern(kind), name, intern(version), uid)
    return None


def _placement(spec: shapes.PodSpec, leaves: Leaves) -> Placement:
    affinity = spec.affinity or shapes.Affinity()
    of_nodes = affinity.nodeAffinity or shapes.NodeAffinity()
    required = of_nodes.requiredDuringSchedulingIgnoredDuringExecution or shapes.Terms()
    # An init container that always restarts is a sidecar, and keeps its share while the pod runs.
    running = [
        *(spec.containers or ()),
        *(one for one in spec.initContainers or () if one.restartPolicy == "Always"),
    ]
    requests = [one.resources.requests for one in running if one.resources is not None]
    return Placement(
        requests=tuple(_quantities(request, leaves) for request in (*requests, spec.overhead) if request),
        node_selector=interned(spec.nodeSelector or {}),
        affinity=tuple(
            tuple(requirement(one) for one in (*(term.matchExpressions or ()), *(term.matchFields or ())))
            for term in required.nodeSelectorTerms or ()
        ),
        tolerations=tuple(
            Toleration(intern(one.key), intern(one.operator or "Equal"), one.value, intern(one.effect))
            for one in spec.tolerations or ()
        ),
        topology=bool(
            affinity.HasField("podAffinity")
            or affinity.HasField("podAntiAffinity")
            or spec.topologySpreadConstraints
        ),
        prefers=_preferences(of_nodes),
    )


def _is_of_cordon(one: shapes.PodToleration) -> bool:
    """Whether a toleration lets the scheduler put the pod on a cordoned node."""
    if one.key not in ("", CORDON_TAINT) or one.effect not in ("", "NoSchedule"):
        return False
    return one.operator == "Exists" or (one.key == CORDON_TAINT and not one.value)


def _preferences(of_nodes: shapes.NodeAffinity) -> tuple[Requirement, ...]:
    """Return what the pod prefers about the maintenance state of nodes. Their prefix is a setting."""
    terms = of_nodes.preferredDuringSchedulingIgnoredDuringExecution or ()
    preferences = (term.preference for term in terms if term.preference is not None)
    found = (one for preference in preferences for one in preference.matchExpressions or ())
    ours = (one for one in found if one.key.endswith(_STATE) and len(one.key) <= limits.NAME + len(_STATE))
    # A preference with a second value is another one, so no more of its values are kept.
    return tuple(
        Requirement(
            intern(one.key),
            intern(one.operator),
            tuple(limits.text(value[:_WORD]) for value in one.values[:2]),
        )
        for one in islice(ours, PREFERENCES)
        if one.values
    )
