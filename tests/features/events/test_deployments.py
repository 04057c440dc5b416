"""The Deployment of a ReplicaSet: which one it is, and how often the server is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from reconciler.features.events import deployments
from reconciler.features.events.deployments import Deployments
from reconciler.model.errors import TooManyRequests
from reconciler.model.pod import Owner
from reconciler.model.values import replace
from tests.support.stub import Answer, Asked, Stub, StubMaker, json_answer, status

WEB = Owner("ReplicaSet", "web-1", "apps/v1", "uid-web-1")
CONTROLLER = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "name": "web",
    "uid": "uid-web",
    "controller": True,
}


def of(*references: object, uid: str = "") -> Callable[[Asked], Answer]:
    """ReplicaSets with these references to owners, each with its hash as the end of its name."""

    def answer(asked: Asked) -> Answer:
        hashes = asked.query["labelSelector"].partition("(")[2].rstrip(")").split(",")
        names = [f"web-{one}" for one in hashes]
        found = [{"name": name, "uid": uid or f"uid-{name}", "ownerReferences": references} for name in names]
        return json_answer({"items": [{"metadata": metadata} for metadata in found]})

    return answer


@dataclass
class Server:
    """An API server with ReplicaSets, and the sentences that were warned with."""

    stub: Stub
    found: Deployments
    warned: list[str]
    answers: Callable[[Asked], Answer] = field(default_factory=lambda: of(CONTROLLER))

    @property
    def paths(self) -> list[str]:
        """What was asked."""
        return [asked.path for asked in self.stub.asked]

    @property
    def hashes(self) -> list[str]:
        """For which ReplicaSets each request asked."""
        return [asked.query["labelSelector"] for asked in self.stub.asked]

    def ask(self, namespace: str, owner: Owner, *others: Owner) -> Owner | None:
        """The Deployment of an owner; those of the others are asked for next."""
        return self.found.of(namespace, owner, {one: one.name[-1:] for one in (owner, *others)})


@pytest.fixture
def server(stub: StubMaker) -> Server:
    def answer(asked: Asked) -> Answer:
        return made.answers(asked)

    served, connection = stub(answer)
    warned: list[str] = []
    made = Server(served, Deployments(connection, warned.append), warned)
    return made


def test_it_is_the_controller_among_all_owners_and_asked_for_once(server: Server) -> None:
    server.answers = of({**CONTROLLER, "name": "another", "controller": False}, CONTROLLER)

    for _ in range(2):
        assert server.ask("shop", WEB) == Owner("Deployment", "web", "apps/v1", "uid-web")
    assert server.paths == ["/apis/apps/v1/namespaces/shop/replicasets"]


def test_those_of_a_namespace_that_are_wanted_are_read_with_one_request(server: Server) -> None:
    others = [replace(WEB, name=f"web-{number}", uid=f"uid-web-{number}") for number in (2, 3)]

    found = [server.ask("shop", one, WEB, *others) for one in (WEB, *others)]

    assert found == [Owner("Deployment", "web", "apps/v1", "uid-web")] * 3
    assert server.hashes == ["pod-template-hash in (1,2,3)"]


def test_a_hash_that_the_label_of_no_replica_set_has_is_not_asked_for(server: Server) -> None:
    assert server.found.of("shop", WEB, {WEB: "1) or (a"}) is None
    assert server.paths == []


def test_one_request_reads_a_limited_number(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployments, "MOST", 2)
    others = [replace(WEB, name=f"web-{number}", uid=f"uid-web-{number}") for number in (2, 3)]
    server.ask("shop", WEB, *others)

    assert server.hashes == ["pod-template-hash in (1,2)"]


@pytest.mark.parametrize(
    "references",
    [
        (),
        ({**CONTROLLER, "controller": False},),
        ({**CONTROLLER, "kind": "Rollout", "apiVersion": "argoproj.io/v1alpha1"},),
        ({**CONTROLLER, "apiVersion": "evil.example/v1"},),
        ({**CONTROLLER, "kind": "K" * 100_000},),
        ({**CONTROLLER, "name": "../secrets/a"},),
        ({**CONTROLLER, "name": "x" * 100_000},),
        ({**CONTROLLER, "kind": "Rollout"}, CONTROLLER),
    ],
)
def test_whatever_else_controls_it_is_no_deployment(server: Server, references: tuple[object, ...]) -> None:
    server.answers = of(*references)

    assert server.ask("shop", WEB) is None


@pytest.mark.parametrize(
    "answer", [of(CONTROLLER, uid="later"), lambda _: status(404), lambda _: Answer(b"[]")]
)
def test_one_that_is_gone_or_another_or_no_object_has_none_and_is_not_asked_for_again(
    server: Server, answer: Callable[[Asked], Answer]
) -> None:
    server.answers = answer

    assert [server.ask("shop", WEB) for _ in range(2)] == [None, None]
    assert len(server.paths) == 1


@pytest.mark.parametrize(
    "owner",
    [
        Owner("StatefulSet", "web-1", "apps/v1", "uid-web-1"),
        Owner("ReplicaSet", "web-1", "evil.example/v1", "uid-web-1"),
        Owner("ReplicaSet", "../secrets/a", "apps/v1", "uid-web-1"),
        Owner("ReplicaSet", "web-1", "apps/v1", ""),
    ],
)
def test_about_any_other_owner_the_server_is_not_asked(server: Server, owner: Owner) -> None:
    assert server.ask("shop", owner) is None
    assert server.paths == []


def test_a_missing_permission_is_said_once_and_closes_its_namespace_only(server: Server) -> None:
    server.answers = lambda asked: (
        status(403, "Forbidden", "no") if "/evil" in asked.path else of(CONTROLLER)(asked)
    )
    other = Owner("ReplicaSet", "web-2", "apps/v1", "uid-web-2")

    found = [server.ask(place, one) for place in ("evil", "evil-2", "shop") for one in (WEB, other)]

    assert [one is not None for one in found] == [False] * 4 + [True] * 2
    assert [path.split("/")[5] for path in server.paths] == ["evil", "evil-2", "shop", "shop"]
    (warning,) = server.warned
    assert warning.endswith(": needs list replicasets.apps in evil")


def test_after_an_answer_that_may_change_none_is_asked_for_in_a_while(server: Server) -> None:
    server.answers = lambda _: status(429, "TooManyRequests", "later")

    with pytest.raises(TooManyRequests):
        server.ask("shop", WEB)
    assert server.ask("other", WEB) is None
    assert len(server.paths) == 1


def test_only_the_last_ones_are_remembered(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployments, "KEPT", 2)

    for name in ("a", "b", "a", "c", "a", "b"):
        server.ask("shop", Owner("ReplicaSet", f"web-{name}", "apps/v1", f"uid-web-{name}"))

    assert server.hashes == [f"pod-template-hash in ({name})" for name in ("a", "b", "c", "b")]
