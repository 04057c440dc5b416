"""What one pass saw of the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from reconciler.model.drains import DrainProgress
from reconciler.model.event import Reading
from reconciler.model.machine import Machine
from reconciler.model.node import Node
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.polling import AnyMemory
from reconciler.model.record import Record, Unreadable


@dataclass(frozen=True, slots=True)
class Agents:
    """Whether the node agent is installed, and on which nodes its pod is not ready.

    `covered` names the nodes that have an agent's pod at all, None where no pod is missing. `problem` is set
    where the DaemonSet or its pods could not be read: then every node's agent is unknown.
    """

    installed: bool = False
    not_ready: frozenset[str] = frozenset()
    covered: frozenset[str] | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Remediator:
    """AKS's own node remediator, from the ConfigMap kube-system/remediator-config.

    `on_freeze` is its preview that takes Freeze and live migration (node-auto-drain-evict-on-freeze.md).
    """

    config_found: bool = False
    on_freeze: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A node whose machine we had deleted `at` (UTC): until a new one is there it is one out of service.

    `have` is how many nodes its pool has once that has come. While the node is still there it counts itself.
    """

    node: str
    uid: str
    zone: str
    pool: str
    have: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Ledger:
    """What belongs to no node, kept in one ConfigMap.

    `last_start` (UTC) is for spacing. `memories` are what the services of polled sources said last and when
    they may be asked again, by the source's name; an empty memory is left out. `replaced` are the nodes
    whose replacements may still be on their way.
    """

    last_start: datetime | None = None
    memories: Mapping[str, AnyMemory] = field(default_factory=dict)
    replaced: tuple[Replaced, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a decision is made of, but for the settings and `now`.

    `readings` are by node name, and so are `records`: a node without a record of its own UID has none.
    `pods` are there for the nodes whose pods matter to this pass. `skew` is our clock minus the API
    server's (positive: ours is ahead), None if it is unknown. `own_node` and `own_pod` are
    where we run, None outside of a cluster. `memories` are the answers in force of each polled source that
    is switched on, this pass's own included. `published` are the objects that publishers
    read, by the publisher's sign; a sign is missing where it is switched off or its objects can't be read.
    `machines` are what owns the VMs behind the nodes that may be replaced, by node.
    """

    nodes: tuple[Node, ...]
    readings: Mapping[str, tuple[Reading, ...]] = field(default_factory=dict)
    records: Mapping[str, Record | Unreadable] = field(default_factory=dict)
    pods: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    budgets: tuple[PodDisruptionBudget, ...] = ()
    agents: Agents = Agents()
    remediator: Remediator = Remediator()
    drains: Mapping[str, DrainProgress] = field(default_factory=dict)
    ledger: Ledger = Ledger()
    skew: timedelta | None = None
    own_node: str | None = None
    own_pod: str | None = None
    memories: Mapping[str, AnyMemory] = field(default_factory=dict)
    published: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    machines: Mapping[str, Machine] = field(default_factory=dict)
