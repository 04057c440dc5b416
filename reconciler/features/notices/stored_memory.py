"""The ConfigMap that remembers which notices were sent. Nothing of a pass depends on it."""

from __future__ import annotations

from reconciler.features.notices import MEMORY
from reconciler.http.retrying import Guard
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import MERGE_PATCH, Connection, Request
from reconciler.kubernetes.paths import core
from reconciler.model.errors import NotFound

NAME = MEMORY
KEY = "memory"
_PATIENCE = 10.0
"""Seconds for one request. No pass waits for it."""


class NoticeMemory:
    """Reads and writes the memory of notices as one text."""

    def __init__(self, connection: Connection, namespace: str, guard: Guard) -> None:
        """Use this connection and our namespace; `guard` raises LockLost if the lock is not ours."""
        self._connection, self._guard = connection, guard
        self._place = core(namespace) / "configmaps"

    def load(self) -> str:
        """Return the text, empty if there is none yet; raises ClusterError."""
        found = objects.find(self._connection, self._place / NAME, objects.ConfigMap)
        return ((found.data if found is not None else None) or {}).get(KEY, "")

    def save(self, text: str) -> None:
        """Write the text; raises LockLost and ClusterError."""
        self._guard()
        patch = {"data": {KEY: text}}
        request = Request(
            "PATCH",
            self._place / NAME,
            body=patch,
            content_type=MERGE_PATCH,
            read_timeout=_PATIENCE,
            total=_PATIENCE,
        )
        try:
            self._connection.send(request)
        except NotFound:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, **patch}
            create = Request("POST", self._place, body=body, read_timeout=_PATIENCE, total=_PATIENCE)
            self._connection.send(create)
