"""Everything outside the program that a pass uses, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from reconciler.model.ports import (
    AheadReader,
    CalendarReader,
    CaseHistory,
    ClusterReader,
    Drains,
    HookReader,
    HookRunner,
    KubernikusReader,
    MachineReader,
    Machines,
    Notifier,
    Outbox,
    PrometheusReader,
    SourceClient,
)
from reconciler.model.writes import ClusterWriter


class Self(Struct, frozen=True):
    """Where the program runs: the names of its node and of its pod (`namespace/name`), and the pod's UID.

    The names are None outside a cluster, the UID is empty if it is not known. Our own node is drained last.
    `leads_since` is when this process acquired the lock (UTC), None if it has none.
    """

    node: str | None = None
    pod: str | None = None
    pod_uid: str = ""
    leads_since: datetime | None = None


class Outside(Struct, frozen=True, kw_only=True):
    """What a pass reads.

    It is enough for a rehearsal, and nothing in it writes to the cluster. `clients` are the clients of polled
    sources, by the source's name. A source without a client uses only the answers in the ledger. Without
    `prometheus` or `kubernikus`, checks of workflows have no answers from it. Without `calendars`, those of
    the settings have the content that the settings were given. `hooks` is None where the settings name no
    hooks.
    """

    reader: ClusterReader
    clients: Mapping[str, SourceClient] = field(default_factory=dict)
    machines: MachineReader | None = None
    calendars: CalendarReader | None = None
    hooks: HookReader | None = None
    ahead: AheadReader | None = None
    itself: Self = Self()
    prometheus: PrometheusReader | None = None
    kubernikus: KubernikusReader | None = None


class WritableOutside(Outside, frozen=True, kw_only=True):
    """What a pass reads and changes: every writer checks the lock first.

    `history` gets the cases that end, `outbox` the messages of workflows. None: nobody keeps them.
    """

    writer: ClusterWriter
    drainer: Drains
    notifier: Notifier
    machines: Machines | None = None
    hooks: HookRunner | None = None
    history: CaseHistory | None = None
    outbox: Outbox | None = None
