"""Queries of Prometheus: what is asked, what an answer means, and that no server holds a pass up."""

from __future__ import annotations

import json
import math
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import parse_qs

import pytest

from reconciler.features.workflows.prometheus import KEPT, PAUSE, SAMPLES, SIZE, Prometheus
from reconciler.features.workflows.services import PrometheusAnswer, PrometheusQuery
from tests.support.stub import Answer, Stub


def vector(*values: str) -> object:
    """An answer with these values."""
    result = [{"metric": {"alertname": f"a{value}"}, "value": [1680600891.782, value]} for value in values]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


class Server:
    """A Prometheus that answers every query alike."""

    def __init__(self) -> None:
        self.status = 200
        self.body = json.dumps(vector("1")).encode()
        self.stub = Stub(
            lambda _: Answer(self.body, self.status, headers={"Location": "http://127.0.0.1:1/"})
        )
        self.url = self.stub.url

    @property
    def asked(self) -> list[tuple[str, str, str]]:
        """The path, the query and the login of each request."""
        return [
            (one.path, parse_qs(one.body.decode())["query"][0], one.headers.get("authorization", ""))
            for one in self.stub.asked
        ]


class Time:
    """A clock that tests set; `each` seconds pass whenever it is read."""

    def __init__(self, each: float = 0) -> None:
        self.now = 1000.0
        self._each = each

    def __call__(self) -> float:
        self.now += self._each
        return self.now


@pytest.fixture
def server() -> Iterator[Server]:
    """One that serves."""
    made = Server()
    yield made
    made.stub.close()


def ask(url: str, query: str = "up", client: Prometheus | None = None) -> PrometheusAnswer:
    """The answer to one query."""
    asked = PrometheusQuery(url, query)
    return (client or Prometheus()).ask([asked])[asked]


@pytest.mark.parametrize("path", ["", "/", "/prometheus", "/prometheus/"])
def test_the_query_goes_to_the_api_below_the_url(server: Server, path: str) -> None:
    answer = ask(f"{server.url}{path}", "sum(up) by (a)")

    assert [(one.value, one.labels) for one in answer.samples] == [(1, {"alertname": "a1"})]
    assert server.asked == [(f"{path.rstrip('/')}/api/v1/query", "sum(up) by (a)", "")]


def test_a_user_in_the_url_logs_in_and_is_in_no_path(server: Server) -> None:
    ask(server.url.replace("://", "://me:p%40ss@"))

    assert server.asked == [("/api/v1/query", "up", "Basic bWU6cEBzcw==")]


def test_values_may_be_infinite_or_no_number(server: Server) -> None:
    server.body = json.dumps(vector("+Inf", "-Inf", "NaN")).encode()

    values = [one.value for one in ask(server.url).samples]

    assert values[:2] == [math.inf, -math.inf]
    assert math.isnan(values[2])


def of(kind: str, **sample: object) -> bytes:
    """An answer of this type with one sample."""
    result = [{"metric": {}, **sample}] if sample else []
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()


MANY = json.dumps(vector(*["1"] * (SAMPLES + 1))).encode()


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        pytest.param(200, b"{}", "the query failed: HTTP 200", id="an empty document"),
        pytest.param(200, b"<html>", "HTTP 200, and no answer of Prometheus", id="no JSON"),
        pytest.param(302, b"", "HTTP 302, and no answer of Prometheus", id="a redirect is not followed"),
        pytest.param(400, b'{"error":"parse error"}', "the query failed: parse error", id="a wrong query"),
        pytest.param(
            200, of("scalar"), "the query returns a scalar; write vector(…) around it", id="a scalar"
        ),
        pytest.param(200, of("matrix"), "the query returns 'matrix', not a vector", id="a matrix"),
        pytest.param(200, of("vector", value=[1, "x"]), "the samples can't be read", id="no number"),
        pytest.param(200, of("vector", histogram=[1, {}]), "the samples can't be read", id="a histogram"),
        pytest.param(200, MANY, f"the query returns {SAMPLES + 1} samples", id="very many samples"),
    ],
)
def test_what_is_no_answer_is_a_problem(server: Server, status: int, body: bytes, problem: str) -> None:
    server.status, server.body = status, body

    assert ask(server.url) == PrometheusAnswer(problem=problem)


def test_an_answer_that_is_too_large_is_not_read(server: Server) -> None:
    server.body = b" " * (SIZE + 1)

    assert ask(server.url).problem.startswith("no answer:")


def test_passes_that_follow_each_other_share_an_answer(server: Server) -> None:
    clock = Time()
    client = Prometheus(clock=clock)
    for _ in range(3):
        ask(server.url, client=client)
    assert len(server.asked) == 1

    clock.now += KEPT
    ask(server.url, client=client)

    assert len(server.asked) == 2


def test_a_server_that_fails_has_a_pause(server: Server) -> None:
    clock = Time()
    client = Prometheus(clock=clock)
    good, server.body = server.body, b" " * (SIZE + 1)
    assert ask(server.url, client=client).problem
    server.body = good

    assert ask(server.url, "another query", client).problem
    assert len(server.asked) == 1

    clock.now += PAUSE
    assert not ask(server.url, client=client).problem


def test_all_queries_of_a_pass_have_a_time_in_total(server: Server) -> None:
    clock = Time(each=1)
    queries = [PrometheusQuery(server.url, f"up{number}") for number in range(9)]

    answers = Prometheus(clock=clock, patience=5).ask(queries)

    late = "other queries took all of the time of this pass"
    problems = [answers[query].problem for query in queries]
    assert (problems[0], problems[-1]) == ("", late)
    assert len(server.asked) == problems.count("") < len(queries)


def test_a_server_that_sends_byte_by_byte_takes_no_longer_than_allowed() -> None:
    with dripping() as url:
        answer = ask(url, client=Prometheus(answer=0.1))

    assert answer.problem.startswith("no answer:")


@contextmanager
def closed_port() -> Iterator[str]:
    """The URL of a port on which nobody listens, and on which nobody can."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def dripping() -> Iterator[str]:
    """The URL of a server that sends its answer byte by byte: each read of it is fast, the whole is not."""
    ended = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            peer, _ = listening.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n")
                for _ in range(400):
                    if ended.wait(0.005):
                        return
                    peer.sendall(b" ")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        ended.set()
        listening.close()
        thread.join()
