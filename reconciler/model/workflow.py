"""What the workflows of the settings read, write and keep for a node, and the messages that they send."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from operator import or_
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import astuple

from reconciler.model.moments import shifted
from reconciler.model.node import Node
from reconciler.model.outcome import ActionKind, Place
from reconciler.model.pod import Pod
from reconciler.model.problems import Faults
from reconciler.model.record import State
from reconciler.model.tasks import Clients, Port
from reconciler.model.values import replace

Value = bool | int | str | tuple[str, ...]
"""The value of a field."""

SPEC: Mapping[str, Value] = MappingProxyType(
    {
        "aggregates": (),
        "allowedProjects": (),
        "createCertManagerCertificate": False,
        "customTraits": (),
        "evacuateOnReboot": False,
        "highAvailability": False,
        "installCertificate": False,
        "lifecycleEnabled": False,
        "maintenance": "",
        "maintenanceReason": "",
        "reboot": False,
        "skipTests": False,
        "version": "",
    }
)
"""The fields of the spec, each with the value that an absent field means."""

STATUS: Mapping[str, Value] = MappingProxyType(
    {
        "aggregates": (),
        "evicted": False,
        "hypervisorId": "",
        "hypervisorVersion": "",
        "internalIp": "",
        "libVirtVersion": "",
        "numInstances": 0,
        "serviceId": "",
        "specHash": "",
        "traits": (),
    }
)
"""The fields of the status, each with the value that an absent field means."""


class Hypervisor(Struct, frozen=True):
    """A Hypervisor as it was read.

    `spec` and `status` have all fields of `SPEC` and `STATUS`. A value is None if it is of another type than
    the field. `conditions` are the status of each condition by its type, None if they can't be read.
    """

    name: str
    uid: str
    spec: Mapping[str, Value | None] = field(default_factory=lambda: dict(SPEC))
    status: Mapping[str, Value | None] = field(default_factory=lambda: dict(STATUS))
    conditions: Mapping[str, str] | None = field(default_factory=dict)


class _Writer(Protocol):
    def take_lease(self, take: LeaseTake) -> None: ...

    def write_hypervisor(self, write: HypervisorWrite) -> None: ...


_WRITER: Port[_Writer] = Port("writer", "this process writes nothing")
TAKE_LEASE = ActionKind("take lease", "take a Lease", Place.BEFORE, pauses=True)
CHANGE_HYPERVISOR = ActionKind("change hypervisor", "change its Hypervisor", Place.BEFORE)


class HypervisorWrite(Struct, frozen=True):
    """Fields of the spec to set on the Hypervisor with this name, its node's, and UID. It is a Task.

    A killed pass may have set them without the step. The next pass sets the same values.
    """

    action: ClassVar[ActionKind] = CHANGE_HYPERVISOR

    name: str
    uid: str
    fields: Mapping[str, Value]

    @property
    def node(self) -> str:
        """The node."""
        return self.name

    @property
    def what(self) -> tuple[str, ...]:
        """What it is about."""
        return (self.action.name, self.name)

    def perform(self, clients: Clients) -> None:
        """Set them; raises ClusterError."""
        _WRITER.of(clients).write_hypervisor(self)


Answer = TypeVar("Answer")


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

    action: ClassVar[ActionKind] = TAKE_LEASE

    ref: LeaseRef
    holder: str
    at: datetime
    duration: timedelta
    seen: LeaseSeen | None = None

    @property
    def node(self) -> str:
        """The node."""
        return self.holder

    @property
    def what(self) -> tuple[str, ...]:
        """What it is about."""
        return (self.action.name, str(self.ref))

    def perform(self, clients: Clients) -> None:
        """Take it; raises ClusterError."""
        _WRITER.of(clients).take_lease(self)


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
        return Needs(*map(or_, astuple(self), astuple(other)))


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

    def of_pods(self, key: Hashable, compute: Callable[[], Answer]) -> Answer:
        """Return what `compute` returned for this key, which it must depend on, and on the pods alone.

        A check is asked for each node, and a cluster may have a hundred thousand pods.
        """
        if key not in self.found:
            self.found[key] = compute()
        kept: Answer = self.found[key]
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


class ProfileData(Struct, frozen=True):
    """One profile of one node, as the annotation `<keys.prefix>/maintenance-data` holds it.

    `transition` is when `current` was entered (UTC). `previous` differs from `current` until a pass has run
    the `enter` chain of `current` to its end.
    """

    transition: datetime
    current: State = State.OPERATIONAL
    previous: State = State.OPERATIONAL

    @property
    def is_theirs(self) -> bool:
        """Whether maintenance-controller entered the state: it writes fractions of seconds, we do not."""
        return self.transition.microsecond != 0

    @property
    def is_entering(self) -> bool:
        """Whether the `enter` chain of the state has not ended."""
        return self.previous is not self.current


class WorkflowData(Struct, frozen=True):
    """The annotation of one node: its profiles, and when each notification instance was last sent (UTC)."""

    profiles: Mapping[str, ProfileData] = field(default_factory=dict)
    notifications: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def worst(self) -> State:
        """The worst state of all profiles, operational without any."""
        order = list(State)
        return max(
            (one.current for one in self.profiles.values()), key=order.index, default=State.OPERATIONAL
        )


def upgraded_pools(nodes: Iterable[Node], faults: Faults) -> frozenset[str]:
    """Return the agent pools with a node that AKS upgrades now.

    A node whose data ends in an error is one of `faults`, and its pool counts as not upgraded.
    """
    what = "whether AKS upgrades it is not known"
    return frozenset(faults.of(node.name, what, partial(_pool_in_upgrade, node), "") for node in nodes) - {""}


def upgrade_on(node: Node, pools: Collection[str]) -> str:
    """Return in words what AKS upgrades that concerns the node, empty if nothing; `pools` are in upgrades."""
    pool = node.agent_pool
    return upgrade_of(pool) if node.in_upgrade or pool in pools else ""


def upgrade_of(pool: str) -> str:
    """Return in words that AKS upgrades this pool, or a node without a pool."""
    return f"AKS upgrades pool {pool}" if pool else "AKS upgrades the node"


def _pool_in_upgrade(node: Node) -> str:
    return node.agent_pool if node.in_upgrade else ""


class ShuffleRow(Struct, frozen=True):
    """The counters of one owner and profile: pods, and pods divided by the replicas of their owner.

    `per_replica` is infinite once a pod was counted whose owner had no replica, as in maintenance-controller.
    """

    owner: str
    profile: str
    pods: int = 0
    per_replica: float = 0.0
