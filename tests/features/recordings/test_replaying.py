"""The replay of a recording decides what was decided, whichever source has spoken."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.recordings.file import LARGEST
from reconciler.model.content import CalendarPlace, CalendarText
from reconciler.model.errors import OutputError
from reconciler.model.machine import vm_of
from reconciler.model.node import Node
from reconciler.model.polling import Memory, ScopeAnswer
from reconciler.model.selector import EVERYTHING
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from reconciler.run import PARTS
from reconciler.simulation.workloads import BudgetSpec
from reconciler.simulation.world import World
from tests.features.recordings.recording import ENFORCE, recording_of
from tests.support import builders, strategies
from tests.support.builders import NOW, PREFIX, minutes
from tests.support.worlds import world_of

LATER = NOW + timedelta(hours=1)
MINUTE = timedelta(minutes=1)

NIGHTS = "windows: [{name: nights, days: [Mon-Thu], start: '22:00', end: '05:00'}]\ntimeZone: Asia/Tokyo\n"
BATCH = "{agentpool: batch}"
LONG = "events: {Reboot: {outsideWindow: Never, leadTime: 1h}}"
HOOKS = (
    "hooks: {preDrain: [{name: lb, webhook: {url: https://lb.example.com/}}], preUncordon: [{name: backup, "
    "job: {spec: {template: {spec: {containers: [{name: a, image: example.com/a}]}}}}}]}\n"
)
RULES = (
    "drain: {rules: [{name: shops, namespaces: [shop], behavior: Skip}]}\ncoexist: {aksRemediator: Leave}\n"
)
POLICIES = (
    ENFORCE,
    "",
    "mode: Enforce\nbudget: {maxUnavailable: 2, spacing: 10m, perZone: 1, perPool: 1}\n",
    f"{ENFORCE}{NIGHTS}",
    f"{ENFORCE}nodeSelector: {BATCH}\noverrides: [{{nodeSelector: {BATCH}, {LONG}}}]\n",
    f"{ENFORCE}{HOOKS}publish: [node-conditions, drainsafe]\nhints: {{taint: true, label: true}}\n",
    f"{ENFORCE}events: {{Reboot: {{replace: true}}, Redeploy: {{acknowledge: true}}}}\n{RULES}",
    "mode: Finish\nkeys: {prefix: maintenance.example.com}\nadopt: [mechanic]\n",
)


@given(world=strategies.worlds(most=4), policy=st.sampled_from(POLICIES), data=st.data())
def test_a_recording_is_decided_as_the_cluster_was(world: World, policy: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(world.cluster.nodes)))

    found = recording_of(world, name, policy)

    assert found.notes == []
    assert found.replayed == found.read.decision
    # Only the names in the decision itself have stand-ins.
    assert {**found.decided, "readings": None, "events": None} == {
        **found.replayed,
        "readings": None,
        "events": None,
    }


def _in_aws() -> Node:
    return replace(
        builders.node("ip-10-0-0-7.ec2.internal"), provider_id="aws:///eu-west-1a/i-0a1b2c3d4e5f60718"
    )


def _in_azure(annotations: Mapping[str, str] | None = None) -> Node:
    bare = builders.node("aks-np-7", zone="westeurope-1", pool="np", annotations=annotations)
    return builders.on_vm(bare, 7)


IMDS_EVENT = {
    "EventId": "602D9444-D2CD-49C7-8624-8643E7171297",
    "EventType": "Redeploy",
    "EventStatus": "Scheduled",
    "NotBefore": strategies.rfc1123(LATER),
    "Description": "Host server is undergoing maintenance.",
}


def _world(source: str) -> tuple[World, str]:
    """A world in which this source alone reports an event, and what the settings need for it."""
    ledger = Ledger()
    again = NOW + minutes(5)
    polled = {one.name: one for one in PARTS.sources.polled}
    match source:
        case "imds":
            node = _in_azure({builders.IMDS: builders.published(IMDS_EVENT, vm=builders.vm_name(7))})
        case "condition:VMEventScheduled":
            message = (
                f"Redeploy Scheduled: {strategies.rfc1123(LATER)}. DurationInSeconds: 9. Host server is "
                "undergoing maintenance. EventId: 602D9444-D2CD-49C7-8624-8643E7171297"
            )
            node = replace(
                _in_azure(),
                conditions=(*_in_azure().conditions, builders.condition("VMEventScheduled", message=message)),
            )
        case "request":
            node = _in_azure({builders.REQUEST: '{"kind":"Redeploy","id":"CHG-42","reason":"for Bob"}'})
        case "condition:AcmeDiskBroken":
            node = replace(
                _in_azure(), conditions=(*_in_azure().conditions, builders.condition("AcmeDiskBroken"))
            )
        case "arm":
            node = _in_azure()
            vm = vm_of(node.provider_id)
            assert vm is not None
            planned = polled["arm"].fact(start=NOW + timedelta(days=1), end=NOW + timedelta(days=2))
            answered = Memory((ScopeAnswer(vm.scope, NOW, again, (("7", planned),)),))
            ledger = polled["arm"].kept.put(ledger, answered)
        case _:
            node = _in_aws()
            event = polled["aws"].fact("instance-event-0d59937288b749b32", "instance-stop", not_before=LATER)
            known = ("i-0a1b2c3d4e5f60718", event)
            ledger = polled["aws"].kept.put(ledger, Memory((ScopeAnswer("eu-west-1", NOW, again, (known,)),)))
    world = world_of([node, *(builders.node(f"other-{number}") for number in range(9))], start=NOW)
    world.cluster.ledger = ledger
    enabled = {
        "arm": "sources: {arm: {enabled: true, ahead: 2d, waitForNotice: Never}}\n",
        "aws": "sources: {aws: {enabled: true}}\n",
        "condition:AcmeDiskBroken": "conditions: {AcmeDiskBroken: {drain: true, for: 5m}}\n",
    }
    return world, f"{ENFORCE}{enabled.get(source, '')}"


@pytest.mark.parametrize(
    "source", ["imds", "condition:VMEventScheduled", "request", "condition:AcmeDiskBroken", "arm", "aws"]
)
def test_each_source_is_replayed_from_what_it_said(source: str) -> None:
    world, policy = _world(source)

    found = recording_of(world, min(world.cluster.nodes), policy)

    assert found.notes == []
    assert [event["asksForDrain"] for event in found.decided["events"]] == [True]
    assert found.replayed == found.read.decision
    assert {**found.replayed, "readings": None, "events": None} == {
        **found.decided,
        "readings": None,
        "events": None,
    }
    assert [event["notBefore"] for event in found.replayed["events"]] == [
        event["notBefore"] for event in found.decided["events"]
    ]


def test_the_nodes_without_news_are_counted_and_the_others_are_whole() -> None:
    nodes = [_in_azure({builders.REQUEST: builders.DRAIN_NOW})]
    nodes += [builders.node(f"quiet-{number}", zone="westeurope-1", pool="np") for number in range(40)]
    nodes += [builders.node(f"cordoned-{number}", unschedulable=True) for number in range(4)]
    world = world_of(nodes)

    found = recording_of(world, "aks-np-7", ENFORCE.replace("50%", "10%"))
    case = found.read.case

    assert [(group.node.zone, group.count) for group in case.groups] == [(case.node.zone, 40)]
    assert len(case.others) == 4
    # Four of five places are taken.
    assert found.replayed == found.read.decision
    assert found.replayed["state"] == "in-maintenance"


def test_pods_and_budgets_that_keep_a_drain_from_its_end_are_in_it() -> None:
    node = _in_azure({builders.REQUEST: json.dumps({"kind": "Reboot", "notBefore": LATER.isoformat()})})
    pods = [builders.pod("shop-1", "aks-np-7"), builders.pod("batch-1", "aks-np-7", owner="")]
    world = world_of([node, builders.node("b")], pods)
    world.cluster.add_budget(BudgetSpec("shop", "shop-budget", EVERYTHING, max_unavailable=0))

    found = recording_of(world, "aks-np-7")

    assert found.decided["pods"] == {"evict": 1, "keep": 1}
    assert found.replayed == found.read.decision
    assert found.decided["forecast"] == found.replayed["forecast"] != "on track"


@pytest.mark.parametrize("refused", ["pods", "budgets", "ledger"])
def test_what_the_sender_may_not_read_is_not_known_in_the_replay(refused: str) -> None:
    world = world_of([_in_azure({builders.REQUEST: builders.DRAIN_NOW}), builders.node("b")])

    found = recording_of(world, "aks-np-7", refused=[refused])

    assert found.notes == []
    assert [unseen.needs for unseen in found.read.case.unseen] != []
    assert found.replayed == found.read.decision


def test_a_recording_says_what_it_lacks() -> None:
    node = _in_azure({builders.REQUEST: json.dumps({"kind": "Reboot"}), f"{PREFIX}/maintenance-data": "{}"})
    world = world_of([node, builders.node("b")])
    policy = f"{ENFORCE}notify: [{{name: oncall, slack: {{webhook: https://example.com/secret}}}}]\n"

    found = recording_of(world, "aks-np-7", policy)

    assert found.notes == ["left out of the settings: notify"]


class _Calendar:
    """Reads the same list of times for each calendar."""

    def __init__(self, text: str) -> None:
        self._found = CalendarText(text) if text else CalendarText(unread="no answer from Acme")

    def read(self, places: Sequence[CalendarPlace]) -> Mapping[str, CalendarText]:
        return {place.name: self._found for place in places}


TIMES = """
- {start: 2026-11-20T00:00:00Z, end: 2026-11-22T00:00:00Z, title: Acme's sale}
- {start: 2026-12-01T00:00:00Z, end: 2026-12-02T00:00:00Z}
"""


@pytest.mark.parametrize("use", ["windows", "notAllowed"])
@pytest.mark.parametrize("text", [TIMES, "", "[]"], ids=["some", "unread", "none"])
def test_a_calendar_is_replayed_as_dates_without_its_text(use: str, text: str) -> None:
    when = (NOW + timedelta(days=30)).isoformat()
    asked = json.dumps({"kind": "Reboot", "notBefore": when})
    world = world_of([builders.node("aks-np-7", annotations={builders.REQUEST: asked}), builders.node("b")])
    policy = (
        f"{ENFORCE}calendars: [{{name: acme, file: /acme.ics, as: {use}, "
        "nodeSelector: {matchExpressions: [{key: gpu, operator: DoesNotExist}]}}]\n"
    )

    found = recording_of(world, "aks-np-7", policy, calendars=_Calendar(text))

    assert found.notes == []
    assert found.replayed == found.read.decision
    assert found.decided["plannedStart"] == found.replayed["plannedStart"]
    assert "acme" not in found.text


def test_a_large_case_has_fewer_nodes_and_pods_and_says_so() -> None:
    long = json.dumps({"kind": "Reboot", "reason": "word " * 2000})
    nodes = [builders.node(f"n-{number:03}", annotations={builders.REQUEST: long}) for number in range(120)]
    world = world_of(nodes, [builders.pod(f"web-{number}", "n-007") for number in range(600)])

    found = recording_of(world, "n-007")

    case = found.read.case
    assert len(found.text) <= LARGEST
    assert (len(case.others), case.left_out, len(case.pods)) == (20, 99, 200)
    assert found.replayed["events"] == found.read.decision["events"]
    assert "pods" in found.read.incomplete
    (note,) = found.notes
    assert "from the file alone, the decision is another one" in note


def test_what_does_not_fit_at_all_is_an_error() -> None:
    held = {f"{PREFIX}/pre-drain.hook-{number}": "somebody " * 3000 for number in range(40)}
    world = world_of([builders.node("a", annotations=held)])

    with pytest.raises(OutputError, match="what is read of a does not fit into 1000000 characters"):
        recording_of(world, "a")
