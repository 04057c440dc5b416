"""Reads the readiness of the fleet, and what a page shows of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from jobs.runtime.bounded_connection import BoundedConnection
from jobs.runtime.environment import Target
from reconciler.kubernetes.connection import Connection
from reconciler.model.errors import ClusterError
from reconciler.model.problems import internal
from reconciler.settings.schema import Settings

if TYPE_CHECKING:
    from reconciler.features.page.facts import KnownReadiness
    from reconciler.model.readiness import Readiness

MOST_REQUESTS = 150
"""Requests of a process that also makes passes: 75,000 objects, which take about 150 MiB."""

LONGEST = 120.0
"""Seconds in which these requests must have begun."""


def read_readiness(connection: Connection, target: Target, settings: Settings) -> Readiness:
    """Return what would keep nodes from a drain now; raises ClusterError."""
    from reconciler.features.readiness import judge_nodes, read, summed_up
    from reconciler.kubernetes.cluster import Cluster
    from reconciler.kubernetes.volumes import Volumes

    seen = read(Cluster(connection, namespace=target.namespace), Volumes(connection), settings)
    now = connection.time.now()
    return summed_up(seen, judge_nodes(seen, settings, now), settings, now)


def read_apart(target: Target, settings: Settings) -> Readiness:
    """Return the same with bounds, and on a connection of its own, so that no pass waits for it."""
    connection = BoundedConnection(target.kubeconfig, target.context, requests=MOST_REQUESTS, seconds=LONGEST)
    try:
        return read_readiness(connection, target, settings)
    finally:
        connection.close()


def for_page(read: Callable[[], Readiness]) -> KnownReadiness:
    """Return what the page shows of what `read` returns, or why that failed. Raises nothing."""
    from reconciler.features.page.facts import KnownReadiness
    from reconciler.features.page.readiness import readiness_part

    try:
        return KnownReadiness(readiness_part(read()))
    except ClusterError as error:
        why = f"needs {error.needs}" if error.needs else str(error)
    except Exception as error:  # noqa: BLE001 - the rest of the page must be whole
        why = f"internal error: {internal('readiness', error)}"
    return KnownReadiness(note=f"Readiness can't be read: {why}.")
