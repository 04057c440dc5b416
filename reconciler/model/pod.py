"""A pod and a disruption budget, reduced to the fields that we read, and what a pod needs of a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct, field

from reconciler.model.limits import is_object_name
from reconciler.model.node import Node
from reconciler.model.selector import LabelSelector, Requirement
from reconciler.model.values import Annotations, Integer, Labels

Terms = tuple[tuple[Requirement, ...], ...]
"""Terms of a node selector, any of which is enough."""


class Volume(Struct, frozen=True):
    """A PersistentVolume that is bound to the claim `namespace/claim`.

    `affinity` are the required terms of its node affinity; none of them: it can be mounted on every node.
    """

    name: str
    namespace: str
    claim: str
    affinity: Terms = ()


NAME = "metadata.name"
"""The one field of a node that `matchFields` can name. No label has this key by chance."""


def meets(node: Node, terms: Terms) -> bool:
    """Whether the node meets one of the terms. A term without requirements is met by no node."""
    return any(term and all(one.matches(labels_for(node, one.key)) for one in term) for term in terms)


def labels_for(node: Node, key: str) -> Mapping[str, str]:
    """Return what a requirement with this key is about: the node's labels, or its name."""
    return {NAME: node.name} if key == NAME else node.labels


class WorkloadKind(StrEnum):
    """The kinds whose pods come back on another node, named as in maintenance-controller's metrics."""

    DAEMON_SET = "daemon_set"
    DEPLOYMENT = "deployment"
    REPLICA_SET = "replica_set"
    STATEFUL_SET = "stateful_set"


class Workload(Struct, frozen=True):
    """A workload. `replicas` are the pods that it should have, of a DaemonSet those that are ready."""

    kind: WorkloadKind
    name: str
    replicas: int

    @property
    def label(self) -> str:
        """The value of the label `owner`, such as `deployment_web`. It has no namespace."""
        return f"{self.kind.value}_{self.name}"


DEFAULT_GRACE = 30
"""Seconds: the API's default of terminationGracePeriodSeconds."""

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
"""The annotation of a pod that Karpenter never evicts, if its value is `true`."""

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""The annotation of a pod that the cluster autoscaler reads."""

ON_COMPLETION = "on-completion"
"""Its value for a pod that the autoscaler does not evict: it waits until the pod has completed.

Source: kubernetes/autoscaler, cluster-autoscaler/simulator/drainability/rules/oncompletion (from 1.36 on).
"""

LONGEST_GRACE = 365 * 24 * 3600
"""Seconds: a longer grace period of a pod counts as this. The API has any int64."""


def grace_seconds(found: int | None) -> int:
    """Return a pod's terminationGracePeriodSeconds as a number between 0 and a year; None is the default.

    Kubernetes treats a negative one as 1 second (core/v1, PodSpec).
    """
    if found is None:
        return DEFAULT_GRACE
    return 1 if found < 0 else min(found, LONGEST_GRACE)


def grace_text(grace: int) -> str:
    """Return a grace period in seconds for people: `0:10:00`, `115 days, 17:46:40` or `a year or more`."""
    seconds = grace_seconds(grace)
    return str(timedelta(seconds=seconds)) if seconds < LONGEST_GRACE else "a year or more"


class Owner(Struct, frozen=True):
    """The owner that is the controller (`controller: true`), as in metav1.GetControllerOf.

    Anyone who may write the object may write any owner: the API server does not check that it exists.
    """

    kind: str
    name: str
    api_version: str = ""
    uid: str = ""

    @property
    def named(self) -> bool:
        """Whether the name can be that of an object. Any other name must not reach a path."""
        return is_object_name(self.name)

    def is_a(self, kind: str, group: str) -> bool:
        """Whether the owner is of that kind and API group, of any version."""
        return self.kind == kind and self.api_version.rpartition("/")[0] == group


class Toleration(Struct, frozen=True):
    """A toleration as the API has it; an empty key with operator Exists tolerates everything."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class Placement(Struct, frozen=True):
    """What decides where else a pod may run; read only for previews, forecasts, and checks of features.

    `affinity` are the required terms, any of which is enough. `requests` are quantities as text, one entry
    per container and one for the overhead. `topology` means that there are pod (anti-)affinity or spread
    constraints, which a preview does not check. `prefers` are the preferred requirements on labels
    `<prefix>/maintenance-state` of nodes, up to a limit; all other preferences are dropped.
    """

    requests: tuple[Mapping[str, str], ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: tuple[tuple[Requirement, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology: bool = False
    prefers: tuple[Requirement, ...] = ()


class PodSpec(Struct, frozen=True):
    """What the template of a pod asks for; pods of one workload share it.

    `grace` is spec.terminationGracePeriodSeconds; for arithmetic, use `grace_period`. `empty_dir`: the pod
    has such a volume. The scheduler may put a pod that `tolerates_cordon` on a cordoned node.
    """

    priority: Integer = 0
    priority_class: str = ""
    grace: Integer = DEFAULT_GRACE
    empty_dir: bool = False
    claims: tuple[str, ...] = ()
    tolerates_cordon: bool = False

    @property
    def grace_period(self) -> timedelta:
        """The grace period, between 0 and a year."""
        return timedelta(seconds=grace_seconds(self.grace))


class Pod(Struct, frozen=True):
    """A pod as one read or one watch event showed it.

    `deleting_until` is metadata.deletionTimestamp, which includes the grace period. A client keeps only those
    `annotations` that are read, and very many `labels` only up to a limit. `created` is in UTC.
    `unplaced` is why the scheduler finds no node for it, empty if it has not said so.
    """

    namespace: str
    name: str
    uid: str
    node: str
    labels: Labels = field(default_factory=dict)
    annotations: Annotations = field(default_factory=dict)
    owner: Owner | None = None
    phase: str = ""
    ready: bool = False
    spec: PodSpec = PodSpec()
    deleting_until: datetime | None = None
    resource_version: str = ""
    placement: Placement | None = None
    created: datetime | None = None
    unplaced: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`, as people write it."""
        return f"{self.namespace}/{self.name}"

    @property
    def finished(self) -> bool:
        """Whether it has ended: Succeeded or Failed."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def mirror(self) -> bool:
        """Whether it is the mirror of a static pod, which no eviction can remove."""
        return "kubernetes.io/config.mirror" in self.annotations


def claims_of(pods: Iterable[Pod]) -> frozenset[str]:
    """Return the volume claims of these pods, as `namespace/name`."""
    return frozenset(f"{pod.namespace}/{claim}" for pod in pods for claim in pod.spec.claims)


class PodDisruptionBudget(Struct, frozen=True):
    """A PodDisruptionBudget (policy/v1); `selector` None selects nothing.

    `desired`, `healthy`, `expected` and `allowed` are its status; `unhealthy_always` is
    unhealthyPodEvictionPolicy: AlwaysAllow. `failed` is why its controller can't count its pods, empty if it
    can; until then it allows no disruption. `more_replicas_help`: it requires a number of pods
    (`minAvailable`), and neither a share of them nor all. `unplaced` names pods that it counts and for which
    the scheduler finds no node, empty if there are none or nobody has read them.
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    allowed: int = 0
    desired: int = 0
    healthy: int = 0
    expected: int = 0
    unhealthy_always: bool = False
    failed: str = ""
    more_replicas_help: bool = True
    resource_version: str = ""
    unplaced: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`, as people write it."""
        return f"{self.namespace}/{self.name}"

    def covers(self, pod: Pod) -> bool:
        """Whether the budget counts this pod."""
        return (
            self.selector is not None
            and self.namespace == pod.namespace
            and self.selector.matches(pod.labels)
        )
