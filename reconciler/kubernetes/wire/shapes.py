"""Objects of the API as JSON gives them: only the fields that we read, so that the decoder skips the rest.

A node or a pod has the same attributes here as in the protobuf messages of protobuf.py, so that one reducer
reads both; what JSON writes in another way (times, quantities, a volume's source) is said in reducing.py and
here. `null` and absent mean the same: Go writes `null` for an empty list or map. Times are texts: one that
Python can't hold must not break the decoding of the whole list.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from reconciler.http.failures import decode_json
from reconciler.model.errors import Rejected

# The attributes have the names of the API, so that no table of names is needed.
# ruff: noqa: N815

Quantity = str | int | float
Item = TypeVar("Item")


class Shape(msgspec.Struct):
    """A JSON object that can be asked for a field as a protobuf message is."""

    def HasField(self, name: str) -> bool:  # noqa: N802 - protobuf's name
        """Whether the object has the field, and not as `null`."""
        return getattr(self, name) is not None


class ListMeta(Shape):
    """metav1.ListMeta; `next` is its `continue`."""

    resourceVersion: str = ""
    next: str = msgspec.field(name="continue", default="")


class OwnerReference(Shape):
    """metav1.OwnerReference."""

    kind: str = ""
    name: str = ""
    apiVersion: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Shape):
    """metav1.ObjectMeta."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""
    creationTimestamp: str | None = None
    deletionTimestamp: str | None = None
    deletionGracePeriodSeconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    ownerReferences: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class NodeTaint(Shape):
    """core/v1 Taint."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Shape):
    """core/v1 NodeSpec."""

    providerID: str = ""
    unschedulable: bool | None = None
    taints: list[NodeTaint] | None = None


class NodeCondition(Shape):
    """core/v1 NodeCondition."""

    type: str = ""
    status: str = ""
    lastHeartbeatTime: str | None = None
    lastTransitionTime: str | None = None
    reason: str = ""
    message: str = ""


class NodeSystemInfo(Shape):
    """core/v1 NodeSystemInfo."""

    bootID: str = ""
    kubeletVersion: str = ""


class NodeStatus(Shape):
    """core/v1 NodeStatus."""

    allocatable: dict[str, Quantity] | None = None
    conditions: list[NodeCondition] | None = None
    nodeInfo: NodeSystemInfo | None = None


class NodeObject(Shape):
    """core/v1 Node."""

    metadata: ObjectMeta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class ClaimVolume(Shape):
    """core/v1 PersistentVolumeClaimVolumeSource."""

    claimName: str = ""


class Empty(Shape):
    """An object that matters only by being there."""


class Volume(Shape):
    """core/v1 Volume."""

    emptyDir: Empty | None = None
    persistentVolumeClaim: ClaimVolume | None = None

    @property
    def volumeSource(self) -> Volume:  # noqa: N802 - protobuf's name
        """The source's fields: a message of its own in protobuf, in JSON they are the volume's."""
        return self


class Resources(Shape):
    """core/v1 ResourceRequirements."""

    requests: dict[str, Quantity] | None = None


class Container(Shape):
    """core/v1 Container."""

    resources: Resources | None = None
    restartPolicy: str = ""


class Expression(Shape):
    """core/v1 NodeSelectorRequirement and metav1 LabelSelectorRequirement."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class Term(Shape):
    """core/v1 NodeSelectorTerm."""

    matchExpressions: list[Expression] | None = None
    matchFields: list[Expression] | None = None


class Terms(Shape):
    """core/v1 NodeSelector."""

    nodeSelectorTerms: list[Term] | None = None


class PreferredTerm(Shape):
    """core/v1 PreferredSchedulingTerm."""

    preference: Term | None = None


class NodeAffinity(Shape):
    """core/v1 NodeAffinity."""

    requiredDuringSchedulingIgnoredDuringExecution: Terms | None = None
    preferredDuringSchedulingIgnoredDuringExecution: list[PreferredTerm] | None = None


class Affinity(Shape):
    """core/v1 Affinity."""

    nodeAffinity: NodeAffinity | None = None
    podAffinity: Empty | None = None
    podAntiAffinity: Empty | None = None


class PodToleration(Shape):
    """core/v1 Toleration."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class PodSpec(Shape):
    """core/v1 PodSpec."""

    volumes: list[Volume] | None = None
    containers: list[Container] | None = None
    initContainers: list[Container] | None = None
    terminationGracePeriodSeconds: int | None = None
    nodeSelector: dict[str, str] | None = None
    nodeName: str = ""
    affinity: Affinity | None = None
    tolerations: list[PodToleration] | None = None
    priorityClassName: str = ""
    priority: int | None = None
    overhead: dict[str, Quantity] | None = None
    topologySpreadConstraints: list[Empty] | None = None


class PodCondition(Shape):
    """core/v1 PodCondition."""

    type: str = ""
    status: str = ""


class PodStatus(Shape):
    """core/v1 PodStatus."""

    phase: str = ""
    conditions: list[PodCondition] | None = None


class PodObject(Shape):
    """core/v1 Pod."""

    metadata: ObjectMeta
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class Selector(Shape):
    """metav1.LabelSelector."""

    matchLabels: dict[str, str] | None = None
    matchExpressions: list[Expression] | None = None


class BudgetMeta(Shape):
    """metav1.ObjectMeta of a PodDisruptionBudget, without labels and annotations: nothing reads them."""

    name: str = ""
    namespace: str = ""
    resourceVersion: str = ""


class BudgetSpec(Shape):
    """policy/v1 PodDisruptionBudgetSpec."""

    selector: Selector | None = None
    unhealthyPodEvictionPolicy: str | None = None


class BudgetStatus(Shape):
    """policy/v1 PodDisruptionBudgetStatus."""

    disruptionsAllowed: int = 0
    desiredHealthy: int = 0
    currentHealthy: int = 0
    expectedPods: int = 0


class BudgetObject(Shape):
    """policy/v1 PodDisruptionBudget."""

    metadata: BudgetMeta
    spec: BudgetSpec = msgspec.field(default_factory=BudgetSpec)
    status: BudgetStatus = msgspec.field(default_factory=BudgetStatus)


class Page(Shape, Generic[Item]):
    """A list, or one page of it."""

    kind: str = ""
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[Item] | None = None


Kind = TypeVar("Kind")


def decode(kind: type[Kind], body: bytes) -> Kind:
    """Decode JSON into a Struct; Rejected if it is not JSON or has another shape."""
    try:
        return decode_json(kind, body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected(f"the server's JSON can't be read: {error}") from error
