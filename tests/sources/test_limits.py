"""What records, nodes and pods may hold: beyond the limits it is unreadable, or cut."""

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
from reconciler.model.node import Wanted
from reconciler.model.pod import LONGEST_GRACE
from reconciler.model.record import Record, Unreadable, record_of
from tests.laws.histories import MAIN
from tests.support import builders, shapes
from tests.support.builders import IMDS, PREFIX, RECORD

FAR = datetime(9999, 12, 31, tzinfo=UTC)
MANY_DIGITS = "9" * 5000
HALF = "\\ud800"
WANTED = Wanted(frozenset({"Ready", MAIN}), PREFIX)
EVENT = {"EventId": "A1", "EventType": "Reboot", "EventStatus": "Scheduled", "NotBefore": ""}


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
