"""Reads and writes the ConfigMap with the revisions of the settings, and writes the settings themselves."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable

from reconciler.features.revisions import KEPT_IN
from reconciler.features.revisions.revisions import Kept, from_text, to_text
from reconciler.http.retrying import Guard, patiently, write_until_settled
from reconciler.kubernetes import objects
from reconciler.kubernetes.config_maps import HeldSettings, read_settings, unreadable
from reconciler.kubernetes.connection import Connection, Request, core
from reconciler.kubernetes.json_patch import Patch, send_patch
from reconciler.model.errors import Conflict

log = logging.getLogger(__name__)

KEY = "revisions"


class RevisionStore:
    """The revisions in the cluster. A write replaces them only as they were read."""

    def __init__(self, connection: Connection, namespace: str, guard: Guard) -> None:
        """Use this connection and our namespace; `guard` raises LockLost if the lock is not ours."""
        self._connection, self._namespace, self._guard = connection, namespace, guard
        self._place = core(namespace) / "configmaps"

    def load(self) -> Kept:
        """Return the revisions, none without a ConfigMap; ClusterError, and ValueError for a broken one."""
        found = objects.find(self._connection, self._place / KEPT_IN, objects.ConfigMap)
        return from_text(((found.data if found is not None else None) or {}).get(KEY, ""))

    def unreadable(self, why: ValueError) -> str:
        """Return in words that the revisions can't be read, and how to end that."""
        return unreadable(self._namespace, KEPT_IN, why, "the next revision is kept")

    def change(self, make: Callable[[Kept], Kept]) -> None:
        """Write what `make` makes of the revisions, which may be called again. The same value writes nothing.

        Revisions that can't be read are replaced. Raises LockLost, and ClusterError: Conflict if another
        client keeps writing.
        """

        def write() -> None:
            found = objects.find(self._connection, self._place / KEPT_IN, objects.ConfigMap)
            data = (found.data if found is not None else None) or {}
            try:
                before = from_text(data.get(KEY, ""))
            except ValueError as error:
                log.warning("the revisions of the settings can't be read, and are forgotten: %s", error)
                before = Kept()
            after = make(before)
            if after == before:
                return
            text = to_text(after)
            self._guard()
            if found is None:
                metadata = {"name": KEPT_IN}
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text}}
                self._connection.send(Request("POST", self._place, body=body))
                return
            patch = Patch(found.metadata.uid, found.metadata.resourceVersion)
            patch.change_texts({}, {KEY: text}, "data", exists=bool(data))
            send_patch(self._connection, self._place / KEPT_IN, patch)

        sleep = self._connection.sleep
        write_until_settled(lambda: patiently(write, sleep=sleep), sleep=sleep)


MANAGER = "reconciler-settings-rollback"
"""The field manager of what a rollback writes."""


def write_text(connection: Connection, held: HeldSettings, content: bytes) -> None:
    """Write the settings, if nobody has changed their ConfigMap since it was read.

    Somebody may have written the same text meanwhile. Raises Conflict for another change, and the other
    errors of ClusterError.
    """
    patch = Patch(held.uid, held.version)
    if held.binary:
        patch.put(base64.b64encode(content).decode(), "binaryData", held.key)
    else:
        patch.put(content.decode(), "data", held.key)
    place = core(held.name.namespace) / "configmaps" / held.name.name
    try:
        send_patch(connection, place, patch, {"fieldManager": MANAGER})
    except Conflict as error:
        if read_settings(connection, held.name).content == content:
            # Two people want the same.
            return
        message = (
            f"{held.name}: somebody else has changed it meanwhile, so nothing is written. See what there is "
            "now with `reconciler settings diff`, and run the command again"
        )
        raise Conflict(message, status=error.status) from error
