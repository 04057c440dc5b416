"""The holds of all nodes and of pools, in our ConfigMap. Only people write them, with `reconciler hold`."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.http.retrying import patiently, write_until_settled
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import MERGE_PATCH, Connection, Request
from reconciler.kubernetes.ledger import HOLDS
from reconciler.kubernetes.paths import LEDGER, core
from reconciler.model.errors import NotFound
from reconciler.model.instructions import PersonHold, fleet_holds, fleet_text

"""The key in the ledger. Only people write it, with `reconciler hold`."""

Holds = tuple[PersonHold, ...]


def read_holds(connection: Connection, namespace: str) -> Holds:
    """Return the holds of all nodes and of pools, none if there is no ledger; the errors of ClusterError."""
    try:
        found = objects.get(connection, core(namespace) / "configmaps" / LEDGER, objects.ConfigMap)
    except NotFound:
        return ()
    return fleet_holds((found.data or {}).get(HOLDS, ""))


def change_holds(connection: Connection, namespace: str, change: Callable[[Holds], Holds]) -> Holds:
    """Write the holds that `change` makes of those that are there, and return the former ones.

    After a conflict the ConfigMap is read again. It is created if there is none and a hold is to be written.
    Raises ValueError for more holds than a pass reads, Conflict if another client keeps writing it, and the
    other errors of ClusterError.
    """
    place = core(namespace) / "configmaps"
    before: Holds = ()

    def write() -> None:
        nonlocal before
        try:
            found = objects.get(connection, place / LEDGER, objects.ConfigMap)
        except NotFound:
            found = None
        before = fleet_holds((found.data or {}).get(HOLDS, "")) if found is not None else ()
        text = fleet_text(change(before))
        if found is None:
            if text:
                body = {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": LEDGER},
                    "data": {HOLDS: text},
                }
                try:
                    connection.send(Request("POST", place, body=body))
                except NotFound as error:
                    message = (
                        f"there is no namespace {namespace}; give the one of the reconciler with --namespace"
                    )
                    raise NotFound(message, status=404) from error
            return
        seen = {"uid": found.metadata.uid, "resourceVersion": found.metadata.resourceVersion}
        patch = {"metadata": seen, "data": {HOLDS: text or None}}
        connection.send(Request("PATCH", place / LEDGER, body=patch, content_type=MERGE_PATCH))

    write_until_settled(lambda: patiently(write, sleep=connection.sleep), sleep=connection.sleep)
    return before
