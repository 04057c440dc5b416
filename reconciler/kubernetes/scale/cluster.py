"""What a pass reads and writes, for thousands of nodes, and for an API server that answers slowly.

It is the cluster of `cluster.py` with three differences. Nodes come from the store that a watch and our own
writes fill, if a process has one. All other reads but the ledger run beside the pass, which waits for them
for a bounded time, and what rarely changes is kept for a while. Lists are streamed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, TypedDict, TypeVar

from reconciler.http.retrying import Guard
from reconciler.kubernetes import ledger as ledgers
from reconciler.kubernetes import objects
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import NODES, ApiPath, Connection
from reconciler.kubernetes.reader import AGENT, AGENT_NAMESPACE, NAMESPACE
from reconciler.kubernetes.scale.beside import ThreadsBeside
from reconciler.kubernetes.scale.node_store import NodeStore
from reconciler.kubernetes.scale.pages import count_all, list_streamed
from reconciler.kubernetes.wire.formats import Format
from reconciler.model.errors import ClusterError, Late
from reconciler.model.node import Node
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import COUNTS, Look, LookRequest
from reconciler.model.reconciler import Reconciler
from reconciler.model.snapshot import Agents, Ledger, Remediator, ServerVersion
from reconciler.model.values import replace

Value = TypeVar("Value")

KEPT_FOR = 10.0
"""Seconds for which passes of one process keep the state of the agents, and what else rarely changes."""

KEPT_LONGER = 20.0
"""An answer that took long is kept for so many times as long: the pods of all agents may be many."""

LEDGER_FOR = 0.1
"""Seconds for which the next pass has the ledger of a pass. Holds are read again before a drain begins."""

LEDGER_COUNTS = 600.0
"""Seconds for which the last ledger counts while it can't be read. Only a hold of people may be missed."""

OLD = 5.0
"""Seconds after which a ledger is not the one of this pass."""

PUBLISHED_COUNTS = 60.0
"""Seconds for which an agent that has published something counts as one that works."""

AGENTS_COUNT = 600.0
"""Seconds for which the state of the agents, and what else rarely changes, counts while it can't be read."""

_LEDGER = ("the ledger",)
_AGENTS = ("the DaemonSet of the node agent",)
_REMEDIATOR = ("AKS's remediator-config",)
_VERSION = ("the version of the API server",)


class _Validity(TypedDict):
    """For how many seconds an answer counts as new, and for how many if a newer one does not come."""

    lasts: float
    counts: float


class CachedCluster(Cluster):
    """A Cluster whose nodes come from a store, and whose other reads run beside the pass."""

    def __init__(
        self,
        connection: Connection,
        *,
        guard: Guard | None = None,
        namespace: str = NAMESPACE,
        agent_namespace: str = AGENT_NAMESPACE,
        agent: str = AGENT,
        store: NodeStore | None = None,
        beside: ThreadsBeside | None = None,
    ) -> None:
        """Read and write as `Cluster` does, and read `beside` what is neither the nodes nor the ledger.

        The `store` gets what is written on nodes, and has them for passes that follow.
        """
        super().__init__(
            connection, guard=guard, namespace=namespace, agent_namespace=agent_namespace, agent=agent
        )
        self._store = store
        self._beside = beside or ThreadsBeside()
        self._kept: dict[str, tuple[Any, float]] = {}

    def look(self, request: LookRequest) -> Look:
        """Return what the request names. All of it is requested before the nodes have come."""
        # With an API server that answers slowly, a cordon waits for each read that comes before it.
        self._beside.begin(_LEDGER, self._dated_ledger, **self._ledger_for)
        for wanted, name, what, read in (
            (request.agents, "agents", _AGENTS, super()._agent_set),
            (request.remediator, "remediator", _REMEDIATOR, super()._remediator_config),
            (request.server, "server", _VERSION, super()._version),
        ):
            if wanted and self._recent(name) is None:
                self._beside.begin(what, read, counts=AGENTS_COUNT)
        if request.changes and self._store is not None:
            if self._store.count_is_due():
                with suppress(ClusterError):
                    count = partial(count_all, self._connection, NODES)
                    self._store.counted(self._beside.read(("the number of nodes",), count))
            followed = self._store.followed(request.nodes)
            if followed is not None:
                return self._with_rest(request, followed)
        return super().look(request)

    def _recent(self, name: str) -> Any:
        """Return an answer that is kept, None if there is none or it is too old."""
        value, until = self._kept.get(name, (None, 0.0))
        return value if time.monotonic() < until else None

    def _keep(self, name: str, read: Callable[[], Value]) -> Value:
        """Return what `read` does. For passes that follow each other, an answer without a problem is kept."""
        if self._store is None:
            return read()
        kept: Value | None = self._recent(name)
        if kept is not None:
            return kept
        began = time.monotonic()
        answer = read()
        now = time.monotonic()
        if not getattr(answer, "problem", ""):
            self._kept[name] = answer, now + max(KEPT_FOR, KEPT_LONGER * (now - began))
        return answer

    def attached(self, staying: Mapping[str, frozenset[str]]) -> Mapping[str, tuple[str, ...]]:
        read = partial(super().attached, staying)
        return self._beside.read(("VolumeAttachments of", *sorted(staying)), read)

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        # Those of all nodes are many.
        counts = COUNTS if node is not None else 0.0
        of = ("all nodes" if node is None else node, *(("with placement",) if placement else ()))
        read = partial(super().pods, node, placement=placement)
        return self._beside.read(("pods of", *of), read, counts=counts)

    def pods_with(self, label: str) -> tuple[Pod, ...]:
        what, read = ("pods with the label", label), partial(super().pods_with, label)
        return self._keep(what[0] + label, lambda: self._beside.read(what, read, counts=COUNTS))

    def unplaced(self) -> tuple[Pod, ...]:
        what, read = "pods without a node", super().unplaced
        return self._keep(what, lambda: self._beside.read((what,), read, counts=COUNTS))

    def budgets(self) -> tuple[PodDisruptionBudget, ...]:
        return self._beside.read(("PodDisruptionBudgets",), super().budgets, counts=COUNTS)

    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        return self._beside.read(("namespaces",), super().namespaces, counts=COUNTS)

    def agents(self) -> Agents:
        """Return the state of the node agent; see `read_agents`.

        An agent that has just published something works, whatever its probe said before that: kubelet says
        only later that it is ready, and then nothing wakes a pass.
        """
        agents = self._keep("agents", super().agents)
        if self._store is None or not (agents.not_ready or agents.covered is not None):
            return agents
        working = self._store.published(PUBLISHED_COUNTS)
        covered = agents.covered
        return replace(
            agents,
            not_ready=agents.not_ready - working,
            covered=covered | working if covered is not None else None,
        )

    def remediator(self) -> Remediator:
        return self._keep("remediator", super().remediator)

    def server_version(self) -> ServerVersion:
        return self._keep("server", super().server_version)

    def ledger(self) -> Ledger:
        """Return our ConfigMap's ledger, an empty one if there is none yet; Rejected if it can't be read.

        It may be an older one: its `as_of` says from when.
        """
        data, at = self._last_ledger()
        age = time.monotonic() - at
        as_of = self._connection.time.now() - timedelta(seconds=age) if age > OLD else None
        return replace(ledgers.from_data(data), as_of=as_of)

    def cordoned_by_us(self, nodes: Sequence[Node]) -> frozenset[str]:
        what = ("who cordoned", *sorted(node.uid for node in nodes))
        with suppress(Late):
            return self._beside.read(what, partial(super().cordoned_by_us, nodes), most=1)
        return frozenset()

    def uncordoned_by(self, node: Node) -> str:
        with suppress(Late):
            what = ("who uncordoned", node.name, node.uid)
            return self._beside.read(what, partial(super().uncordoned_by, node))
        return ""

    def reconciler_of(self, namespace: str) -> Reconciler:
        read = partial(super().reconciler_of, namespace)
        return self._beside.read(("the lock in namespace", namespace), read)

    def _list(self, path: ApiPath, form: Format[Value], *, fields: str = "", labels: str = "") -> list[Value]:
        return list_streamed(self._connection, path, form, fields=fields, labels=labels).items

    def _agent_set(self) -> objects.DaemonSet:
        return self._beside.read(_AGENTS, super()._agent_set, counts=AGENTS_COUNT)

    def _agent_pods(self) -> list[Pod]:
        return self._beside.read(("pods of the node agent",), super()._agent_pods, counts=AGENTS_COUNT)

    def _remediator_config(self) -> objects.ConfigMap:
        return self._beside.read(_REMEDIATOR, super()._remediator_config, counts=AGENTS_COUNT)

    def _version(self) -> objects.Version:
        return self._beside.read(_VERSION, super()._version, counts=AGENTS_COUNT)

    def _ledger_data(self) -> Mapping[str, str]:
        return self._last_ledger()[0]

    def _last_ledger(self) -> tuple[Mapping[str, str], float]:
        """Return the data of our ConfigMap, and when they were asked for (seconds, monotonic)."""
        return self._beside.read(_LEDGER, self._dated_ledger, **self._ledger_for, needed=True)

    @property
    def _ledger_for(self) -> _Validity:
        lasts = LEDGER_FOR if self._store is not None else 0.0
        return _Validity(lasts=lasts, counts=LEDGER_COUNTS)

    def _dated_ledger(self) -> tuple[Mapping[str, str], float]:
        began = time.monotonic()
        return super()._ledger_data(), began

    def _change_data(self, change: Callable[[Mapping[str, str]], Mapping[str, str | None]]) -> None:
        written: dict[str, str] = {}

        def changed(data: Mapping[str, str]) -> Mapping[str, str | None]:
            nonlocal written
            changes = change(data)
            written = {key: text for key, text in {**data, **changes}.items() if text is not None}
            return changes

        super()._change_data(changed)
        # The last ledger has what this process has written, also while it can't be read.
        self._beside.note(_LEDGER, (written, time.monotonic()), counts=LEDGER_COUNTS)

    def _wrote(self, answer: bytes) -> None:
        if self._store is not None:
            self._store.wrote(answer)
