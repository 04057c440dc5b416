"""Finds the Deployment of a ReplicaSet, for Events: hardly anybody looks at a ReplicaSet."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from reconciler.clients.kubernetes.connection import Connection, Request
from reconciler.clients.kubernetes.objects import OnlyMetadata
from reconciler.clients.kubernetes.paths import api
from reconciler.clients.kubernetes.wire.reducing import owner_of
from reconciler.clients.kubernetes.wire.shapes import decode
from reconciler.errors import ClusterError, Forbidden
from reconciler.model.pod import Owner
from reconciler.notifiers.kubernetes_events import PATIENCE

KEPT = 1000
"""ReplicaSets whose Deployment is remembered, those that were asked for last."""

CLOSED_FOR = 600.0
"""Seconds for which no ReplicaSet is read in a namespace after a missing permission."""

RESTS_FOR = 60.0
"""Seconds for which none is read at all after an error that may go away, such as a late answer."""

_APPS = "apps"
_EVERYWHERE = ""
# A template may have a megabyte, and is not sent.
_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"


class Deployments:
    """Reads ReplicaSets over a connection, each one once; for one thread."""

    def __init__(self, connection: Connection, warn: Callable[[str], None]) -> None:
        """Use this connection. `warn` gets a sentence once, if a permission is missing."""
        self._connection, self._warn = connection, warn
        self._found: OrderedDict[tuple[str, Owner], Owner | None] = OrderedDict()
        self._closed: dict[str, float] = {}
        self._warned = False

    def of(self, namespace: str, owner: Owner) -> Owner | None:
        """Return the Deployment that controls this ReplicaSet of the namespace.

        None if `owner` is no ReplicaSet, is gone, can't be read, or has no Deployment: its author may write
        any owner. Raises a ClusterError only if the same request may succeed later.
        """
        # An empty UID is that of no object.
        if not owner.is_a("ReplicaSet", _APPS) or not owner.named or not owner.uid:
            return None
        key = namespace, owner
        if key not in self._found:
            if self._is_closed(namespace) or self._is_closed(_EVERYWHERE):
                return None
            try:
                self._found[key] = self._read(namespace, owner)
            except Forbidden as error:
                self._close(namespace, CLOSED_FOR)
                self._complain(error)
                return None
            except ClusterError as error:
                if error.temporary:
                    self._close(_EVERYWHERE, RESTS_FOR)
                    raise
                self._found[key] = None
        self._found.move_to_end(key)
        if len(self._found) > KEPT:
            self._found.popitem(last=False)
        return self._found[key]

    def _read(self, namespace: str, owner: Owner) -> Owner | None:
        path = api(_APPS, "v1", namespace) / "replicasets" / owner.name
        request = Request("GET", path, accept=_METADATA_ONLY, read_timeout=PATIENCE, total=PATIENCE)
        found = decode(OnlyMetadata, self._connection.send(request)).metadata
        if found.uid != owner.uid:
            return None
        above = owner_of(found.ownerReferences)
        return above if above is not None and above.is_a("Deployment", _APPS) and above.named else None

    def _is_closed(self, namespace: str) -> bool:
        return self._closed.get(namespace, 0.0) > time.monotonic()

    def _close(self, namespace: str, seconds: float) -> None:
        self._closed = {name: at for name, at in self._closed.items() if self._is_closed(name)}
        self._closed[namespace] = time.monotonic() + seconds

    def _complain(self, error: Forbidden) -> None:
        if not self._warned:
            self._warned = True
            because = f"needs {error.needs}" if error.needs else str(error)
            self._warn(f"events about pods are on their ReplicaSets, not on the Deployments: {because}")
