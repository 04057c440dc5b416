"""Instructions: what an annotation says, whatever stands in it, and which events it is for."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from reconciler.model import limits
from reconciler.model.event import Kind, MaintenanceEvent
from reconciler.model.instructions import (
    Deferral,
    ForEvents,
    Instructions,
    Permission,
    PersonHold,
    Word,
    deferral_text,
    fleet_holds,
    fleet_text,
    hold_text,
    instructions_of,
    permission_of,
    permission_text,
    stopping_hold,
)
from reconciler.model.permission_kinds import PermissionKind
from reconciler.model.record import KnownEvent
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from tests.support.builders import NOW, PREFIX, event, known, minutes, node

HOLD, DEFER = (f"{PREFIX}/{name}" for name in ("hold", "defer"))
ALLOWED = PermissionKind(name="allowed", command="allow", noun="permit", done="allowed", for_profiles="all")
ALICE = Word("alice@laptop", NOW - minutes(5), NOW + minutes(60), "disk copy")


def said(now: datetime = NOW, **annotations: str) -> Instructions:
    return instructions_of(
        node(annotations={f"{PREFIX}/{key}": text for key, text in annotations.items()}), PREFIX, now
    )


def test_what_is_written_is_read() -> None:
    found = said(hold=hold_text(PersonHold(ALICE, stops=True)), defer=deferral_text(Deferral(ALICE)))
    events = (known(ids=("A",), not_before=NOW + minutes(30)),)
    permission = Permission(ALICE, NOW, events, kind=ALLOWED, for_profiles=True)

    assert found == Instructions(PersonHold(ALICE, stops=True), Deferral(ALICE))
    assert permission_of(ALLOWED, permission_text(permission), NOW) == permission


@pytest.mark.parametrize("key", ["hold", "defer"])
def test_an_instruction_ends_at_its_end(key: str) -> None:
    texts = {"hold": hold_text(PersonHold(ALICE)), "defer": deferral_text(Deferral(ALICE))}
    end = NOW + minutes(60)

    assert said(end - timedelta(seconds=1), **{key: texts[key]}) != Instructions()
    assert said(end, **{key: texts[key]}) == Instructions()


def test_a_permission_ends_at_its_end() -> None:
    text = permission_text(Permission(ALICE, events=(known(),), kind=ALLOWED))
    end = NOW + minutes(60)

    assert permission_of(ALLOWED, text, end - timedelta(seconds=1)) is not None
    assert permission_of(ALLOWED, text, end) is None


@pytest.mark.parametrize("text", ["", "false", " False "])
def test_a_hold_that_says_no_is_none(text: str) -> None:
    assert said(hold=text).hold is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("disk copy", "disk copy", id="a text of kubectl"),
        pytest.param("[1]", "[1]", id="a list"),
        pytest.param('{"until": "soon"}', "", id="an end that can't be read"),
        pytest.param('{"until": "9999-01-01T00:00:00Z"}', "", id="an end that is too far away"),
        pytest.param('{"by": 7, "now": "yes", "at": []}', "", id="values of other types"),
    ],
)
def test_a_hold_that_cannot_be_read_holds_without_an_end_and_stops_nothing(text: str, reason: str) -> None:
    hold = said(hold=text).hold

    assert hold is not None
    assert (hold.word.until, hold.word.reason, hold.stops) == (None, reason, False)


@pytest.mark.parametrize("text", ["\ud800", "x" * 100_000, '{"reason": "' + "y" * 30_000 + '"}', "{" * 9_000])
def test_a_huge_or_broken_text_stays_within_the_limits(text: str) -> None:
    found, permission = said(hold=text, defer=text), permission_of(ALLOWED, text, NOW)

    assert found.hold is not None
    assert found.deferral is not None
    assert permission is not None
    for word in (found.hold.word, found.deferral.word, permission.word):
        assert len(word.reason) <= limits.TEXT
        assert len(str(word)) < 1000
        str(word).encode()


@pytest.mark.parametrize("text", ["tomorrow", "{}", '{"until": 5}'])
def test_a_deferral_without_a_readable_end_has_none_and_says_so(text: str) -> None:
    deferral = said(defer=text).deferral

    assert deferral is not None
    assert deferral.word.until is None
    assert deferral.word.problem


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "{}",
        '{"events": "all"}',
        '{"events": [{"kind": "Quake"}]}',
        '{"events": [{"kind": "Reboot", "ids": [], "sources": []}], "until": "soon"}',
        '{"events": [' + ",".join(['{"kind":"Reboot","ids":[],"sources":[]}'] * 101) + "]}",
    ],
)
def test_a_permission_that_cannot_be_read_permits_nothing_and_says_why(text: str) -> None:
    permission = permission_of(ALLOWED, text, NOW)

    assert permission is not None
    assert permission.events == ()
    assert permission.word.problem


@pytest.mark.parametrize(
    ("permitted", "reported", "covered"),
    [
        pytest.param(known(ids=("A",)), event(ids=("a",)), True, id="the same ID"),
        pytest.param(known(ids=("A",)), event(ids=("B",)), False, id="another ID"),
        pytest.param(known(ids=("A",)), event(Kind.REDEPLOY, ids=("A",)), False, id="a worse kind"),
        pytest.param(known(Kind.REDEPLOY, ids=("A",)), event(ids=("A",)), True, id="a milder kind"),
        pytest.param(known(not_before=NOW), event(not_before=NOW), True, id="the same date"),
        pytest.param(known(not_before=NOW), event(not_before=NOW + minutes(5)), False, id="another date"),
        pytest.param(known(ids=("A",)), event(sources=("request",)), False, id="one without a name"),
        pytest.param(known(), event(), False, id="both without a name"),
    ],
)
def test_an_instruction_is_for_the_events_that_it_names(
    permitted: KnownEvent, reported: MaintenanceEvent, covered: bool
) -> None:
    assert ForEvents(ALICE, None, (permitted,)).covers(reported, None) is covered


def test_an_instruction_for_an_event_without_a_name_is_for_its_case_only() -> None:
    given = ForEvents(ALICE, NOW, (known(condition="KernelDeadlock"),))
    again = event(condition="KernelDeadlock")

    assert given.covers(again, NOW)
    assert not given.covers(again, NOW + minutes(1))
    assert not given.covers(again, None)


def test_only_a_hold_with_now_stops_a_drain_that_runs() -> None:
    holding = node(annotations={HOLD: hold_text(PersonHold(ALICE))})
    stopping = node(annotations={HOLD: hold_text(PersonHold(ALICE, stops=True))})

    assert stopping_hold(holding, PREFIX, NOW) == ""
    assert "alice@laptop" in stopping_hold(stopping, PREFIX, NOW)
    assert stopping_hold(stopping, PREFIX, NOW + minutes(60)) == ""


def test_a_reason_that_a_reader_would_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="the reason has 1025 characters; write at most 1024"):
        Word(reason="x" * 1025)


def test_the_holds_of_the_ledger_are_read_as_they_were_written() -> None:
    holds = (PersonHold(replace(ALICE, scope="all"), stops=True), PersonHold(Word(scope="pool np1")))

    assert fleet_holds(fleet_text(holds)) == holds
    assert fleet_holds(fleet_text(())) == ()


@pytest.mark.parametrize("text", ["x", "{}", "[7]", "[" + ",".join(["{}"] * 101) + "]", "[" * 9_000])
def test_holds_of_the_ledger_that_cannot_be_read_hold_all_nodes(text: str) -> None:
    (hold,) = fleet_holds(text)

    assert (hold.word.scope, hold.stops) == ("all", False)
    assert hold.word.problem
    assert "reconciler resume --all" in hold.words("")


def test_more_holds_than_a_pass_reads_are_refused() -> None:
    with pytest.raises(ValueError, match="101 pools are held, and 100 are read"):
        fleet_text([PersonHold(Word(scope=f"pool {number}")) for number in range(101)])


@pytest.mark.parametrize("scope", ["pool a; rm -rf /", "pool ", "every", "\x1b[2J"])
def test_a_command_is_shown_for_a_scope_that_is_one(scope: str) -> None:
    hold = said(hold=json.dumps({"scope": scope})).hold

    assert hold is not None
    assert hold.words("a") == "it is held by a person; reconciler resume a ends that"


def test_a_pass_keeps_the_holds_that_a_person_wrote_into_the_ledger_meanwhile() -> None:
    holds = (PersonHold(Word("alice@laptop", scope="all")),)

    assert Ledger(last_start=NOW).merged(Ledger(holds=holds)) == Ledger(last_start=NOW, holds=holds)
    assert Ledger(holds=holds).merged(Ledger()).holds == ()
