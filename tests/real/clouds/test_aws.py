"""AWS's scheduled events: whole passes on the real API server, with EC2 answered by botocore's stubber."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber
from hypothesis import strategies as st

from reconciler.kubernetes.paths import LEDGER
from reconciler.model.errors import CloudError
from reconciler.model.event import Answer, Kind, Status
from reconciler.model.machine import InstanceEvent
from reconciler.model.node import Node
from reconciler.model.polling import Memory, ScopeAnswer
from reconciler.model.ports import Outside
from reconciler.passes.assess import assess
from reconciler.passes.decide import decide
from reconciler.passes.observe import observe
from reconciler.run import PARTS
from reconciler.sources.aws import client as ec2_client
from reconciler.sources.aws import source as aws
from reconciler.sources.aws.client import PAGE, Aws, connect
from tests.real.passes.scene import PassReport, Scene
from tests.support import builders
from tests.support.builders import NOW, minutes
from tests.support.controlplane import fill
from tests.support.worlds import world_of

Object = dict[str, Any]
REGION = "eu-west-1"
EC2 = aws.Ec2Events()
NONE: Memory[str, InstanceEvent] = Memory()
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

    def refuses(self, code: str, status: int = 503) -> None:
        self.client(REGION)
        self.stubs[REGION].add_client_error(
            "describe_instance_status", code, "Request limit exceeded.", status
        )
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


# Whole passes.


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


def test_all_events_of_an_instance_are_reported_with_all_their_dates(scene: Scene, ec2: FakeEc2) -> None:
    name = node(scene)
    ec2.reported(
        status(
            0,
            event("system-maintenance", 48, now=scene.now, number=1),
            event("instance-retirement", 200, now=scene.now, number=2),
        )
    )
    report = scene.run().node(name)

    assert [one["kind"] for one in report["events"]] == ["Reboot", "Terminate"]
    assert all("its start may be moved until" in one["description"] for one in report["events"])
    assert [one["ids"] for one in report["events"]] == [
        ["instance-event-00000000000000001"],
        ["instance-event-00000000000000002"],
    ]


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


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "UnauthorizedOperation", "InternalError"])
def test_an_ec2_that_does_not_answer_makes_its_nodes_unknown_and_is_asked_again_later(
    scene: Scene, ec2: FakeEc2, code: str
) -> None:
    name = node(scene)
    reboot = event(now=scene.now, hours=0.1)
    ec2.reported(status(0, reboot))
    scene.finish()
    ec2.refuses(code)
    refused = again(scene)
    held = scene.cordoned(name)
    at_once = scene.run()
    ec2.reported(status(0))
    again(scene)
    scene.run()

    assert code in " ".join(refused.node(name)["unknown"])
    assert held
    assert "eventsGone" in refused.holds(name)
    assert at_once.node(name)["unknown"] == refused.node(name)["unknown"]
    assert scene.is_untouched(name)


# The parser.


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("instance-reboot", Kind.REBOOT),
        ("system-reboot", Kind.REBOOT),
        ("system-maintenance", Kind.REBOOT),
        ("instance-stop", Kind.REDEPLOY),
        ("instance-retirement", Kind.TERMINATE),
        ("instance-nap", Kind.UNKNOWN),
    ],
)
def test_each_code_has_its_kind(code: str, kind: Kind) -> None:
    reading = read([status(0, event(code, now=NOW))])

    assert [signal.kind for signal in reading.signals] == [kind]


@pytest.mark.parametrize("word", ["[Completed]", "[Canceled]", "[Cancelled]", " [completed]"])
def test_what_is_over_is_no_event(word: str) -> None:
    over = event(now=NOW, words=f"{word} The instance is running on degraded hardware")

    assert read([status(0, over)]).answer is Answer.NO_EVENT


def test_an_event_has_started_once_its_time_has_come_and_that_is_a_moment_of_change() -> None:
    memory = remembered([status(0, event(now=NOW, hours=0.05))])
    before, after = (EC2.reading(on(), memory, NOW + minutes(count)) for count in (0, 3))

    assert before is not None
    assert after is not None
    assert [one.status for one in (*before.signals, *after.signals)] == [Status.SCHEDULED, Status.STARTED]
    assert NOW + minutes(3) in EC2.changes(memory, NOW)


def test_a_date_that_can_not_be_read_is_reported_as_such() -> None:
    [signal] = read([status(0, {**event(now=NOW), "NotBefore": "soon"})]).signals

    assert signal.date_unreadable
    assert signal.not_before is None


def test_an_expired_answer_is_unknown_in_a_process_without_a_client() -> None:
    stale = EC2.reading(on(), remembered([]), NOW + minutes(5))

    assert stale is not None
    assert stale.answer is Answer.UNKNOWN


@pytest.mark.parametrize(
    ("provider_id", "known"),
    [
        ("aws:///eu-west-1a/i-0123456789abcdef0", ("eu-west-1", "i-0123456789abcdef0")),
        ("aws:///us-gov-west-1b/i-0a", ("us-gov-west-1", "i-0a")),
        ("aws:///us-west-2-lax-1a/i-0a", ("us-west-2", "i-0a")),
        ("aws:///us-east-1-wl1-bos-wlz-1/i-0a", ("us-east-1", "i-0a")),
        ("aws:///ap-southeast-2c/I-0A", ("ap-southeast-2", "i-0a")),
        ("aws:///eu-west-1a/0a1b/fargate-ip-10-0-0-1", None),
        ("aws:///eu-west-1a/i-0a\n", None),
        ("aws:///eu-west-1a/i-" + "0" * 18, None),
        ("aws:///evil.example-1a/i-0a", None),
        ("aws:///eu-" + "w" * 40 + "-1a/i-0a", None),
        ("aws:///eu-we\u017ft-1a/i-0a", None),
        ("aws:///eu-west-\u0661a/i-0a", None),
        ("azure:///subscriptions/s/resourceGroups/g", None),
        ("", None),
    ],
)
def test_region_and_instance_stand_in_the_provider_id(
    provider_id: str, known: tuple[str, str] | None
) -> None:
    assert aws.instance_of(provider_id) == known


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


def test_a_list_with_any_content_is_read_without_an_exception() -> None:
    odd: list[Object] = [{}, {"InstanceId": None, "Events": "none"}, {"Events": [None, {}, {"Code": 7}]}]

    assert len(aws.listing(REGION, odd).found) == 2


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


# The memory.

moments = st.integers(0, 10**6).map(lambda count: NOW + timedelta(seconds=count))
events = st.builds(
    InstanceEvent,
    id=st.text(max_size=5),
    code=st.sampled_from(tuple(aws.CODES)),
    description=st.text(max_size=9),
    not_before=st.none() | moments,
    not_after=st.none() | moments,
    latest=st.none() | moments,
    unreadable=st.booleans(),
)
answers: st.SearchStrategy[ScopeAnswer[str, InstanceEvent]] = st.builds(
    ScopeAnswer,
    scope=st.sampled_from(("eu-west-1", "us-east-1")),
    asked=moments,
    again=moments,
    found=st.lists(st.tuples(st.sampled_from(("i-0a", "i-0b")), events), max_size=3).map(EC2.in_order),
    problem=st.text(max_size=9),
)


def test_with_one_answer_in_force_the_plan_says_when_it_changes() -> None:
    world = world_of([on()])
    fake = FakeEc2()
    fake.reported(status(0, event(now=NOW, hours=200)))
    policy = builders.settings(
        "sources: {aws: {enabled: true}}\nwindows: [{schedule: '@yearly', duration: 1h}]"
    )
    seen = observe(Outside(reader=world.api, clients={"aws": Aws(fake.client)}), policy, NOW, PARTS)
    plan = decide(seen, assess(seen, NOW), policy, NOW, PARTS)

    assert plan.ledger is not None
    assert plan.ledger.memories["aws"].answers[0].again == NOW + minutes(5)
    assert plan.next_change == NOW + minutes(5)


def on() -> Node:
    found = builders.node()
    return Node(found.name, found.uid, "1", provider_id=f"aws:///eu-west-1a/{instance(0)}")


def remembered(statuses: list[Object]) -> Memory[str, InstanceEvent]:
    return EC2.remembered(NONE, [aws.listing(REGION, statuses)], [on()], minutes(5), NOW)


def read(statuses: list[Object]) -> Any:
    reading = EC2.reading(on(), remembered(statuses), NOW)
    assert reading is not None
    return reading
