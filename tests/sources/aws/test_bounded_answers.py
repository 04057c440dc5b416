"""The client of EC2: no answer is too large, and none lasts too long."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from reconciler.http.bounded import LARGEST, Bounds, within_bounds
from reconciler.http.failures import report_requests
from reconciler.sources.aws import client as ec2
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


@pytest.fixture
def described(server: Stub, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Ask EC2, which is the stub."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_EC2", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return ec2.connect()("eu-west-1").describe_instance_status


def test_an_answer_of_ec2_is_read(answers: list[Answer], described: Any) -> None:
    answers.append(Answer(b"<DescribeInstanceStatusResponse/>", content_type="text/xml"))

    assert described()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_an_answer_of_ec2_that_is_too_large_is_refused(answers: list[Answer], described: Any) -> None:
    answers.append(Answer(b" " * (LARGEST + MIB), content_type="text/xml"))

    with pytest.raises(BotoCoreError):
        described()


def test_an_answer_of_ec2_has_a_total_time(answers: list[Answer], described: Any) -> None:
    answers.append(Answer(hang=True))

    with within_bounds(Bounds(seconds=0.2)), pytest.raises(HTTPClientError):
        described()


def test_its_requests_are_reported(answers: list[Answer], described: Any) -> None:
    reported: list[tuple[str, str, int | None]] = []
    answers.append(Answer(b"<x/>", status=503))
    end = report_requests(lambda api, method, status, *_: reported.append((api, method, status)))
    try:
        with pytest.raises(ClientError):
            described()
    finally:
        end()

    assert reported == [("ec2", "POST", 503)]
