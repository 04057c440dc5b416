"""ARM's documents to readings: which list holds a node, what a status says, what is in force for how long."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.event import Answer, Initiator, Kind, Status
from reconciler.model.machine import Scope, Vm, vm_of
from reconciler.model.polling import Listing, Memory, ScopeAnswer
from reconciler.model.record import Asked, Record
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from reconciler.passes.plugin import SourceContext
from reconciler.passes.polled import SPARE
from reconciler.sources.arm import source as arm
from reconciler.sources.arm.source import Planned
from tests.support import builders
from tests.support.builders import NOW, minutes
from tests.support.cases import self_service

Remembered = Memory[Scope, Planned]
NONE: Remembered = Memory()
ARM = arm.ArmPlans()
DAY = timedelta(days=1)
EVERY = timedelta(minutes=15)
SUB = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
SET = Scope(SUB, "mc_shop", "aks-np-123-vmss")
OTHER = Scope(SUB, "mc_shop", "aks-batch-123-vmss")
SINGLES = Scope(SUB)
UNIFORM = (
    f"azure:///subscriptions/{SUB}/resourceGroups/mc_shop/providers/Microsoft.Compute"
    "/virtualMachineScaleSets/aks-np-123-vmss/virtualMachines/"
)
BATCH = UNIFORM.replace("-np-", "-batch-")
SINGLE = f"azure:///subscriptions/{SUB}/resourceGroups/mc_shop/providers/Microsoft.Compute/virtualMachines/"
OFFER = (NOW - 20 * DAY, NOW + 8 * DAY)
WINDOW = (NOW + 8 * DAY, NOW + 15 * DAY)
PLANNED = Planned(True, *OFFER, *WINDOW)


def node(provider_id: str, name: str = "a") -> Any:
    return replace(builders.node(name), provider_id=provider_id)


def document(instance: str, /, **status: object) -> dict[str, object]:
    view: dict[str, object] = {"statuses": []}
    if status:
        view["maintenanceRedeployStatus"] = status
    return {"instanceId": instance, "properties": {"instanceView": view}}


def one(**status: object) -> Planned | None:
    found = arm.listing(SET, [document("7", **status)])
    assert found.seen == {"7"}
    return dict(found.found).get("7")


@pytest.mark.parametrize(
    ("provider_id", "vm"),
    [
        pytest.param(UNIFORM + "10", Vm(SET, "10"), id="a uniform scale set"),
        pytest.param(UNIFORM.upper() + "10", Vm(SET, "10"), id="whatever the case"),
        pytest.param(
            SINGLE + "flexprofile-mp-0_df53ee36",
            Vm(SINGLES, "mc_shop/flexprofile-mp-0_df53ee36"),
            id="a flexible scale set",
        ),
        pytest.param(
            SINGLE + "aks-hostedpool-16652789-vms1",
            Vm(SINGLES, "mc_shop/aks-hostedpool-16652789-vms1"),
            id="a pool of VirtualMachines",
        ),
        pytest.param(
            SINGLE + "aks-default-pb9ls",
            Vm(SINGLES, "mc_shop/aks-default-pb9ls"),
            id="node auto-provisioning",
        ),
        pytest.param("aws:///eu-central-1a/i-0123", None, id="another cloud"),
        pytest.param("azure:///subscriptions/x", None, id="half a name"),
        pytest.param(SINGLE, None, id="no name"),
        pytest.param("", None, id="none"),
        pytest.param(SINGLE + "..", None, id="a folder up"),
        pytest.param(SINGLE + "a%2f..", None, id="an escape"),
        pytest.param(SINGLE + "a?api-version=1", None, id="a query"),
        pytest.param(SINGLE + "a\n", None, id="a line break"),
        pytest.param(SINGLE + "a b", None, id="a space"),
        pytest.param(SINGLE + "a" * 81, None, id="a long name"),
        pytest.param(SINGLE + "\ud800", None, id="half a character"),
        pytest.param(UNIFORM + "x", None, id="an instance that is no number"),
        pytest.param(UNIFORM + "1" * 11, None, id="an instance too large"),
        pytest.param(UNIFORM.replace("mc_shop", "..") + "1", None, id="a group that is a folder up"),
        pytest.param(UNIFORM.replace("mc_shop", "g" * 91) + "1", None, id="a long group"),
        pytest.param(UNIFORM.replace("mc_shop", "a/b") + "1", None, id="a group in two parts"),
        pytest.param(UNIFORM.replace(SUB, "a#b") + "1", None, id="no subscription"),
        pytest.param(UNIFORM.replace(SUB, "0" * 37) + "1", None, id="a long subscription"),
        pytest.param(UNIFORM.replace("azure://", "azure:" + "/" * 600) + "1", None, id="many slashes"),
    ],
)
def test_the_vm_of_a_node_is_found_by_its_provider_id_alone(provider_id: str, vm: Vm | None) -> None:
    assert vm_of(provider_id) == vm
    assert (ARM.reading(node(provider_id), NONE, NOW) is None) == (vm is None)


def test_a_thousand_nodes_in_five_scale_sets_are_five_lists() -> None:
    nodes = [node(UNIFORM.replace("np", f"np{n % 5}") + str(n), f"n{n}") for n in range(1000)]

    assert len(ARM.due(nodes, NONE, NOW)) == 5


def test_forged_provider_ids_name_a_limited_number_of_scopes_and_the_true_ones_come_first() -> None:
    forged = [node(UNIFORM.replace("np", f"a{n}") + "1", f"f{n}") for n in range(3000)]
    true = [node(UNIFORM + str(n), f"n{n}") for n in range(2)]
    due = ARM.due([*forged, *true], NONE, NOW)

    assert len(due) == ARM.most
    assert due[0] == SET
    listings: list[Listing[Scope, Planned]] = [Listing(scope, seen=frozenset("1")) for scope in due]
    memory = ARM.remembered(NONE, listings, [*forged, *true], EVERY, NOW)
    assert len(memory.answers) == ARM.most
    assert list(memory.answers) == sorted(memory.answers, key=lambda one: one.scope)
    assert ARM.due([*forged, *true], memory, NOW) == ()
    left_out = ARM.reading(forged[-1], memory, NOW)
    assert left_out is not None
    assert left_out.answer is Answer.UNKNOWN
    assert "only the 128 with the most nodes are" in left_out.because


def test_a_status_is_read_with_both_windows_and_seven_digits() -> None:
    found = one(
        isCustomerInitiatedMaintenanceAllowed=True,
        preMaintenanceWindowStartTime="2026-11-01T10:00:00.1234567+00:00",
        preMaintenanceWindowEndTime="2026-11-29T12:00:00Z",
        maintenanceWindowStartTime="2026-11-29T13:00:00.0000001+01:00",
        maintenanceWindowEndTime="2026-12-06T12:00:00.9999999Z",
        lastOperationResultCode="RetryLater",
    )

    assert found is not None
    assert found.offered
    assert found.offer_start == datetime.fromisoformat("2026-11-01T10:00:00+00:00")
    assert (found.offer_end, found.start) == (WINDOW[0], WINDOW[0])
    assert found.end == WINDOW[1]
    assert found.result == "RetryLater"


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({}, id="no status"),
        pytest.param({"isCustomerInitiatedMaintenanceAllowed": False}, id="an empty one"),
        pytest.param(
            {
                "isCustomerInitiatedMaintenanceAllowed": False,
                "maintenanceWindowStartTime": "2026-12-01T00:00:00Z",
                "lastOperationResultCode": "MaintenanceCompleted",
            },
            id="done already",
        ),
        pytest.param(
            {"maintenanceWindowStartTime": "0001-01-01T00:00:00", "lastOperationResultCode": "None"},
            id="dates never set",
        ),
    ],
)
def test_what_is_no_maintenance_is_none(status: dict[str, object]) -> None:
    assert one(**status) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("preMaintenanceWindowStartTime", Planned(offer_start=OFFER[1])),
        ("preMaintenanceWindowEndTime", Planned(offer_end=OFFER[1])),
        ("maintenanceWindowStartTime", Planned(start=OFFER[1])),
        ("maintenanceWindowEndTime", Planned(end=OFFER[1])),
    ],
)
def test_one_date_alone_is_a_planned_maintenance(name: str, expected: Planned) -> None:
    assert one(**{name: OFFER[1].isoformat()}) == expected


@pytest.mark.parametrize("name", ["maintenanceWindowStartTime", "preMaintenanceWindowEndTime"])
def test_a_status_that_cannot_be_read_is_unknown_and_not_nothing(name: str) -> None:
    listing = arm.listing(SET, [document("7", **{name: "next week"}), document("8")])
    memory = ARM.remembered(NONE, [listing], [node(UNIFORM + "7")], EVERY, NOW)

    assert listing.seen == {"8"}
    reading = ARM.reading(node(UNIFORM + "7"), memory, NOW)
    assert reading is not None
    assert reading.answer is Answer.UNKNOWN


def test_keys_in_snake_and_pascal_case_mean_the_same_and_a_status_without_known_keys_is_unknown() -> None:
    snake = {"maintenance_window_start_time": WINDOW[0].isoformat()}
    pascal = {"MaintenanceWindowStartTime": WINDOW[0].isoformat()}
    strange = {"plannedFor": WINDOW[0].isoformat()}
    documents = [
        {"instance_id": "7", "properties": {"instance_view": {"maintenance_redeploy_status": snake}}},
        {"instanceId": "8", "properties": {"instanceView": {"maintenanceRedeployStatus": strange}}},
        {"InstanceId": "9", "Properties": {"InstanceView": {"MaintenanceRedeployStatus": pascal}}},
    ]
    listing = arm.listing(SET, documents)

    assert listing.found == (("7", Planned(start=WINDOW[0])), ("9", Planned(start=WINDOW[0])))
    assert listing.seen == {"7", "9"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(json_values, json_values)
def test_the_pass_continues_with_any_answer_of_azure(status: object, view: object) -> None:
    documents: list[dict[str, object]] = [
        {"instanceId": "1", "properties": {"instanceView": {"maintenanceRedeployStatus": status}}},
        {"instanceId": view, "properties": view},
    ]

    arm.listing(SET, documents)


def test_a_plan_becomes_a_redeploy_that_begins_with_azures_own_window() -> None:
    memory = Memory((ScopeAnswer(SET, NOW, NOW + EVERY, (("7", PLANNED),)),))

    reading = ARM.reading(node(UNIFORM + "7"), memory, NOW)

    assert reading is not None
    assert reading.source == "arm"
    (signal,) = reading.signals
    assert (signal.kind, signal.status, signal.initiator) == (
        Kind.REDEPLOY,
        Status.SCHEDULED,
        Initiator.PLATFORM,
    )
    assert signal.not_before == WINDOW[0]
    assert signal.plan is not None
    assert signal.plan.until == WINDOW[1]
    assert "self-service between 2026-11-01T12:00:00Z and 2026-11-29T12:00:00Z" in signal.description
    assert "between 2026-11-29T12:00:00Z and 2026-12-06T12:00:00Z" in signal.description


def test_a_plan_carries_what_the_settings_make_of_it() -> None:
    memory = Memory((ScopeAnswer(SET, NOW, NOW + EVERY, (("7", PLANNED),)),))
    chosen = builders.settings("sources: {arm: {enabled: true, ahead: 3d, selfService: true}}")

    (reading,) = ARM.read(node(UNIFORM + "7"), SourceContext(chosen, NOW, memories={"arm": memory}))

    (signal,) = reading.signals
    assert signal.plan is not None
    assert (signal.plan.ahead, signal.plan.accept) == (3 * DAY, True)
    assert signal.plan.until == WINDOW[1]


@pytest.mark.parametrize(
    ("moment", "offered"),
    [
        pytest.param(OFFER[0] - minutes(1), False, id="before the window"),
        pytest.param(OFFER[0], True, id="as it opens"),
        pytest.param(OFFER[1] - minutes(1), True, id="shortly before its end"),
        pytest.param(OFFER[1], False, id="at its end"),
    ],
)
def test_an_offer_stands_in_its_window(moment: datetime, offered: bool) -> None:
    memory = Memory((ScopeAnswer(SET, moment, moment + EVERY, (("7", PLANNED),)),))
    reading = ARM.reading(node(UNIFORM + "7"), memory, moment)

    assert reading is not None
    plan = reading.signals[0].plan
    assert plan is not None
    assert plan.open_at(moment) is offered
    assert dataclasses.replace(plan, offered=False).open_at(moment) is False


def test_a_status_whose_window_is_over_is_history() -> None:
    later = WINDOW[1]
    planned = replace(PLANNED, offered=False)
    memory = Memory((ScopeAnswer(SET, later, later + EVERY, (("7", planned),)),))

    reading = ARM.reading(node(UNIFORM + "7"), memory, later)

    assert reading is not None
    assert reading.answer is Answer.NO_EVENT


def ask(
    memory: Remembered,
    *listings: Listing[Scope, Planned],
    at: datetime = NOW,
    nodes: tuple[str, ...] = (UNIFORM + "7",),
) -> Remembered:
    found = [node(text, f"n{number}") for number, text in enumerate(nodes)]
    return ARM.remembered(memory, listings, found, EVERY, at)


def answer_of(memory: Remembered, at: datetime = NOW, provider_id: str = UNIFORM + "7") -> Answer | None:
    reading = ARM.reading(node(provider_id), memory, at)
    return reading.answer if reading else None


GOOD = Listing(SET, (("7", PLANNED),), frozenset({"7"}))


def test_an_answer_is_in_force_for_the_interval_and_then_asked_for_again() -> None:
    nodes = [node(UNIFORM + "7")]
    memory = ask(NONE, GOOD)

    assert answer_of(memory, NOW + EVERY - minutes(1)) is Answer.EVENT
    assert ARM.due(nodes, memory, NOW + EVERY - minutes(1)) == ()
    assert ARM.due(nodes, memory, NOW + EVERY) == (SET,)
    # Nobody asked though it was time: nothing is known any more.
    assert answer_of(memory, NOW + EVERY) is Answer.UNKNOWN


def test_a_failure_makes_unknown_and_is_tried_again_soon() -> None:
    memory = ask(ask(NONE, GOOD), Listing(SET, problem="500"), at=NOW + EVERY)

    assert answer_of(memory, NOW + EVERY) is Answer.UNKNOWN
    assert ARM.due([node(UNIFORM + "7")], memory, NOW + EVERY + ARM.retry - minutes(1)) == ()
    assert ARM.due([node(UNIFORM + "7")], memory, NOW + EVERY + ARM.retry) == (SET,)


def test_what_is_throttled_is_asked_nothing_until_its_time_has_come_and_the_rest_is() -> None:
    nodes = (UNIFORM + "7", BATCH + "1", SINGLE + "x")
    found = [node(text, text) for text in nodes]
    throttled: Listing[Scope, Planned] = Listing(SET, problem="429", wait=1200)
    elsewhere: Listing[Scope, Planned] = Listing(SINGLES, (), frozenset({"mc_shop/x"}))
    memory = ask(NONE, throttled, Listing(OTHER, problem="429", asked=False), elsewhere, nodes=nodes)

    assert [answer_of(memory, NOW, one) for one in nodes] == [Answer.UNKNOWN, Answer.UNKNOWN, Answer.NO_EVENT]
    assert ARM.due(found, memory, NOW + minutes(14)) == ()
    assert ARM.due(found, memory, NOW + EVERY) == (SINGLES,)
    assert ARM.due(found, memory, NOW + minutes(19)) == (SINGLES,)
    assert ARM.due(found, memory, NOW + minutes(20)) == (SINGLES, OTHER, SET)


def test_a_wish_beyond_reason_is_cut() -> None:
    memory = ask(NONE, Listing(SET, problem="429", wait=1e12))

    assert [one.again for one in memory.answers] == [NOW + timedelta(hours=6)]


def test_what_was_left_out_for_want_of_calls_stays_in_force() -> None:
    before = ask(NONE, GOOD)
    left: Listing[Scope, Planned] = Listing(SET, asked=False)

    assert answer_of(ask(before, left, at=NOW + EVERY), NOW + EVERY) is Answer.EVENT
    assert ARM.due([node(UNIFORM + "7")], ask(before, left, at=NOW + EVERY), NOW + EVERY + SPARE) == (SET,)
    assert answer_of(ask(NONE, left)) is Answer.UNKNOWN


def test_a_vm_that_the_list_does_not_hold_is_unknown_and_one_without_a_plan_is_well() -> None:
    nodes = (UNIFORM + "7", UNIFORM + "8", UNIFORM + "9")
    memory = ask(NONE, Listing(SET, (("7", PLANNED),), frozenset({"7", "8"})), nodes=nodes)

    assert [answer_of(memory, NOW, one) for one in nodes] == [Answer.EVENT, Answer.NO_EVENT, Answer.UNKNOWN]


# VMs that are queried alone.


def listed(*names: str, **status: object) -> Listing[Scope, Planned]:
    """The list of a subscription, in which each VM has this status, or no word of one."""
    view: dict[str, object] = {"statuses": [], **({_STATUS: status["said"]} if "said" in status else {})}
    documents = [
        {"id": f"{(SINGLE + name).removeprefix('azure://')}", "properties": {"instanceView": view}}
        for name in names
    ]
    return arm.listing(SINGLES, documents)


def viewed(name: str, status: dict[str, object] | None = None) -> Listing[Scope, Planned]:
    return arm.one_vm(ARM.alone(SINGLES, f"mc_shop/{name}"), {_STATUS: status} if status is not None else {})


_STATUS = "maintenanceRedeployStatus"
VIEW_OF_X = ARM.alone(SINGLES, "mc_shop/x")
X = node(SINGLE + "x")


@pytest.mark.parametrize(
    ("status", "silent"),
    [
        pytest.param({}, True, id="no word"),
        pytest.param({"said": None}, False, id="null"),
        pytest.param({"said": {}}, False, id="an empty one"),
    ],
)
def test_a_vm_whose_list_has_no_status_is_queried_alone(status: dict[str, object], silent: bool) -> None:
    memory = ARM.remembered(NONE, [listed("x", **status)], [X], EVERY, NOW)

    assert ARM.due([X], memory, NOW) == ((VIEW_OF_X,) if silent else ())
    assert answer_of(memory, NOW, SINGLE + "x") is (Answer.UNKNOWN if silent else Answer.NO_EVENT)


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        pytest.param({"maintenanceWindowStartTime": WINDOW[0].isoformat()}, Answer.EVENT, id="planned"),
        pytest.param({}, Answer.NO_EVENT, id="an empty one"),
        pytest.param(None, Answer.NO_EVENT, id="none"),
    ],
)
def test_what_a_vm_says_alone_is_in_force_until_its_next_turn(
    status: dict[str, object] | None, answer: Answer
) -> None:
    memory = ARM.remembered(NONE, [listed("x"), viewed("x", status)], [X], EVERY, NOW)

    assert answer_of(memory, NOW, SINGLE + "x") is answer
    assert ARM.due([X], memory, NOW + EVERY - minutes(1)) == ()
    assert ARM.due([X], memory, NOW + EVERY) == (SINGLES, VIEW_OF_X)
    assert NOW + EVERY in ARM.changes(memory, NOW)
    again = ARM.remembered(memory, [listed("x")], [X], EVERY, NOW + EVERY)
    assert answer_of(again, NOW + EVERY, SINGLE + "x") is answer
    assert answer_of(again, NOW + EVERY + ARM.retry, SINGLE + "x") is Answer.UNKNOWN


def test_only_vms_of_our_nodes_that_the_list_names_are_queried_alone() -> None:
    forged = node(SINGLE + "nowhere", "b")
    memory = ARM.remembered(NONE, [listed("x", "stranger")], [X, forged], EVERY, NOW)

    assert ARM.due([X, forged], memory, NOW) == (VIEW_OF_X,)
    assert answer_of(memory, NOW, SINGLE + "nowhere") is Answer.UNKNOWN


def test_a_vm_that_was_left_out_is_asked_a_minute_later_and_what_it_said_stays() -> None:
    memory = ARM.remembered(NONE, [listed("x"), viewed("x", {})], [X], EVERY, NOW)
    later = NOW + EVERY
    left = ARM.remembered(memory, [listed("x"), Listing(VIEW_OF_X, asked=False)], [X], EVERY, later)

    assert answer_of(left, later, SINGLE + "x") is Answer.NO_EVENT
    assert ARM.due([X], left, later) == ()
    assert ARM.due([X], left, later + SPARE) == (VIEW_OF_X,)


def test_a_vm_that_fails_alone_is_unknown_and_harms_no_other() -> None:
    nodes = [X, node(SINGLE + "y", "b")]
    failed: Listing[Scope, Planned] = Listing(VIEW_OF_X, problem="404 ResourceNotFound")
    memory = ARM.remembered(NONE, [listed("x", "y"), failed, viewed("y")], nodes, EVERY, NOW)

    assert [answer_of(memory, NOW, SINGLE + name) for name in "xy"] == [Answer.UNKNOWN, Answer.NO_EVENT]
    assert ARM.due(nodes, memory, NOW + ARM.retry) == (VIEW_OF_X,)


def test_a_list_that_fails_for_a_while_forgets_nothing_that_vms_said_alone() -> None:
    memory = ARM.remembered(
        NONE, [listed("x"), viewed("x", {"isCustomerInitiatedMaintenanceAllowed": True})], [X], EVERY, NOW
    )
    failed = ARM.remembered(memory, [Listing(SINGLES, problem="500")], [X], EVERY, NOW + minutes(1))
    back = ARM.remembered(failed, [listed("x")], [X], EVERY, NOW + minutes(6))

    assert answer_of(failed, NOW + minutes(1), SINGLE + "x") is Answer.UNKNOWN
    assert answer_of(back, NOW + minutes(6), SINGLE + "x") is Answer.EVENT


def test_a_vm_of_a_running_maintenance_is_asked_alone_sooner() -> None:
    memory = ARM.remembered(NONE, [listed("x"), viewed("x")], [X], EVERY, NOW)

    assert ARM.due([X], memory, NOW + ARM.follow, followed={"a"}) == (SINGLES, VIEW_OF_X)


def test_what_vms_said_alone_comes_back_and_takes_little_room() -> None:
    nodes = [node(f"{SINGLE}vm{number:04}", f"n{number}") for number in range(1000)]
    names = [f"vm{number:04}" for number in range(1000)]
    memory = ARM.remembered(
        NONE, [listed(*names), *(viewed(name) for name in names[:900])], nodes, EVERY, NOW
    )
    ledger = ARM.kept.put(Ledger(), memory)

    assert ARM.kept.of(ledger) == memory
    assert len(ledger.new_parts["arm"]) < 50_000


def test_vms_that_are_no_nodes_of_ours_are_not_kept() -> None:
    memory = ask(NONE, Listing(SET, (("1", PLANNED), ("7", PLANNED)), frozenset({"1", "7"})))

    assert [name for name, _ in memory.answers[0].found] == ["7"]


def test_while_our_own_maintenance_runs_it_is_asked_sooner() -> None:
    nodes = [node(UNIFORM + "7")]
    memory = ask(NONE, GOOD)

    assert ARM.due(nodes, memory, NOW + ARM.follow, followed={"a"}) == (SET,)
    assert ARM.due(nodes, memory, NOW + minutes(1), followed={"a"}) == ()


@pytest.mark.parametrize("asked", [None, self_service()], ids=["drained", "asked"])
def test_only_a_node_whose_maintenance_we_started_is_followed(asked: Asked | None) -> None:
    case = replace(builders.record(), asked=(asked,) if asked is not None else ())

    assert ARM.follows(Record("uid").with_case("default", case, NOW)) is (asked is not None)


def test_an_answer_from_a_clock_that_was_ahead_does_not_stop_queries() -> None:
    memory = ask(NONE, GOOD, at=NOW + DAY)

    assert ARM.due([node(UNIFORM + "7")], memory, NOW) == (SET,)


def test_an_answer_or_a_pause_from_a_clock_that_was_ahead_is_not_believed_for_a_day() -> None:
    memory = ask(NONE, GOOD, at=NOW + DAY)
    paused = replace(ask(NONE, GOOD), paused=((SET, NOW + DAY),))

    assert answer_of(memory) is Answer.UNKNOWN
    assert ARM.due([node(UNIFORM + "7")], paused, NOW + EVERY) == (SET,)
    short = replace(paused, paused=((SET, NOW + minutes(30)),))
    assert ARM.due([node(UNIFORM + "7")], short, NOW + EVERY) == ()


def test_a_pause_is_kept_until_its_end_while_others_are_asked() -> None:
    nodes = (UNIFORM + "7", SINGLE + "x")
    memory = ask(NONE, Listing(SET, problem="429", wait=3600), nodes=nodes)
    elsewhere: Listing[Scope, Planned] = Listing(SINGLES, (), frozenset({"mc_shop/x"}))
    asked = ask(memory, elsewhere, nodes=nodes, at=NOW + minutes(30))

    assert asked.paused == ((SET, NOW + minutes(60)),)
    assert ARM.kept.of(ARM.kept.put(Ledger(), asked)) == asked
    assert ask(asked, elsewhere, nodes=nodes, at=NOW + minutes(60)).paused == ()


def test_without_an_answer_nothing_changes_what_is_remembered() -> None:
    memory = ask(NONE, GOOD)

    assert ask(memory, at=NOW + minutes(5), nodes=()) is memory


def test_what_is_remembered_comes_back() -> None:
    memory = Memory(
        (
            ScopeAnswer(SINGLES, NOW, NOW + EVERY, problem="403 AuthorizationFailed"),
            ScopeAnswer(
                SET,
                NOW,
                NOW + EVERY,
                (("1", PLANNED), ("2", Planned(start=WINDOW[0])), ("3", PLANNED)),
                ("9",),
            ),
        )
    )
    ledger = ARM.kept.put(Ledger(), memory)

    assert ARM.kept.of(ledger) == memory
    assert ledger.new_parts["arm"].count("offerStart") == 1
    assert ARM.kept.put(ledger, NONE).new_parts == {"arm": ""}


@given(st.text() | json_values.map(str))
def test_an_unreadable_memory_is_an_empty_one_with_a_note(text: str) -> None:
    memory, notes = ARM.kept.known(Ledger(parts={"arm": text}))

    assert memory == NONE
    assert bool(notes) is bool(text)


@pytest.mark.parametrize(
    ("after", "followed", "asked"),
    [
        (minutes(0), True, False),
        (ARM.follow - minutes(1), True, False),
        (ARM.follow, True, True),
        (ARM.follow, False, False),
        (EVERY - timedelta(seconds=1), False, False),
        (EVERY, False, True),
        # A clock that was ahead by less than a minute is no reason to ask again.
        (-SPARE, False, False),
        (-SPARE - timedelta(seconds=1), False, True),
    ],
)
def test_when_a_vm_is_asked_alone_again(after: timedelta, followed: bool, asked: bool) -> None:
    memory = ARM.remembered(NONE, [listed("x"), viewed("x")], [X], EVERY, NOW)
    due = ARM.due([X], memory, NOW + after, followed={"a"} if followed else set())

    assert (VIEW_OF_X in due) is asked
