"""Whether a node with maintenance is guarded, and why not: one fact, decided in each pass."""

from __future__ import annotations

import dataclasses
from datetime import datetime

import pytest

from reconciler.model.errors import SettingsError
from reconciler.model.event import Answer, Kind, PlatformPlan, Reading
from reconciler.model.instructions import PersonHold, Word, hold_text
from reconciler.model.node import Node
from reconciler.model.reconciler import Reconciler, Running
from reconciler.model.record import DrainRecord, State, Uncordoned
from reconciler.model.snapshot import Ledger
from reconciler.model.unguarded import Unguarded, UnguardedWhy
from reconciler.model.values import replace
from reconciler.settings.load import instead_of_rejected
from reconciler.settings.schema import Settings
from tests.support import builders
from tests.support.builders import (
    NOW,
    PREFIX,
    STALE_AFTER,
    codes,
    held_node,
    known,
    minutes,
    node,
    plan_of,
    planned,
    record,
    reported,
    signal,
    snapshot,
)

OTHER_POOL = "nodeSelector: {agentpool: other}"
SOON = NOW + minutes(60)
REDEPLOY = reported(signal(Kind.REDEPLOY, not_before=SOON))
DRAINED = record(events=(known(Kind.REDEPLOY, not_before=SOON),))
DISMISSED = record(State.OPERATIONAL, events=(), dismissed=(known(Kind.REDEPLOY, not_before=SOON),))


def why(
    read: Node,
    chosen: Settings | None = None,
    readings: tuple[Reading, ...] = REDEPLOY,
    ledger: Ledger | None = None,
) -> UnguardedWhy | None:
    """Why nobody guards the node, None if it is guarded."""
    found = unguarded(read, chosen, readings, ledger)
    return found.why if found is not None else None


def unguarded(
    read: Node,
    chosen: Settings | None = None,
    readings: tuple[Reading, ...] = REDEPLOY,
    ledger: Ledger | None = None,
) -> Unguarded | None:
    """What the plan says of the node."""
    seen = snapshot(read, node("b"), readings={read.name: readings}, ledger=ledger or Ledger())
    return plan_of(planned(seen, chosen), read.name).unguarded


def hold(until: datetime | None = None, *, stops: bool = False) -> dict[str, str]:
    """The annotation of a hold that a person gave ten minutes ago."""
    return {f"{PREFIX}/hold": hold_text(PersonHold(Word("alice", NOW - minutes(10), until), stops))}


def test_a_node_of_the_settings_with_its_drain_ahead_is_guarded() -> None:
    assert why(node()) is None
    assert why(held_node(DRAINED)) is None


def test_a_node_that_the_selector_does_not_select_is_in_the_plan_and_unguarded() -> None:
    chosen = builders.settings(OTHER_POOL)
    plan = plan_of(planned(snapshot(node(), readings={"a": REDEPLOY}), chosen))

    assert (codes(plan), plan.acts) == ({"lookedAfter"}, False)
    assert plan.unguarded is not None
    assert plan.unguarded.why is UnguardedWhy.NOT_SELECTED
    assert "reconciler drain a" in plan.unguarded.who


def test_the_ignore_label_leaves_a_node_unguarded() -> None:
    found = unguarded(node(labels={f"{PREFIX}/ignore": "true"}))

    assert found is not None
    assert found.why is UnguardedWhy.NOT_SELECTED
    assert f"kubectl label node a {PREFIX}/ignore-" in found.who


def test_a_node_that_aks_manages_itself_is_not_ours_to_guard() -> None:
    assert why(node(labels={"kubernetes.azure.com/hostedvm": "true"})) is None


@pytest.mark.parametrize("mode", ["Observe", "Finish"])
def test_a_mode_that_starts_no_drain_leaves_a_node_unguarded(mode: str) -> None:
    assert why(node(), builders.settings(mode=mode)) is UnguardedWhy.MODE


def test_observe_leaves_a_drained_node_unguarded_and_finish_brings_it_back() -> None:
    over = reported()

    assert why(held_node(DRAINED), builders.settings(mode="Observe"), over) is UnguardedWhy.MODE
    assert why(held_node(DRAINED), builders.settings(mode="Finish"), over) is None


@pytest.mark.parametrize("kind", [Kind.FREEZE, Kind.LIVE_MIGRATION])
@pytest.mark.parametrize("text", [OTHER_POOL, "mode: Observe"])
def test_what_the_settings_let_pass_on_purpose_leaves_no_node_unguarded(kind: Kind, text: str) -> None:
    seen = snapshot(node(), readings={"a": reported(signal(kind, not_before=SOON))})
    assert [one.unguarded for one in planned(seen, builders.settings(text)).nodes if one.unguarded] == []


def test_an_event_after_an_uncordon_by_hand_leaves_a_node_unguarded() -> None:
    left = replace(DISMISSED, events=DISMISSED.dismissed, uncordoned=Uncordoned(NOW - minutes(5), "kubectl"))
    found = unguarded(held_node(left))

    assert found is not None
    assert (found.why, found.since) == (UnguardedWhy.UNCORDONED_BY_HAND, NOW - minutes(5))
    assert "kubectl uncordoned the node" in found.because
    assert "the platform may start Redeploy from 2026-11-21T13:00:00Z on" in found.because
    assert "reconciler release a" in found.who


def test_the_pass_that_sees_the_uncordon_says_so_at_once() -> None:
    assert why(held_node(DRAINED, unschedulable=False)) is UnguardedWhy.UNCORDONED_BY_HAND


def test_an_event_that_the_program_gave_up_is_dismissed() -> None:
    offer = dataclasses.replace(
        signal(Kind.REDEPLOY, source="arm", not_before=SOON), plan=PlatformPlan(ahead=minutes(120))
    )
    assert why(held_node(DISMISSED), readings=reported(offer)) is UnguardedWhy.DISMISSED


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (None, UnguardedWhy.HELD_BY_PERSON),
        (NOW + minutes(50), UnguardedWhy.HELD_BY_PERSON),
        (NOW + minutes(45), None),
    ],
    ids=["without an end", "until after the latest start", "until the latest start"],
)
def test_a_hold_beyond_the_latest_start_leaves_a_node_unguarded(
    ends: datetime | None, expected: UnguardedWhy | None
) -> None:
    found = unguarded(node(annotations=hold(ends)))

    assert (found.why if found is not None else None) is expected
    if found is not None:
        assert found.since == NOW - minutes(10)
        assert "reconciler resume a" in found.who


def test_a_hold_of_all_nodes_counts_like_one_of_the_node() -> None:
    everything = Ledger(holds=(PersonHold(Word("alice", NOW, scope="all")),))
    assert why(node(), ledger=everything) is UnguardedWhy.HELD_BY_PERSON


def test_a_hold_that_stops_a_drain_leaves_a_node_unguarded_and_one_after_the_drain_does_not() -> None:
    drains = record(events=DRAINED.events, drain=DrainRecord(NOW - minutes(1)))

    assert why(held_node(drains, annotations=hold(stops=True))) is UnguardedWhy.HELD_BY_PERSON
    assert why(held_node(drains, annotations=hold())) is None
    assert why(held_node(DRAINED, annotations=hold(stops=True))) is None


def test_a_case_whose_source_is_silent_is_unguarded_since_its_last_answer_became_too_old() -> None:
    written = NOW - minutes(40)
    silent = (
        dataclasses.replace(REDEPLOY[0], signals=(), answer=Answer.NO_EVENT, as_of=written),
        *REDEPLOY[1:],
    )
    found = unguarded(held_node(DRAINED), readings=silent)

    assert found is not None
    assert (found.why, found.since) == (UnguardedWhy.SOURCE_SILENT, written + STALE_AFTER)
    assert "reconciler release a" in found.who


def test_a_node_that_a_person_drains_is_guarded_by_that_person() -> None:
    by_hand = held_node(record(State.OPERATIONAL, events=()), claimed_by="alice")
    assert why(by_hand, builders.settings(mode="Observe")) is None


def test_settings_that_nobody_can_use_guard_no_node_unless_a_reconciler_has_earlier_ones() -> None:
    chosen = instead_of_rejected(SettingsError(("maintenance.yaml:1:1: mode: is wrong",)))
    found = unguarded(node(), chosen)

    assert found is not None
    assert found.why is UnguardedWhy.SETTINGS_REJECTED
    assert "reconciler check-config" in found.who
    seen = snapshot(node(), readings={"a": REDEPLOY})
    for running, guarded in ((Running.RUNNING, True), (Running.OVERDUE, False), (Running.NEVER, False)):
        plan = planned(replace(seen, reconciler=Reconciler(running)), chosen)
        assert (plan_of(plan).unguarded is None) is guarded
        assert plan.settings.rejected == "maintenance.yaml:1:1: mode: is wrong"


def test_no_node_is_guarded_while_no_reconciler_runs() -> None:
    overdue = Reconciler(Running.OVERDUE, last_pass=NOW - minutes(9))
    seen = replace(snapshot(node(), node("b"), readings={"a": REDEPLOY}), reconciler=overdue)
    found = plan_of(planned(seen)).unguarded

    assert found is not None
    assert (found.why, found.since) == (UnguardedWhy.NO_RECONCILER, NOW - minutes(9))
    # One that has never run has promised nothing.
    assert plan_of(planned(replace(seen, reconciler=Reconciler(Running.NEVER)))).unguarded is None
