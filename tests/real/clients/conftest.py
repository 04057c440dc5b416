"""Connections to the control plane, and to stubs for what a real server can't be made to give."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.eviction import Evictions
from reconciler.model.node import Wanted
from tests.support.controlplane.server import ControlPlane
from tests.support.stub import Answer, Asked, Stub

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


StubMaker = Callable[[Callable[[Asked], Answer]], tuple[Stub, Connection]]


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[StubMaker]:
    """Make a stub that answers by a function, and a connection to it that never really sleeps."""
    made: list[tuple[Stub, Connection]] = []

    def make(answer: Callable[[Asked], Answer]) -> tuple[Stub, Connection]:
        server = Stub(answer)
        kubeconfig = server.write_kubeconfig(tmp_path / f"stub-{len(made)}")
        pair = server, Connection(str(kubeconfig), sleep=server.slept.append)
        made.append(pair)
        return pair

    yield make
    for server, connection in made:
        connection.close()
        server.close()
