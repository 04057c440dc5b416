"""What workflows read and change outside of the nodes: the port, its values and its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Protocol

from msgspec import Struct, field

from reconciler.model.leases import LeaseRef, LeaseSeen, LeaseTake
from reconciler.model.outcome import ActionKind, Place
from reconciler.model.tasks import Clients, Port

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


class PrometheusReader(Protocol):
    """Asks Prometheus."""

    def ask(self, queries: Sequence[PrometheusQuery], /) -> Mapping[PrometheusQuery, PrometheusAnswer]:
        """Return the answer to each query, within a few seconds; a failure is its `problem`. Raises nothing.

        Nothing is sent twice, and an answer may be some seconds old.
        """


class KubernikusReader(Protocol):
    """Asks Kubernikus."""

    def ask(self, queries: Sequence[KubernikusQuery], /) -> Mapping[KubernikusQuery, KubernikusAnswer]:
        """Return the answer for each cluster, within a few seconds; a failure is its `problem`.

        Raises nothing. An answer may be a minute old.
        """


class Services(Protocol):
    """What checks and triggers of workflows read and change. Each method raises ClusterError.

    Writes check the lock first, and raise LockLost.
    """

    @property
    def prometheus(self) -> PrometheusReader:
        """What answers queries."""

    @property
    def kubernikus(self) -> KubernikusReader:
        """What counts the nodes that clusters should have."""

    def lease(self, ref: LeaseRef) -> LeaseSeen | None:
        """Return a Lease, None if it does not exist."""

    def take_lease(self, take: LeaseTake) -> None:
        """Take a Lease, or create it; Conflict if it has changed since it was read.

        Taking it again, because an answer was lost, changes nothing.
        """

    def hypervisors(self) -> tuple[Hypervisor, ...] | None:
        """Return all Hypervisors, None if the cluster does not have the kind."""

    def write_hypervisor(self, write: HypervisorWrite) -> None:
        """Set fields of a Hypervisor; Conflict if another one has its name by now, NotFound if it is gone."""


NAME = "workflows"
"""That of the feature, and of its port."""

CLAIM = "workflow"
"""The kind of the claims of workflows on the cordon and the drain of a node."""

SERVICES: Port[Services] = Port(NAME, "this process reads and writes nothing for workflows")
TAKE_LEASE = ActionKind("take lease", "take a Lease", Place.BEFORE, pauses=True)
CHANGE_HYPERVISOR = ActionKind("change hypervisor", "change its Hypervisor", Place.BEFORE)


class TakeLease(Struct, frozen=True):
    """A Lease that a node takes with its transition. It is a Task."""

    action: ClassVar[ActionKind] = TAKE_LEASE

    take: LeaseTake

    @property
    def node(self) -> str:
        """The node."""
        return self.take.holder

    @property
    def what(self) -> tuple[str, ...]:
        """What it is about."""
        return (self.action.name, str(self.take.ref))

    def perform(self, clients: Clients) -> None:
        """Take it; raises ClusterError."""
        SERVICES.of(clients).take_lease(self.take)


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
        SERVICES.of(clients).write_hypervisor(self)
