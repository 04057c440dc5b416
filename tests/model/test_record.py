"""A record as JSON: what is written is read again."""

from __future__ import annotations

import json
import re
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from reconciler.model.drains import Seen
from reconciler.model.errors import RecordUnreadable
from reconciler.model.event import Kind
from reconciler.model.keys import keys_of
from reconciler.model.record import (
    KEYS,
    Asked,
    CaseFacts,
    CaseRecord,
    Claim,
    ClaimedDrain,
    ClaimKind,
    Cordon,
    DrainRecord,
    Forecast,
    KnownEvent,
    PlatformStart,
    Record,
    RecordPart,
    State,
    from_annotation,
    shown_labels,
    to_annotation,
)
from reconciler.model.values import replace
from tests.support import builders, strategies
from tests.support.builders import NOW, known, minutes, remembered
from tests.support.searching import examples


@settings(max_examples=examples(300), deadline=None)
@given(strategies.records("uid-a"))
def test_what_is_written_comes_back(record: Record) -> None:
    text = to_annotation(record)
    back = from_annotation(text, "uid-a")

    assert back == record
    assert back is not None
    assert to_annotation(back) == text


def test_every_part_comes_back() -> None:
    case = builders.record(
        events=(known(not_before=NOW, ids=("A1",), sources=("imds", "request")), known(condition="Stuck")),
        quiet_since=NOW,
        dismissed=(known(Kind.PREEMPT),),
    )
    case = replace(
        case,
        asked=(Asked("begin", NOW, events=("A1",)), Asked("move", NOW, 2, own="boot-1")),
        facts=CaseFacts(
            (PlatformStart(known(ids=("A1",)), NOW, 3), PlatformStart(known(Kind.REDEPLOY), NOW)),
            NOW,
            ("MaintenanceMissed",),
            announced=NOW,
            planned=NOW,
            drain_began=NOW,
            moved=0,
            will_be_missed=Forecast("late", NOW, NOW + minutes(10), NOW + minutes(12)),
        ),
        parts={"crane": [{"at": "2026-11-21T12:00:00Z"}]},
    )
    record = Record("uid-a").with_case("default", case, NOW).with_case("other", builders.record(), NOW)
    record = record.cordoned(Cordon.OURS, Claim(ClaimKind.PERSON, "ann"), NOW)

    assert record.case("default").events == case.events
    assert record.case("default").parts == case.parts
    assert from_annotation(to_annotation(record), "uid-a") == record


def test_a_forecast_of_an_earlier_program_was_told_at_once() -> None:
    forecast = Forecast("late", NOW, NOW)
    record = remembered(replace(builders.record(), facts=CaseFacts(will_be_missed=forecast)))
    document = json.loads(to_annotation(record))
    kept = document["profiles"]["default"]["facts"]["willBeMissed"]

    assert kept == {"cause": "late", "since": "2026-11-21T12:00:00Z"}
    assert from_annotation(json.dumps(document), "uid-a") == record


def test_a_program_that_does_not_know_offers_reads_the_rest_of_the_record() -> None:
    plain = builders.record(events=(known(not_before=NOW),))
    asked = replace(plain, asked=(Asked("move", NOW, 2, own="boot-1"),))
    document = json.loads(to_annotation(remembered(asked)))

    assert document["version"] == 1
    assert document["profiles"]["default"].pop("asked") == [
        {"offer": "move", "last": "2026-11-21T12:00:00Z", "attempts": 2, "own": "boot-1"}
    ]
    assert from_annotation(json.dumps(document), "uid-a") == remembered(plain)


class Lift(Struct, frozen=True):
    """How often a crane has lifted the machine of a node, and when last."""

    at: datetime
    times: int = 1


LIFTS = RecordPart[tuple[Lift, ...]]("crane", tuple[Lift, ...], ())


def test_a_part_of_a_feature_comes_back_under_its_name() -> None:
    case = builders.record(events=(known(),))
    lifted = LIFTS.put(case, (Lift(NOW), Lift(NOW, 2)))
    text = to_annotation(remembered(lifted))
    back = from_annotation(text, "uid-a")

    assert json.loads(text)["profiles"]["default"]["crane"] == [
        {"at": "2026-11-21T12:00:00Z"},
        {"at": "2026-11-21T12:00:00Z", "times": 2},
    ]
    assert back == remembered(lifted)
    assert back is not None
    assert LIFTS.of(back.case("default")) == (Lift(NOW), Lift(NOW, 2))
    assert LIFTS.put(lifted, ()) == case
    assert LIFTS.of(case) == LIFTS.of(lifted.closed()) == ()


@settings(deadline=None)
@given(
    st.dictionaries(st.text(max_size=10).filter(lambda name: name not in KEYS), strategies.json_values),
    st.booleans(),
)
def test_parts_that_no_feature_knows_stay_as_they_are(others: dict[str, object], lifts: bool) -> None:
    document = json.loads(to_annotation(remembered(builders.record(events=(known(),)))))
    document["profiles"]["default"] |= others
    record = from_annotation(json.dumps(document), "uid-a")
    assert record is not None
    case = replace(record.case("default"), quiet_since=NOW)
    if lifts and "crane" not in others:
        case = LIFTS.put(case, (Lift(NOW),))
    written = json.loads(to_annotation(record.with_case("default", case, NOW)))["profiles"]["default"]

    assert {name: written.get(name) for name in others} == json.loads(json.dumps(others))
    assert "quietSince" in written


@pytest.mark.parametrize(
    "kept", [7, {}, [{}], [{"at": "soon"}], [{"at": "2026-11-21T12:00:00Z", "times": 10**9}]]
)
def test_a_part_that_cannot_be_read_harms_no_other_and_is_not_overwritten(kept: object) -> None:
    document = json.loads(to_annotation(remembered(builders.record(events=(known(),)))))
    document["profiles"]["default"]["crane"] = kept
    record = from_annotation(json.dumps(document), "uid-a")
    assert record is not None
    case = record.case("default")

    assert case.events == (known(),)
    with pytest.raises(RecordUnreadable, match="crane: "):
        LIFTS.of(case)
    with pytest.raises(RecordUnreadable, match="crane: "):
        LIFTS.put(case, (Lift(NOW),))
    assert json.loads(to_annotation(record)) == document


def test_a_part_that_says_the_same_is_not_written_in_another_form() -> None:
    document = json.loads(to_annotation(remembered(builders.record(events=(known(),)))))
    document["profiles"]["default"]["crane"] = [{"at": "2026-11-21T12:00:00+00:00", "times": 1}]
    record = from_annotation(json.dumps(document), "uid-a")
    assert record is not None
    case = record.case("default")

    assert LIFTS.put(case, (Lift(NOW),)) is case


@given(strategies.records("uid-a"), st.text(max_size=10).filter(lambda uid: uid != "uid-a"))
def test_a_record_of_another_node_of_that_name_is_ignored(record: Record, uid: str) -> None:
    assert from_annotation(to_annotation(record), uid) is None


@settings(deadline=None)
@given(strategies.garbage)
def test_what_is_no_record_is_unreadable_and_nothing_else(text: str) -> None:
    with pytest.raises(RecordUnreadable):
        from_annotation(text, "uid-a")


@settings(deadline=None)
@given(strategies.records("uid-a"), st.data())
def test_a_record_that_a_person_edited_is_read_or_refused_and_never_breaks_the_pass(
    record: Record, data: st.DataObject
) -> None:
    document = json.loads(to_annotation(record))
    spot = document
    while isinstance(spot, dict) and spot:
        key = data.draw(st.sampled_from(sorted(spot)))
        if not isinstance(spot[key], dict) or data.draw(st.booleans()):
            spot[key] = data.draw(strategies.json_values)
            break
        spot = spot[key]
    try:
        found = from_annotation(json.dumps(document), "uid-a")
    except RecordUnreadable:
        return
    assert found is None or found.uid == "uid-a"


@pytest.mark.parametrize(
    ("version", "said"),
    [
        pytest.param(2, "has version 2, but this program knows 1", id="newer"),
        pytest.param(0, "its version is 0", id="none"),
        pytest.param("1", "its version is '1'", id="text"),
        pytest.param(True, "its version is True", id="a boolean is no number"),
    ],
)
def test_an_unknown_version_is_unreadable_with_any_content(version: object, said: str) -> None:
    document = {**json.loads(to_annotation(remembered(builders.record()))), "version": version}
    with pytest.raises(RecordUnreadable, match=said):
        from_annotation(json.dumps(document), "uid-a")


def test_keys_of_a_later_program_of_the_same_version_are_ignored() -> None:
    document = {**json.loads(to_annotation(remembered(builders.record()))), "colour": "green"}

    assert from_annotation(json.dumps(document), "uid-a") == remembered(builders.record())


@pytest.mark.parametrize(
    ("cordon", "undone"),
    [(Cordon.NONE, False), (Cordon.OURS, True), (Cordon.FOREIGN, False), (Cordon.ADOPTED_MECHANIC, True)],
)
def test_only_our_own_and_an_adopted_cordon_may_be_undone(cordon: Cordon, undone: bool) -> None:
    assert cordon.may_be_undone is undone


def test_a_record_is_empty_once_the_node_is_operational_and_nothing_is_dismissed() -> None:
    held = builders.record()
    closed = held.moved(State.OPERATIONAL, NOW).closed()

    assert not remembered(held).empty
    assert remembered(held).with_case("default", closed, NOW).empty
    assert not remembered(builders.record(State.OPERATIONAL, dismissed=(known(),))).empty


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        pytest.param(known(ids=("A1",)), known(Kind.FREEZE, ids=("a1",)), True, id="an id in any letters"),
        pytest.param(known(ids=("A1",)), known(ids=("B2",)), False, id="other ids of one source, no date"),
        pytest.param(
            known(ids=("A1",), not_before=NOW), known(ids=("B2",)), False, id="other ids, one without a date"
        ),
        pytest.param(
            known(ids=("A1",), not_before=NOW),
            known(ids=("B2",), not_before=NOW),
            False,
            id="and at one date",
        ),
        pytest.param(
            known(ids=("A1",), sources=("arm", "imds")), known(ids=("B2",)), False, id="one source in common"
        ),
        pytest.param(
            known(ids=("A1",)), known(ids=("CHG-42",), sources=("request",)), True, id="ids of two sources"
        ),
        pytest.param(known(ids=("A1",)), known(), True, id="an id that one side lacks"),
        pytest.param(
            known(not_before=NOW), known(not_before=NOW + minutes(1)), True, id="a minute either way"
        ),
        pytest.param(known(not_before=NOW), known(not_before=NOW + minutes(2)), False, id="two minutes"),
        pytest.param(known(), known(Kind.REDEPLOY), False, id="another kind"),
        pytest.param(known(condition="A"), known(condition="A"), True, id="the same condition"),
        pytest.param(known(condition="A"), known(condition="B"), False, id="another condition"),
    ],
)
def test_an_event_is_found_again(one: KnownEvent, two: KnownEvent, same: bool) -> None:
    assert one.matches(two) is same
    assert two.matches(one) is same


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (builders.record(State.REQUIRED, events=(known(),)), "Reboot-announced"),
        (builders.record(events=(known(),)), "Reboot-drained"),
        (builders.record(events=(known(),), drain=DrainRecord(NOW)), "Reboot-draining"),
        (
            builders.record(events=(known(),), drain=DrainRecord(NOW, seen=Seen(blocked=NOW))),
            "Reboot-blocked",
        ),
        (replace(builders.record(events=(known(),)), quiet_since=NOW), "Reboot-over"),
        # The node is drained for the first event, and the second one waits for its start.
        (builders.record(events=(known(), replace(known(Kind.REDEPLOY), waits=True))), "Reboot-drained"),
        (
            builders.record(events=(replace(known(), condition="example.com/Disk Full"),)),
            "example.com-Disk-Full-drained",
        ),
        (builders.record(events=()), "default-drained"),
    ],
)
def test_a_label_says_what_the_maintenance_is_for_and_how_far_it_is(case: CaseRecord, why: str) -> None:
    assert shown_labels(remembered(case), keys_of())[keys_of().why] == why


@given(condition=st.text(st.characters(codec="utf-8"), max_size=400))
def test_the_label_is_one_that_kubernetes_takes(condition: str) -> None:
    case = builders.record(events=(replace(known(), condition=condition),))

    why = shown_labels(remembered(case), keys_of())[keys_of().why]
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", why)
    assert why.endswith("drained")


def test_a_drain_by_hand_is_shown_and_an_operational_node_is_not() -> None:
    claim = Claim(ClaimKind.PERSON, "alice@host")
    by_hand = Record("uid-a").cordoned(Cordon.OURS, claim, NOW).drained(DrainRecord(NOW), claim)

    assert shown_labels(by_hand, keys_of())[keys_of().why] == "by-hand"
    assert shown_labels(Record("uid-a"), keys_of()) == {}


def test_the_drain_of_a_person_is_no_drain_of_the_profile() -> None:
    drain = DrainRecord(NOW)
    person, profile = Claim(ClaimKind.PERSON, "ann@laptop"), Claim(ClaimKind.PROFILE, "default")
    held = Record("uid-a", drain=ClaimedDrain(drain, (person,)))

    assert held.case("default").drain is None
    assert replace(held, drain=ClaimedDrain(drain, (person, profile))).case("default").drain == drain
