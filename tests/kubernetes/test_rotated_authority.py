"""A certificate authority that is rotated counts from the next request, without a 401."""

import base64
import json
import os
import shutil
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from reconciler.kubernetes.connection import RELOAD_EVERY, ApiPath, Connection, Request
from reconciler.model.errors import Unreachable
from tests.support.controlplane.configuration import Certificates, make_certificates
from tests.support.stub import Answer, Stub, kubeconfig

REQUEST = Request("GET", ApiPath("x"))


@pytest.fixture
def old(tmp_path: Path) -> Certificates:
    """The authority before."""
    return make_certificates(_folder(tmp_path / "old"))


@pytest.fixture
def new(tmp_path: Path) -> Certificates:
    """The authority after."""
    return make_certificates(_folder(tmp_path / "new"))


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.fixture
def tls(old: Certificates) -> ssl.SSLContext:
    """The server's TLS. A certificate that is loaded later counts for later connections."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(old.serving, old.serving_key)
    return context


@pytest.fixture
def server(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """A server that keeps connections open."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    stub = Stub(lambda _: Answer(), tls)
    yield stub
    stub.close()


@pytest.fixture
def mounted(tmp_path: Path, server: Stub, old: Certificates, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of a ServiceAccount in a pod."""
    folder = _folder(tmp_path / "mounted")
    (folder / "token").write_text("secret", encoding="utf-8")
    shutil.copy(old.authority, folder / "ca.crt")
    host, _, port = server.url.removeprefix("https://").partition(":")
    monkeypatch.setattr("reconciler.kubernetes.access.SERVICE_ACCOUNT", folder)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return folder


def rotate(folder: Path, new: Certificates) -> None:
    """Replace the file as the kubelet does, by a rename."""
    shutil.copy(new.authority, folder / "next")
    (folder / "next").rename(folder / "ca.crt")


def test_an_open_connection_is_not_used_after_its_authority_was_replaced(
    server: Stub, mounted: Path, new: Certificates
) -> None:
    connection = Connection()
    connection.send(REQUEST)
    rotate(mounted, new)

    with pytest.raises(Unreachable, match="no TLS"):
        connection.send(REQUEST)
    assert len(server.asked) == 1
    connection.close()


def test_a_server_with_the_new_authority_is_trusted_at_once(
    server: Stub, tls: ssl.SSLContext, mounted: Path, new: Certificates
) -> None:
    connection = Connection()
    connection.send(REQUEST)
    tls.load_cert_chain(new.serving, new.serving_key)
    rotate(mounted, new)
    connection.send(REQUEST)
    connection.close()

    assert len(server.asked) == 2


def test_a_missing_file_does_not_close_connections(server: Stub, mounted: Path) -> None:
    connection = Connection()
    connection.send(REQUEST)
    (mounted / "ca.crt").unlink()
    connection.send(REQUEST)
    connection.close()

    assert len(server.asked) == 2


def test_the_authority_is_loaded_once_for_all_connections(server: Stub, mounted: Path) -> None:
    connection, authority = Connection(), mounted / "ca.crt"
    before = authority.stat()
    connection.send(REQUEST)
    # Whoever reads it now fails. By its status, the file has not changed.
    authority.write_bytes(b"?" * before.st_size)
    os.utime(authority, ns=(before.st_atime_ns, before.st_mtime_ns))
    with ExitStack() as opened:
        for _ in range(20):
            opened.enter_context(connection.stream(REQUEST))
    assert len(server.asked) == 21

    os.utime(authority)
    with pytest.raises(Unreachable, match="no TLS"):
        connection.send(REQUEST)
    connection.close()


def test_a_client_certificate_that_was_renewed_is_read_by_the_next_connection(
    server: Stub, tls: ssl.SSLContext, tmp_path: Path, old: Certificates, new: Certificates
) -> None:
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(new.authority)
    mine = shutil.copy(old.serving, tmp_path / "tls.crt"), shutil.copy(old.serving_key, tmp_path / "tls.key")
    user = {"client-certificate": str(mine[0]), "client-key": str(mine[1])}
    document = kubeconfig(server.url, user)
    document["clusters"][0]["cluster"]["certificate-authority"] = str(old.authority)
    path = tmp_path / "config"
    path.write_text(json.dumps(document), encoding="utf-8")
    connection = Connection(str(path))
    with pytest.raises(Unreachable):
        connection.send(REQUEST)
    for renewed, file in zip((new.serving, new.serving_key), mine, strict=True):
        shutil.copy(renewed, file)
    connection.send(REQUEST)
    connection.close()

    assert len(server.asked) == 1


def test_an_authority_inside_the_kubeconfig_is_read_again_when_tls_fails(
    server: Stub, tls: ssl.SSLContext, tmp_path: Path, old: Certificates, new: Certificates
) -> None:
    now = [0.0]
    path = tmp_path / "config"
    write(path, server, old)
    connection = Connection(str(path), clock=lambda: now[0])
    connection.send(REQUEST)
    connection.close()
    tls.load_cert_chain(new.serving, new.serving_key)
    write(path, server, new)

    with pytest.raises(Unreachable, match="no TLS"):
        connection.send(REQUEST)
    now[0] = RELOAD_EVERY + 1
    connection.send(REQUEST)
    connection.close()
    assert len(server.asked) == 2


def write(path: Path, server: Stub, certificates: Certificates) -> None:
    document = kubeconfig(server.url, {"token": "secret"})
    data = base64.b64encode(certificates.authority.read_bytes()).decode()
    document["clusters"][0]["cluster"]["certificate-authority-data"] = data
    path.write_text(json.dumps(document), encoding="utf-8")
