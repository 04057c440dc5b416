"""Kubernikus and OpenStack: what is asked, what an answer means, and that no secret is shown."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.features.workflows.kubernikus import KEPT, Kubernikus
from reconciler.features.workflows.services import KubernikusAnswer, KubernikusQuery
from reconciler.kubernetes.connection import Connection
from reconciler.model.values import replace
from tests.support.stub import Answer, Asked, Stub, json_answer, status

PASSWORD, TOKEN = "correct-horse", "gAAAA-token"
CONF = """\
[Global]
auth-url="{url}"
domain-name="kubernikus"
tenant-id="project-1"
username="user-1"
password="{password}"
region="eu-de-1"
"""
SECRET = "/api/v1/namespaces/kube-system/secrets/cloud-config"
TOKENS = "/v3/auth/tokens"
UNREADABLE = "the node pools of c 1 can't be read"
CLUSTER = "/api/v1/clusters/c%201"
POOLS = {"name": "c 1", "spec": {"nodePools": [{"name": "a", "size": 3}, {"name": "b", "size": 2}]}}


class Servers:
    """The API server, Keystone and Kubernikus, as one server that a test may change."""

    def __init__(self) -> None:
        self.stub = Stub(self.answer)
        self.conf = CONF.format(url=self.url, password=PASSWORD)
        self.answers: dict[str, Answer] = {
            TOKENS: json_answer({"token": {}}, 201, X_Subject_Token=TOKEN),
            CLUSTER: json_answer(POOLS),
        }

    @property
    def url(self) -> str:
        return self.stub.url

    def answer(self, asked: Asked) -> Answer:
        if asked.path == SECRET and SECRET not in self.answers:
            data = base64.b64encode(self.conf.encode()).decode()
            return json_answer({"metadata": {"name": "cloud-config"}, "data": {"cloudprovider.conf": data}})
        return self.answers.get(asked.path, status(404, "NotFound", "no"))

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.stub.asked]


class Time:
    """A clock that tests set; `each` seconds pass whenever it is read."""

    def __init__(self, each: float = 0) -> None:
        self.now, self.each = 1000.0, each

    def __call__(self) -> float:
        self.now += self.each
        return self.now


@pytest.fixture
def servers() -> Iterator[Servers]:
    made = Servers()
    yield made
    made.stub.close()


@pytest.fixture
def connection(servers: Servers, tmp_path: Path) -> Iterator[Connection]:
    made = Connection(str(servers.stub.write_kubeconfig(tmp_path / "config")), sleep=lambda _: None)
    yield made
    made.close()


def query(servers: Servers, cluster: str = "c 1") -> KubernikusQuery:
    return KubernikusQuery(cluster, "kube-system", "cloud-config", url=servers.url)


def ask(connection: Connection, asked: KubernikusQuery) -> KubernikusAnswer:
    return Kubernikus(connection, answer=0.5).ask([asked])[asked]


def test_the_sizes_of_all_node_pools_are_added(servers: Servers, connection: Connection) -> None:
    assert ask(connection, query(servers)) == KubernikusAnswer(5)

    assert servers.paths == [SECRET, TOKENS, CLUSTER]
    _, login, read = servers.stub.asked
    user = {"name": "user-1", "password": PASSWORD, "domain": {"name": "kubernikus"}}
    assert json.loads(login.body) == {
        "auth": {
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"project": {"id": "project-1"}},
        }
    }
    assert (read.method, read.headers["X-Auth-Token"]) == ("GET", TOKEN)


def test_the_credentials_may_be_in_a_file(servers: Servers, connection: Connection, tmp_path: Path) -> None:
    file = tmp_path / "cloudprovider.conf"
    file.write_text(servers.conf.replace(servers.url, f"{servers.url}/v3/"), encoding="utf-8")
    found = ask(connection, KubernikusQuery("c 1", file=str(file), url=servers.url))

    assert (found, servers.paths) == (KubernikusAnswer(5), [TOKENS, CLUSTER])


@pytest.mark.parametrize("answer", [json_answer(POOLS), status(500)])
def test_an_answer_and_a_failure_are_used_for_a_minute(
    servers: Servers, connection: Connection, answer: Answer
) -> None:
    servers.answers[CLUSTER] = answer
    clock, asked = Time(), query(servers)
    client = Kubernikus(connection, clock=clock)
    first = client.ask([asked])
    clock.now += KEPT - 1
    assert client.ask([asked]) == first
    assert len(servers.paths) == 3

    clock.now += 1
    client.ask([asked])
    assert len(servers.paths) == 6


@pytest.mark.parametrize(
    ("path", "answer", "problem"),
    [
        (TOKENS, status(401), "OpenStack gives no token: HTTP 401"),
        (TOKENS, json_answer({}, 201), "OpenStack gives no token: HTTP 201"),
        (TOKENS, json_answer({}, 201, X_Subject_Token="no token"), "OpenStack gives no token: HTTP 201"),
        (TOKENS, json_answer({}, 300, Location="http://127.0.0.1:1/"), "OpenStack gives no token: HTTP 300"),
        # maintenance-controller takes an error for a cluster without pools, and passes.
        (CLUSTER, json_answer({"code": 404}, 404), "Kubernikus says nothing about c 1: HTTP 404"),
        (CLUSTER, json_answer({"message": "gone"}), UNREADABLE),
        (CLUSTER, json_answer({"spec": {"nodePools": [{"size": -1}]}}), UNREADABLE),
        (CLUSTER, json_answer({"spec": {"nodePools": [{"size": "3"}]}}), UNREADABLE),
        (CLUSTER, Answer(b"[" * 100_000), UNREADABLE),
        (CLUSTER, Answer(b"x" * 2_000_000), "no answer from 127.0.0.1: "),
        (CLUSTER, Answer(hang=True), "no answer from 127.0.0.1: "),
        (CLUSTER, Answer(cut=True), "no answer from 127.0.0.1: "),
        (SECRET, status(404, "NotFound", "no"), "there is no Secret kube-system/cloud-config"),
        (SECRET, status(403, "Forbidden", "no"), "needs get secrets in kube-system"),
        (SECRET, json_answer({}), "the Secret kube-system/cloud-config has no key cloudprovider.conf"),
        (SECRET, json_answer({"data": {"cloudprovider.conf": "%"}}), "cloudprovider.conf is not base64"),
    ],
)
def test_a_failure_says_what_is_wrong(
    servers: Servers, connection: Connection, path: str, answer: Answer, problem: str
) -> None:
    servers.answers[path] = answer
    found = ask(connection, query(servers))

    assert found.nodes == 0
    assert found.problem.startswith(problem)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("[Global]", "[Other]", "has no section [Global] that can be read"),
        ("[Global]", f"[Global]\nbroken {PASSWORD}\n  more\n[", "has no section [Global] that can be read"),
        ('username="user-1"', "", "cloudprovider.conf has no username"),
        ('region="eu-de-1"', 'region="evil.example/"', "the region in cloudprovider.conf is no name"),
        ("http://127", "http://user:x@127", "auth-url is not a URL of a server"),
        ("http://127.0.0.1", "http://example.com", "auth-url does not begin with https://"),
        ("http://127", "http://[127", "auth-url is not a URL"),
        ("[Global]", "#" * 70_000, "cloudprovider.conf is larger than"),
    ],
)
def test_credentials_that_cannot_be_used_are_sent_nowhere(
    servers: Servers, connection: Connection, old: str, new: str, problem: str
) -> None:
    assert old in servers.conf
    servers.conf = servers.conf.replace(old, new, 1)
    found = ask(connection, query(servers))

    assert problem in found.problem
    assert servers.paths == [SECRET]


def test_no_message_has_the_password_or_the_token(
    servers: Servers, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    good, said = servers.conf, []
    broken = (good.replace("username", "x"), f"{good}\n]{PASSWORD}", f'{good}\npassword="{PASSWORD}')
    for conf in (good, *broken):
        for token in (TOKEN, f"{TOKEN} x", f"{TOKEN}\u00e9"):
            servers.conf = conf
            servers.answers[TOKENS] = json_answer({"password": PASSWORD}, 201, X_Subject_Token=token)
            servers.answers[CLUSTER] = json_answer({"token": TOKEN}, 500)
            said.append(ask(connection, query(servers)).problem)

    assert all(said)
    assert [text for text in (*said, caplog.text) if PASSWORD in text or TOKEN in text] == []


@pytest.mark.parametrize("cluster", ["../users", "..", ".", "a/../b", "a?b#c"])
def test_a_name_leads_to_no_other_path(servers: Servers, connection: Connection, cluster: str) -> None:
    ask(connection, query(servers, cluster))

    assert [path for path in servers.paths if path not in (SECRET, TOKENS)] in (
        [],
        [f"/api/v1/clusters/{cluster.replace('/', '%2F').replace('?', '%3F').replace('#', '%23')}"],
    )


@pytest.mark.parametrize("kind", ["missing", "folder"])
def test_a_file_that_cannot_be_read_is_named(connection: Connection, tmp_path: Path, kind: str) -> None:
    file = tmp_path if kind == "folder" else tmp_path / "none"
    found = ask(connection, KubernikusQuery("c", file=str(file)))

    assert found.problem.startswith(str(file))


def test_many_clusters_share_the_time_of_a_pass(servers: Servers, connection: Connection) -> None:
    queries = [replace(query(servers), cluster=name) for name in "abcdefgh"]
    answers = Kubernikus(connection, clock=Time(each=1)).ask(queries)

    late = [one for one in answers.values() if "took all of the time" in one.problem]
    assert len(late) >= 6
    assert len(servers.paths) <= 6
