"""Acknowledging: why an event may not start yet, and what the agent is asked to acknowledge.

Aspects: what each VM of the event may lack, names and ids in any case, what the nodes report differently,
settings, people's hands, several events, the annotation and the record.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.model.event import Initiator, Kind, Signal, Status
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.record import CaseRecord, Cordon, DrainRecord, State, from_annotation
from reconciler.model.values import replace
from tests.support import builders
from tests.support.builders import (
    ACKNOWLEDGE,
    NOW,
    PREFIX,
    RECORD,
    held_node,
    known,
    minutes,
    on_vm,
    plan_of,
    planned,
    reading,
    record,
    reported,
    settings,
    signal,
    snapshot,
    vm_name,
)
from tests.support.cases import acknowledged

WANTED = "events: {Reboot: {acknowledge: true}}"
BOTH = (vm_name(1), vm_name(2))
A1 = known(ids=("A1",))


def reboot(
    *resources: str,
    kind: Kind = Kind.REBOOT,
    event_id: str = "A1",
    source: str = "imds",
    status: Status = Status.SCHEDULED,
    initiator: Initiator = Initiator.PLATFORM,
) -> Signal:
    """What the agents of an event's nodes publish."""
    return signal(
        kind,
        source=source,
        status=status,
        event_id=event_id,
        initiator=initiator,
        resources=resources or BOTH,
    )


def drained(
    name: str,
    instance: int,
    held: CaseRecord | None = None,
    *,
    claimed_by: str = "",
    pool: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    unschedulable: bool | None = None,
) -> Node:
    """A node that was emptied for event A1."""
    bare = held_node(
        held or record(events=(A1,)),
        name,
        claimed_by=claimed_by,
        pool=pool,
        labels=labels,
        annotations=annotations,
        unschedulable=unschedulable,
    )
    return on_vm(bare, instance)


def two(b: Node | None = None, *said_on_b: Signal, text: str = WANTED, a: Node | None = None) -> Plan:
    """A plan for node a, about which nothing is amiss, and node b."""
    nodes = (a or drained("a", 1), b or drained("b", 2))
    readings = {"a": reported(reboot()), "b": reported(*(said_on_b or (reboot(),)))}
    return planned(snapshot(*nodes, readings=readings), settings(text))


def given(plan: NodePlan) -> list[str] | None:
    """What the agent is asked to acknowledge from now on; None where nothing is written about it."""
    if plan.todo.write is None or plan.todo.write.annotations.get(ACKNOWLEDGE) is None:
        return None
    found: list[str] = json.loads(plan.todo.write.annotations[ACKNOWLEDGE] or "")
    return found


def written(plan: NodePlan) -> tuple[str, ...]:
    """What the record knows of it after the pass."""
    assert plan.record is not None
    asked = plan.record.asked_by("acknowledge")
    return asked.events if asked is not None else ()


def refusal(plan: Plan, name: str = "a") -> str:
    """Why the event of a node is not acknowledged; it is a hold, so that the report shows it."""
    (hold,) = [hold for hold in plan_of(plan, name).holds if hold.code == "offerDue"]
    assert given(plan_of(plan, name)) is None
    return hold.reason.removeprefix("event A1 is not acknowledged: ")


def test_when_every_vm_is_a_drained_node_the_event_is_acknowledged_on_each() -> None:
    plan = two()

    for name in ("a", "b"):
        one = plan_of(plan, name)
        assert given(one) == ["A1"]
        assert written(one) == ("A1",)
        assert [notice.reason for notice in one.todo.notices] == ["MaintenanceAcknowledged"]
        assert one.after is State.IN_MAINTENANCE
        assert one.todo.write is not None
        assert one.todo.write.annotations[RECORD] is not None
        assert one.todo.write.unschedulable is None


BEING_DRAINED = record(events=(A1,), drain=DrainRecord(NOW))
OF_ANOTHER = record(events=(known(not_before=NOW + minutes(600), ids=("Z9",)),))


@pytest.mark.parametrize(
    ("b", "why"),
    [
        pytest.param(
            on_vm(builders.node("b"), 3), f"VM {vm_name(2)} is not a node of this cluster", id="no such node"
        ),
        pytest.param(
            replace(drained("b", 2), provider_id=""),
            f"VM {vm_name(2)} is not a node of this cluster",
            id="a node that has no VM",
        ),
        pytest.param(drained("b", 2, BEING_DRAINED), "node b is not drained for it yet", id="being drained"),
        pytest.param(
            drained("b", 2, replace(BEING_DRAINED, drain=None, cordon=Cordon.ADOPTED_MECHANIC)),
            "node b is not drained for it yet",
            id="adopted and not drained",
        ),
        pytest.param(
            drained(
                "b",
                2,
                replace(record(State.REQUIRED, events=(A1,)), drain=record().drain),
                unschedulable=True,
            ),
            "node b is not drained for it yet",
            id="not in maintenance",
        ),
        pytest.param(drained("b", 2, unschedulable=False), "node b is not drained for it yet", id="opened"),
        pytest.param(
            drained("b", 2, OF_ANOTHER), "node b is not drained for it yet", id="drained for another event"
        ),
        pytest.param(
            drained("b", 2, record(events=(known(Kind.FREEZE, ids=("A1",)),))),
            "node b is not drained for it yet",
            id="drained while it was of another kind",
        ),
        pytest.param(
            drained("b", 2, record(events=(A1,)), claimed_by="ann"),
            "node b must not be changed: it is drained by hand by ann, and stays out of service until it is "
            "released",
            id="claimed by hand",
        ),
        pytest.param(
            on_vm(builders.node("b", annotations={RECORD: "{"}, unschedulable=True), 2),
            "node b must not be changed: its record is not changed: it can't be read: "
            "Expecting property name enclosed in double quotes: line 1 column 2 (char 1); "
            "reconciler release b --reset removes it",
            id="a record that can't be read",
        ),
    ],
)
def test_one_vm_that_is_no_drained_node_keeps_all_of_them_waiting(b: Node, why: str) -> None:
    assert refusal(two(b)) == why


@pytest.mark.parametrize(
    ("said", "why"),
    [
        pytest.param((), "node b has not reported it yet", id="nothing"),
        pytest.param((reboot(source="request"),), "node b has not reported it yet", id="from another source"),
        pytest.param(
            (reboot(status=Status.STARTED),),
            "the settings of node b do not acknowledge it, or it has started there",
            id="started",
        ),
        pytest.param(
            (reboot(kind=Kind.REDEPLOY),),
            "the settings of node b do not acknowledge it, or it has started there",
            id="a kind that is not to be acknowledged",
        ),
        pytest.param(
            (reboot(), reboot(status=Status.STARTED)),
            "the settings of node b do not acknowledge it, or it has started there",
            id="both scheduled and started",
        ),
    ],
)
def test_every_node_has_to_report_it_as_one_to_be_started(said: tuple[Signal, ...], why: str) -> None:
    readings = {"a": reported(reboot()), "b": reported(*said)}
    plan = planned(snapshot(drained("a", 1), drained("b", 2), readings=readings), settings(WANTED))

    assert refusal(plan) == why


def test_a_node_without_a_plan_keeps_the_others_waiting() -> None:
    plan = planned(
        snapshot(drained("a", 1), on_vm(builders.node("b"), 2), readings={"a": reported(reboot())}),
        settings(WANTED),
    )

    assert refusal(plan) == "node b has not reported it yet"


@pytest.mark.parametrize("on", ["Reboot: {drain: false}", "Reboot: {acknowledge: false}"])
def test_an_override_for_one_of_its_nodes_keeps_all_of_them_waiting(on: str) -> None:
    text = f"{WANTED}\noverrides: [{{nodeSelector: {{agentpool: gold}}, events: {{{on}}}}}]"
    plan = two(drained("b", 2, pool="gold"), text=text)

    assert refusal(plan) == "the settings of node b do not acknowledge it, or it has started there"
    assert given(plan_of(plan, "b")) is None
    assert "offerDue" not in builders.codes(plan_of(plan, "b"))


def test_by_default_nothing_is_acknowledged_and_nothing_is_said_of_it() -> None:
    plan = two(text="")

    for name in ("a", "b"):
        assert given(plan_of(plan, name)) is None
        assert written(plan_of(plan, name)) == ()
        assert "offerDue" not in builders.codes(plan_of(plan, name))


def test_a_users_own_event_is_acknowledged_where_it_is_drained_for() -> None:
    own = reboot(initiator=Initiator.USER)
    readings = {"a": reported(own), "b": reported(own)}
    seen = snapshot(drained("a", 1), drained("b", 2), readings=readings)
    drains = planned(seen, settings("events: {Reboot: {acknowledge: true}, userInitiated: Drain}"))
    reports = planned(seen, settings(WANTED))

    assert given(plan_of(drains)) == ["A1"]
    assert given(plan_of(reports)) is None


# Names and ids.


def test_names_and_ids_are_compared_without_regard_to_case() -> None:
    spelled = reboot(vm_name(1).upper(), f" {vm_name(2).title()} ", event_id="a1")
    plan = two(drained("b", 2, record(events=(known(ids=("a1",)),))), spelled)

    # Each agent is asked in the spelling of its own IMDS.
    assert given(plan_of(plan, "a")) == ["A1"]
    assert given(plan_of(plan, "b")) == ["a1"]


def test_a_providers_id_may_be_in_any_case() -> None:
    loud = drained("b", 2)

    assert given(plan_of(two(replace(loud, provider_id=loud.provider_id.upper())))) == ["A1"]


def test_an_id_with_a_new_spelling_is_acknowledged_once_the_record_has_it() -> None:
    seen = two(None, reboot(event_id="a1"))
    after = plan_of(seen, "b").record

    assert refusal(seen) == "node b is not drained for it yet"
    assert after is not None
    assert after.drain == record().drain
    assert given(plan_of(two(drained("b", 2, after), reboot(event_id="a1")))) == ["A1"]


def test_two_nodes_with_one_vms_name_keep_it_waiting() -> None:
    twin = drained("c", 2)
    readings = {name: reported(reboot()) for name in ("a", "b", "c")}
    plan = planned(snapshot(drained("a", 1), drained("b", 2), twin, readings=readings), settings(WANTED))

    assert refusal(plan) == f"VM {vm_name(2)} may be any of b, c"


def test_a_vm_whose_name_begins_like_anothers_is_another() -> None:
    named = reboot(vm_name(1), vm_name(10))
    readings = {"a": reported(named), "b": reported(named)}

    def plan(*nodes: Node) -> Plan:
        return planned(snapshot(*nodes, readings=readings), settings(WANTED))

    assert given(plan_of(plan(drained("a", 1), drained("b", 10)))) == ["A1"]
    assert (
        refusal(plan(drained("a", 1), drained("b", 100))) == f"VM {vm_name(10)} is not a node of this cluster"
    )


# What the nodes report differently.


@pytest.mark.parametrize("fuller", ["a", "b"])
def test_where_nodes_report_different_vms_all_of_them_count(fuller: str) -> None:
    readings = {
        name: reported(reboot(*BOTH, vm_name(3)) if name == fuller else reboot()) for name in ("a", "b")
    }
    plan = planned(snapshot(drained("a", 1), drained("b", 2), readings=readings), settings(WANTED))

    assert refusal(plan) == refusal(plan, "b") == f"VM {vm_name(3)} is not a node of this cluster"


@pytest.mark.parametrize("silent", ["a", "b"])
def test_an_event_that_one_report_shows_without_its_vms_may_be_about_any_vm(silent: str) -> None:
    vague = dataclasses.replace(reboot(kind=Kind.UNKNOWN), resources=())
    # Another source says what it is, by the same id.
    clear = dataclasses.replace(reboot(), source="condition:VMEventScheduled", resources=())
    readings = {name: reported(vague, clear) if name == silent else reported(reboot()) for name in ("a", "b")}
    plan = planned(snapshot(drained("a", 1), drained("b", 2), readings=readings), settings(WANTED))

    assert refusal(plan).startswith("it does not say which VMs it is about")
    assert refusal(plan, "b") == refusal(plan)


def test_an_event_without_an_id_can_not_be_acknowledged() -> None:
    nameless = reboot(event_id="")
    plan = planned(snapshot(drained("a", 1, record()), readings={"a": reported(nameless)}), settings(WANTED))

    assert given(plan_of(plan)) is None
    assert "offerDue" not in builders.codes(plan_of(plan))


def test_an_event_that_is_reported_twice_is_acknowledged_once() -> None:
    same = reboot(vm_name(1))
    seen = snapshot(
        drained("a", 1), readings={"a": reported(same, dataclasses.replace(same, description="again"))}
    )
    plan = plan_of(planned(seen, settings(WANTED)))

    assert given(plan) == ["A1"]
    assert written(plan) == ("A1",)


def test_only_the_first_three_reasons_are_listed_and_the_others_counted() -> None:
    others = [vm_name(number) for number in (5, 6, 7, 8)]
    four = planned(
        snapshot(drained("a", 1), readings={"a": reported(reboot(vm_name(1), *others))}), settings(WANTED)
    )
    three = planned(
        snapshot(drained("a", 1), readings={"a": reported(reboot(vm_name(1), *others[:3]))}), settings(WANTED)
    )
    reasons = [f"VM {name} is not a node of this cluster" for name in others]

    assert refusal(four) == f"{'; '.join(reasons[:3])} and 1 more"
    assert refusal(three) == "; ".join(reasons[:3])


# Several events.


def test_each_of_several_events_is_acknowledged_by_its_own_lights() -> None:
    """B2 is of node a alone; A1 waits for node b."""
    held = record(events=(A1, known(ids=("B2",))))
    readings = {"a": reported(reboot(), reboot(vm_name(1), event_id="B2")), "b": reported(reboot())}
    nodes = (drained("a", 1, held), drained("b", 2, BEING_DRAINED))
    plan = plan_of(planned(snapshot(*nodes, readings=readings), settings(WANTED)))

    assert given(plan) == ["B2"]
    assert written(plan) == ("B2",)
    assert [hold.reason for hold in plan.holds if hold.code == "offerDue"] == [
        "event A1 is not acknowledged: node b is not drained for it yet"
    ]


def test_several_events_that_may_start_are_one_annotation_in_order() -> None:
    held = record(events=(A1, known(ids=("B2",))))
    both = reported(reboot(vm_name(1), event_id="B2"), reboot(vm_name(1)))
    plan = plan_of(planned(snapshot(drained("a", 1, held), readings={"a": both}), settings(WANTED)))

    assert given(plan) == ["A1", "B2"]
    assert len(plan.todo.notices) == 1


# The annotation and the record.


def acknowledged_before(name: str, instance: int, *, unschedulable: bool | None = None) -> Node:
    """A node whose agent has been asked by an earlier pass."""
    held = replace(record(events=(A1,)), asked=acknowledged("A1"))
    return drained(name, instance, held, annotations={ACKNOWLEDGE: '["A1"]'}, unschedulable=unschedulable)


def pair(*, unschedulable: bool | None = None) -> tuple[Node, Node]:
    return acknowledged_before("a", 1), acknowledged_before("b", 2, unschedulable=unschedulable)


def test_a_converged_pass_sends_no_notice_again() -> None:
    a, b = pair()
    plan = two(b, a=a)

    for name in ("a", "b"):
        assert plan_of(plan, name).todo.write is None
        assert plan_of(plan, name).todo.notices == ()
        assert plan_of(plan, name).transitions == ()


def test_it_is_removed_from_all_as_soon_as_one_is_uncordoned_and_stays_on_record() -> None:
    a, b = pair(unschedulable=False)
    plan = two(b, a=a)
    one = plan_of(plan, "a")

    assert one.todo.write is not None
    assert dict(one.todo.write.annotations) == {ACKNOWLEDGE: None}
    assert one.acts
    assert written(one) == ("A1",)
    # A person's uncordon ends that node's case.
    other = plan_of(plan, "b")
    assert other.todo.write is not None
    assert other.todo.write.annotations[ACKNOWLEDGE] is None
    assert other.after is State.OPERATIONAL
    assert written(other) == ()


def test_a_removed_acknowledgement_is_given_again_when_allowed_and_not_reported_again() -> None:
    held = replace(record(events=(A1,)), asked=acknowledged("A1"))
    plan = two(drained("b", 2, held), a=drained("a", 1, held))

    for name in ("a", "b"):
        assert given(plan_of(plan, name)) == ["A1"]
        assert plan_of(plan, name).todo.notices == ()


@pytest.mark.parametrize("off", ["the wish", "the source"])
def test_it_is_removed_when_the_settings_no_longer_want_it(off: str) -> None:
    nodes = pair()
    if off == "the wish":
        seen = snapshot(*nodes, readings={"a": reported(reboot()), "b": reported(reboot())})
        plan = planned(seen, settings())
    else:
        others = (reading(source="condition:VMEventScheduled"), reading(source="request"))
        seen = snapshot(*nodes, readings={"a": others, "b": others})
        plan = planned(seen, settings("sources: {imds: {enabled: false}}"))

    for name in ("a", "b"):
        write = plan_of(plan, name).todo.write
        assert write is not None
        assert write.annotations[ACKNOWLEDGE] is None


@pytest.mark.parametrize(
    "said", [pytest.param((), id="gone"), pytest.param((reboot(status=Status.STARTED),), id="started")]
)
def test_it_is_removed_once_the_event_has_started_or_gone(said: tuple[Signal, ...]) -> None:
    a, b = pair()
    plan = planned(snapshot(a, b, readings={"a": reported(*said), "b": reported(*said)}), settings(WANTED))

    for name in ("a", "b"):
        one = plan_of(plan, name)
        assert one.todo.write is not None
        assert one.todo.write.annotations[ACKNOWLEDGE] is None
        assert one.todo.write.unschedulable is None
        assert written(one) == ("A1",)


def test_what_another_client_wrote_there_is_corrected() -> None:
    forged = {ACKNOWLEDGE: '["Z9"]'}
    drained_only = drained("a", 1, annotations=forged)
    waiting = on_vm(builders.node("b", annotations=forged), 2)
    plan = two(waiting, a=drained_only)

    for name in ("a", "b"):
        write = plan_of(plan, name).todo.write
        assert write is not None
        assert write.annotations[ACKNOWLEDGE] is None


def test_an_event_that_left_the_case_leaves_the_list() -> None:
    """Another one keeps the case open."""
    held = replace(record(events=(A1, known(Kind.REDEPLOY, ids=("B2",)))), asked=acknowledged("A1"))
    only = reboot(vm_name(1), kind=Kind.REDEPLOY, event_id="B2")
    plan = planned(snapshot(drained("a", 1, held), readings={"a": reported(only)}), settings(WANTED))

    assert written(plan_of(plan)) == ()


def test_the_record_keeps_it_over_a_pass_and_one_without_it_stays_as_it_was() -> None:
    plan = plan_of(two())
    assert plan.todo.write is not None
    text = plan.todo.write.annotations[RECORD]
    assert text is not None
    again = from_annotation(text, "uid-a")

    assert again is not None
    assert again.case("default").asked == acknowledged("A1")
    assert '"asked"' not in drained("a", 1).annotations[RECORD]


def test_another_prefix_is_another_annotation() -> None:
    prefix = "example.com"
    here = drained("a", 1)
    moved = replace(
        here, annotations={key.replace(PREFIX, prefix): text for key, text in here.annotations.items()}
    )
    seen = snapshot(moved, prefix=prefix, readings={"a": reported(reboot(vm_name(1)))})
    plan = plan_of(planned(seen, settings(f"{WANTED}\nkeys: {{prefix: {prefix}}}")))

    assert plan.todo.write is not None
    assert plan.todo.write.annotations[f"{prefix}/acknowledge"] == '["A1"]'


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param({"labels": {f"{PREFIX}/ignore": "true"}}, "", id="ignored"),
        pytest.param({}, "nodeSelector: {test: yes}", id="out of the fleet"),
        pytest.param({"claimed_by": "ann"}, "", id="claimed by hand"),
        pytest.param({"text": "{"}, "", id="a record that can't be read"),
    ],
)
def test_on_a_node_that_must_not_be_changed_only_the_acknowledgement_is_removed(
    change: dict[str, Any], text: str
) -> None:
    held = record(events=(A1,))
    claimed_by = change.get("claimed_by", "")
    node = drained("a", 1, replace(held, asked=acknowledged("A1")), claimed_by=claimed_by)
    annotations = {**node.annotations, ACKNOWLEDGE: '["A1"]'}
    if "text" in change:
        annotations[RECORD] = change["text"]
    node = replace(node, annotations=annotations, labels={**node.labels, **change.get("labels", {})})
    plan = plan_of(planned(snapshot(node, readings={"a": reported(reboot())}), settings(f"{WANTED}\n{text}")))

    assert plan.todo.write is not None
    assert dict(plan.todo.write.annotations) == {ACKNOWLEDGE: None}
    assert (dict(plan.todo.write.labels), plan.todo.write.unschedulable) == ({}, None)
    assert plan.holds != ()


def test_a_hook_of_any_of_the_nodes_holds_the_event_until_it_has_ended() -> None:
    hook = {f"{PREFIX}/post-drain.flash": "team"}
    hooked = drained("b", 2, annotations=hook)
    plan = two(hooked)
    assert given(plan_of(plan)) is None
    assert (
        "node b has a hook: post-drain.flash (team)"
        in {hold.code: hold.reason for hold in plan_of(plan).holds}["offerDue"]
    )

    over = {"hook": "post-drain.flash", "since": to_text(NOW), "end": "timedOut", "told": True}
    ended = replace(record(events=(A1,)), parts={"hooks": [over]})
    assert given(plan_of(two(drained("b", 2, ended, annotations=hook)))) == ["A1"]
