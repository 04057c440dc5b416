"""What people say about a node decides with: no start, no eviction, and a forecast that says so."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.event import Kind
from reconciler.model.instructions import (
    Deferral,
    PersonHold,
    Word,
    deferral_text,
    hold_text,
    instructions_of,
)
from reconciler.model.plan import NodePlan
from reconciler.model.record import DrainRecord, State
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from tests.support import builders
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
    pod,
    record,
    reported,
    settings,
    signal,
    snapshot,
)

SOON = NOW + minutes(10)


def hold(until: datetime | None = None, *, stops: bool = False) -> dict[str, str]:
    return {f"{PREFIX}/hold": hold_text(PersonHold(Word("alice@laptop", NOW, until, "disk copy"), stops))}


def defer(until: datetime) -> dict[str, str]:
    return {f"{PREFIX}/defer": deferral_text(Deferral(Word("bob@laptop", NOW, until)))}


def decided(
    annotations: dict[str, str],
    chosen: Settings | None = None,
    *,
    not_before: datetime | None = SOON,
    kind: Kind = Kind.REBOOT,
    now: datetime = NOW,
) -> NodePlan:
    """The plan of a node with this event of IMDS, with the ID `E`, and these annotations."""
    said = reported(signal(kind, not_before=not_before, event_id="E"))
    seen = snapshot(node(annotations=annotations), readings={"a": said})
    return plan_of(planned(seen, chosen, now))


@pytest.mark.parametrize("kind", [Kind.REBOOT, Kind.PREEMPT])
def test_a_held_node_is_not_drained_at_its_deadline_and_the_forecast_says_who_holds_it(kind: Kind) -> None:
    found = decided(hold(), kind=kind)

    assert found.todo.drain is None
    assert found.after is State.REQUIRED
    assert codes(found) == {"notHeld"}
    assert found.schedule is not None
    assert (found.schedule.planned_start, found.schedule.missed) == (None, True)
    assert "held by alice@laptop" in found.schedule.because
    assert "reconciler resume a" in found.schedule.because


def test_a_drain_is_planned_for_the_end_of_the_hold() -> None:
    found = decided(hold(NOW + minutes(30)), not_before=None)

    assert found.schedule is not None
    assert (found.schedule.planned_start, found.schedule.missed) == (NOW + minutes(30), False)
    assert decided(hold(NOW + minutes(30)), not_before=None, now=NOW + minutes(30)).todo.drain is not None


def test_a_hold_beyond_the_deadline_is_a_miss_that_starts_late() -> None:
    found = decided(hold(NOW + minutes(32)), not_before=NOW + minutes(40))

    assert found.schedule is not None
    assert found.schedule.missed
    assert found.schedule.planned_start == NOW + minutes(32)


def test_a_held_node_holds_no_place_that_another_one_needs() -> None:
    one = settings("budget: {maxUnavailable: 1}")
    said = reported(signal(not_before=SOON, event_id="E"))
    nodes = (node("a", annotations=hold()), node("b"))
    plan = planned(snapshot(*nodes, readings={"a": said, "b": said}), one)

    assert plan_of(plan, "a").todo.drain is None
    assert plan_of(plan, "b").todo.drain is not None


def test_a_hold_of_a_quiet_node_is_reported_and_changes_nothing() -> None:
    found = plan_of(planned(snapshot(node(annotations=hold()))))

    assert found.status.instructions.hold is not None
    assert not found.acts


@pytest.mark.parametrize("stops", [False, True])
def test_only_a_hold_with_now_stops_a_drain_that_runs(stops: bool) -> None:
    case = record(
        events=(known(not_before=SOON, ids=("E",)),),
        drain=DrainRecord(NOW - minutes(1)),
        since=NOW - minutes(1),
    )
    seen = snapshot(
        held_node(case, annotations=hold(stops=stops)),
        readings={"a": reported(signal(not_before=SOON, event_id="E"))},
        pods={"a": (pod(),)},
        drains={"a": DrainProgress("a", "uid-a", Phase.RUNNING, total=1)},
    )
    found = plan_of(planned(seen))

    assert found.after is State.IN_MAINTENANCE
    assert found.todo.stop_drain is stops
    assert (found.todo.drain is None) is stops
    assert ("notStopped" in codes(found)) is stops


def test_a_held_node_is_uncordoned_when_its_maintenance_is_over() -> None:
    case = record(quiet_since=NOW - minutes(10))
    found = plan_of(planned(snapshot(held_node(case, annotations=hold(stops=True)))))

    assert found.todo.write is not None
    assert found.todo.write.unschedulable is False


def test_a_deferral_keeps_a_drain_waiting_until_its_end() -> None:
    found = decided(defer(NOW + minutes(60)), not_before=None)

    assert codes(found) == {"notDeferred"}
    assert found.schedule is not None
    assert found.schedule.planned_start == NOW + minutes(60)


def test_the_deadline_wins_over_a_deferral() -> None:
    later = defer(NOW + minutes(600))
    early = settings("events: {Reboot: {start: Early}}")
    waits = decided(later, early, not_before=NOW + minutes(75))

    assert codes(waits) == {"notDeferred"}
    assert waits.schedule is not None
    assert (waits.schedule.planned_start, waits.schedule.missed) == (NOW + minutes(60), False)
    assert decided(later, early, not_before=NOW + minutes(15)).todo.drain is not None


def test_a_hold_keeps_a_new_event_of_a_node_in_maintenance_waiting() -> None:
    case = record(events=(known(ids=("E",)),))
    both = reported(signal(event_id="E"), signal(Kind.TERMINATE, not_before=SOON, event_id="T"))
    found = plan_of(planned(snapshot(held_node(case, annotations=hold()), readings={"a": both})))

    assert found.record is not None
    assert [one.waits for one in found.record.events if one.kind is Kind.TERMINATE] == [True]
    assert "notHeld" in codes(found)


def test_a_converged_pass_about_a_held_node_writes_nothing() -> None:
    held = replace(
        record(State.REQUIRED, events=(known(not_before=None, ids=("E",)),)), since=NOW - minutes(10)
    )
    annotations = {**hold(), builders.UID: "uid-a"}
    seen = snapshot(held_node(held, annotations=annotations), readings={"a": reported(signal(event_id="E"))})
    plan = planned(seen)

    assert plan_of(plan).todo.write is None
    assert plan.next_change is None or plan.next_change < builders.NOW + minutes(60 * 24 * 365)


@pytest.mark.parametrize(
    ("scope", "held"), [("all", True), ("pool np1", True), ("pool np2", False), ("elsewhere", False)]
)
def test_a_hold_of_the_ledger_is_about_all_nodes_or_about_a_pool(scope: str, held: bool) -> None:
    ledger = Ledger(holds=(PersonHold(Word("alice@laptop", NOW, scope=scope)),))
    said = reported(signal(not_before=SOON, event_id="E"))
    plan = planned(snapshot(node(pool="np1"), readings={"a": said}, ledger=ledger))
    found = plan_of(plan)

    assert ("notHeld" in codes(found)) is held
    assert (found.todo.drain is None) is held
    assert any("held by alice@laptop" in note for note in plan.notes)
    assert plan.ledger is None or plan.ledger.holds == ledger.holds


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('[{"done": "resumed", "by": 1, "word": [], "at": "soon"}, {}]', 2),
        (json.dumps([{"done": "x" * 3000}] * 9), 5),
        ("{}", 0),
        ('[1, null, "a", {"done": "resumed"}]', 1),
        ("[" * 9000, 0),
    ],
)
def test_what_people_have_ended_is_limited_and_harms_nothing(text: str, count: int) -> None:
    found = instructions_of(node(annotations={f"{PREFIX}/said-before": text}), PREFIX, NOW).before

    assert len(found) == count
    assert all(len(str(one)) <= 400 for one in found)


def test_the_hold_that_stops_most_applies() -> None:
    ledger = Ledger(holds=(PersonHold(Word("alice@laptop", scope="all"), stops=True),))
    on = node(annotations=hold())
    found = plan_of(planned(snapshot(on, ledger=ledger)))

    assert found.status.instructions.hold is not None
    assert found.status.instructions.hold.stops
    assert "reconciler resume --all" in found.status.instructions.hold.words("a")
