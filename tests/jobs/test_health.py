"""The server of probes: silent, slow and noisy clients keep nobody from an answer, and cost little."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from jobs.runtime.health import (
    LARGEST_ANSWER,
    LARGEST_QUERY,
    LARGEST_REQUEST,
    MOST_CONNECTIONS,
    ByQuery,
    Document,
    HealthServer,
    Make,
)
from tests.support.controlplane.processes import wait_for

LOOPBACK = ("127.0.0.1", 0)


class Checks:
    """What the process says of itself, and the errors that the server reported."""

    def __init__(self) -> None:
        self.wrong = ""
        self.reported: list[Exception] = []

    def ready(self) -> str:
        if self.wrong == "raise":
            raise OverflowError("date value out of range")
        return self.wrong


@pytest.fixture
def checks() -> Checks:
    return Checks()


@pytest.fixture
def server(checks: Checks) -> Iterator[HealthServer]:
    """Clients have ten minutes here: what a test sees closed was not closed by the deadline."""
    probes = {"/healthz": lambda: "", "/readyz": checks.ready}
    with HealthServer(LOOPBACK, probes, patience=600, report=checks.reported.append) as made:
        yield made


def ask(server: HealthServer, path: str, method: str = "GET") -> tuple[int, str]:
    """Ask as a kubelet does: the status and the text."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode().strip()
    finally:
        connection.close()


def connect(server: HealthServer) -> socket.socket:
    """A client that has said nothing yet."""
    return socket.create_connection(server.address, timeout=60)


def open_files() -> int:
    return len(list(Path(f"/proc/{os.getpid()}/fd").iterdir()))


def test_answers(server: HealthServer, checks: Checks) -> None:
    assert ask(server, "/healthz") == (200, "ok")
    assert ask(server, "/readyz?verbose") == (200, "ok")
    assert ask(server, "/readyz", "HEAD") == (200, "")
    checks.wrong = "no pass has succeeded yet"
    assert ask(server, "/readyz") == (503, "no pass has succeeded yet")
    assert ask(server, "/secrets") == (404, "not found")
    assert ask(server, "/readyz", "DELETE") == (405, "only GET")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200),
        ("10.244.1.7", 200),
        ("[fd00::7]:8080", 200),
        ("LOCALHOST:8080", 200),
        ("reconciler.node-maintenance.svc:8080", 200),
        ("reconciler.node-maintenance.svc.cluster.local", 200),
        ("evil.example", 421),
        ("evil.example:8080", 421),
        ("10.244.1.7.evil.example", 421),
        ("localhost.evil.example", 421),
        ("x.svc.evil.example", 421),
        ("[evil.example]", 421),
    ],
)
def test_a_web_site_can_not_read_what_is_here_under_its_own_name(
    server: HealthServer, host: str, status: int
) -> None:
    for given in (f"Host: {host}", f"Host: 127.0.0.1\r\nhost : {host}"):
        with connect(server) as client:
            client.sendall(f"GET /healthz HTTP/1.1\r\n{given}\r\n\r\n".encode())
            answer = client.makefile("rb").read().decode()
        assert answer.startswith(f"HTTP/1.1 {status} "), (given, answer)


def test_the_name_that_it_listens_at_is_its_own() -> None:
    with HealthServer(("localhost", 0), {"/healthz": lambda: ""}) as server, connect(server) as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert client.makefile("rb").read().startswith(b"HTTP/1.1 200 ")


def test_five_hundred_silent_clients_stop_no_one_and_cost_neither_threads_nor_files(
    server: HealthServer,
) -> None:
    threads, files = threading.active_count(), open_files()
    with ExitStack() as clients:
        for _ in range(500):
            clients.enter_context(connect(server))
        assert ask(server, "/healthz") == (200, "ok")
        # A thread of an earlier test may end meanwhile.
        assert threading.active_count() <= threads
        # Our own ends are open, too: 500 of them. The server has closed all but the newest of its own.
        assert open_files() <= files + 500 + MOST_CONNECTIONS


def test_clients_that_send_a_byte_and_stop_are_silent_too(server: HealthServer) -> None:
    with ExitStack() as clients:
        for _ in range(2 * MOST_CONNECTIONS):
            clients.enter_context(connect(server)).sendall(b"G")
        assert ask(server, "/healthz") == (200, "ok")


def test_a_client_that_does_not_finish_its_request_is_disconnected(checks: Checks) -> None:
    with HealthServer(LOOPBACK, {"/readyz": checks.ready}, patience=0.05) as server:
        with connect(server) as client:
            client.sendall(b"GET /readyz HTTP/1.1\r\n")
            assert client.recv(100) == b""
        assert ask(server, "/readyz") == (200, "ok")


def test_a_request_without_end_is_refused(server: HealthServer) -> None:
    with connect(server) as client:
        client.sendall(b"GET /readyz HTTP/1.1\r\nX: " + b"x" * LARGEST_REQUEST)
        assert client.recv(100).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("request_", [b"\xff\xfe\r\n\r\n", b"\r\n\r\n", b"GET\r\n\r\n", b" \n\n"])
def test_nonsense_gets_an_answer(server: HealthServer, request_: bytes) -> None:
    with connect(server) as client:
        client.sendall(request_)
        assert client.recv(100).startswith(b"HTTP/1.1 4")
    assert ask(server, "/healthz") == (200, "ok")


def test_a_check_that_fails_is_an_answer_and_is_reported(server: HealthServer, checks: Checks) -> None:
    checks.wrong = "raise"
    assert ask(server, "/readyz") == (503, "the check failed: OverflowError: date value out of range")
    assert [str(error) for error in checks.reported] == ["date value out of range"]
    checks.wrong = ""
    assert ask(server, "/readyz") == (200, "ok")


def test_a_reason_of_any_length_and_content_is_sent(server: HealthServer, checks: Checks) -> None:
    checks.wrong = "\ud800 broken " + "x" * 10_000
    status, text = ask(server, "/readyz")
    assert (status, len(text)) == (503, LARGEST_ANSWER)
    assert text.startswith("? broken x")


def test_leaving_closes_everything() -> None:
    files = open_files()
    server = HealthServer(LOOPBACK, {"/healthz": lambda: ""}).__enter__()
    with connect(server) as client:
        server.__exit__()
        assert client.recv(100) == b""
    wait_for("the files of the server to be closed", lambda: open_files() == files)


def get(server: HealthServer, path: str, method: str = "GET") -> http.client.HTTPResponse:
    """Ask for a document; the answer has its headers."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request(method, path)
    return connection.getresponse()


LARGE = Document("text/html", b"p" * (8 << 20), (("Cache-Control", "no-store"),))


def test_a_document_of_any_size_is_sent_with_its_headers() -> None:
    with HealthServer(LOOPBACK, {}, documents={"/": lambda: LARGE}) as server:
        answer = get(server, "/")
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/html"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.read() == LARGE.body
        headers = get(server, "/", "HEAD")
        assert (headers.headers["Content-Length"], headers.read()) == (str(8 << 20), b"")


def test_a_client_that_reads_nothing_keeps_nobody_from_an_answer() -> None:
    with HealthServer(LOOPBACK, {"/readyz": lambda: ""}, documents={"/": lambda: LARGE}) as server:
        silent = [connect(server) for _ in range(MOST_CONNECTIONS - 2)]
        for one in silent:
            one.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert ask(server, "/readyz") == (200, "ok")
        assert get(server, "/").read() == LARGE.body
        for one in silent:
            one.close()


def test_a_document_that_takes_long_delays_no_probe_and_is_made_once_for_all() -> None:
    made, go_on = [], threading.Event()

    def make() -> Document:
        made.append(1)
        assert go_on.wait(60)
        return Document("text/plain", b"here it is")

    with (
        HealthServer(LOOPBACK, {"/readyz": lambda: ""}, documents={"/": make}) as server,
        ExitStack() as open_,
    ):
        clients = [open_.enter_context(connect(server)) for _ in range(5)]
        for client in clients:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        wait_for("the document's thread", lambda: made)
        assert ask(server, "/readyz") == (200, "ok")
        go_on.set()
        for client in clients:
            assert client.makefile("rb").read().endswith(b"here it is")
        assert made == [1]


def test_a_document_is_made_for_its_query_or_for_all_queries() -> None:
    by_query = ByQuery(lambda query: Document("text/plain", query.encode()))
    documents: dict[str, Make] = {"/": by_query, "/metrics": lambda: Document("text/plain", b"x 1")}
    with HealthServer(LOOPBACK, {}, documents=documents) as server:
        assert [ask(server, path)[1] for path in ("/", "/?pool=web", "/?q=%2f%3f")] == [
            "",
            "pool=web",
            "q=%2f%3f",
        ]
        assert ask(server, "/metrics?since=1") == (200, "x 1")
        assert ask(server, f"/?{'q' * (LARGEST_QUERY + 1)}") == (414, "the query is too long")


def test_a_document_that_nobody_waits_for_any_more_is_not_made() -> None:
    made: list[str] = []
    go_on = threading.Event()

    def make(query: str) -> Document:
        made.append(query)
        assert go_on.wait(60)
        return Document("text/plain", query.encode())

    probes = {"/healthz": lambda: ""}
    with HealthServer(LOOPBACK, probes, documents={"/": ByQuery(make)}) as server, ExitStack() as open_:
        first = open_.enter_context(connect(server))
        first.sendall(b"GET /?first HTTP/1.1\r\n\r\n")
        wait_for("the document's thread", lambda: made)
        for number in range(MOST_CONNECTIONS + 40):
            client = open_.enter_context(connect(server))
            client.sendall(f"GET /?{number} HTTP/1.1\r\n\r\n".encode())
        # Further connections have closed the first ones, and this one comes after all of them.
        last = open_.enter_context(connect(server))
        last.sendall(b"GET /?last HTTP/1.1\r\n\r\n")
        assert ask(server, "/healthz") == (200, "ok")
        go_on.set()
        assert last.makefile("rb").read().endswith(b"last")
        assert len(made) <= MOST_CONNECTIONS + 1


def test_a_document_that_fails_is_an_answer_and_the_next_one_is_made(checks: Checks) -> None:
    def fail() -> Document:
        raise OverflowError("date value out of range")

    documents = {"/": fail, "/metrics": lambda: Document("text/plain", b"x 1")}
    with HealthServer(LOOPBACK, {}, documents=documents, report=checks.reported.append) as server:
        assert ask(server, "/") == (500, "an error in this program, see its log: OverflowError")
        assert ask(server, "/metrics") == (200, "x 1")
    assert [str(one) for one in checks.reported] == ["date value out of range"]


def test_a_client_that_reads_a_document_is_noted_with_values_from_the_moment_on_only() -> None:
    made, go_on, was_read = [], threading.Event(), threading.Event()

    def make() -> Document:
        made.append(1)
        assert go_on.wait(60)
        return Document("text/plain", b"x 1")

    with HealthServer(LOOPBACK, {}, documents={"/metrics": make, "/": lambda: LARGE}) as server:
        assert not server.once_read("/metrics", was_read.set)
        go_on.set()
        assert ask(server, "/metrics") == (200, "x 1")
        wait_for("that it was read", lambda: server.once_read("/metrics", lambda: None))
        go_on.clear()
        with connect(server) as before:
            before.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            wait_for("the document's thread", lambda: len(made) == 2)
            server.once_read("/metrics", was_read.set)
            go_on.set()
            assert before.makefile("rb").read().endswith(b"x 1")
        assert get(server, "/metrics", "HEAD").status == 200
        assert ask(server, "/")[0] == 200
        assert not was_read.is_set()
        assert ask(server, "/metrics") == (200, "x 1")
        assert was_read.wait(60)


def test_who_does_not_read_the_whole_document_has_not_read_it() -> None:
    with HealthServer(LOOPBACK, {"/readyz": lambda: ""}, documents={"/": lambda: LARGE}) as server:
        with connect(server) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        # With the second answer, all that came before the first request is done.
        assert [ask(server, "/readyz")[0] for _ in range(2)] == [200, 200]
        assert not server.once_read("/", lambda: None)


ASKED = "import sys, http.client as c; h = c.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=60)"
ASKED += "; h.request('GET', '/healthz'); print(h.getresponse().status)"
SERVES = """
import subprocess, sys
from jobs.runtime.health import HealthServer

with HealthServer(("", 0), {"/healthz": lambda: ""}) as server:
    for host in sys.argv[2:]:
        subprocess.run([sys.executable, "-c", sys.argv[1], host, str(server.port)], check=True)
"""
NO_IPV6 = "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.lo.disable_ipv6=1"
NO_IPV4 = "ip addr del 127.0.0.1/8 dev lo"


@pytest.mark.parametrize(
    ("taken_away", "asked"),
    [
        pytest.param("true", ["127.0.0.1", "::1"], id="both"),
        pytest.param(NO_IPV6, ["127.0.0.1"], id="without IPv6"),
        pytest.param(NO_IPV4, ["::1"], id="without IPv4"),
    ],
)
def test_all_addresses_are_those_of_ipv4_and_of_ipv6(taken_away: str, asked: list[str]) -> None:
    # A network of its own: nothing of this machine's is changed.
    alone = ["unshare", "--net", "sh", "-ec"]
    if os.geteuid() or not all(map(shutil.which, ("unshare", "ip", "sysctl"))):
        pytest.skip("needs root, and the programs unshare, ip and sysctl")
    script = f'ip link set lo up; {taken_away}; exec "$0" "$@"'
    command = [*alone, script, sys.executable, "-c", SERVES, ASKED, *asked]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, ["200"] * len(asked)), done.stderr


def test_a_port_in_use_is_an_error_also_for_one_of_both_protocols() -> None:
    with (
        socket.create_server(("::", 0), family=socket.AF_INET6) as taken,
        pytest.raises(OSError, match="in use"),
    ):
        HealthServer(("", taken.getsockname()[1]), {})
