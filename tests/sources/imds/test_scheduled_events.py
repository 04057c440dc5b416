"""What a document of scheduled events says about one VM, and its published form.

Aspects: dates, statuses, durations, kinds, live migration, whom an event names, broken events, broken
documents, names of VMs, the published form, mechanic's rows.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from reconciler.model.azure import vm_name
from reconciler.model.errors import SourceError
from reconciler.model.event import Initiator, Kind, Signal, Status
from reconciler.sources.imds import scheduled_events as imds

GROUP = "azure:///subscriptions/S/resourceGroups/mc_x/providers/Microsoft.Compute"
VM = "aks-np-12345678-vmss_1"
LIVE_MIGRATION = "Virtual machine is being paused because of a memory-preserving Live Migration operation."
ROWS = json.loads((Path(__file__).parents[2] / "cases" / "mechanic_imds.json").read_text(encoding="utf-8"))[
    "cases"
]


def one(**changes: Any) -> Signal:
    """The one signal of a freeze with these changes; `...` takes a field away."""
    event = {
        "EventId": "32504B35-D66B-4D0A-8C64-C9DDBBD0EA13",
        "EventType": "Freeze",
        "ResourceType": "VirtualMachine",
        "Resources": [VM],
        "EventStatus": "Scheduled",
        "NotBefore": "Mon, 26 Nov 2018 10:52:34 GMT",
        "Description": "Host server is undergoing maintenance.",
        "EventSource": "Platform",
        "DurationInSeconds": 9,
        **changes,
    }
    found = imds.signals({"Events": [{key: value for key, value in event.items() if value is not ...}]}, VM)
    assert len(found) == 1
    return found[0]


def test_a_whole_event_is_read_field_by_field() -> None:
    assert one() == Signal(
        source="imds",
        kind=Kind.FREEZE,
        status=Status.SCHEDULED,
        not_before=datetime(2018, 11, 26, 10, 52, 34, tzinfo=UTC),
        duration=timedelta(seconds=9),
        id="32504B35-D66B-4D0A-8C64-C9DDBBD0EA13",
        description="Host server is undergoing maintenance.",
        initiator=Initiator.PLATFORM,
        resources=(VM,),
    )


@pytest.mark.parametrize(
    ("changes", "degraded"),
    [
        pytest.param({"EventType": "Redeploy"}, True, id="a move of the platform"),
        pytest.param({"EventType": "Redeploy", "EventSource": ...}, True, id="nobody says who moves it"),
        pytest.param({"EventType": "Redeploy", "EventSource": "User"}, False, id="a move by a user"),
        pytest.param({"EventType": "Reboot"}, False, id="a reboot"),
    ],
)
def test_a_redeploy_of_the_platform_is_a_move_off_degraded_hardware(
    changes: dict[str, Any], degraded: bool
) -> None:
    assert one(**changes).degraded is degraded


def test_an_event_of_before_2020_lacks_three_fields_and_is_whole_all_the_same() -> None:
    signal = one(Description=..., EventSource=..., DurationInSeconds=...)

    assert signal.kind is Kind.FREEZE
    assert (signal.description, signal.initiator, signal.duration) == ("", None, None)


@pytest.mark.parametrize(
    ("text", "moment", "unreadable"),
    [
        pytest.param(
            "Mon, 11 Apr 2026 22:26:58 GMT", "2026-04-11T22:26:58Z", False, id="Azure's wrong weekday"
        ),
        pytest.param("2026-04-29T18:00:00Z", "2026-04-29T18:00:00Z", False, id="ISO, as the mock server"),
        pytest.param(
            "2026-04-29T18:00:00.1234567+02:00", "2026-04-29T16:00:00Z", False, id="ISO with an offset"
        ),
        pytest.param("", None, False, id="empty once started"),
        pytest.param(..., None, False, id="missing"),
        pytest.param("soon", None, True, id="a word"),
        pytest.param(1777485600, None, True, id="a number"),
        pytest.param("0001-01-01T00:00:00+14:00", None, True, id="before the first day of all"),
    ],
)
def test_dates(text: object, moment: str | None, *, unreadable: bool) -> None:
    signal = one(NotBefore=text)

    reported = None if signal.not_before is None else signal.not_before.replace(microsecond=0)
    assert reported == (None if moment is None else datetime.fromisoformat(moment))
    assert signal.date_unreadable is unreadable
    assert signal.not_before is None or signal.not_before.tzinfo is UTC


@pytest.mark.parametrize(
    ("seconds", "duration"),
    [
        pytest.param(9, timedelta(seconds=9), id="seconds"),
        pytest.param(0, timedelta(0), id="no interruption"),
        pytest.param(-1, None, id="unknown"),
        pytest.param("9", None, id="a text"),
        pytest.param(True, None, id="a truth"),
        pytest.param(float("nan"), None, id="not a number"),
    ],
)
def test_durations(seconds: object, duration: timedelta | None) -> None:
    assert one(DurationInSeconds=seconds).duration == duration


@pytest.mark.parametrize("kind", ["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"])
def test_the_kinds_of_azure_are_ours(kind: str) -> None:
    assert one(EventType=kind).kind == kind


@pytest.mark.parametrize("text", ["Hibernate", "LiveMigration", "Unknown", "", None, 7, ["Freeze"]])
def test_a_kind_that_azure_does_not_have_is_unknown_and_keeps_its_text(text: object) -> None:
    signal = one(EventType=text)

    assert signal.kind is Kind.UNKNOWN
    assert json.dumps(text) in signal.description
    assert "Host server is undergoing maintenance." in signal.description


@pytest.mark.parametrize("text", [LIVE_MIGRATION, LIVE_MIGRATION.upper()])
def test_a_freeze_that_says_so_is_a_live_migration(text: str) -> None:
    assert one(Description=text).kind is Kind.LIVE_MIGRATION


def test_only_a_freeze_can_be_a_live_migration() -> None:
    assert one(EventType="Reboot", Description=LIVE_MIGRATION).kind is Kind.REBOOT


@pytest.mark.parametrize(
    ("text", "not_before", "status"),
    [
        ("Scheduled", "Mon, 26 Nov 2018 10:52:34 GMT", Status.SCHEDULED),
        ("Started", "", Status.STARTED),
        ("started", "", Status.STARTED),
        ("Paused", "Mon, 26 Nov 2018 10:52:34 GMT", Status.SCHEDULED),
        pytest.param("Paused", "", Status.STARTED, id="only what has started has an empty date"),
        (..., "Mon, 26 Nov 2018 10:52:34 GMT", Status.SCHEDULED),
    ],
)
def test_statuses(text: object, not_before: str, status: Status) -> None:
    assert one(EventStatus=text, NotBefore=not_before).status is status


@pytest.mark.parametrize("text", ["Completed", "Canceled", " cancelled "])
def test_an_event_that_is_over_is_none(text: str) -> None:
    over = {"EventType": "Reboot", "EventStatus": text, "Resources": [VM], "NotBefore": ""}
    scheduled = {**over, "EventStatus": "Scheduled"}

    assert [one.status for one in imds.signals({"Events": [over, scheduled]}, VM)] == [Status.SCHEDULED]


def test_an_unknown_status_is_reported() -> None:
    assert '"Paused"' in one(EventStatus="Paused").description


@pytest.mark.parametrize(
    ("resources", "ours"),
    [
        pytest.param([VM], True, id="alone"),
        pytest.param(["aks-np-12345678-vmss_2", VM], True, id="among others"),
        pytest.param(VM, True, id="not even a list"),
        pytest.param([VM, None], True, id="beside something broken"),
        pytest.param([f"{VM}0"], False, id="_1 is not _10"),
        pytest.param(["aks-np-12345678-vmss"], False, id="nor its scale set"),
    ],
)
def test_which_vms_an_event_names(resources: object, *, ours: bool) -> None:
    found = imds.signals({"Events": [{"EventId": "a", "EventType": "Reboot", "Resources": resources}]}, VM)

    assert [signal.kind for signal in found] == ([Kind.REBOOT] if ours else [])


def test_a_provider_id_in_another_case_names_the_same_vm() -> None:
    event = {"EventId": "a", "EventType": "Reboot", "Resources": [VM]}

    assert len(imds.signals({"Events": [event]}, VM.upper())) == 1


@pytest.mark.parametrize(
    "event",
    [
        pytest.param("Freeze", id="a text"),
        pytest.param({}, id="empty"),
        pytest.param({"EventType": "Reboot"}, id="no resources"),
        pytest.param({"EventType": "Reboot", "Resources": {"vm": VM}}, id="resources that are no list"),
        pytest.param({"EventType": "Reboot", "Resources": ["another", 7]}, id="a name that is none"),
    ],
)
def test_an_event_that_may_be_ours_is_unknown_and_never_a_reason_to_drain(event: object) -> None:
    found = imds.signals({"Events": [event]}, VM)

    assert [signal.kind for signal in found] == [Kind.UNKNOWN]
    assert found[0].description


@pytest.mark.parametrize(
    ("resources", "named"),
    [
        pytest.param([VM, "another"], (VM, "another"), id="names"),
        pytest.param(VM, (VM,), id="a name alone"),
        pytest.param([VM, None], (VM, "null"), id="beside nothing"),
        pytest.param([VM, {"name": "b", "id": 1}], (VM, '{"id":1,"name":"b"}'), id="beside an object"),
    ],
)
def test_what_is_no_name_stays_among_those_that_are(resources: object, named: tuple[str, ...]) -> None:
    assert one(Resources=resources).resources == named


@pytest.mark.parametrize("resources", [..., None, [], {"vm": VM}, 7])
def test_resources_without_a_name_name_no_vm(resources: object) -> None:
    assert one(Resources=resources).resources == ()


def test_an_event_without_an_id_keeps_its_kind() -> None:
    signal = one(EventId=..., EventType="Preempt")

    assert (signal.kind, signal.id) == (Kind.PREEMPT, "")


def test_one_broken_event_does_not_hide_the_others() -> None:
    events = [None, {"EventId": "a", "EventType": "Reboot", "Resources": [VM]}]

    assert [signal.kind for signal in imds.signals({"Events": events}, VM)] == [Kind.UNKNOWN, Kind.REBOOT]


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"{", b"[]", b"null", b"{}", b'{"Events":null}', b'{"Events":{}}', b"[" * 100_000]
)
def test_a_document_without_a_list_of_events_is_refused_and_not_taken_for_none(body: bytes) -> None:
    with pytest.raises(SourceError):
        imds.document(body)


@pytest.mark.parametrize(
    ("provider_id", "name"),
    [
        (f"{GROUP}/virtualMachineScaleSets/aks-np-123-vmss/virtualMachines/10", "aks-np-123-vmss_10"),
        (f"{GROUP}/VIRTUALMACHINESCALESETS/AKS-np-123-vmss/virtualmachines/10", "AKS-np-123-vmss_10"),
        (f"{GROUP}/virtualMachines/flexprofile-mp-0_df53ee36", "flexprofile-mp-0_df53ee36"),
        ("azure:///subscriptions/S/resourceGroups/virtualMachines", None),
        ("aws:///eu-west-1a/i-0abcdef/virtualMachines/x", None),
        ("", None),
    ],
)
def test_a_provider_id_contains_the_name_that_imds_uses(provider_id: str, name: str | None) -> None:
    assert vm_name(provider_id) == name


def test_the_published_form_is_compact_sorted_and_keeps_events_as_they_came() -> None:
    events = [
        {"Resources": [VM], "EventType": "Reboot", "EventId": "b", "Extra": {"z": 1, "a": "ü"}},
        {"Resources": ["another"], "EventType": "Reboot", "EventId": "a"},
    ]

    text = imds.to_annotation({"DocumentIncarnation": 7, "Events": events}, VM)

    assert text == (
        '{"events":[{"EventId":"b","EventType":"Reboot","Extra":{"a":"\\u00fc","z":1},'
        f'"Resources":["{VM}"]}}],"version":1,"vm":"{VM}"}}'
    )


def test_a_new_incarnation_or_another_order_of_the_same_events_is_the_same_text() -> None:
    reboot = {"EventId": "b", "EventType": "Reboot", "Resources": [VM]}
    freeze = {"EventId": "a", "EventType": "Freeze", "Resources": [VM]}

    before = imds.to_annotation({"DocumentIncarnation": 7, "Events": [reboot, freeze]}, VM)
    after = imds.to_annotation({"DocumentIncarnation": 8, "Events": [freeze, reboot]}, VM)

    assert before == after


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"version":2,"vm":"a","events":[]}',
        '{"version":true,"vm":"a","events":[]}',
        '{"version":1,"events":[]}',
        '{"version":1,"vm":"","events":[]}',
        '{"version":1,"vm":"a","events":{}}',
        "[" * 100_000,
    ],
)
def test_a_broken_published_form_is_refused_and_not_taken_for_none(text: str) -> None:
    broken = imds.published(text)

    assert broken.problem
    assert broken.signals == ()


def test_no_events_are_published_as_none() -> None:
    assert imds.published(imds.to_annotation({"Events": []}, VM)) == imds.Published(VM)


# What the agent is asked to acknowledge.


def scheduled(event_id: str, **changes: Any) -> dict[str, Any]:
    """A reboot of our VM."""
    return {
        "EventId": event_id,
        "EventType": "Reboot",
        "EventStatus": "Scheduled",
        "Resources": [VM],
        **changes,
    }


def test_what_is_to_be_acknowledged_is_a_list_of_ids() -> None:
    text = imds.to_acknowledgement(["A1", "ü"])

    assert text == '["A1","\\u00fc"]'
    assert imds.from_acknowledgement(text) == ("A1", "ü")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (None, ()),
        ("", ()),
        ("[]", ()),
        ('["A1",7,null,"",["B2"],"C3"]', ("A1", "C3")),
        ('"A1"', ()),
        ("[" * 100_000, ()),
        (f"[{'9' * 5000}]", ()),
    ],
)
def test_an_acknowledgement_that_can_not_be_read_starts_nothing(
    text: str | None, ids: tuple[str, ...]
) -> None:
    assert imds.from_acknowledgement(text) == ids


@pytest.mark.parametrize(
    ("reported", "started"),
    [
        pytest.param([scheduled("A1")], ("A1",), id="it is there"),
        pytest.param([scheduled("a1")], ("a1",), id="in another case, and answered in the spelling of IMDS"),
        pytest.param([scheduled("A1", Resources=["x", VM.upper()])], ("A1",), id="among others"),
        pytest.param([scheduled("A1"), scheduled("A1")], ("A1",), id="twice"),
        pytest.param([scheduled("B2"), scheduled("A1"), scheduled("C3")], ("B2", "A1"), id="with others"),
        pytest.param([], (), id="it has gone"),
        pytest.param([scheduled("A1", EventStatus="Started")], (), id="it has started"),
        pytest.param([scheduled("A1", Resources=[f"{VM}0"])], (), id="another VM's"),
        pytest.param([scheduled("A1", Resources=[])], (), id="nobody's"),
        pytest.param([scheduled("A1", Resources=None)], (), id="nobody knows whose"),
        pytest.param([scheduled("")], (), id="without an id"),
        pytest.param(["A1", None], (), id="no events"),
    ],
)
def test_what_may_be_started_is_what_imds_has_as_scheduled_for_our_vm(
    reported: list[object], started: tuple[str, ...]
) -> None:
    assert imds.to_be_started({"Events": reported}, VM, ["A1", "b2", "Z9"]) == started


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = {
    "EventId": st.text(),
    "EventType": st.sampled_from(["Freeze", "Reboot", "Preempt", "Hibernate"]),
    "EventStatus": st.sampled_from(["Scheduled", "Started", "Cancelled"]),
    "NotBefore": st.sampled_from(["", "Mon, 26 Nov 2018 10:52:34 GMT"]) | st.text(),
    "Description": st.text() | st.just(LIVE_MIGRATION),
    "EventSource": st.sampled_from(["Platform", "User"]),
    "DurationInSeconds": st.integers(-1, 60),
}
EVENTS = st.fixed_dictionaries({}, optional={name: values | JSON for name, values in FIELDS.items()})


@given(documents=st.fixed_dictionaries({"Events": st.lists(JSON | EVENTS, max_size=4)}))
@example(documents={"Events": [-(10**17)]})
@example(documents={"Events": [10**40]})
def test_no_document_breaks_the_parser_and_publishing_changes_nothing_that_it_says(
    documents: dict[str, Any],
) -> None:
    document = imds.document(json.dumps(documents))
    said = imds.signals(document, VM)
    published = imds.published(imds.to_annotation(document, VM))

    assert sorted(map(repr, published.signals)) == sorted(map(repr, said))


@given(event=EVENTS, others=st.lists(JSON, max_size=3), at=st.integers(0, 3), junk=st.lists(JSON, max_size=3))
def test_an_event_that_names_our_vm_is_never_lost(
    event: dict[str, Any], others: list[object], at: int, junk: list[object]
) -> None:
    assume(str(event.get("EventStatus")).strip().casefold() not in ("completed", "canceled", "cancelled"))
    named = {**event, "Resources": [*junk, VM.swapcase()]}
    events = [*others[:at], named, *others[at:]]

    ours = [signal for signal in imds.signals({"Events": events}, VM) if VM.swapcase() in signal.resources]

    assert ours


@given(number=st.integers(0, 200), other=st.integers(0, 200))
@example(number=1, other=10)
@example(number=10, other=1)
def test_an_event_of_another_instance_of_the_scale_set_is_not_ours(number: int, other: int) -> None:
    assume(number != other)
    event = {"EventId": "a", "EventType": "Reboot", "Resources": [f"vmss_{other}"]}

    assert imds.signals({"Events": [event]}, f"vmss_{number}") == ()


@given(text=st.text() | JSON.map(json.dumps))
def test_no_annotation_breaks_the_reader(text: str) -> None:
    read = imds.published(text)

    assert not (read.problem and read.signals)


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row['name']}, {row['func']}") for row in ROWS])
def test_mechanics_rows_by_their_meaning(row: dict[str, Any]) -> None:
    """Whether to drain is the policy's; the parser says which kind it is, and only for the VM it names."""
    scale_set, digits = row["node"][:-6], row["node"][-6:]
    vm = f"{scale_set}_{int(digits, 36)}"
    event = row["event"]
    expected = []
    if event is not None and vm in event["Resources"]:
        live = event["EventType"] == "Freeze" and "memory-preserving Live Migration" in event["Description"]
        expected = [Kind.LIVE_MIGRATION if live else Kind(event["EventType"])]

    found = imds.signals({"Events": [] if event is None else [event]}, vm)

    assert [signal.kind for signal in found] == expected
