"""What checks of workflows need beyond the nodes, and what a pass has read for them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from msgspec import Struct, field

from reconciler.model.hypervisor import Hypervisor
from reconciler.model.moments import shifted
from reconciler.model.pod import Pod
from reconciler.model.structs import replace

Value = TypeVar("Value")


class LeaseRef(Struct, frozen=True, order=True):
    """A Lease by its place."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


class LeaseSeen(Struct, frozen=True):
    """A Lease as it was read: its holder, its last renewal (UTC, None if it has none), and its duration.

    `uid` and `resource_version` are those of the object, empty for one that this pass takes itself.
    `transitions` counts how often it was taken.
    """

    holder: str
    renewed: datetime | None
    duration: timedelta
    resource_version: str = ""
    uid: str = ""
    transitions: int = 0

    @property
    def until(self) -> datetime | None:
        """When it expires (UTC), None if nobody has ever taken it."""
        return shifted(self.renewed, self.duration) if self.renewed is not None else None


class LeaseTake(Struct, frozen=True):
    """A Lease that a node takes with its transition; `seen` None means that it has to be created.

    `at` is the moment of the pass (UTC), and `duration` is for how long other nodes wait.
    """

    ref: LeaseRef
    holder: str
    at: datetime
    duration: timedelta
    seen: LeaseSeen | None = None


class PrometheusQuery(Struct, frozen=True, order=True):
    """An instant query of one server; `url` has no `/api/v1/query`."""

    url: str
    query: str


class Sample(Struct, frozen=True):
    """One sample that a query returned. Its `value` may be no number or infinite."""

    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


class PrometheusAnswer(Struct, frozen=True):
    """The samples that a query returned, or the `problem` because of which there is no answer."""

    samples: tuple[Sample, ...] = ()
    problem: str = ""


class KubernikusQuery(Struct, frozen=True, order=True):
    """A question for the nodes that a cluster should have in Kubernikus.

    The credentials are in the Secret `secret` of `namespace`, without a Secret in `file`. `url` is that of
    Kubernikus, empty for the one of the region in the credentials.
    """

    cluster: str
    namespace: str = ""
    secret: str = ""
    file: str = ""
    url: str = ""


class KubernikusAnswer(Struct, frozen=True):
    """How many nodes all node pools should have, or the `problem` because of which that is not known."""

    nodes: int = 0
    problem: str = ""


class Needs(Struct, frozen=True):
    """What a configured check needs beyond the names of the nodes; a pass reads each of them once.

    `labels`, `annotations` and `conditions` are the keys and types that it reads on nodes. `hypervisors` asks
    for all Hypervisor objects.
    """

    leases: frozenset[LeaseRef] = frozenset()
    queries: frozenset[PrometheusQuery] = frozenset()
    all_pods: bool = False
    labels: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
    hypervisors: bool = False
    kubernikus: frozenset[KubernikusQuery] = frozenset()

    def __or__(self, other: Needs) -> Needs:
        """Return what both need."""
        return Needs(
            self.leases | other.leases,
            self.queries | other.queries,
            self.all_pods or other.all_pods,
            self.labels | other.labels,
            self.annotations | other.annotations,
            self.conditions | other.conditions,
            self.hypervisors or other.hypervisors,
            self.kubernikus | other.kubernikus,
        )


class ReadForChecks(Struct, frozen=True):
    """What was read for the needs of all checks of a pass.

    A Lease that does not exist is None; `unread_leases` says why others could not be read. `pods` are all
    pods, by the name of their node (empty: not scheduled). `unread_pods` says why they could not be read.
    `hypervisors` are all Hypervisor objects by name, `unread_hypervisors` says why they could not be read.
    `kubernikus` are its answers. `found` keeps what follows from the pods alone (`of_pods`).
    """

    leases: Mapping[LeaseRef, LeaseSeen | None] = field(default_factory=dict)
    answers: Mapping[PrometheusQuery, PrometheusAnswer] = field(default_factory=dict)
    pods: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
    unread_leases: Mapping[LeaseRef, str] = field(default_factory=dict)
    unread_pods: str = "no check has asked for them"
    hypervisors: Mapping[str, Hypervisor] = field(default_factory=dict)
    unread_hypervisors: str = "no check has asked for them"
    kubernikus: Mapping[KubernikusQuery, KubernikusAnswer] = field(default_factory=dict)
    found: dict[Hashable, Any] = field(default_factory=dict)

    def of_pods(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return what `compute` returned for this key, which it must depend on, and on the pods alone.

        A check is asked for each node, and a cluster may have a hundred thousand pods.
        """
        if key not in self.found:
            self.found[key] = compute()
        kept: Value = self.found[key]
        return kept

    def answer(self, query: PrometheusQuery) -> PrometheusAnswer:
        """Return the answer to a query."""
        return self.answers.get(query, PrometheusAnswer(problem="it was not asked"))

    def hypervisor(self, name: str) -> tuple[Hypervisor | None, str]:
        """Return the Hypervisor with this name, or None and the reason."""
        if self.unread_hypervisors:
            return None, f"the Hypervisors can't be read: {self.unread_hypervisors}"
        found = self.hypervisors.get(name)
        return found, "" if found is not None else f"there is no Hypervisor {name}"

    def taken(self, take: LeaseTake) -> ReadForChecks:
        """Return the same with a Lease that a node takes in this pass, so that no other node takes it too."""
        held = LeaseSeen(take.holder, take.at, take.duration)
        return replace(self, leases={**self.leases, take.ref: held})
