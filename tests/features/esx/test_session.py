"""A vCenter may be silent, slow or something else: a login ends in time, and its requests are reported."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPException
from pathlib import Path

import pytest

from reconciler.features.esx.client import VCenterSession
from reconciler.features.esx.settings import VCenter
from reconciler.http.failures import report_requests
from reconciler.model.content import Secret
from reconciler.model.errors import CloudError
from tests.support.controlplane.configuration import make_certificates
from tests.support.stub import Answer, Asked, Stub

VERSIONS = b'<namespaces version="1.0"><namespace><version>8.0.0.0</version></namespace></namespaces>'
GET = ("vcenter", "GET", 200)

Reports = list[tuple[str, str, int | None]]


@pytest.fixture
def reports() -> Iterator[Reports]:
    found: Reports = []
    end = report_requests(lambda api, method, status, *_: found.append((api, method, status)))
    yield found
    end()


@pytest.fixture
def open_() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def serve(stack: ExitStack, soap: Answer, versions: Answer | None = None) -> Stub:
    """A server with this answer to a request for its versions, and that one to all others."""

    def answer(asked: Asked) -> Answer:
        return (versions or Answer(VERSIONS)) if asked.method == "GET" else soap

    stub = Stub(answer)
    stack.callback(stub.close)
    return stub


def log_in(url: str, seconds: float = 30.0, ca_file: str | None = None, *, insecure: bool = False) -> None:
    user, password = Secret("reader"), Secret("secret")
    server = VCenter(url=url, username=user, password=password, ca_file=ca_file, insecure=insecure)
    with VCenterSession(server, seconds):
        pytest.fail("nobody has logged in")


def test_each_request_is_reported_with_its_status(open_: ExitStack, reports: Reports) -> None:
    stub = serve(open_, Answer(status=503))

    with pytest.raises(HTTPException, match="503"):
        log_in(stub.url)

    assert reports == [GET, ("vcenter", "POST", 503)]


def test_a_connection_that_fails_is_a_request_without_an_answer(open_: ExitStack, reports: Reports) -> None:
    stub = serve(open_, Answer())
    open_.close()

    with pytest.raises(ConnectionRefusedError):
        log_in(stub.url)

    assert reports == [("vcenter", "GET", None)]


def test_so_is_a_later_connection_that_fails(open_: ExitStack, reports: Reports) -> None:
    def answer(_: Asked) -> Answer:
        stub.close()
        return Answer(VERSIONS)

    stub = Stub(answer)
    open_.callback(stub.close)

    with pytest.raises(ConnectionError):
        log_in(stub.url)

    assert reports == [GET, ("vcenter", "POST", None)]


def test_a_server_that_begins_no_tls_is_left_in_time(open_: ExitStack, reports: Reports) -> None:
    listener = open_.enter_context(socket.create_server(("127.0.0.1", 0)))

    with pytest.raises(TimeoutError):
        log_in(f"https://127.0.0.1:{listener.getsockname()[1]}", 0.2)

    assert reports == [("vcenter", "GET", None)]


@pytest.mark.parametrize(
    ("soap", "versions", "requests"),
    [
        pytest.param(Answer(), Answer(hang=True), [("vcenter", "GET", None)], id="versions"),
        pytest.param(Answer(), Answer(quiet=True), [GET], id="the rest of the versions"),
        pytest.param(Answer(hang=True), Answer(VERSIONS), [GET, ("vcenter", "POST", None)], id="login"),
    ],
)
def test_a_server_that_says_nothing_is_left_in_time(
    soap: Answer, versions: Answer, requests: Reports, open_: ExitStack, reports: Reports
) -> None:
    stub = serve(open_, soap, versions)

    with pytest.raises(TimeoutError):
        log_in(stub.url, 0.2)

    assert reports == requests


def test_an_answer_has_a_size(open_: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.features.esx.client.LARGEST", 1000)
    stub = serve(open_, Answer(), Answer(VERSIONS + b" " * 1000))

    with pytest.raises(HTTPException, match="the answer is too large"):
        log_in(stub.url)


def test_nothing_is_sent_after_the_time_for_it(open_: ExitStack) -> None:
    stub = serve(open_, Answer())

    with pytest.raises(TimeoutError):
        log_in(stub.url, 0.0)

    assert stub.asked == []


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        (Answer(status=404), "it answers HTTP 404 to a request for its versions"),
        (Answer(b"hello"), "its answer is not that of a vCenter"),
        (Answer(VERSIONS.replace(b"8.0.0.0", b"800")), "it has no version of the API that pyvmomi knows"),
    ],
)
def test_a_server_that_is_no_vcenter_is_named_so(versions: Answer, said: str, open_: ExitStack) -> None:
    stub = serve(open_, Answer(), versions)

    with pytest.raises(CloudError, match=said):
        log_in(stub.url)


def test_a_certificate_is_accepted_from_the_authority_of_the_settings_or_where_they_verify_none(
    open_: ExitStack, reports: Reports, tmp_path: Path
) -> None:
    certificates = make_certificates(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.serving, certificates.serving_key)
    stub = Stub(lambda _: Answer(status=404), tls)
    open_.callback(stub.close)

    with pytest.raises(ssl.SSLCertVerificationError):
        log_in(stub.url)
    with pytest.raises(CloudError, match="HTTP 404"):
        log_in(stub.url, ca_file=str(certificates.authority))
    with pytest.raises(CloudError, match="HTTP 404"):
        log_in(stub.url, insecure=True)

    assert reports == [("vcenter", "GET", None), ("vcenter", "GET", 404), ("vcenter", "GET", 404)]
