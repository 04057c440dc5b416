"""What a pass does with the start of a person: what the drain waits for, and what it does without."""

from __future__ import annotations

import pytest

from reconciler.features.start.feature import FEATURE
from reconciler.features.start.instruction import Start, text_of
from reconciler.model.event import Kind
from reconciler.model.instructions import ForEvents, PersonHold, Word, hold_text
from reconciler.model.moments import to_text
from reconciler.model.plan import NodePlan
from reconciler.model.record import KnownEvent, State
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from tests.support.builders import (
    NOW,
    PREFIX,
    codes,
    held_node,
    known,
    minutes,
    node,
    plan_of,
    planned,
    record,
    reported,
    settings,
    signal,
    snapshot,
)

KEY = f"{PREFIX}/start"
EVENT = known(ids=("E",))
CLOSED = "windows: [{schedule: '0 3 * * *', duration: 1h}]"
FROZEN = f"""notAllowed:
- {{start: '{to_text(NOW - minutes(60))}', end: '{to_text(NOW + minutes(600))}', absolute: true}}"""


def start(*events: KnownEvent, now: bool = False, uid: str = "uid-a") -> dict[str, str]:
    said = ForEvents(Word("alice@laptop", NOW, reason="disk fails"), None, events or (EVENT,))
    return {KEY: text_of(Start(said, now), node(uid=uid))}


def decided(
    annotations: dict[str, str], chosen: Settings | None = None, ledger: Ledger | None = None
) -> NodePlan:
    """The plan of a node with the event `E` of IMDS, and these annotations."""
    said = reported(signal(not_before=NOW + minutes(300), event_id="E"))
    seen = snapshot(node(annotations=annotations), readings={"a": said})
    seen = seen if ledger is None else replace(seen, ledger=ledger)
    return plan_of(planned(seen, chosen))


@pytest.mark.parametrize(
    ("text", "ledger"),
    [
        pytest.param(CLOSED, None, id="a window"),
        pytest.param(
            "windows: [{schedule: '0 3 * * *', duration: 1h}]\nevents: {Reboot: {outsideWindow: Never}}",
            None,
            id="never outside",
        ),
        pytest.param(FROZEN, None, id="an absolute freeze"),
        pytest.param("budget: {maxUnavailable: 0}", None, id="a place"),
        pytest.param("budget: {spacing: 1h}", Ledger(last_start=NOW - minutes(1)), id="spacing"),
        pytest.param("events: {Reboot: {approval: true}}", None, id="an approval"),
    ],
)
def test_a_start_now_waits_for_nothing_that_the_settings_want(text: str, ledger: Ledger | None) -> None:
    chosen = settings(text)
    assert decided({}, chosen, ledger=ledger).todo.drain is None

    found = decided(start(now=True), chosen, ledger=ledger)

    assert found.todo.drain is not None
    assert found.schedule is not None
    assert not found.schedule.missed
    assert any("started by alice@laptop" in step.because for step in found.transitions)


def test_a_start_waits_for_windows_and_places_but_for_no_planned_start_and_no_approval() -> None:
    approval = "events: {Reboot: {approval: true, start: Late}}"
    assert codes(decided({}, settings(approval))) == {"approved"}
    assert codes(decided({}, settings("events: {Reboot: {start: Late}}"))) == {"startPlanned"}

    assert decided(start(), settings(approval)).todo.drain is not None
    assert codes(decided(start(), settings(f"{approval}\n{CLOSED}"))) == {"windowOpen"}
    assert codes(decided(start(), settings(f"{approval}\nbudget: {{maxUnavailable: 0}}"))) == {"budgetLeft"}


def test_the_drain_of_a_start_names_what_it_overrules() -> None:
    begun = next(step for step in decided(start(now=True), settings(CLOSED)).transitions if step.drains)

    assert "which overrules: no maintenance window is open" in begun.because


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param(start(known(ids=("other",)), now=True), id="another event"),
        pytest.param(start(known(Kind.FREEZE, ids=("E",)), now=True), id="less disruptive"),
        pytest.param(start(now=True, uid="uid-b"), id="another node"),
        pytest.param({KEY: "now"}, id="no JSON"),
        pytest.param({KEY: '{"now": true, "uid": "uid-a", "events": 7}'}, id="no events"),
    ],
)
def test_a_start_begins_nothing_but_the_drain_that_it_was_for(annotations: dict[str, str]) -> None:
    assert decided(annotations, settings(CLOSED)).todo.drain is None


def test_a_hold_of_a_person_wins_over_a_start() -> None:
    hold = {f"{PREFIX}/hold": hold_text(PersonHold(Word("bob@laptop", NOW)))}

    found = decided({**start(now=True), **hold}, settings(CLOSED))

    assert (found.todo.drain, codes(found)) == (None, {"notHeld"})


def test_a_node_that_was_started_takes_a_place_from_those_that_were_not() -> None:
    said = reported(signal(not_before=NOW + minutes(300), event_id="E"))
    later = reported(signal(not_before=NOW + minutes(400), event_id="F"))
    started, other = node(annotations=start(now=True)), node("b")
    limited = settings("budget: {maxUnavailable: 1}\nevents: {Reboot: {start: Early}}")

    found = planned(snapshot(started, other, readings={"a": said, "b": later}), limited)

    assert plan_of(found).drain_begins
    assert "budgetLeft" in codes(plan_of(found, "b"))


def test_the_record_says_who_began_the_drain_and_the_end_of_the_case_takes_the_start_away() -> None:
    begun = decided(start(now=True), settings(CLOSED))
    assert begun.record is not None
    person = begun.record.facts.begun
    assert person is not None
    assert (person.did, person.name, person.reason) == ("started", "alice@laptop", "disk fails")
    assert person.words.startswith("started by alice@laptop at")

    over = record(quiet_since=NOW - minutes(60), events=(EVENT,))
    seen = snapshot(held_node(over, annotations=start(now=True)))
    ended = plan_of(planned(seen, settings(CLOSED)))

    assert ended.after is State.OPERATIONAL
    assert ended.todo.write is not None
    assert ended.todo.write.annotations[KEY] is None


def test_the_copy_of_a_start_of_another_node_is_removed() -> None:
    found = decided(start(now=True, uid="uid-b"))

    assert found.todo.write is not None
    assert found.todo.write.annotations[KEY] is None


def test_a_start_that_has_not_begun_yet_stays() -> None:
    write = decided(start(), settings(CLOSED)).todo.write

    assert write is not None
    assert KEY not in write.annotations


def test_a_release_removes_a_start() -> None:
    assert FEATURE.removed is not None
    assert FEATURE.removed(node(annotations=start()), PREFIX).annotations == {KEY: None}
    assert not FEATURE.removed(node(), PREFIX).any
