"""What checks and triggers of workflows may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.engine.situation import Situation
from reconciler.model.node import Node
from reconciler.model.pod import Pod
from reconciler.model.record import State
from reconciler.model.workflow import WorkflowData


@dataclass(frozen=True, slots=True, order=True)
class LeaseRef:
    """A Lease by its place."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class LeaseSeen:
    """A Lease as it was read: holder, last renewal (UTC, None if it has none), and its resourceVersion."""

    holder: str
    renewed: datetime | None
    seconds: int
    resource_version: str


@dataclass(frozen=True, slots=True, order=True)
class PrometheusQuery:
    """An instant query."""

    url: str
    query: str


@dataclass(frozen=True, slots=True)
class Needs:
    """What a configured check needs beyond the nodes; `observe` reads each of them once per pass."""

    leases: frozenset[LeaseRef] = frozenset()
    queries: frozenset[PrometheusQuery] = frozenset()
    all_pods: bool = False

    def __or__(self, other: Needs) -> Needs:
        return Needs(
            self.leases | other.leases, self.queries | other.queries, self.all_pods or other.all_pods
        )


@dataclass(frozen=True, slots=True)
class ReadForChecks:
    """What was read for the needs of all checks of a pass.

    A Lease that does not exist is None. A value that is a `str` in `samples` says why the query failed.
    `pods` are all pods by node; `problems` says what could not be read, by `leases` or `pods`.
    """

    leases: Mapping[LeaseRef, LeaseSeen | None] = field(default_factory=dict)
    samples: Mapping[PrometheusQuery, tuple[float, ...] | str] = field(default_factory=dict)
    pods: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Member:
    """One node of the cluster with its workflows' data.

    `profiles` are the names that its label lists and the settings define.
    """

    node: Node
    data: WorkflowData = WorkflowData()
    profiles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckInput:
    """Everything that a check of a workflow may read.

    `since` is when the profile entered `state` (UTC), `now` is aware. `members` are all nodes of the cluster,
    this one included, sorted by name. `in_maintenance_here` names what the node is in maintenance for,
    the profile of platform events included. `platform` is what the checks of platform events read, None if
    that profile is off.
    """

    node: Node
    data: WorkflowData
    profile: str
    state: State
    since: datetime
    now: datetime
    members: tuple[Member, ...] = ()
    read: ReadForChecks = ReadForChecks()
    in_maintenance_here: tuple[str, ...] = ()
    platform: Situation | None = None
