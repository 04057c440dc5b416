"""What a pass writes to the cluster, beside what it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from reconciler.http.retrying import Guard, read_only
from reconciler.kubernetes import kept_records, node_writing
from reconciler.kubernetes import ledger as ledgers
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.reader import AGENT, AGENT_NAMESPACE, NAMESPACE, PlainReader
from reconciler.model.snapshot import Ledger
from reconciler.model.writes import ConditionsWrite, LabelsWrite, NodeWrite, TaintWrite, WriteAnswer


class Cluster(PlainReader):
    """ClusterReader and ClusterWriter for the API server; safe for threads."""

    def __init__(
        self,
        connection: Connection,
        *,
        guard: Guard | None = None,
        namespace: str = NAMESPACE,
        agent_namespace: str = AGENT_NAMESPACE,
        agent: str = AGENT,
        field_manager: str = "",
    ) -> None:
        """Use this connection, and call the guard before each write; without a guard it only reads.

        `field_manager` is the name for what it writes on nodes, by default that of passes.
        """
        super().__init__(connection, namespace=namespace, agent_namespace=agent_namespace, agent=agent)
        self._guard = guard or read_only
        self._labels = node_writing.LabelWriter(connection, self._guard)
        self._field_manager = field_manager

    def patch_node(self, write: NodeWrite) -> WriteAnswer:
        """Patch a node; see node_writing.patch_node, and kept_records for a record that it can't hold."""
        send = partial(
            node_writing.patch_node, self._connection, self._guard, self._field_manager, wrote=self._wrote
        )
        return kept_records.patch_node(send, self._change_records, write, self._nodes.keys())

    def patch_conditions(self, write: ConditionsWrite) -> None:
        """Patch a node's status; see node_writing.patch_conditions."""
        node_writing.patch_conditions(self._connection, self._guard, write)

    def patch_taint(self, write: TaintWrite) -> str:
        """Add or remove a taint of a node; see node_writing.patch_taint."""
        return node_writing.patch_taint(self._connection, self._guard, write)

    def patch_labels(self, write: LabelsWrite) -> str:
        """Set labels of a node; see LabelWriter."""
        return self._labels.write(write)

    def write_ledger(self, ledger: Ledger) -> None:
        """Write our ConfigMap, or create it; the last start never moves back."""

        self._change_data(partial(ledgers.to_data, ledger))

    def _change_records(self, change: kept_records.Change) -> None:

        def data(data: Mapping[str, str]) -> Mapping[str, str | None]:
            before = kept_records.load(data.get(kept_records.KEPT))
            after = change(before)
            return {kept_records.KEPT: kept_records.dump(after)} if after != before else {}

        self._change_data(data)

    def _change_data(self, change: Callable[[Mapping[str, str]], Mapping[str, str | None]]) -> None:
        ledgers.change_data(self._connection, self._namespace, change, self._guard)

    def _wrote(self, answer: bytes) -> None:
        """Keep nothing of the answer to a write of a node."""
