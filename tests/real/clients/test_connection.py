"""One request: its headers, the error for each refusal, and its deadline."""

import importlib
import json
import sys
import textwrap
import threading
import time
from pathlib import Path
from subprocess import run

import pytest

from reconciler import USER_AGENT
from reconciler.http.retrying import patiently
from reconciler.kubernetes import access, credentials
from reconciler.kubernetes.connection import NODES, ApiPath, Connection, Request
from reconciler.model.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    NotFound,
    Rejected,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from tests.support.controlplane.server import ControlPlane
from tests.support.fakes.threads import Once, refused
from tests.support.stub import Answer, Stub, StubMaker, json_answer, kubeconfig, status


def test_a_request_names_the_program_and_carries_the_token(stub: StubMaker) -> None:
    server, connection = stub(lambda _: Answer(b"{}"))
    connection.send(Request("GET", ApiPath("x"), query={"a": "b c"}))

    assert server.asked[0].headers["User-Agent"] == USER_AGENT
    assert server.asked[0].headers["Authorization"] == "Bearer secret"
    assert server.asked[0].query == {"a": "b c"}


@pytest.mark.parametrize(
    ("method", "code", "kind"),
    [
        ("GET", 401, Unauthorized),
        ("GET", 403, Forbidden),
        ("GET", 404, NotFound),
        ("PATCH", 409, Conflict),
        ("POST", 429, TooManyRequests),
        ("PATCH", 422, Rejected),
        ("GET", 302, Rejected),
        ("GET", 500, Unreachable),
        ("PATCH", 503, Unreachable),
        pytest.param("POST", 500, Rejected, id="an eviction under two budgets is a 500"),
        pytest.param("POST", 503, Unreachable, id="a server in trouble"),
    ],
)
def test_each_refusal_becomes_one_of_our_errors(
    stub: StubMaker, method: str, code: int, kind: type[ClusterError]
) -> None:
    _, connection = stub(lambda _: status(code, "Why", "the server's words"))

    with pytest.raises(kind, match="the server's words") as caught:
        connection.send(Request(method, ApiPath("x"), body={}))
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.reason) == (code, "Why")


def test_a_refusal_contains_its_causes_and_the_wait(stub: StubMaker) -> None:
    cause = {"reason": "DisruptionBudget", "message": "The disruption budget web needs 3 healthy pods"}
    document = {"kind": "Status", "reason": "TooManyRequests", "details": {"causes": [cause]}}
    _, connection = stub(lambda _: json_answer(document, 429, Retry_After="10"))

    with pytest.raises(TooManyRequests) as caught:
        connection.send(Request("POST", ApiPath("x")))
    assert caught.value.causes == ("The disruption budget web needs 3 healthy pods",)
    assert (caught.value.reason, caught.value.retry_after) == ("DisruptionBudget", 10)


def test_a_refusal_that_is_no_status_is_still_reported(stub: StubMaker) -> None:
    _, connection = stub(lambda _: Answer(b"<h1>go away</h1>", 403, "text/html"))

    with pytest.raises(Forbidden, match="go away"):
        connection.send(Request("GET", ApiPath("x")))


def test_a_server_that_never_answers_is_unreachable(stub: StubMaker) -> None:
    _, connection = stub(lambda _: Answer(hang=True))

    with pytest.raises(Unreachable, match="no answer in time"):
        connection.send(Request("GET", ApiPath("x"), read_timeout=0.05))


def test_an_answer_that_is_cut_off_is_unreachable(stub: StubMaker) -> None:
    _, connection = stub(lambda _: Answer(b'{"a":', cut=True))

    with pytest.raises(Unreachable, match="cut"):
        connection.send(Request("GET", ApiPath("x")))


def test_no_server_is_unreachable(tmp_path: Path) -> None:
    server = Stub(lambda _: Answer())
    path = server.write_kubeconfig(tmp_path / "config")
    server.close()
    connection = Connection(str(path))

    with pytest.raises(Unreachable, match="refused"):
        connection.send(Request("GET", ApiPath("x")))


def test_a_read_is_asked_again_while_the_server_is_in_trouble(stub: StubMaker) -> None:
    server, connection = stub(lambda asked: status(503) if asked.number < 2 else json_answer({"a": 1}))

    body = patiently(lambda: connection.send(Request("GET", ApiPath("x"))), sleep=connection.sleep)
    assert (json.loads(body), len(server.slept)) == ({"a": 1}, 2)


def test_the_servers_wish_is_longer_than_our_own(stub: StubMaker) -> None:
    server, connection = stub(
        lambda asked: status(429, Retry_After="7") if asked.number == 0 else json_answer({})
    )
    patiently(lambda: connection.send(Request("GET", ApiPath("x"))), sleep=connection.sleep)

    assert server.slept == [7]


def test_a_wish_beyond_our_patience_is_an_outage(stub: StubMaker) -> None:
    server, connection = stub(lambda _: status(429, Retry_After="600"))

    with pytest.raises(Unreachable, match="patience"):
        patiently(lambda: connection.send(Request("GET", ApiPath("x"))), sleep=connection.sleep)
    assert server.slept == []


def test_a_refusal_is_not_asked_again(stub: StubMaker) -> None:
    server, connection = stub(lambda _: status(404))

    with pytest.raises(NotFound):
        patiently(lambda: connection.send(Request("GET", ApiPath("x"))), sleep=connection.sleep)
    assert len(server.asked) == 1


def test_the_time_is_that_of_the_server_from_its_first_answer_on(cluster: ControlPlane) -> None:
    connection = Connection(str(cluster.kubeconfig), wall=lambda: time.time() + 3600)
    before = connection.time.now().timestamp() - time.time()
    connection.send(Request("GET", ApiPath("version")))
    after = connection.time.now().timestamp() - time.time()
    connection.close()

    assert before > 3000
    assert abs(after) < 60
    assert connection.time.disagreement() is None


def test_a_wrong_token_is_unauthorized(cluster: ControlPlane, tmp_path: Path) -> None:
    text = cluster.kubeconfig.read_text(encoding="utf-8")
    broken = tmp_path / "config"
    broken.write_text(
        "\n".join(line + "x" if "token:" in line else line for line in text.splitlines()), encoding="utf-8"
    )
    connection = Connection(str(broken))

    with pytest.raises(Unauthorized):
        connection.send(Request("GET", NODES))
    connection.close()


def test_credentials_that_were_renewed_on_disk_are_read_after_a_401(tmp_path: Path) -> None:
    now = [0.0]
    server = Stub(lambda asked: Answer() if asked.headers["Authorization"] == "Bearer new" else status(401))
    path = server.write_kubeconfig(tmp_path / "config", {"token": "old"})
    connection = Connection(str(path), clock=lambda: now[0])
    server.write_kubeconfig(path, {"token": "new"})

    with pytest.raises(Unauthorized):
        connection.send(Request("GET", ApiPath("x")))
    now[0] = 61
    connection.send(Request("GET", ApiPath("x")))
    connection.close()
    server.close()

    assert [asked.headers["Authorization"] for asked in server.asked] == [
        "Bearer old",
        "Bearer old",
        "Bearer new",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "has no contexts", id="empty"),
        pytest.param("a: [", "is no kubeconfig", id="no YAML"),
        pytest.param("just words", "is no kubeconfig", id="no mapping"),
        pytest.param("apiVersion: v1\nkind: Config\n", "has no contexts", id="no contexts"),
        pytest.param(
            json.dumps(kubeconfig("https://127.0.0.1:1", {"client-certificate": "nowhere.pem"})),
            "nowhere.pem",
            id="a certificate that is not there",
        ),
    ],
)
def test_a_broken_kubeconfig_is_reported_with_its_name(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "config"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(Unauthorized, match=words) as caught:
        Connection(str(path))
    assert str(path) in str(caught.value)


def test_a_missing_kubeconfig_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Unauthorized, match="there is no kubeconfig file"):
        Connection(str(tmp_path / "config"))


def test_inside_a_cluster_behind_a_proxy_the_official_package_uses_the_service_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("mounted", encoding="utf-8")
    (tmp_path / "ca.crt").write_text("only looked at for not being empty", encoding="utf-8")
    package = importlib.import_module("kubernetes.config.incluster_config")
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", tmp_path)
    # Proxies are for the official package.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setattr(package, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(package, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    official = access.load_access(None, None)

    assert official.host == "https://127.0.0.1:1"
    assert official.authorization() == "bearer mounted"


def test_an_unknown_context_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(json.dumps(kubeconfig("http://127.0.0.1:1", {"token": "t"})), encoding="utf-8")

    with pytest.raises(Unauthorized, match="elsewhere"):
        Connection(str(path), "elsewhere")


def test_missing_credentials_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(Unauthorized, match="no credentials for a cluster"):
        Connection()


def plugin(path: Path, script: str) -> dict[str, object]:
    """A user whose token comes from a plugin."""
    path.write_text(textwrap.dedent(script), encoding="utf-8")
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(path)],
        }
    }


def test_a_credential_plugin_gives_the_token(tmp_path: Path) -> None:
    server = Stub(lambda _: Answer())
    user = plugin(
        tmp_path / "plugin.py",
        """
        print('{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
              ' "status": {"token": "fresh"}}')
        """,
    )
    connection = Connection(str(server.write_kubeconfig(tmp_path / "config", user)))
    connection.send(Request("GET", ApiPath("x")))
    connection.close()
    server.close()

    assert server.asked[0].headers["Authorization"] == "Bearer fresh"


def test_a_credential_plugin_that_fails_is_reported(tmp_path: Path) -> None:
    user = plugin(tmp_path / "plugin.py", "import sys; sys.exit('please run az login')")
    path = tmp_path / "config"
    path.write_text(json.dumps(kubeconfig("http://127.0.0.1:1", user)), encoding="utf-8")

    with pytest.raises(Unauthorized, match="please run az login"):
        Connection(str(path))


def test_a_credential_plugin_that_hangs_is_given_up(tmp_path: Path) -> None:
    ended = threading.Event()
    with pytest.raises(Unauthorized, match="did not answer"):
        credentials.within(0.05, ended.wait, credentials.no_answer(0.05))
    ended.set()


def test_credentials_whose_thread_can_not_start_are_read_for_the_next_request() -> None:
    headers, seconds = iter(["Bearer first", "Bearer second"]), 0.0
    read = credentials.Credentials(lambda: next(headers), clock=lambda: seconds)
    with refused(Once("credentials")):
        with pytest.raises(Unreachable, match="can't start new thread"):
            read.header()
        assert read.header() == "Bearer first"
    seconds = credentials.LOOK_EVERY
    with refused(Once("credentials")):
        assert read.header() == "Bearer first"
        assert read.header() == "Bearer second"


@pytest.mark.heavy
def test_the_official_package_is_not_imported_before_it_is_needed() -> None:
    names = "import reconciler.kubernetes.cluster, sys; print(sorted(name for name in sys.modules))"
    loaded = run([sys.executable, "-c", names], capture_output=True, encoding="utf-8", check=True).stdout

    # Measured: each of these costs a short-lived process more than all of our own code.
    for heavy in ("kubernetes", "aiohttp", "azure", "apscheduler", "rich"):
        assert f"'{heavy}'" not in loaded
