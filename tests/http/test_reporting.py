"""Every request through the clients' connections is reported once, with what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from reconciler.http.bounded import bound
from reconciler.http.failures import report_requests
from reconciler.kubernetes.connection import Connection, Request, core
from reconciler.model.errors import ClusterError
from tests.support.stub import Answer, Stub, status

Reports = list[tuple[str, str, int | None]]


@pytest.fixture
def reports() -> Iterator[Reports]:
    found: Reports = []

    def add(api: str, method: str, status: int | None, seconds: float, path: str) -> None:
        assert 0 <= seconds < 60
        assert path.startswith("/")
        found.append((api, method, status))

    end = report_requests(add)
    yield found
    end()


@pytest.fixture
def server() -> Iterator[Stub]:
    stub = Stub(lambda asked: status(404, "NotFound", "no") if "gone" in asked.path else Answer())
    yield stub
    stub.close()


@pytest.fixture
def pool() -> Iterator[urllib3.PoolManager]:
    made = urllib3.PoolManager(retries=False)
    bound(made, "toy")
    yield made
    made.clear()


def test_an_answer_is_reported_with_its_status(
    pool: urllib3.PoolManager, server: Stub, reports: Reports
) -> None:
    pool.request("GET", f"{server.url}/x")
    pool.request("PUT", f"{server.url}/gone")

    assert reports == [("toy", "GET", 200), ("toy", "PUT", 404)]


def test_a_request_without_an_answer_is_reported_without_a_status(
    pool: urllib3.PoolManager, server: Stub, reports: Reports
) -> None:
    server.close()

    with pytest.raises(urllib3.exceptions.HTTPError):
        pool.request("GET", f"{server.url}/x")

    assert reports == [("toy", "GET", None)]


def test_whoever_gets_reports_harms_no_request(pool: urllib3.PoolManager, server: Stub) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    end = report_requests(broken)
    try:
        assert pool.request("GET", f"{server.url}/x").status == 200
    finally:
        end()


def test_requests_to_the_api_server_are_its_own(server: Stub, reports: Reports, tmp_path: Path) -> None:
    connection = Connection(str(server.write_kubeconfig(tmp_path / "kubeconfig")))
    connection.send(Request("GET", core("shop")))
    with pytest.raises(ClusterError):
        connection.send(Request("DELETE", core("shop") / "pods" / "gone"))
    connection.close()

    assert reports == [("kubernetes", "GET", 200), ("kubernetes", "DELETE", 404)]
