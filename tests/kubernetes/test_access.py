"""How credentials are found: the plain ones by our own reader, all others by the official package."""

import base64
import json
import os
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from reconciler.http.retrying import patiently
from reconciler.kubernetes import access, official
from reconciler.kubernetes.connection import NODES, ApiPath, Connection, Request
from reconciler.model.errors import NoServer, Unauthorized, Unreachable
from tests.support.controlplane.configuration import Certificates, make_certificates
from tests.support.stub import Answer, Stub, kubeconfig

Document = dict[str, Any]


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what the machine's own environment says of proxies and clusters."""
    for name in [*os.environ]:
        if name.lower().endswith("_proxy") or name.startswith("KUBE"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority, and one certificate for server and client."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def stub() -> Iterator[Callable[[ssl.SSLContext | None], Stub]]:
    """Make a server, over TLS if a context is given."""
    made: list[Stub] = []

    def make(tls: ssl.SSLContext | None = None) -> Stub:
        made.append(Stub(lambda _: Answer(), tls))
        return made[-1]

    yield make
    for server in made:
        server.close()


def serving(certificates: Certificates, *, asks: bool = False) -> ssl.SSLContext:
    """A server's TLS; with `asks` it refuses a client without a certificate of the authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.serving, certificates.serving_key)
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificates.authority)
    return context


def data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def write(path: Path, url: str, cluster: Document, user: Document) -> str:
    document = kubeconfig(url, user)
    document["clusters"][0]["cluster"] |= cluster
    path.write_text(json.dumps(document))
    return str(path)


def never(*_: object) -> Any:
    raise AssertionError("the official package was asked")


@pytest.mark.heavy
@pytest.mark.parametrize("authority", ["file", "data", "none, insecure"])
@pytest.mark.parametrize("identity", ["token", "files", "data", "relative files and token"])
@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_a_token_and_a_client_certificate_need_no_official_package(
    tmp_path: Path,
    certificates: Certificates,
    stub: Callable[[ssl.SSLContext], Stub],
    monkeypatch: pytest.MonkeyPatch,
    authority: str,
    identity: str,
) -> None:
    clusters: dict[str, Document] = {
        "file": {"certificate-authority": str(certificates.authority)},
        "data": {"certificate-authority-data": data(certificates.authority)},
        "none, insecure": {"insecure-skip-tls-verify": True},
    }
    pair = (certificates.serving, certificates.serving_key)
    relative = [os.path.relpath(path, tmp_path) for path in pair]
    users: dict[str, Document] = {
        "token": {"token": "secret"},
        "files": {"client-certificate": str(pair[0]), "client-key": str(pair[1])},
        "data": {"client-certificate-data": data(pair[0]), "client-key-data": data(pair[1])},
        "relative files and token": {
            "client-certificate": relative[0],
            "client-key": relative[1],
            "token": "secret",
        },
    }
    cluster, user = clusters[authority], users[identity]
    server = stub(serving(certificates, asks=identity != "token"))
    path = write(tmp_path / "config", server.url, {**cluster, "extensions": [{"name": "x"}]}, user)
    monkeypatch.setattr(official, "kubeconfig", never)
    connection = Connection(path)
    connection.send(Request("GET", ApiPath("x")))
    connection.close()

    assert len(server.asked) == 1
    sent = server.asked[0].headers.get("Authorization")
    assert sent == ("Bearer secret" if "token" in user else None)


def test_an_authority_that_did_not_sign_the_server_is_refused(
    tmp_path: Path, certificates: Certificates, stub: Callable[[ssl.SSLContext], Stub]
) -> None:
    other = make_certificates(tmp_path)
    server = stub(serving(certificates))
    cluster = {"certificate-authority": str(other.authority)}
    connection = Connection(write(tmp_path / "config", server.url, cluster, {"token": "t"}))

    with pytest.raises(Unreachable, match="no TLS"):
        connection.send(Request("GET", ApiPath("x")))
    assert server.asked == []


@pytest.mark.parametrize(
    ("name", "refused"), [("localhost", False), ("kubernetes.default.svc", False), ("elsewhere", True)]
)
def test_the_servers_name_of_the_kubeconfig_is_the_one_that_is_verified(
    tmp_path: Path,
    certificates: Certificates,
    stub: Callable[[ssl.SSLContext], Stub],
    name: str,
    refused: bool,
) -> None:
    server = stub(serving(certificates))
    cluster = {"certificate-authority": str(certificates.authority), "tls-server-name": name}
    connection = Connection(write(tmp_path / "config", server.url, cluster, {"token": "t"}))

    if refused:
        with pytest.raises(Unreachable, match="no TLS"):
            connection.send(Request("GET", ApiPath("x")))
    else:
        connection.send(Request("GET", ApiPath("x")))
    connection.close()
    assert len(server.asked) == (0 if refused else 1)


PLAIN = {"token": "secret"}


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        pytest.param({}, {"exec": {"command": "x", "apiVersion": "v1"}}, id="a credential plugin"),
        pytest.param({}, {"auth-provider": {"name": "oidc"}}, id="an auth provider"),
        pytest.param({}, {"username": "a", "password": "b"}, id="a password"),
        pytest.param({}, {"tokenFile": "token"}, id="a token file"),
        pytest.param({}, {**PLAIN, "as": "admin"}, id="a key that we do not know"),
        pytest.param({"proxy-url": "http://127.0.0.1:1"}, PLAIN, id="a proxy"),
        pytest.param({"insecure-skip-tls-verify": "true"}, PLAIN, id="a text for a boolean"),
        pytest.param({"server": "unix:///x"}, PLAIN, id="another scheme"),
        pytest.param({}, {"token": 5}, id="a number for a token"),
        pytest.param({}, {"client-certificate": "a"}, id="a certificate without a key"),
        pytest.param({"certificate-authority": "nowhere.pem"}, PLAIN, id="a file that is not there"),
        pytest.param({"certificate-authority-data": "%"}, PLAIN, id="no base64"),
    ],
)
def test_everything_else_is_left_to_the_official_package(
    tmp_path: Path, cluster: Document, user: Document
) -> None:
    path = write(tmp_path / "config", "https://127.0.0.1:1", cluster, user)
    plain = write(tmp_path / "plain", "https://127.0.0.1:1", {}, PLAIN)

    assert access.plain_kubeconfig(path, None) is None
    assert access.plain_kubeconfig(plain, None) is not None


def test_a_proxy_of_the_environment_and_several_files_are_left_to_the_official_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "config", "https://127.0.0.1:1", {}, PLAIN)

    assert access.plain_kubeconfig(f"{path}{os.pathsep}{path}", None) is None
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    assert access.plain_kubeconfig(path, None) is None


def test_an_encrypted_key_never_asks_for_its_password(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = serialization.load_pem_private_key(certificates.serving_key.read_bytes(), None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    user = {
        "client-certificate-data": data(certificates.serving),
        "client-key-data": base64.b64encode(key).decode(),
    }

    asked: list[object] = []

    class Context(ssl.SSLContext):
        def load_cert_chain(self, certfile: Any, keyfile: Any = None, password: Any = None) -> None:
            # Without a function for the password, OpenSSL asks for it on the terminal.
            asked.append(password)
            super().load_cert_chain(certfile, keyfile, password)

    monkeypatch.setattr(access, "create_urllib3_context", lambda **_: Context(ssl.PROTOCOL_TLS_CLIENT))
    assert access.plain_kubeconfig(write(tmp_path / "c", "https://127.0.0.1:1", {}, user), None) is None
    assert [callable(password) for password in asked] == [True]


@pytest.mark.parametrize("user", [PLAIN, {"username": "a", "password": "b"}])
def test_the_official_package_gives_the_same_or_what_we_leave_to_it(
    tmp_path: Path, stub: Callable[[], Stub], user: Document
) -> None:
    server = stub()
    path = write(tmp_path / "config", server.url, {}, user)
    access = official.kubeconfig(path, None)
    access.pool.clear()
    connection = Connection(path)
    connection.send(Request("GET", ApiPath("x")))
    connection.close()

    assert access.host == server.url
    assert server.asked[0].headers["Authorization"] == access.authorization()


def test_of_several_files_the_first_current_context_is_used_and_an_empty_file_is_left_out(
    tmp_path: Path,
) -> None:
    paths = []
    for name in ("first", "second"):
        document = kubeconfig(f"https://{name}:1", PLAIN)
        for entries, kind in (("clusters", "cluster"), ("contexts", "context")):
            document[entries][0]["name"] = name
            document[entries][0][kind] |= {"cluster": name} if kind == "context" else {}
        document["current-context"] = name
        paths.append(tmp_path / name)
        paths[-1].write_text(json.dumps(document))
    (tmp_path / "empty").write_text("# nothing yet")
    files = os.pathsep.join(map(str, (tmp_path / "empty", *paths)))

    chosen, named = official.kubeconfig(files, None), official.kubeconfig(files, "second")

    assert (chosen.origin.context, chosen.origin.cluster, chosen.host) == (
        "first",
        "first",
        "https://first:1",
    )
    assert (named.origin.context, named.host) == ("second", "https://second:1")


def test_the_named_context_is_used_and_another_user_is_not(tmp_path: Path) -> None:
    document = kubeconfig("http://127.0.0.1:1", {"token": "mine"})
    document["users"].append({"name": "you", "user": {"token": "yours"}})
    document["contexts"].append({"name": "other", "context": {"cluster": "one", "user": "you"}})
    path = tmp_path / "config"
    path.write_text(json.dumps(document))

    tokens = []
    for context in (None, "other"):
        own = access.plain_kubeconfig(str(path), context)
        assert own is not None
        tokens.append(own.authorization())
    assert tokens == ["Bearer mine", "Bearer yours"]
    assert access.plain_kubeconfig(str(path), "nowhere") is None


@pytest.fixture
def mounted(tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pod's ServiceAccount."""
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "ca.crt").write_bytes(certificates.authority.read_bytes())
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    return tmp_path


def test_inside_a_cluster_the_service_account_is_used_and_its_token_read_again(
    mounted: Path,
    certificates: Certificates,
    stub: Callable[[ssl.SSLContext], Stub],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    server = stub(serving(certificates))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", server.url.rpartition(":")[2])
    monkeypatch.setattr(official, "service_account", never)
    connection = Connection(clock=lambda: now[0])
    connection.send(Request("GET", ApiPath("x")))
    (mounted / "token").write_text("second\n")
    connection.send(Request("GET", ApiPath("x")))
    now[0] = 11
    connection.send(Request("GET", ApiPath("x")))
    (mounted / "token").write_text("")
    now[0] = 22
    with pytest.raises(Unauthorized, match="empty"):
        connection.send(Request("GET", ApiPath("x")))
    connection.close()

    sent = [asked.headers["Authorization"] for asked in server.asked]
    assert sent == ["Bearer first", "Bearer first", "Bearer second"]


def test_an_ipv6_address_of_the_server_is_written_in_brackets(
    mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    own = access.plain_service_account()

    assert own is not None
    assert own.host == "https://[fd00::1]:443"


@pytest.mark.parametrize("broken", ["no authority", "empty authority", "empty token", "no port"])
def test_an_incomplete_service_account_is_reported(
    mounted: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    match broken:
        case "no authority":
            (mounted / "ca.crt").unlink()
        case "empty authority":
            (mounted / "ca.crt").write_text("")
        case "empty token":
            (mounted / "token").write_text("")
        case "no port":
            monkeypatch.delenv("KUBERNETES_SERVICE_PORT")

    assert access.plain_service_account() is None
    with pytest.raises(Unauthorized, match="ServiceAccount can't be used"):
        access.load_access(None, None)


@pytest.mark.heavy
def test_a_plain_kubeconfig_leaves_the_official_package_unloaded(tmp_path: Path) -> None:
    path = write(tmp_path / "config", "http://127.0.0.1:1", {}, PLAIN)
    program = (
        "import sys; from reconciler.kubernetes.connection import Connection;"
        f" Connection({path!r}).close(); print('kubernetes' in sys.modules)"
    )
    done = run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("just words", "is no kubeconfig: it is not a mapping", id="plain text"),
        pytest.param("a: [", "is no kubeconfig: ", id="no YAML"),
        pytest.param("contexts: [1]", "an entry of contexts has no context", id="an entry that is none"),
        pytest.param(
            "contexts: [{context: {cluster: a, user: b}}]", "an entry of contexts has no name", id="no name"
        ),
        pytest.param(
            "contexts: [{name: it, context: {cluster: a}}]\nusers: [{user: {}}]",
            "an entry of users has no name",
            id="a user without a name",
        ),
        pytest.param("kind: Config", "names no cluster: it has no contexts; --kubeconfig", id="empty"),
    ],
)
def test_what_is_no_kubeconfig_is_said_in_words(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(Unauthorized, match=said):
        Connection(str(tmp_path / "config"))


def test_a_context_that_does_not_exist_is_answered_with_those_that_do(tmp_path: Path) -> None:
    path = write(tmp_path / "config", "https://127.0.0.1:1", {}, {"token": "t"})
    with pytest.raises(Unauthorized, match="has no context nope; it has "):
        Connection(path, "nope")


def test_a_variable_that_names_no_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nope"))
    with pytest.raises(Unauthorized, match="KUBECONFIG names no file that exists: "):
        Connection()


def test_a_credential_plugin_that_is_missing_is_named_with_what_brings_it(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(tmp_path / "kubelogin"),
        "interactiveMode": "Never",
    }
    path = write(tmp_path / "config", "https://127.0.0.1:1", {}, {"exec": plugin})
    with pytest.raises(Unauthorized, match="kubelogin is not installed; install it: az aks install-cli"):
        Connection(path)


@pytest.mark.parametrize(
    "user", [{"token": "t"}, {"username": "a", "password": "b"}], ids=["plain", "official"]
)
def test_a_server_that_is_not_checked_is_warned_of_once(tmp_path: Path, user: Document) -> None:
    path = write(tmp_path / "config", "https://127.0.0.1:1", {"insecure-skip-tls-verify": True}, user)
    connection = Connection(path)
    assert "has insecure-skip-tls-verify" in connection.insecure
    assert connection.origin.cluster
    checked = Connection(write(tmp_path / "config", "https://127.0.0.1:1", {}, user))
    assert checked.insecure == ""


def test_a_person_is_told_at_once_that_no_server_answers(tmp_path: Path) -> None:
    path = write(tmp_path / "config", "http://127.0.0.1:1", {}, {"token": "t"})
    waits: list[float] = []
    connection = Connection(path, someone_waits=True, sleep=waits.append)

    with pytest.raises(NoServer, match="no connection"):
        patiently(lambda: connection.send(Request("GET", ApiPath("x"))), sleep=waits.append)
    assert waits == []


def test_a_name_server_that_does_not_answer_is_waited_for_no_longer_than_a_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "config", "https://aks.example:443", {}, {"token": "t"})
    ends = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: ends.wait(60))
    monkeypatch.setattr("reconciler.kubernetes.connection.FIRST_CONNECT", 0.05)

    try:
        with pytest.raises(NoServer, match=r"no name server has answered for aks\.example"):
            Connection(path, someone_waits=True).send(Request("GET", ApiPath("x")))
    finally:
        ends.set()


@pytest.mark.parametrize("path", [NODES / "n", NODES])
def test_a_404_that_is_not_from_an_api_server_says_nothing_of_the_object(
    tmp_path: Path, path: ApiPath
) -> None:
    with closing(Stub(lambda _: Answer(b"<html>not here</html>", 404, "text/html"))) as server:
        file = write(tmp_path / "config", server.url, {}, {"token": "t"})
        with pytest.raises(Unreachable, match="no Kubernetes API server"):
            Connection(file).send(Request("GET", path))


def test_a_server_that_has_answered_is_asked_again_when_it_is_away(
    tmp_path: Path, stub: Callable[[ssl.SSLContext | None], Stub]
) -> None:
    server = stub(None)
    connection = Connection(write(tmp_path / "config", server.url, {}, {"token": "t"}), someone_waits=True)
    connection.send(Request("GET", ApiPath("x")))
    server.close()
    connection.close()

    with pytest.raises(Unreachable):
        connection.send(Request("GET", ApiPath("x")))


@pytest.mark.parametrize("own", [False, True])
def test_a_client_certificate_in_the_file_leaves_the_authorities_of_the_machine(
    tmp_path: Path,
    certificates: Certificates,
    stub: Callable[[ssl.SSLContext], Stub],
    monkeypatch: pytest.MonkeyPatch,
    own: bool,
) -> None:
    other = make_certificates(tmp_path)
    # With an authority of its own, a kubeconfig does not trust those of the machine besides.
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    cluster = {"certificate-authority": str(other.authority)} if own else {}
    user = {
        "client-certificate-data": data(certificates.serving),
        "client-key-data": data(certificates.serving_key),
    }
    server = stub(serving(certificates, asks=True))
    connection = Connection(write(tmp_path / "config", server.url, cluster, user))

    if own:
        with pytest.raises(Unreachable, match="no TLS"):
            connection.send(Request("GET", ApiPath("x")))
    else:
        connection.send(Request("GET", ApiPath("x")))
    connection.close()
    assert len(server.asked) == (0 if own else 1)
