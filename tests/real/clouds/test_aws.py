"""AWS's scheduled events: whole passes on the real API server, with EC2 answered by botocore's stubber."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from reconciler.kubernetes.connection import LEDGER
from reconciler.sources.aws.client import PAGE, Aws
from tests.real.passes.scene import PassReport, Scene
from tests.support.controlplane import fill

Object = dict[str, Any]
REGION = "eu-west-1"
SETTINGS = "sources: {aws: {enabled: true}}\nuncordon: {settle: 0s}\nbudget: {maxUnavailable: 100%}\n"
ASKED: Object = {
    "Filters": [
        {
            "Name": "event.code",
            "Values": [
                "instance-reboot",
                "instance-retirement",
                "instance-stop",
                "system-maintenance",
                "system-reboot",
            ],
        }
    ],
    "IncludeAllInstances": True,
    "IncludeManagedResources": True,
    "MaxResults": PAGE,
}


class FakeEc2:
    """boto3's own clients, by region, each answering what it was given, and nothing else."""

    def __init__(self) -> None:
        self.stubs: dict[str, Stubber] = {}
        self.clients: dict[str, Any] = {}
        self.asked: list[str] = []

    def client(self, region: str) -> Any:
        if region not in self.clients:
            # Invalid keys: the stubber sends no request, and AWS would refuse a real one.
            self.clients[region] = boto3.client(
                "ec2", region_name=region, aws_access_key_id="none", aws_secret_access_key="none"
            )
            self.stubs[region] = Stubber(self.clients[region])
            self.stubs[region].activate()
        self.asked.append(region)
        return self.clients[region]

    def reported(self, *statuses: Object, region: str = REGION, token: str = "", after: str = "") -> None:
        """Answer the next request with these; `token` says that more follows, `after` which page it is."""
        self.client(region)
        answer: Object = {"InstanceStatuses": list(statuses)}
        if token:
            answer["NextToken"] = token
        expected = {**ASKED, "NextToken": after} if after else ASKED
        self.stubs[region].add_response("describe_instance_status", answer, expected)
        self.asked.clear()


@pytest.fixture
def ec2(scene: Scene) -> Iterator[FakeEc2]:
    # Where the ledger lives, as the manifests make it.
    scene.api.create_namespace("node-maintenance")
    fake = FakeEc2()
    scene.clients["aws"] = Aws(fake.client)
    scene.set(SETTINGS)
    yield fake
    for stub in fake.stubs.values():
        stub.assert_no_pending_responses()


def instance(number: int) -> str:
    return f"i-{number:017x}"


def node(scene: Scene, number: int = 0, zone: str = "eu-west-1a") -> str:
    """Make a node on an EC2 instance."""
    name = f"ip-10-0-0-{number}.{zone}.compute.internal"
    made = fill.node(name, "np", zone, f"aws:///{zone}/{instance(number)}", images=1, now=scene.now)
    return str(scene.api.create("nodes", made)["metadata"]["name"])


def event(
    code: str = "system-reboot",
    hours: float = 1,
    *,
    now: datetime | None = None,
    number: int = 1,
    words: str = "scheduled reboot",
) -> Object:
    start = (now or datetime.now(UTC)) + timedelta(hours=hours)
    return {
        "InstanceEventId": f"instance-event-{number:017x}",
        "Code": code,
        "Description": words,
        "NotBefore": start,
        "NotAfter": start + timedelta(hours=2),
        "NotBeforeDeadline": start + timedelta(days=7),
    }


def status(number: int, *events: Object) -> Object:
    return {"InstanceId": instance(number), "Events": list(events)}


def again(scene: Scene) -> PassReport:
    """Let the interval go by, and look."""
    scene.clock.advance(minutes=6)
    for each in scene.api.list("nodes"):
        scene.condition_silent(each["metadata"]["name"])
    return scene.run()


def test_an_instance_is_drained_for_its_event_and_comes_back_when_aws_calls_it_completed(
    scene: Scene, ec2: FakeEc2
) -> None:
    busy, quiet = node(scene, 0), node(scene, 1)
    scene.workload("web", busy)
    reboot = event(now=scene.now, hours=0.1)
    ec2.reported(status(0, reboot))
    scene.finish()
    during = scene.cordoned(busy), scene.pods_on(busy), scene.cordoned(quiet)
    ec2.reported(status(0, {**reboot, "Description": "[Completed] scheduled reboot"}))
    again(scene)
    scene.run()

    assert during == (True, [], False)
    assert scene.is_untouched(busy)


def test_a_region_is_asked_once_an_interval_also_when_each_pass_is_a_new_process(
    scene: Scene, ec2: FakeEc2
) -> None:
    for number in range(3):
        node(scene, number)
    node(scene, 3, zone="us-west-2-lax-1a")
    ec2.reported(status(1, event(now=scene.now, hours=300)), token="more")
    ec2.reported(status(2, event(now=scene.now, hours=300, number=2)), after="more")
    ec2.reported(region="us-west-2")
    asked = []
    for _ in range(4):
        scene.new_process()
        scene.clients["aws"] = Aws(ec2.client)
        scene.run()
        asked += ec2.asked
        ec2.asked.clear()
        scene.clock.advance(minutes=1)
    remembered = scene.api.get("configmaps", LEDGER, "node-maintenance")["data"]["aws"]

    assert asked == ["eu-west-1", "us-west-2"]
    assert [one["scope"] for one in json.loads(remembered)["answers"]] == ["eu-west-1", "us-west-2"]
