"""Connections to the control plane, and to stubs for what a real server can't be made to give."""

from collections.abc import Iterator

import pytest

from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.eviction import Evictions
from reconciler.kubernetes.scale.evictions import SharedEvictions
from reconciler.model.node import Wanted
from tests.support.controlplane.server import ControlPlane

PREFIX = "node-maintenance.dev"
WANTED = Wanted(frozenset({"Ready", "VMEventScheduled"}), PREFIX)


@pytest.fixture
def connection(cluster: ControlPlane) -> Iterator[Connection]:
    """To the control plane, as admin."""
    made = Connection(str(cluster.kubeconfig))
    yield made
    made.close()


@pytest.fixture
def ours(connection: Connection) -> Cluster:
    """Reads, and writes without a lock."""
    return Cluster(connection, guard=lambda: None)


@pytest.fixture
def evictions(connection: Connection, request: pytest.FixtureRequest) -> Evictions:
    """Evicts without a lock, for many nodes if a test does not choose."""
    made: type[Evictions] = getattr(request, "param", SharedEvictions)
    return made(connection, guard=lambda: None, prefix=PREFIX)


alone_and_shared = pytest.mark.parametrize(
    "evictions", [Evictions, SharedEvictions], indirect=True, ids=["alone", "shared"]
)
"""Runs a test for drains that read for themselves, and for those that share what they read."""
