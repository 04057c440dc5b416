"""Transports over TLS with a certificate authority of their own, and through the proxy of the environment."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from zoneinfo import ZoneInfo

import pytest

from reconciler.features.notices.deliveries import delivery_of
from reconciler.features.notices.transports.mail import MailTransport
from reconciler.features.notices.transports.sending import Http, NotSent, Post
from tests.features.notices.following import entries, message, tools_at
from tests.support.builders import NOW
from tests.support.controlplane.configuration import Certificates, make_certificates
from tests.support.fakes.loopback import Served
from tests.support.fakes.smtp import FakeSmtp
from tests.support.stub import Answer, Stub


class _Session(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server = cast("_Server", self.server)
        lines = [line.decode().strip() for line in iter(self.rfile.readline, b"\r\n")]
        method, target, _ = lines[0].split()
        server.targets.append((method, target))
        server.headers.append(dict(_header(line) for line in lines[1:]))
        if method != "CONNECT":
            self.wfile.write(b"HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\n\r\n")
            return
        host, _, port = target.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10) as upstream:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=_copy, args=(upstream, self.connection), daemon=True)
            back.start()
            _copy(self.connection, upstream)
            back.join(10)


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.lower(), value.strip()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    targets: list[tuple[str, str]]
    headers: list[dict[str, str]]


class Tunnel(Served):
    """Serves inside the context; `targets` are the requests as (method, target)."""

    def __init__(self) -> None:
        """Bind a free port."""
        server = _Server(("127.0.0.1", 0), _Session)
        self.targets = server.targets = []
        self.headers = server.headers = []
        super().__init__(server)

    @property
    def place(self) -> str:
        """Its address and port."""
        return f"127.0.0.1:{self.port}"


REMEDY = "SSL_CERT_FILE can name a file with its certificate authority"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority that has signed nothing here."""
    return make_certificates(tmp_path_factory.mktemp("others"))


@pytest.fixture
def tls(certificates: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.serving, certificates.serving_key)
    return context


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's own proxies and authorities."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def trust(monkeypatch: pytest.MonkeyPatch, authority: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))


def send_mail(smtp: FakeSmtp, tls: str) -> None:
    keys = "from: nodes@example.com, to: [a@example.com], user: bot, password: SECRET-PASSWORD"
    mail = f"mail: {{server: 127.0.0.1, port: {smtp.port}, tls: {tls}, {keys}}}"
    (entry,) = entries(f"notify: [{{name: all, {mail}}}]")
    assert entry.mail is not None
    MailTransport(entry.mail, tools_at(NOW), patience=5).send(
        delivery_of(entry, (message(),), ZoneInfo("UTC"))
    )


@pytest.mark.parametrize("how", ["StartTls", "Implicit"])
def test_a_mail_goes_over_tls_and_the_login_only_when_it_is_encrypted(
    tls: ssl.SSLContext, certificates: Certificates, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(monkeypatch, certificates.authority)

    with FakeSmtp(tls, implicit=how == "Implicit") as smtp:
        send_mail(smtp, how)

    assert smtp.box.recipients == [["a@example.com"]]
    assert smtp.box.logins == [("bot", "SECRET-PASSWORD")]
    assert {"AUTH", "MAIL", "RCPT", "DATA"} <= set(smtp.box.encrypted)


@pytest.mark.parametrize("how", ["StartTls", "Implicit"])
def test_a_mail_server_of_another_authority_gets_nothing_and_the_failure_has_the_remedy(
    tls: ssl.SSLContext, others: Certificates, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(monkeypatch, others.authority)

    with FakeSmtp(tls, implicit=how == "Implicit") as smtp, pytest.raises(NotSent) as found:
        send_mail(smtp, how)

    assert str(found.value).startswith(
        "127.0.0.1: no TLS connection, because its certificate is not accepted"
    )
    assert REMEDY in str(found.value)
    assert (smtp.box.logins, smtp.box.mails) == ([], [])


def test_a_server_that_promises_tls_and_has_none_is_named_so() -> None:
    with FakeSmtp() as smtp, pytest.raises(NotSent, match=r"^127.0.0.1: no TLS connection$"):
        send_mail(smtp, "Implicit")


@pytest.fixture
def receiver(tls: ssl.SSLContext) -> Iterator[Stub]:
    made = Stub(lambda _: Answer(b"ok", content_type="text/plain"), tls)
    yield made
    made.close()


@pytest.fixture
def http() -> Iterator[Http]:
    made = Http(total=5)
    yield made
    made.close()


def test_a_request_trusts_the_authorities_of_the_environment(
    receiver: Stub, http: Http, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(monkeypatch, certificates.authority)

    assert http.send(Post(f"{receiver.url}/hook", {})).body == b"ok"


def test_a_receiver_of_another_authority_gets_nothing_and_the_failure_has_the_remedy(
    receiver: Stub, http: Http, others: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(monkeypatch, others.authority)

    with pytest.raises(NotSent, match=REMEDY):
        http.send(Post(f"{receiver.url}/hook/SECRET-PATH", {}))
    assert receiver.asked == []


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_request_goes_through_the_proxy_of_the_environment(
    receiver: Stub, http: Http, certificates: Certificates, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(monkeypatch, certificates.authority)
    with Tunnel() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"{scheme}us%40er:SECRET@{proxy.place}")
        assert http.send(Post(f"{receiver.url}/hook", {})).body == b"ok"
        http.close()

    assert proxy.targets == [("CONNECT", receiver.url.removeprefix("https://"))]
    assert proxy.headers[0]["proxy-authorization"] == "Basic dXNAZXI6U0VDUkVU"
    assert "proxy-authorization" not in {name.lower() for name in receiver.asked[0].headers}


def test_a_receiver_in_no_proxy_is_asked_directly(
    receiver: Stub, http: Http, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(monkeypatch, certificates.authority)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    assert http.send(Post(f"{receiver.url}/hook", {})).body == b"ok"


@pytest.mark.parametrize(
    ("proxy", "why"),
    [
        ("http://user:SECRET@127.0.0.1:9", "no connection to the proxy"),
        ("ftp://user:SECRET@127.0.0.1:9", "the environment names a proxy that is no URL such as"),
        ("http://user:SECRET@[", "the environment names a proxy that is no URL such as"),
    ],
)
def test_a_proxy_that_can_not_be_used_is_named_without_its_password(
    http: Http, proxy: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)

    with pytest.raises(NotSent, match=why) as found:
        http.send(Post("https://hooks.example.com/SECRET-PATH", {}))
    assert "SECRET" not in str(found.value)
