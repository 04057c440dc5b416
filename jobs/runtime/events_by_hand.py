"""The Events about what a person does by hand."""

from __future__ import annotations

from collections.abc import Callable

from jobs.runtime.terminal import echo
from reconciler.features.events.kubernetes_events import KubernetesEvents
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.paths import LEDGER
from reconciler.model.errors import ClusterError
from reconciler.model.node import Node
from reconciler.model.plan import Notice
from reconciler.model.ports import Notification


class EventsByHand:
    """Writes Events on nodes about what a person does, with the reasons that a pass uses.

    Nothing depends on them. After one that can't be written, for example because of a missing permission, a
    warning is printed once, and no other is tried.
    """

    def __init__(self, connection: Connection) -> None:
        """Use this connection."""
        self._events = KubernetesEvents(connection, guard=lambda: None)
        self._off = False

    def write(self, node: Node, notice: Notice) -> None:
        """Write one Event on the node; it raises nothing for an Event that can't be written."""
        self._try(lambda: self._events.send(Notification(node.name, node.uid, notice)))

    def write_about_all(self, namespace: str, notice: Notice) -> None:
        """Write one Event about many nodes on the ledger of this namespace; it raises nothing, too."""
        self._try(lambda: self._events.send_about_config_map(namespace, LEDGER, notice))

    def _try(self, send: Callable[[], None]) -> None:
        if self._off:
            return
        try:
            send()
        except ClusterError as error:
            self._off = True
            because = f"needs {error.needs}" if error.needs else str(error)
            echo(f"warning: no Events are written ({because}); everything else goes on", err=True)
