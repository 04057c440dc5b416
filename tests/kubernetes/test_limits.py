"""No answer stops us: not by its size, by its encoding, by its slowness, or by what it promises."""

import gzip
import json
import socket
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.kubernetes.connection import (
    LARGEST,
    LARGEST_REFUSAL,
    NODES,
    PODS,
    ApiPath,
    Connection,
    Request,
)
from reconciler.kubernetes.watching import LARGEST_EVENT, KnownObjects, Watched, Watching, events
from reconciler.kubernetes.wire.formats import node_format, pod_format
from reconciler.kubernetes.wire.lists import list_all
from reconciler.model.errors import Forbidden, Rejected, TooLarge, Unreachable
from reconciler.model.node import Wanted
from reconciler.model.pod import Pod
from tests.support.stub import PROTOBUF, Answer, Asked, StubMaker, json_answer, kubeconfig

X = ApiPath("x")
MIB = 1 << 20


@contextmanager
def dripping(head: bytes, tmp_path: Path) -> Iterator[Connection]:
    """A server that sends the head at once, and then a byte every few milliseconds.

    It ends after several times the time that any test allows, so that a client without a limit ends too.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve() -> None:
        with suppress_cut():
            peer, _ = listening.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(head)
                for _ in range(1000):
                    if ended.wait(0.005):
                        break
                    peer.sendall(b" ")

    thread = threading.Thread(target=serve)
    thread.start()
    path = tmp_path / "config"
    document = kubeconfig(f"http://127.0.0.1:{listening.getsockname()[1]}", {"token": "t"})
    path.write_text(json.dumps(document), encoding="utf-8")
    connection = Connection(str(path), sleep=lambda _: None)
    try:
        yield connection
    finally:
        ended.set()
        connection.close()
        thread.join()
        listening.close()


@contextmanager
def suppress_cut() -> Iterator[None]:
    """The client goes away in the middle."""
    try:
        yield
    except OSError:
        return


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"HTTP/1.1 200", id="status line"),
        pytest.param(OK + b"X-Long: ", id="headers"),
        pytest.param(OK + b"Content-Length: 1000000\r\n\r\n", id="body with a length"),
        pytest.param(OK + b"\r\n", id="body until the end"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\nfffff\r\n", id="body in chunks"),
        pytest.param(b"HTTP/1.1 403 No\r\nContent-Length: 1000000\r\n\r\n", id="body of a refusal"),
    ],
)
def test_a_server_that_drips_bytes_ends_at_the_total_time(tmp_path: Path, head: bytes) -> None:
    with dripping(head, tmp_path) as connection, pytest.raises(Unreachable, match="no answer in time"):
        connection.send(Request("GET", X, total=0.3))


def test_a_list_that_drips_ends_at_the_total_time(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\nk8s\x00" % PROTOBUF.encode()
    request = Request("GET", NODES, total=0.3)
    with (
        dripping(head, tmp_path) as connection,
        connection.stream(request) as stream,
        pytest.raises(Unreachable, match="no answer in time"),
    ):
        list(iter(lambda: stream.read(1 << 18), b""))


def test_a_watch_that_drips_ends_at_the_total_time(tmp_path: Path) -> None:
    request = Request("GET", NODES, total=0.3)
    with (
        dripping(OK + b"\r\n", tmp_path) as connection,
        connection.stream(request) as stream,
        pytest.raises(Unreachable, match="no answer in time"),
    ):
        list(events(stream))


def test_a_body_as_large_as_it_may_be_is_read(stub: StubMaker) -> None:
    connection = stub(lambda _: Answer(b" " * LARGEST))[1]

    assert len(connection.send(Request("GET", X))) == LARGEST


def test_a_larger_body_is_refused(stub: StubMaker) -> None:
    connection = stub(lambda _: Answer(b" " * (LARGEST + 1)))[1]

    with pytest.raises(TooLarge, match=f"larger than {LARGEST} bytes"):
        connection.send(Request("GET", X))


def test_after_a_body_that_is_too_large_the_connection_serves_again(stub: StubMaker) -> None:
    connection = stub(lambda asked: Answer(b" " * (LARGEST + 1) if asked.number == 0 else b"{}"))[1]

    with pytest.raises(TooLarge):
        connection.send(Request("GET", X))
    assert connection.send(Request("GET", X)) == b"{}"


def test_of_a_refusal_only_the_beginning_is_read(stub: StubMaker) -> None:
    connection = stub(lambda _: Answer(b"no " * (LARGEST_REFUSAL * 10), 403, "text/plain"))[1]

    with pytest.raises(Forbidden, match="no no") as caught:
        connection.send(Request("GET", X))
    assert len(str(caught.value)) < 1000


ENCODINGS = {
    "gzip": gzip.compress(b" " * MIB),
    "deflate": zlib.compress(b" " * MIB),
    "GZIP, gzip": gzip.compress(gzip.compress(b" " * MIB)),
    "br": b"x",
    "zstd": b"x",
}


@pytest.mark.parametrize("code", [200, 403])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_encoding_that_was_not_requested_is_not_decoded(stub: StubMaker, encoding: str, code: int) -> None:
    connection = stub(lambda _: Answer(ENCODINGS[encoding], code, headers={"Content-Encoding": encoding}))[1]

    with pytest.raises(Rejected if code == 200 else Forbidden):
        connection.send(Request("GET", X))


def test_no_encoding_is_requested_for_objects_lists_and_watches(stub: StubMaker) -> None:
    asked: list[tuple[str, str]] = []
    watching: list[Watching[Pod, tuple[bool, Pod]]] = []

    def answer(request: Asked) -> Answer:
        watch = request.query.get("watch", "")
        asked.append((watch, request.headers["Accept-Encoding"]))
        if watch:
            watching[0].leave()
        return json_answer({"kind": "PodList", "metadata": {}, "items": []})

    connection = stub(answer)[1]
    connection.send(Request("GET", X))
    watched = Watched(connection, PODS, pod_format(), lambda pod: pod.uid)
    watching.append(Watching(connection, watched, KnownObjects(watched)))
    with watching[0] as changes:
        assert list(changes) == [None]

    assert asked == [("", "identity"), ("", "identity"), ("true", "identity")]


def test_a_piece_of_protobuf_longer_than_any_object_is_refused(stub: StubMaker) -> None:
    # runtime.Unknown, field 2 with 1 GiB; in it field 2 with 900 MiB.
    length = b"\x12" + _varint(1 << 30) + b"\x12" + _varint(900 << 20)
    connection = stub(lambda _: Answer(b"k8s\x00" + length + b"x" * MIB, content_type=PROTOBUF))[1]

    with pytest.raises(Rejected, match="broken"):
        list_all(connection, NODES, node_format(Wanted(frozenset(), "p")))


@pytest.mark.parametrize("kind", ["application/json", PROTOBUF])
def test_a_watch_event_longer_than_any_object_is_refused(stub: StubMaker, kind: str) -> None:
    size = LARGEST_EVENT + 1
    body = size.to_bytes(4, "big") + b"x" * size if kind == PROTOBUF else b"x" * (size + (1 << 18))
    connection = stub(lambda _: Answer(body, content_type=kind))[1]

    with connection.stream(Request("GET", NODES)) as stream, pytest.raises(Rejected):
        list(events(stream))


def _varint(number: int) -> bytes:
    encoded = b""
    while number > 0x7F:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])
