"""What passes that follow each other keep of what they have read."""

from __future__ import annotations

import threading

import pytest

from reconciler.kubernetes.scale import cluster as reading
from reconciler.kubernetes.scale.cluster import CachedCluster
from reconciler.kubernetes.scale.node_store import NodeStore
from reconciler.model.errors import Unauthorized
from reconciler.model.node import Wanted
from reconciler.model.ports import LookRequest
from tests.support.stub import Answer, Asked, StubMaker, json_answer, status


@pytest.mark.parametrize(("seconds", "asked"), [(1000.0, 1), (0.0, 2)], ids=["at once", "later"])
def test_what_rarely_changes_is_kept_for_a_while(
    stub: StubMaker, monkeypatch: pytest.MonkeyPatch, seconds: float, asked: int
) -> None:
    monkeypatch.setattr(reading, "KEPT_FOR", seconds)
    monkeypatch.setattr(reading, "KEPT_LONGER", 0.0)
    server, connection = stub(lambda _: json_answer({"gitVersion": "v1.36.0"}))
    cluster = CachedCluster(connection, store=NodeStore())

    assert [cluster.server_version().text for _ in range(2)] == ["v1.36.0"] * 2
    assert len(server.asked) == asked


def test_a_process_that_makes_one_pass_keeps_nothing(stub: StubMaker) -> None:
    server, connection = stub(lambda _: json_answer({"gitVersion": "v1.36.0"}))
    cluster = CachedCluster(connection)

    assert [cluster.server_version().text for _ in range(2)] == ["v1.36.0"] * 2
    assert len(server.asked) == 2


def test_all_that_a_look_shows_is_requested_before_the_nodes_have_come(stub: StubMaker) -> None:
    requested: set[str] = set()
    all_else = threading.Event()
    before: list[bool] = []

    def answer(asked: Asked) -> Answer:
        if asked.path == "/api/v1/nodes":
            before.append(all_else.wait(10))
            return status(403, "Forbidden")
        requested.add(asked.path)
        if len(requested) == 4:
            all_else.set()
        return json_answer({})

    _, connection = stub(answer)
    wanted = Wanted(frozenset(), "node-maintenance.dev")
    with pytest.raises(Unauthorized):
        CachedCluster(connection).look(LookRequest(wanted, agents=True, remediator=True, server=True))

    assert before == [True]
