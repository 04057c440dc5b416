"""What a node's annotations and conditions may hold: beyond the limits they are unreadable."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from reconciler.kubernetes import ledger
from reconciler.kubernetes.objects import OnlyMetadata
from reconciler.kubernetes.wire import protobuf
from reconciler.kubernetes.wire.formats import budget_format, json_format, node_format, pod_format
from reconciler.model import limits
from reconciler.model.errors import Rejected
from reconciler.model.event import Answer, Kind
from reconciler.model.node import Condition, Wanted
from reconciler.model.pod import LONGEST_GRACE
from reconciler.model.record import Record, Unreadable, record_of
from reconciler.model.snapshot import Agents
from reconciler.sources.condition.source import parse_message, read
from reconciler.sources.imds import scheduled_events as imds
from reconciler.sources.imds import source as published
from reconciler.sources.named_condition import read_named
from reconciler.sources.request import source as request
from tests.laws.histories import MAIN
from tests.support import builders, shapes
from tests.support.builders import IMDS, PREFIX, RECORD, REQUEST

FAR = datetime(9999, 12, 31, tzinfo=UTC)
MANY_DIGITS = "9" * 5000
HALF = "\\ud800"
WANTED = Wanted(frozenset({"Ready", MAIN}), PREFIX)
EVENT = {"EventId": "A1", "EventType": "Reboot", "EventStatus": "Scheduled", "NotBefore": ""}


def test_a_message_with_thousands_of_digits_is_an_event_of_unknown_duration() -> None:
    found = parse_message("s", f"Reboot Started. DurationInSeconds: {MANY_DIGITS}. Because.")
    assert (found.kind, found.duration) == (Kind.REBOOT, None)


def test_a_heartbeat_that_can_not_be_meant_makes_the_reading_unknown() -> None:
    (found,) = read(builders.node(conditions=(builders.condition(MAIN, "False", at=FAR),)))
    assert found.answer is Answer.UNKNOWN
    assert found.as_of is None


def test_a_transition_that_can_not_be_meant_makes_a_named_condition_unknown() -> None:
    broken = Condition("KernelDeadlock", "True", transition=FAR)
    (found,) = read_named(
        builders.node(conditions=(broken,)), builders.settings("conditions: {KernelDeadlock: {}}")
    )
    assert found.answer is Answer.UNKNOWN


def test_texts_of_a_condition_are_cut() -> None:
    (found,) = read(builders.node(conditions=(builders.condition(MAIN, "Unknown", "x" * 10**6),)))
    assert len(found.because) < 2 * limits.TEXT
    assert len(parse_message("s", "Hibernate Scheduled. " + "x" * 10**6).description) <= limits.TEXT


@pytest.mark.parametrize(
    "text",
    [
        f'{{"kind":"Reboot","duration":{MANY_DIGITS}}}',
        f'{{"kind":{MANY_DIGITS}}}',
        f'{{"kind":"Reboot","notBefore":{MANY_DIGITS}}}',
        '{"kind":"Reboot","notBefore":"9999-12-31T23:59:59Z"}',
        '{"kind":"Reboot","duration":"9999999d"}',
        f'{{"{HALF}":1}}',
        "[" * 20_000,
        '{"kind":"Reboot","reason":"' + "x" * limits.ANNOTATION + '"}',
    ],
)
def test_a_request_beyond_the_limits_is_one_unreadable_event(text: str) -> None:
    (found,) = request.read(builders.node(annotations={REQUEST: text}), PREFIX).signals
    assert found.kind is Kind.UNKNOWN
    assert len(found.description) <= limits.TEXT


def test_half_a_surrogate_pair_in_a_request_is_replaced() -> None:
    text = f'{{"kind":"Reboot","id":"{HALF}","reason":"a{HALF}"}}'
    (found,) = request.read(builders.node(annotations={REQUEST: text}), PREFIX).signals
    assert (found.kind, found.id, found.description) == (Kind.REBOOT, "\ufffd", "a\ufffd")


@pytest.mark.parametrize(
    "text",
    [
        builders.published(EVENT) + " " * limits.ANNOTATION,
        builders.published(*[EVENT] * (limits.EVENTS + 1)),
        f'{{"version":{MANY_DIGITS}}}',
    ],
)
def test_published_events_beyond_the_limits_are_unknown(text: str) -> None:
    node = builders.node(annotations={IMDS: text})
    assert published.read(node, PREFIX, Agents(installed=True)).answer is Answer.UNKNOWN


def test_a_published_duration_of_many_digits_is_unknown() -> None:
    text = builders.published(EVENT).replace('"A1"', f'"A1", "DurationInSeconds": {MANY_DIGITS}')
    (found,) = imds.published(text).signals
    assert (found.id, found.duration) == ("A1", None)


@pytest.mark.parametrize("description", ["", "x" * 5000])
def test_the_agent_publishes_no_more_than_is_read_and_says_what_is_missing(description: str) -> None:
    events = [
        {**EVENT, "EventId": f"E{n}", "Resources": ["vm"], "Description": description} for n in range(150)
    ]
    text = imds.to_annotation({"Events": events}, "vm")
    found = imds.published(text).signals

    assert len(text) <= limits.ANNOTATION
    kept = len(json.loads(text)["events"])
    assert 0 < kept <= limits.EVENTS
    assert found[-1].kind is Kind.UNKNOWN
    assert f"{150 - kept} more events" in found[-1].description


def test_an_event_that_alone_is_too_long_is_not_lost() -> None:
    text = imds.to_annotation({"Events": [{**EVENT, "Resources": ["vm"], "Description": "x" * 40_000}]}, "vm")
    (found,) = imds.published(text).signals
    assert found.kind is Kind.UNKNOWN


def _record(**change: object) -> str:
    held = json.loads(builders.held_node(builders.record()).annotations[RECORD])
    held["profiles"]["default"] |= change
    return json.dumps(held)


@pytest.mark.parametrize(
    "text",
    [
        _record(asked=[{"offer": "toy", "last": "2026-11-21T12:00:00Z", "attempts": 10**12}]),
        _record(asked=[{"offer": "toy", "last": "9000-11-21T12:00:00Z"}]),
        _record(since="9999-11-21T12:00:00Z"),
        _record(quietSince="0001-01-01T00:00:00Z"),
        _record(events=[{"kind": "Reboot", "ids": [], "sources": []}] * (limits.EVENTS + 1)),
        _record().replace('"attempt": 1', f'"attempt": {MANY_DIGITS}'),
        _record(
            asked=[{"offer": "toy", "last": "2026-11-21T12:00:00Z", "events": ["x" * limits.ANNOTATION]}]
        ),
        f'{{"version": {MANY_DIGITS}}}',
    ],
)
def test_a_record_beyond_the_limits_is_unreadable(text: str) -> None:
    found = record_of(builders.node(annotations={RECORD: text}), PREFIX)
    assert isinstance(found, Unreadable)
    assert len(found.because) <= 2 * limits.TEXT


def test_half_a_surrogate_pair_in_a_record_is_replaced() -> None:
    by_hand = builders.held_node(builders.record(), claimed_by="HALF").annotations[RECORD]
    found = record_of(builders.node(annotations={RECORD: by_hand.replace("HALF", HALF)}), PREFIX)
    assert isinstance(found, Record)
    assert found.claimed_by.encode("utf-8")


@pytest.mark.parametrize("seconds", [-(2**63), -62135596801, 253402300800, 2**63 - 1])
def test_times_of_nodes_and_pods_outside_of_the_calendar_break_no_list(seconds: int) -> None:
    node = protobuf.Node()
    node.metadata.name = "a"
    condition = node.status.conditions.add()
    condition.type, condition.status = "Ready", "False"
    condition.lastHeartbeatTime.seconds = condition.lastTransitionTime.seconds = seconds
    (ready,) = node_format(WANTED).read(node.SerializeToString()).conditions
    assert ready.unreadable == ("heartbeat", "transition")

    pod = protobuf.Pod()
    pod.metadata.deletionTimestamp.seconds = seconds
    pod.spec.terminationGracePeriodSeconds = 10**12
    found = pod_format().read(pod.SerializeToString())
    assert found.deleting_until == limits.LATEST
    assert found.spec.grace == LONGEST_GRACE


def test_the_end_of_a_pod_is_not_the_api_servers_sum_where_that_overflows() -> None:
    pod = protobuf.Pod()
    pod.metadata.deletionTimestamp.seconds = 1_800_000_000
    for grace, found in ((30, datetime.fromtimestamp(1_800_000_000, UTC)), (2**63 - 1, limits.LATEST)):
        pod.metadata.deletionGracePeriodSeconds = grace
        assert pod_format().read(pod.SerializeToString()).deleting_until == found


def test_an_annotation_is_kept_only_as_far_as_it_is_read() -> None:
    document = {"metadata": {"name": "a", "annotations": {IMDS: "x" * 10**6}}}
    node = node_format(WANTED).read(shapes.encoded(protobuf.Node(), document))
    assert len(node.annotations[IMDS]) == limits.ANNOTATION + 1


@pytest.mark.parametrize("have", [10**12, f"{MANY_DIGITS}", -1])
def test_replaced_nodes_beyond_the_limits_are_forgotten(have: object) -> None:
    one = {"node": "a", "uid": "u", "zone": "", "pool": "", "have": have, "at": "2026-11-21T12:00:00Z"}
    assert ledger.from_data({ledger.REPLACED: json.dumps([one])}).replaced == ()


def test_texts_that_are_no_utf_8_break_no_list() -> None:
    node = protobuf.Node()
    node.metadata.name = "a"
    node.metadata.annotations[IMDS] = node.spec.providerID = node.status.nodeInfo.bootID = "BROKEN"
    condition = node.status.conditions.add()
    condition.type, condition.status = "Ready", "False"
    condition.reason = condition.message = "BROKEN"
    broken = node.SerializeToString().replace(b"BROKEN", b"a\xff\xfe\xfdbc")
    found = node_format(WANTED).read(broken)
    assert (found.annotations[IMDS], found.provider_id, found.boot_id) == ("a\ufffd\ufffd\ufffdbc",) * 3
    assert (found.conditions[0].reason, found.conditions[0].message) == ("a\ufffd\ufffd\ufffdbc",) * 2


@pytest.mark.parametrize("where", ["annotation", "phase", "condition", "owner"])
def test_texts_of_a_pod_that_are_no_utf_8_break_no_list(where: str) -> None:
    pod = protobuf.Pod()
    pod.metadata.name = "web"
    match where:
        case "annotation":
            pod.metadata.annotations[f"{PREFIX}/drain"] = "BROKEN"
        case "phase":
            pod.status.phase = "BROKEN"
        case "condition":
            pod.status.conditions.add().type = "BROKEN"
        case _:
            owner = pod.metadata.ownerReferences.add()
            owner.controller, owner.name, owner.kind = True, "BROKEN", "Job"
    broken = pod.SerializeToString().replace(b"BROKEN", b"a\xff\xfe\xfdbc")
    found = pod_format().read(broken)
    owners = [found.owner.name] if found.owner else []
    assert all(isinstance(one, str) for one in (found.phase, *found.annotations.values(), *owners))


def test_a_budget_with_texts_that_are_no_utf_8_breaks_no_list() -> None:
    budget = protobuf.PodDisruptionBudget()
    budget.metadata.name = budget.metadata.namespace = "BROKEN"
    budget.spec.selector.matchLabels["app"] = "BROKEN"
    broken = budget.SerializeToString().replace(b"BROKEN", b"a\xff\xfe\xfdbc")
    found = budget_format().read(broken)
    assert (found.namespace, found.name) == ("a\ufffd\ufffd\ufffdbc",) * 2


def test_a_key_that_is_no_utf_8_is_refused_and_no_other_error() -> None:
    node = protobuf.Node()
    node.metadata.labels["BROKEN"] = "x"
    with pytest.raises(Rejected):
        node_format(WANTED).read(node.SerializeToString().replace(b"BROKEN", b"a\xff\xfe\xfdbc"))


def test_json_that_is_nested_too_deep_is_refused_and_no_other_error() -> None:
    deep = b'{"metadata": {"other": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    with pytest.raises(Rejected):
        json_format(OnlyMetadata, lambda one: one).read(deep)
