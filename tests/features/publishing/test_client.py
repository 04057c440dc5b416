"""The client of NodeMaintenance objects against objects and names that nobody of ours has written."""

from __future__ import annotations

import pytest

from reconciler.features.publishing.client import Client
from reconciler.features.publishing.objects import MaintenanceWrite
from reconciler.model.errors import Rejected
from tests.kubernetes.test_paths import HOSTILE
from tests.support.builders import PREFIX
from tests.support.stub import StubMaker, json_answer


def test_an_object_beyond_the_limits_is_read_and_written_again(stub: StubMaker) -> None:
    item = {
        "metadata": {"name": "m"},
        "spec": {"durationSeconds": 10**15, "notBefore": "9999-12-31T23:59:59Z"},
        "status": {"due": "soon"},
    }
    _, connection = stub(lambda _: json_answer({"metadata": {}, "items": [item]}))

    (maintenance,) = Client(connection).read(PREFIX) or ()

    assert (maintenance.duration, maintenance.event.not_before, maintenance.due) == (None, None, None)


def test_a_hostile_name_reaches_no_server(stub: StubMaker) -> None:
    server, connection = stub(lambda _: json_answer({}))
    client = Client(connection, guard=lambda: None)

    for name in HOSTILE:
        with pytest.raises(Rejected, match=r"is no name of a Kubernetes object|that can't exist"):
            client.write(MaintenanceWrite(name, "n", PREFIX, None, exists=True))
    assert server.asked == []
