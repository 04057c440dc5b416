"""The EC2 client with boto3's own client, whose answers botocore's stubber gives."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from reconciler.sources.aws import source as aws
from reconciler.sources.aws.client import PAGE, Aws

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
