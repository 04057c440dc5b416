"""The EC2 client with boto3's own client, whose answers botocore's stubber gives."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber

from reconciler.model.errors import CloudError
from reconciler.sources.aws import client as ec2_client
from reconciler.sources.aws import source as aws
from reconciler.sources.aws.client import PAGE, Aws, connect

REGION = "cn-north-1"
PLAIN: dict[str, Any] = {
    "Filters": [{"Name": "event.code", "Values": sorted(aws.CODES)}],
    "IncludeAllInstances": True,
    "MaxResults": PAGE,
}
MANAGED = {**PLAIN, "IncludeManagedResources": True}
EVENT = {"InstanceEventId": "instance-event-1", "Code": "system-reboot"}
ANSWER: dict[str, Any] = {"InstanceStatuses": [{"InstanceId": "i-0a", "Events": [EVENT]}]}


@pytest.fixture
def stubbed() -> Stubber:
    client = boto3.client("ec2", region_name=REGION, aws_access_key_id="none", aws_secret_access_key="none")
    stub = Stubber(client)
    stub.activate()
    return stub


@pytest.mark.parametrize("code", ["UnknownParameter", "InvalidParameterValue", "UnsupportedOperation"])
def test_a_region_that_does_not_know_managed_resources_is_asked_without(stubbed: Stubber, code: str) -> None:
    said = "The parameter IncludeManagedResources is not recognized"
    stubbed.add_client_error("describe_instance_status", code, said, 400, expected_params=MANAGED)
    stubbed.add_response("describe_instance_status", ANSWER, PLAIN)
    stubbed.add_response("describe_instance_status", ANSWER, PLAIN)
    client = Aws(lambda _: stubbed.client)

    first, second = client.ask([REGION]), client.ask([REGION])

    assert [len(one.found) for one in (*first, *second)] == [1, 1]
    stubbed.assert_no_pending_responses()


def test_another_refusal_is_not_repeated(stubbed: Stubber) -> None:
    stubbed.add_client_error(
        "describe_instance_status", "UnauthorizedOperation", "no", 403, expected_params=MANAGED
    )

    (found,) = Aws(lambda _: stubbed.client).ask([REGION])

    assert "UnauthorizedOperation" in found.problem
    stubbed.assert_no_pending_responses()


def test_regions_that_do_not_answer_in_time_leave_the_rest_for_a_later_pass() -> None:
    seconds = iter([0.0, 1.0, ec2_client.PATIENCE, ec2_client.PATIENCE])
    tried: list[str] = []

    def slow(region: str) -> Any:
        tried.append(region)
        raise CloudError("no such address")

    first, second, third = Aws(slow, clock=lambda: next(seconds)).ask(["xx-a-1", "xx-b-1", "xx-c-1"])

    assert tried == ["xx-a-1"]
    assert (first.asked, second.asked, third.asked) == (True, False, False)
    assert "90 s" in second.problem


def test_a_client_without_boto3_or_without_the_net_is_a_problem_and_no_exception() -> None:
    def missing(region: str) -> Any:
        raise CloudError(f"boto3 is not installed ({region})")

    def away(region: str) -> Any:
        raise EndpointConnectionError(endpoint_url=f"https://ec2.{region}.amazonaws.com")

    problems = [Aws(one).ask([REGION])[0].problem for one in (missing, away)]

    assert "boto3 is not installed" in problems[0]
    assert "Could not connect" in problems[1]


def test_the_real_client_neither_waits_nor_tries_twice() -> None:
    config = connect()(REGION).meta.config

    assert config.retries["total_max_attempts"] == 1
    assert config.connect_timeout <= 5
