"""Everything outside the program that a pass is given, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.ports import (
    ClusterReader,
    ClusterWriter,
    Drains,
    MachineReader,
    Machines,
    Notifier,
    SourceClient,
)


@dataclass(frozen=True, slots=True)
class Self:
    """Where the program runs: the names of its node and of its pod (`namespace/name`).

    Both are None outside a cluster. Our own node is drained last.
    """

    node: str | None = None
    pod: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What a pass reads; it is enough for a rehearsal, and nothing in it writes to the cluster.

    `clients` are those of the sources that ask a service of their own, by the source's name. A source
    without a client keeps to what the ledger remembers.
    """

    reader: ClusterReader
    clients: Mapping[str, SourceClient] = field(default_factory=dict)
    machines: MachineReader | None = None
    itself: Self = Self()


@dataclass(frozen=True, slots=True, kw_only=True)
class WritableOutside(Outside):
    """What a pass reads and what it changes: every writer asks the lock first."""

    writer: ClusterWriter
    drainer: Drains
    notifier: Notifier
    machines: Machines | None = None
