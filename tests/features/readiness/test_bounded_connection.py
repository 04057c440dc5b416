"""A connection that ends after so many requests, or so many seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.features.readiness.live import BoundedConnection
from reconciler.kubernetes.connection import VERSION, Request
from reconciler.model.errors import Rejected
from tests.support.stub import Stub, json_answer


@pytest.fixture
def server() -> Iterator[Stub]:
    stub = Stub(lambda _: json_answer({}))
    yield stub
    stub.close()


@pytest.fixture
def time() -> list[float]:
    """The seconds of the clock, the last one counts."""
    return [0.0]


@pytest.fixture
def connection(server: Stub, tmp_path: Path, time: list[float]) -> Iterator[BoundedConnection]:
    kubeconfig = str(server.write_kubeconfig(tmp_path / "kubeconfig"))
    made = BoundedConnection(kubeconfig, None, requests=2, seconds=60, clock=lambda: time[-1])
    yield made
    made.close()


def test_no_request_is_sent_after_the_last_one(connection: BoundedConnection, server: Stub) -> None:
    for _ in range(2):
        connection.send(Request("GET", VERSION))
    with pytest.raises(Rejected, match="it takes more than 2 requests"):
        connection.send(Request("GET", VERSION))

    assert len(server.asked) == 2


def test_no_request_is_sent_after_the_time(
    connection: BoundedConnection, server: Stub, time: list[float]
) -> None:
    time.append(60.0)
    connection.send(Request("GET", VERSION))
    time.append(60.1)
    with pytest.raises(Rejected, match="it takes longer than 60 s"):
        connection.send(Request("GET", VERSION))

    assert len(server.asked) == 1
