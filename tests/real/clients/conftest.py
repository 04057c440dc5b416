"""Connections to the control plane, and to stubs for what a real server can't be made to give."""

from collections.abc import Iterator

import pytest

from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.eviction import Evictions
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
def evictions(connection: Connection) -> Evictions:
    """Evicts without a lock."""
    return Evictions(connection, guard=lambda: None, prefix=PREFIX)
