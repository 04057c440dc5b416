"""The client of ARM: no answer is too large, also when it is decoded, and none lasts too long."""

import gzip
from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.exceptions import AzureError
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.core.rest import HttpRequest

from reconciler.features.machines.agent_pools import client_at
from reconciler.http.bounded import LARGEST, Bounds, within_bounds
from reconciler.http.failures import report_requests
from tests.support.stub import Answer, Asked, Stub

MIB = 1 << 20


@pytest.fixture
def answers() -> list[Answer]:
    """What the stub says, in turn; the last one is repeated."""
    return []


@pytest.fixture
def server(answers: list[Answer]) -> Iterator[Stub]:
    """A cloud."""

    def answer(_: Asked) -> Answer:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    stub = Stub(answer)
    yield stub
    stub.close()


def arm(server: Stub) -> Any:
    client = client_at(server.url, SansIOHTTPPolicy[Any, Any]())
    return client.send_request(HttpRequest("GET", f"{server.url}/x"))


def test_an_answer_of_arm_is_read(server: Stub, answers: list[Answer]) -> None:
    answers.append(Answer(gzip.compress(b'{"a": 1}'), headers={"Content-Encoding": "gzip"}))

    assert arm(server).json() == {"a": 1}


def test_an_answer_of_arm_that_is_too_large_is_refused(server: Stub, answers: list[Answer]) -> None:
    answers.append(Answer(b" " * (LARGEST + MIB)))

    with pytest.raises(AzureError):
        arm(server)


def test_an_answer_of_arm_that_decodes_to_too_much_is_refused(server: Stub, answers: list[Answer]) -> None:
    bomb = gzip.compress(b" " * (LARGEST + MIB))
    answers.append(Answer(bomb, headers={"Content-Encoding": "gzip"}))

    assert len(bomb) < MIB
    with pytest.raises(AzureError, match="larger than"):
        arm(server)


def test_an_answer_of_arm_has_a_total_time(server: Stub, answers: list[Answer]) -> None:
    answers.append(Answer(hang=True))

    with within_bounds(Bounds(seconds=0.2)), pytest.raises(AzureError):
        arm(server)


def test_its_requests_are_reported(server: Stub, answers: list[Answer]) -> None:
    reported: list[tuple[str, str, int | None]] = []
    answers.append(Answer())
    end = report_requests(lambda api, method, status, *_: reported.append((api, method, status)))
    try:
        arm(server)
    finally:
        end()

    assert reported == [("arm", "GET", 200)]
