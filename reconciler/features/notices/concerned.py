"""Reads whose pods a message concerns: the namespaces of the pods on its node, and their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.features.notices.owners import MOST, Namespace
from reconciler.features.notices.transports.transport import NotSent
from reconciler.kubernetes import objects
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.paths import CORE
from reconciler.model.errors import ClusterError
from reconciler.model.notices import Message


class Concerned:
    """Reads pods and namespaces for messages that go to owners. No pass waits for it."""

    def __init__(self, connection: Connection, cluster: Cluster) -> None:
        """Use this connection, and this reader of pods."""
        self._connection, self._cluster = connection, cluster

    def pods(self, messages: Iterable[Message]) -> dict[str, tuple[str, ...]]:
        """Return the namespaces of the pods on the node of each message, by the id of its case.

        Pods of DaemonSets do not leave a node, so they concern nobody. A case whose namespaces are known
        keeps them: its pods may be gone by now. Raises NotSent.
        """
        found: dict[str, tuple[str, ...]] = {}
        try:
            for one in messages:
                if one.namespaces:
                    found[one.case] = one.namespaces
                elif one.case not in found:
                    pods = self._cluster.pods(one.node)
                    names = {
                        pod.namespace for pod in pods if pod.owner is None or pod.owner.kind != "DaemonSet"
                    }
                    found[one.case] = tuple(sorted(names)[:MOST])
        except ClusterError as error:
            raise NotSent(f"the pods of a node can't be read: {error}") from error
        return found

    def namespaces(self) -> Mapping[str, Namespace]:
        """Return every namespace by its name; raises NotSent."""
        try:
            found, _ = objects.get_list(self._connection, CORE / "namespaces", objects.OnlyMetadata)
        except ClusterError as error:
            raise NotSent(f"the namespaces can't be read: {error}") from error
        return {
            one.metadata.name: Namespace(one.metadata.labels or {}, one.metadata.annotations or {})
            for one in found
        }
