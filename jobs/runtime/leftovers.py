"""The objects in our namespace that passes and commands have made. They stay until the namespace goes."""

from __future__ import annotations

from reconciler.features.notices import stored_memory as notice_memory
from reconciler.kubernetes import lease, objects
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.paths import LEDGER, api, core
from reconciler.model.errors import ClusterError, NotFound


def objects_of_ours(connection: Connection, namespace: str) -> tuple[str, ...]:
    """Return which of them exist, such as `ConfigMap node-maintenance-ledger`, or can't be read."""
    maps, leases = core(namespace) / "configmaps", api("coordination.k8s.io", "v1", namespace) / "leases"
    found = []
    for kind, path in (
        ("ConfigMap", maps / LEDGER),
        ("ConfigMap", maps / notice_memory.NAME),
        ("Lease", leases / lease.NAME),
    ):
        try:
            objects.get(connection, path, objects.OnlyMetadata)
        except NotFound:
            continue
        except ClusterError as error:
            found.append(f"{kind} {path.segments[-1]} (perhaps: {error})")
            continue
        found.append(f"{kind} {path.segments[-1]}")
    return tuple(found)
