"""Law 19: the node is uncordoned when the last claim is removed, and no profile changes another's data.

A pass decides for one profile today, `default`. The tests put a second one into the record.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.drain.claim import ClaimRefused, claim
from reconciler.model.event import Reading
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan
from reconciler.model.record import (
    CaseRecord,
    Claim,
    ClaimKind,
    Cordon,
    DrainRecord,
    Record,
    State,
    from_annotation,
    record_of,
)
from reconciler.model.values import replace
from reconciler.passes.release import release
from tests.laws.histories import History, Step, hand_steps, platform_steps, small_world, waits
from tests.laws.hits import Hits
from tests.support import builders, strategies
from tests.support.builders import (
    NOW,
    PREFIX,
    RECORD,
    STATE,
    WHY,
    codes,
    held_node,
    minutes,
    node,
    plan_of,
    planned,
    record,
    remembered,
    reported,
    signal,
    snapshot,
)
from tests.support.searching import examples

OTHER = Claim(ClaimKind.PROFILE, "patching")
WAITING = CaseRecord(State.REQUIRED, NOW - minutes(30), cordon=Cordon.OURS)
"""Another profile whose next step is the maintenance, so that it claims the cordon."""

READINGS = (reported(), reported(), reported(signal()), reported(signal(not_before=NOW + minutes(60))))


def shared(mine: CaseRecord, other: CaseRecord = WAITING) -> Record:
    """A record in which the default profile and another one remember something."""
    return remembered(mine).with_case("patching", other, NOW - minutes(30))


def written(plan: NodePlan) -> Record:
    """The record that a plan writes."""
    assert plan.todo.write is not None
    found = from_annotation(plan.todo.write.annotations[RECORD] or "", plan.todo.write.uid)
    assert found is not None
    return found


def of(on: Node, *, asks: bool = False) -> NodePlan:
    """The plan of a node with no event, or one that asks for a drain at once."""
    readings = {"a": reported(signal())} if asks else None
    return plan_of(planned(snapshot(on, node("b"), readings=readings)))


def test_one_profile_leaves_and_the_claim_of_the_other_keeps_the_node_cordoned() -> None:
    over = record(quiet_since=NOW - minutes(5))
    plan = of(held_node(shared(over), unschedulable=True))

    assert [(step.before, step.after) for step in plan.transitions] == [
        (State.IN_MAINTENANCE, State.OPERATIONAL)
    ]
    assert plan.todo.write is not None
    assert plan.todo.write.unschedulable is None
    assert plan.todo.write.labels == {STATE: State.REQUIRED.value, WHY: "patching-announced"}
    (notice,) = plan.todo.notices
    assert notice.message.startswith("maintenance is over: still cordoned for profile:patching")
    left = written(plan)
    assert left.cordon is not None
    assert left.cordon.claims == (OTHER,)
    assert left.drain is None
    assert left.case("patching") == replace(WAITING, node_cordon=Cordon.OURS)
    assert left.profile("default").state is State.OPERATIONAL


def test_the_last_one_to_leave_uncordons() -> None:
    over = remembered(record(quiet_since=NOW - minutes(5)))
    kept = over.with_case("patching", CaseRecord(State.REQUIRED, NOW), NOW)
    plan = of(held_node(kept))

    assert plan.todo.write is not None
    assert plan.todo.write.unschedulable is False
    assert written(plan).profile("patching").state is State.REQUIRED
    assert written(plan).cordon is None


def test_a_start_shares_the_cordon_of_another_profile_instead_of_calling_it_foreign() -> None:
    held = shared(CaseRecord())
    plan = of(held_node(held, unschedulable=True), asks=True)

    assert plan.starts
    started = written(plan)
    assert started.cordon is not None
    assert (started.cordon.whose, started.cordon.since) == (Cordon.OURS, NOW - minutes(30))
    assert started.cordon.claims == (Claim(ClaimKind.PROFILE, "default"), OTHER)
    assert started.drain is not None
    assert started.drain.claims == (Claim(ClaimKind.PROFILE, "default"),)


def test_a_node_is_in_maintenance_for_one_profile_at_a_time() -> None:
    elsewhere = CaseRecord(State.IN_MAINTENANCE, NOW, cordon=Cordon.OURS, drain=DrainRecord(NOW))
    plan = of(held_node(shared(CaseRecord(), elsewhere)), asks=True)

    assert (plan.after, plan.todo.drain, plan.starts) == (State.REQUIRED, None, False)
    assert codes(plan) == {"oneProfile"}
    assert [hold.reason for hold in plan.holds] == [
        "it is in maintenance for profile patching; only one profile at a time"
    ]
    assert written(plan).case("patching") == replace(elsewhere, node_cordon=Cordon.OURS)
    assert plan.todo.write is not None
    assert plan.todo.write.labels == {}


def test_a_persons_uncordon_ends_one_case_and_keeps_the_data_of_the_other() -> None:
    plan = of(held_node(shared(record()), unschedulable=False), asks=True)

    left = written(plan)
    assert left.profile("default").dismissed != ()
    assert left.profile("patching").state is State.REQUIRED


WRITTEN, CLAIMED = Hits(), Hits()


@WRITTEN.at_least(80)
@CLAIMED.at_least(10)
@settings(max_examples=examples(200), deadline=None)
@given(
    strategies.cases() | st.just(record(quiet_since=NOW - minutes(10))),
    strategies.cases(),
    st.sampled_from((True, True, False)),
    st.sampled_from(READINGS),
    st.integers(0, 60),
)
def test_a_change_in_one_profile_keeps_the_other_profiles_data_and_claims(
    mine: CaseRecord, other: CaseRecord, closed: bool, readings: tuple[Reading, ...], later: int
) -> None:
    before = remembered(mine).with_case("patching", other, NOW)
    on = held_node(before, unschedulable=closed)
    seen = snapshot(on, node("b"), readings={"a": readings})
    plan = next(iter(planned(seen, now=NOW + minutes(later)).nodes), None)
    if plan is None or plan.todo.write is None or RECORD not in plan.todo.write.annotations:
        return
    text = plan.todo.write.annotations[RECORD]
    after = from_annotation(text, on.uid) if text else Record(on.uid)
    assert after is not None
    claims = before.cordon is not None and OTHER in before.cordon.claims
    drains = before.drain is not None and OTHER in before.drain.claims

    WRITTEN.count()
    CLAIMED.count(claims and plan.after is State.OPERATIONAL)
    assert after.profile("patching") == before.profile("patching")
    assert (after.cordon is not None and OTHER in after.cordon.claims) == claims
    assert (after.drain is not None and OTHER in after.drain.claims) == drains
    if claims:
        assert plan.todo.write.unschedulable is not False
    if other.state is State.IN_MAINTENANCE:
        assert not plan.starts


def test_release_undoes_what_every_profile_did() -> None:
    write = release(held_node(shared(record()), unschedulable=True), PREFIX, reset=False)

    assert write is not None
    assert (write.unschedulable, dict(write.labels)) == (False, {STATE: None, WHY: None})
    assert dict(write.annotations) == {RECORD: None}


@pytest.mark.parametrize("closed", [False, True])
def test_a_drain_by_hand_claims_cordon_and_drain_beside_a_waiting_case(closed: bool) -> None:
    held = remembered(record(State.REQUIRED))
    write = claim(held_node(held, unschedulable=closed), PREFIX, "ann", NOW)

    assert not isinstance(write, ClaimRefused)
    assert write is not None
    assert write.labels == {STATE: State.IN_MAINTENANCE.value, WHY: "by-hand"}
    found = from_annotation(write.annotations[RECORD] or "", write.uid)
    assert found is not None
    ann = (Claim(ClaimKind.PERSON, "ann"),)
    assert found.cordon is not None
    assert (found.cordon.whose, found.cordon.claims) == (Cordon.FOREIGN if closed else Cordon.OURS, ann)
    assert found.drain is not None
    assert (found.drain.drain, found.drain.claims) == (DrainRecord(NOW), ann)
    assert found.profiles == held.profiles


def test_a_node_in_maintenance_for_any_profile_can_not_be_drained_by_hand() -> None:
    elsewhere = CaseRecord(State.IN_MAINTENANCE, NOW, cordon=Cordon.OURS, drain=DrainRecord(NOW))
    answer = claim(held_node(shared(CaseRecord(), elsewhere)), PREFIX, "ann", NOW)

    assert isinstance(answer, ClaimRefused)
    assert answer.because.startswith("a pass is draining it")


def test_a_pass_leaves_a_record_with_another_profile_alone_where_nothing_happens() -> None:
    on = held_node(shared(CaseRecord()), unschedulable=True)

    assert isinstance(record_of(on, PREFIX), Record)
    assert planned(snapshot(on)).nodes == ()


ENDED = Hits()
_half_by_hand = st.booleans().flatmap(lambda by_hand: hand_steps if by_hand else platform_steps)


@ENDED.at_least(40)
@settings(max_examples=examples(80))
@given(st.lists(st.tuples(_half_by_hand, waits), min_size=3, max_size=8))
def test_over_any_history_a_persons_claim_ends_with_the_cordon(steps: list[tuple[Step, timedelta]]) -> None:
    history = History(small_world(), builders.settings())
    for happen, wait in steps:
        happen(history)
        history.wait(wait)
        ENDED.count(sum(not one.unschedulable for one in _claimed(history).values()))
        plan = history.until_still()

        held = {name for name, why in plan.budget.holders if why.startswith("drained by hand")}
        assert held == set(_claimed(history))
        assert all(one.unschedulable for one in _claimed(history).values())


def _claimed(history: History) -> dict[str, Node]:
    """The nodes with a claim of a person in their records."""
    found = {name: record_of(one, PREFIX) for name, one in history.cluster.nodes.items()}
    return {
        name: history.cluster.nodes[name]
        for name, kept in found.items()
        if isinstance(kept, Record) and kept.claimed_by
    }
