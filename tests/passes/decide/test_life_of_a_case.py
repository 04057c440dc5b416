"""The life of a case, pass by pass, and what holds a node from the outside."""

from __future__ import annotations

import dataclasses
import json
from datetime import timedelta

import pytest

from reconciler.drain.claim import ClaimRefused, claim
from reconciler.model.drains import Blocker, DrainOrder, DrainProgress, Phase
from reconciler.model.event import REQUEST as REQUEST_SOURCE
from reconciler.model.event import Kind, PlatformPlan, Status
from reconciler.model.node import AUTOSCALER_TAINT, MECHANIC_LABEL, Node
from reconciler.model.plan import NodePlan
from reconciler.model.record import (
    CaseFacts,
    CaseRecord,
    Claim,
    ClaimKind,
    Cordon,
    DrainRecord,
    PlatformStart,
    Record,
    State,
    from_annotation,
    record_of,
)
from reconciler.model.snapshot import Ledger, Remediator
from reconciler.model.values import replace
from reconciler.model.writes import NodeWrite
from reconciler.passes.release import release
from reconciler.simulation.cluster import SimulatedCluster
from tests.laws.histories import History, patches
from tests.support import builders
from tests.support.builders import (
    DRAIN_NOW,
    IMDS,
    NOW,
    PREFIX,
    RECORD,
    REQUEST,
    STATE,
    WHY,
    codes,
    held_node,
    known,
    minutes,
    node,
    plan_of,
    planned,
    reading,
    record,
    reported,
    signal,
    snapshot,
)
from tests.support.cases import OFFER, PROVIDER_ID, START, TAKEN, drained, self_service
from tests.support.worlds import world_of

CLOSED = 'windows: [{name: night, start: "22:00", end: "23:00"}]'
REBOOT = {"EventId": "A1", "EventType": "Reboot", "EventStatus": "Scheduled"}


def _kept(of: SimulatedCluster, name: str = "a") -> CaseRecord:
    """The record that is on a node."""
    return builders.case_of(of.nodes[name])


def _history(*nodes: Node, text: str = "", mode: str = "Enforce") -> History:
    pods = [builders.pod(f"web-{one.name}", one.name) for one in nodes]
    return History(world_of(nodes, pods), builders.settings(text, mode=mode))


def _written(plan: NodePlan) -> CaseRecord:
    assert plan.todo.write is not None
    text = plan.todo.write.annotations[RECORD]
    assert text is not None
    found = from_annotation(text, plan.todo.write.uid)
    assert found is not None
    return found.case("default")


def test_a_case_from_its_first_event_to_its_end() -> None:
    history = _history(node(annotations={REQUEST: DRAIN_NOW}), node("b"), text=CLOSED)
    history.look()
    waiting = history.cluster.nodes["a"]
    assert (waiting.labels[STATE], waiting.unschedulable) == (State.REQUIRED, False)
    assert waiting.labels[WHY] == "Reboot-announced"

    history.wait(timedelta(hours=10))  # the window opens
    plan, _ = history.look()
    assert plan_of(plan).starts
    assert history.cluster.nodes["a"].labels[STATE] == State.IN_MAINTENANCE
    assert history.cluster.nodes["a"].labels[WHY] == "Reboot-draining"
    assert history.cluster.nodes["a"].unschedulable
    assert history.cluster.pods_on("a") == ()

    history.wait(minutes(1))
    plan, _ = history.look()
    drained = _kept(history.cluster).drain
    assert drained is not None
    assert drained.done == history.now
    assert history.cluster.nodes["a"].labels[WHY] == "Reboot-drained"
    assert [notice.reason for notice in plan_of(plan).todo.notices] == ["MaintenanceDrained"]

    history.cluster.annotate("a", REQUEST, None)
    plan, _ = history.look()
    assert codes(plan_of(plan)) == {"eventsGone"}
    assert _kept(history.cluster).quiet_since == history.now
    assert history.cluster.nodes["a"].labels[WHY] == "Reboot-over"

    history.wait(minutes(2))
    plan, _ = history.look()
    over = history.cluster.nodes["a"]
    assert (over.unschedulable, over.annotations) == (False, {})
    assert over.labels.keys().isdisjoint({STATE, WHY})
    assert [step.after for step in plan_of(plan).transitions] == [State.OPERATIONAL]


def test_where_nothing_holds_it_a_node_goes_from_operational_to_its_drain_in_one_pass() -> None:
    plan = plan_of(planned(snapshot(node(), node("b"), readings={"a": reported(signal())})))

    assert [step.after for step in plan.transitions] == [State.REQUIRED, State.IN_MAINTENANCE]
    assert plan.todo.write is not None
    assert plan.todo.write.unschedulable is True
    assert plan.todo.write.labels == {STATE: "in-maintenance", WHY: "Reboot-draining"}
    assert (plan.todo.write.uid, plan.todo.write.seen_unschedulable) == ("uid-a", False)
    assert _written(plan).events == (known(),)
    assert plan.todo.drain is not None
    assert (plan.todo.drain.uid, plan.todo.drain.since) == ("uid-a", NOW)


def test_without_events_nothing_is_planned() -> None:
    assert planned(snapshot(node(), node("b", unschedulable=True))).nodes == ()


def test_a_foreign_cordon_stays_when_the_case_is_over() -> None:
    history = _history(node(unschedulable=True, annotations={REQUEST: DRAIN_NOW}), node("b"))
    history.until_still()
    assert _kept(history.cluster).cordon is Cordon.FOREIGN
    history.cluster.annotate("a", REQUEST, None)
    history.until_still()
    history.wait(minutes(2))
    history.until_still()

    assert history.cluster.nodes["a"].unschedulable
    assert history.cluster.nodes["a"].annotations == {}
    written = patches(history.api)
    assert written
    assert all(write.unschedulable is None for write in written)


@pytest.mark.parametrize("asks", [True, False])
def test_mechanics_cordon_is_taken_over_without_a_gap(asks: bool) -> None:
    labels = {MECHANIC_LABEL: "true"}
    annotations = {REQUEST: DRAIN_NOW} if asks else {}
    history = _history(
        node(unschedulable=True, labels=labels, annotations=annotations), node("b"), text="adopt: [mechanic]"
    )
    history.look()
    taken = history.cluster.nodes["a"]
    assert (taken.unschedulable, MECHANIC_LABEL in taken.labels) == (True, False)
    assert _kept(history.cluster).cordon is Cordon.ADOPTED_MECHANIC
    assert (_kept(history.cluster).drain is not None) is asks

    history.cluster.annotate("a", REQUEST, None)
    history.look()
    history.wait(minutes(2))
    history.look()
    assert not history.cluster.nodes["a"].unschedulable


def test_a_node_that_waits_for_its_window_is_taken_over_too_when_mechanic_cordons_it() -> None:
    history = _history(node(annotations={REQUEST: DRAIN_NOW}), node("b"), text=f"adopt: [mechanic]\n{CLOSED}")
    history.look()
    history.cluster.cordon("a")
    history.cluster.label("a", MECHANIC_LABEL, "true")
    history.cluster.label("a", STATE, State.REQUIRED)
    history.look()

    assert _kept(history.cluster).cordon is Cordon.ADOPTED_MECHANIC


def test_a_new_event_that_comes_together_with_a_persons_uncordon_is_not_dismissed_with_the_old_one() -> None:
    history = _history(node(annotations={IMDS: builders.published(REBOOT)}), node("b"))
    history.until_still()
    new = {"EventId": "B2", "EventType": "Redeploy", "EventStatus": "Scheduled"}
    history.cluster.annotate("a", IMDS, builders.published(REBOOT, new))
    history.cluster.cordon("a", on=False)
    history.look()
    history.look()

    assert history.cluster.nodes["a"].unschedulable
    assert [one.kind for one in _kept(history.cluster).dismissed] == [Kind.REBOOT]


def test_after_its_last_request_in_vain_a_node_comes_back_and_the_event_is_ignored() -> None:
    asked = drained(self_service(NOW - minutes(60), 3))
    emptied = held_node(replace(asked, drain=DrainRecord(NOW - minutes(90), done=NOW - minutes(80))))
    vm = replace(emptied, provider_id=PROVIDER_ID, boot_id="boot-1")
    plan = dataclasses.replace(OFFER, accept=True)
    offered = signal(Kind.REDEPLOY, source="arm", not_before=START)
    readings = {"a": reported(dataclasses.replace(offered, plan=plan))}
    given_up = plan_of(planned(snapshot(vm, node("b"), readings=readings), TAKEN))

    assert given_up.after is State.OPERATIONAL
    assert [notice.reason for notice in given_up.todo.notices] == ["MaintenanceGivenUp"]
    assert given_up.todo.write is not None
    assert given_up.todo.write.unschedulable is False
    assert [event.kind for event in _written(given_up).dismissed] == [Kind.REDEPLOY]


def test_one_pass_does_not_end_a_case_and_begin_the_next() -> None:
    uncordoned = held_node(record(), unschedulable=False)
    readings = {"a": reported(signal(), signal(Kind.REDEPLOY, event_id="B2"))}
    plan = plan_of(planned(snapshot(uncordoned, node("b"), readings=readings)))

    assert [step.after for step in plan.transitions] == [State.OPERATIONAL]
    assert not plan.starts


def test_an_event_of_another_number_whose_kind_is_unknown_keeps_no_case_open() -> None:
    about = held_node(record(events=(known(ids=("A1",)),)))
    for other, quiet in (("B2", NOW), ("", None)):
        seen = {"a": reported(signal(Kind.UNKNOWN, event_id=other))}
        kept = plan_of(planned(snapshot(about, readings=seen))).record
        assert kept is not None
        assert kept.quiet_since == quiet


def test_a_condition_that_shows_another_event_may_hide_the_one_that_the_case_is_about() -> None:
    about = known(sources=("condition:VMEventScheduled",), ids=("A1",))
    other = reading(signal(Kind.FREEZE, source="condition:VMEventScheduled", event_id="B2"))
    readings = {"a": (dataclasses.replace(other, tells_one=True),)}
    plan = plan_of(planned(snapshot(held_node(record(events=(about,))), node("b"), readings=readings)))

    [hold] = [one for one in plan.holds if one.code == "eventsGone"]
    assert "can't be read now" in hold.reason


def test_a_node_that_the_settings_no_longer_select_in_mid_case_is_reported() -> None:
    chosen = builders.settings("nodeSelector: {agentpool: other}")
    plan = plan_of(planned(snapshot(held_node(record(events=(known(),)))), chosen))

    assert (codes(plan), plan.acts) == ({"lookedAfter"}, False)


def test_a_node_whose_request_is_withdrawn_settles_though_a_plan_weeks_ahead_stays() -> None:
    far = signal(Kind.REDEPLOY, source="arm", not_before=NOW + timedelta(days=14))
    far = dataclasses.replace(far, plan=PlatformPlan())
    about = known(Kind.REDEPLOY, sources=("arm", REQUEST_SOURCE))
    held = held_node(record(events=(about,), drain=DrainRecord(NOW, done=NOW)))
    readings = {"a": reported(far)}
    plan = plan_of(planned(snapshot(held, node("b"), readings=readings)))

    assert (plan.after, _written(plan).quiet_since) == (State.IN_MAINTENANCE, NOW)
    assert max(hold.until for hold in plan.holds if hold.until) == NOW + minutes(2)

    settled = held_node(record(events=(about,), quiet_since=NOW - minutes(2)))

    assert plan_of(planned(snapshot(settled, node("b"), readings=readings))).after is State.OPERATIONAL


def test_a_held_node_stays_for_its_request_when_a_plan_of_the_same_kind_gets_another_date() -> None:
    about = known(Kind.REDEPLOY, not_before=NOW - minutes(60), sources=("arm", REQUEST_SOURCE))
    drained = held_node(record(events=(about,), drain=DrainRecord(NOW, done=NOW)))
    held = replace(drained, annotations={**drained.annotations, f"{PREFIX}/hold": "disk is being copied"})
    asked = signal(Kind.REDEPLOY, source=REQUEST_SOURCE)
    moved = signal(Kind.REDEPLOY, source="arm", not_before=NOW + minutes(60))
    seen = snapshot(held, node("b"), readings={"a": reported(asked, moved)})
    plan = plan_of(planned(seen))

    assert plan.after is State.IN_MAINTENANCE
    assert _written(plan).quiet_since is None


STARTED = {**REBOOT, "EventStatus": "Started", "NotBefore": ""}
REDEPLOY = {**REBOOT, "EventId": "B2", "EventType": "Redeploy"}
NUMBERED = '{"kind": "Reboot", "id": "CHG-%d"}'


@pytest.mark.parametrize(
    ("key", "old", "new"),
    [
        (IMDS, builders.published(REBOOT), builders.published(REDEPLOY)),
        (IMDS, builders.published(STARTED), builders.published(STARTED, {**STARTED, "EventId": "B2"})),
        (REQUEST, NUMBERED % 42, NUMBERED % 43),
    ],
    ids=["another kind", "the same kind", "another request"],
)
def test_a_persons_uncordon_stops_us_until_a_new_event(key: str, old: str, new: str) -> None:
    history = _history(node(annotations={key: old}), node("b"))
    history.until_still()
    history.cluster.cordon("a", on=False)
    plan, _ = history.look()
    assert [step.after for step in plan_of(plan).transitions] == [State.OPERATIONAL]
    for _ in range(3):
        history.wait(minutes(5))
        plan, _ = history.look()
        assert not history.cluster.nodes["a"].unschedulable
        assert codes(plan_of(plan)) == {"dismissed"}

    history.cluster.annotate("a", key, new)
    history.look()
    assert history.cluster.nodes["a"].unschedulable


def test_after_a_second_uncordon_the_first_event_stays_ignored() -> None:
    history = _history(node(annotations={IMDS: builders.published(REBOOT)}), node("b"))
    history.until_still()
    history.cluster.cordon("a", on=False)
    history.until_still()
    history.cluster.annotate("a", IMDS, builders.published(REBOOT, REDEPLOY))
    history.until_still()
    assert history.cluster.nodes["a"].unschedulable

    history.cluster.cordon("a", on=False)
    history.until_still()

    assert not history.cluster.nodes["a"].unschedulable
    assert {one.kind for one in _kept(history.cluster).dismissed} == {Kind.REBOOT, Kind.REDEPLOY}


def test_what_was_dismissed_is_forgotten_once_it_has_gone_and_counts_when_it_comes_back() -> None:
    history = _history(node(annotations={REQUEST: DRAIN_NOW}), node("b"))
    history.until_still()
    history.cluster.cordon("a", on=False)
    history.until_still()
    history.cluster.annotate("a", REQUEST, None)
    history.until_still()
    assert history.cluster.nodes["a"].annotations == {}
    history.cluster.annotate("a", REQUEST, DRAIN_NOW)
    history.until_still()
    assert history.cluster.nodes["a"].unschedulable


def test_an_event_that_changes_its_id_and_its_date_is_the_same_case() -> None:
    first = {**REBOOT, "NotBefore": "Sat, 21 Nov 2026 12:10:00 GMT"}
    second = {**first, "EventId": "B2", "NotBefore": "Sat, 21 Nov 2026 12:20:00 GMT"}
    history = _history(node(annotations={IMDS: builders.published(first)}), node("b"))
    history.until_still()
    history.cluster.annotate("a", IMDS, builders.published(second))
    history.wait(minutes(5))
    history.until_still()

    assert _kept(history.cluster).events == (known(not_before=NOW + minutes(20), ids=("B2",)),)
    assert history.cluster.nodes["a"].unschedulable
    assert [write.unschedulable for write in patches(history.api)].count(True) == 1


def test_the_date_that_azure_empties_at_the_start_is_kept() -> None:
    scheduled = {**REBOOT, "NotBefore": "Sat, 21 Nov 2026 12:10:00 GMT"}
    history = _history(node(annotations={IMDS: builders.published(scheduled)}), node("b"))
    history.until_still()
    history.cluster.annotate("a", IMDS, builders.published(STARTED))
    history.until_still()

    assert _kept(history.cluster).events == (known(not_before=NOW + minutes(10), ids=("A1",)),)


def _draining(name: str = "a", *, since: timedelta = timedelta(), taints: tuple[str, ...] = ()) -> Node:
    """A node in mid-drain for a Reboot that IMDS reported."""
    began = DrainRecord(NOW - since)
    held = record(drain=began, events=(known(ids=("A1",)),))
    return held_node(held, name, taints=taints)


def _running(uid: str = "uid-a", blockers: tuple[Blocker, ...] = ()) -> dict[str, DrainProgress]:
    return {"a": DrainProgress("a", uid, Phase.RUNNING, blockers=blockers)}


POD = {"a": (builders.pod(),)}


def test_a_reboot_that_becomes_a_freeze_stops_the_drain_and_keeps_the_node_until_it_has_gone() -> None:
    freeze = reported(signal(Kind.FREEZE, event_id="a1"))
    seen = snapshot(_draining(), node("b"), readings={"a": freeze}, pods=POD, drains=_running())
    plan = plan_of(planned(seen))

    assert (plan.todo.drain, plan.todo.stop_drain) == (None, True)
    assert (plan.after, codes(plan)) == (State.IN_MAINTENANCE, {"eventsGone"})


def test_an_event_that_is_cancelled_in_mid_drain_stops_the_drain_and_the_node_settles() -> None:
    seen = snapshot(_draining(), node("b"), pods=POD, drains=_running())
    plan = plan_of(planned(seen))

    assert (plan.todo.drain, plan.todo.stop_drain) == (None, True)
    assert _written(plan).quiet_since == NOW
    assert codes(plan) == {"eventsGone"}


def test_a_drain_goes_on_past_the_end_of_its_window() -> None:
    seen = snapshot(_draining(), node("b"), readings={"a": reported(signal(event_id="A1"))}, pods=POD)
    plan = plan_of(planned(seen, builders.settings(CLOSED)))

    assert plan.todo.drain is not None
    assert plan.todo.drain.since == NOW


def test_a_pause_that_started_in_mid_drain_does_not_stop_it_but_starts_none() -> None:
    lm = builders.settings("events: {LiveMigration: {drain: true}}")
    started = reported(signal(Kind.LIVE_MIGRATION, event_id="A1", status=Status.STARTED))
    seen = snapshot(_draining(), node("b"), readings={"a": started, "b": started}, pods=POD)
    plan = planned(seen, lm)

    assert plan_of(plan).todo.drain is not None
    assert plan_of(plan, "b").todo.drain is None
    assert codes(plan_of(plan, "b")) == {"inTime"}


def test_a_drain_that_has_evicted_all_it_may_is_done_and_names_what_it_kept() -> None:
    kept = {"a": (builders.pod("cache", empty_dir=True),)}
    said = {"a": DrainProgress("a", "uid-a", Phase.DRAINED, finished=NOW, since=NOW)}
    readings = {"a": reported(signal(event_id="A1"))}
    plan = plan_of(planned(snapshot(_draining(), node("b"), readings=readings, pods=kept, drains=said)))

    done = _written(plan).drain
    assert done is not None
    assert done.done == NOW
    assert (plan.todo.drain, [blocker.pod for blocker in plan.draining.kept]) == (None, ["shop/cache"])
    assert [notice.message for notice in plan.todo.notices] == ["drained; 1 pod stays: shop/cache"]


def test_a_drain_without_pods_is_done_when_a_drainer_has_looked_for_volumes() -> None:
    def order(**drains: DrainProgress) -> DrainOrder | None:
        readings = {"a": reported(signal(event_id="A1"))}
        begun = _draining(since=minutes(1))
        seen = snapshot(begun, node("b"), readings=readings, pods={"a": ()}, drains=drains)
        return plan_of(planned(seen, builders.settings("drain: {maxConcurrentNodes: 1}"))).todo.drain

    # It needs no slot, because it evicts nothing.
    asked, began, earlier = order(), NOW - minutes(1), NOW - minutes(2)
    assert asked is not None
    assert asked.slots is None
    assert order(a=DrainProgress("a", "uid-a", Phase.DRAINED, since=earlier)) is not None
    assert order(a=DrainProgress("a", "uid-a", Phase.STOPPED, since=began)) is not None
    assert order(a=DrainProgress("a", "uid-a", Phase.DRAINED, since=began)) is None


def test_a_new_event_of_another_kind_lets_more_go_and_drains_again() -> None:
    drained = held_node(record(events=(known(ids=("A1",)),)))
    both = reported(signal(event_id="A1"), signal(Kind.REDEPLOY, event_id="B2"))
    plan = plan_of(planned(snapshot(drained, node("b"), readings={"a": both})))

    assert plan.todo.drain is not None
    assert plan.todo.drain.options.evict_empty_dir
    assert _written(plan).drain == DrainRecord(NOW)


def test_a_node_created_again_under_its_name_is_not_the_one_in_the_record() -> None:
    old = held_node(record(), uid="uid-old")
    fresh = replace(old, uid="uid-new", unschedulable=False)
    seen = snapshot(fresh, node("b"), drains=_running(uid="uid-old"))
    plan = plan_of(planned(seen))

    assert plan.todo.write is not None
    assert plan.todo.write.annotations == {RECORD: None}
    assert plan.todo.write.labels == {STATE: None, WHY: None}
    assert (plan.todo.write.unschedulable, plan.todo.drain, plan.todo.stop_drain) == (None, None, True)


def test_a_drain_on_a_node_that_there_is_nothing_to_say_of_is_stopped() -> None:
    fresh = node(uid="uid-new")
    plan = plan_of(planned(snapshot(fresh, drains=_running(uid="uid-old"))))

    assert plan.todo.stop_drain
    assert plan.todo.write is None


def test_a_node_that_has_vanished_needs_nothing_more() -> None:
    history = _history(node(annotations={REQUEST: DRAIN_NOW}), node("b"))
    history.until_still()
    history.cluster.delete_node("a")
    plan, _ = history.look()

    assert [one for one in plan.nodes if one.todo.write or one.todo.drain] == []


def test_our_own_node_goes_last() -> None:
    asks = {name: reported(signal()) for name in "ab"}
    chosen = builders.settings("budget: {maxUnavailable: 2}")
    plan = planned(snapshot(node("a"), node("b"), readings=asks, own_node="a"), chosen)

    assert [one.node for one in plan.nodes] == ["b", "a"]
    assert plan_of(plan, "b").starts
    assert codes(plan_of(plan, "a")) == {"othersFirst"}
    schedule = plan_of(plan, "a").schedule
    assert schedule is not None
    assert schedule.planned_start is None or schedule.planned_start > NOW


def test_our_own_drain_waits_for_one_that_began_later() -> None:
    asks = {name: reported(signal(event_id="A1")) for name in "ab"}
    seen = snapshot(_draining("a"), _draining("b"), readings=asks, own_node="a", drains=_running())
    plan = planned(seen)

    assert plan_of(plan, "b").todo.drain is not None
    assert (plan_of(plan, "a").todo.drain, plan_of(plan, "a").todo.stop_drain) == (None, True)
    assert codes(plan_of(plan, "a")) == {"othersFirst"}


def test_a_node_that_the_autoscaler_deletes_is_neither_begun_nor_gone_on_with() -> None:
    asks = {name: reported(signal(event_id="A1")) for name in "ab"}
    fresh, going = node("b", taints=(AUTOSCALER_TAINT,)), _draining(taints=(AUTOSCALER_TAINT,))
    plan = planned(snapshot(going, fresh, readings=asks, pods=POD, drains=_running()))

    assert "leftToUs" in codes(plan_of(plan, "b"))
    assert not plan_of(plan, "b").starts
    assert (plan_of(plan).todo.drain, plan_of(plan).todo.stop_drain) == (None, True)
    assert "leftToUs" in codes(plan_of(plan))


def test_a_drain_that_is_held_does_not_time_out() -> None:
    going = _draining(since=minutes(45), taints=(AUTOSCALER_TAINT,))
    plan = plan_of(planned(snapshot(going, readings={"a": reported(signal(event_id="A1"))}, pods=POD)))

    assert plan.todo.notices == ()
    assert plan.todo.write is None


def test_the_mode_finish_begins_nothing_and_ends_what_is_ours() -> None:
    over = held_node(record(quiet_since=NOW - minutes(5)), "b")
    seen = snapshot(node(), over, readings={"a": reported(signal())})
    plan = planned(seen, builders.settings(mode="Finish"))

    assert codes(plan_of(plan)) == {"startsAllowed"}
    assert not plan_of(plan).starts
    ending = plan_of(plan, "b").todo.write
    assert ending is not None
    assert ending.unschedulable is False


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "can't be read"), ('{"version":2,"uid":"uid-a"}', "version 2, but this program knows 1")],
)
def test_a_record_that_can_not_be_read_holds_the_node_and_is_left_alone(text: str, said: str) -> None:
    broken = node(annotations={RECORD: text}, labels={STATE: "in-maintenance"}, unschedulable=True)
    seen = snapshot(broken, readings={"a": reported(signal())}, drains=_running())
    plan = plan_of(planned(seen))

    assert (plan.todo.write, plan.todo.drain, plan.todo.stop_drain) == (None, None, True)
    assert codes(plan) == {"recordReadable"}
    assert said in plan.holds[0].reason
    assert "release a --reset" in plan.holds[0].reason


def test_a_record_that_means_the_same_is_not_written_again() -> None:
    history = _history(node(annotations={REQUEST: DRAIN_NOW}), node("b"), text=CLOSED)
    history.look()
    # As a later program of the same version writes it.
    later = json.dumps({**json.loads(history.cluster.nodes["a"].annotations[RECORD]), "colour": "green"})
    history.cluster.annotate("a", RECORD, later)

    assert plan_of(history.look()[0]).todo.write is None


def test_a_node_that_the_label_takes_out_is_held_and_counts() -> None:
    out = node(labels={"node-maintenance.dev/ignore": "true"}, unschedulable=True)
    seen = snapshot(out, node("b"), readings={name: reported(signal()) for name in "ab"})
    plan = planned(seen, builders.settings("budget: {maxUnavailable: 1}"))

    assert codes(plan_of(plan)) == {"lookedAfter"}
    assert codes(plan_of(plan, "b")) == {"budgetLeft"}
    assert plan.managed == 1


def test_a_node_that_aks_manages_itself_is_held() -> None:
    hosted = node(labels={"kubernetes.azure.com/hostedvm": "true"})
    plan = planned(snapshot(hosted, node("b"), readings={name: reported(signal()) for name in "ab"}))

    assert codes(plan_of(plan)) == {"lookedAfter"}
    assert "AKS manages the node itself" in plan_of(plan).holds[0].reason
    assert plan_of(plan).todo.write is None
    assert plan_of(plan, "b").starts


@pytest.mark.parametrize("shows", [True, False])
def test_the_labels_with_the_state_and_why_can_be_left_out(shows: bool) -> None:
    chosen = builders.settings(f"keys: {{stateLabel: {str(shows).lower()}}}")
    plan = plan_of(planned(snapshot(node(), readings={"a": reported(signal())}), chosen))

    assert plan.todo.write is not None
    assert plan.todo.write.labels == ({STATE: "in-maintenance", WHY: "Reboot-draining"} if shows else {})


def test_a_node_that_the_settings_do_not_select_starts_nothing_and_takes_no_place() -> None:
    chosen = builders.settings("nodeSelector: {agentpool: web}\nbudget: {maxUnavailable: 1}")
    other = node("z", pool="batch", unschedulable=True)
    seen = snapshot(node(pool="web"), other, readings={name: reported(signal()) for name in "az"})
    plan = planned(seen, chosen)

    assert [one.node for one in plan.nodes if one.starts] == ["a"]
    assert [name for name, _ in plan.budget.holders] == ["a"]
    assert codes(plan_of(plan, "z")) == {"lookedAfter"}


def test_a_node_that_a_person_drains_by_hand_is_left_alone_and_holds_a_place() -> None:
    claimed = held_node(record(), claimed_by="alice")
    seen = snapshot(claimed, node("b"), readings={name: reported(signal()) for name in "ab"})
    plan = planned(seen, builders.settings("budget: {maxUnavailable: 1}"))

    assert (plan_of(plan).todo.write, codes(plan_of(plan))) == (None, {"notClaimed"})
    assert "a (drained by hand by alice)" in plan_of(plan, "b").holds[0].reason


def test_a_drain_that_takes_too_long_is_reported_with_what_blocks_it_and_tried_again() -> None:
    blocker = Blocker("shop/web-1", "its budget shop/web allows none", "shop/web")
    seen = snapshot(
        _draining(since=minutes(30)),
        readings={"a": reported(signal(event_id="A1"))},
        pods=POD,
        drains=_running(blockers=(blocker,)),
    )
    plan = plan_of(planned(seen))

    assert _written(plan).drain == DrainRecord(NOW, attempt=2)
    assert plan.todo.drain is not None
    assert plan.todo.drain.since == NOW
    (notice,) = plan.todo.notices
    assert "not drained after 30m, trying again; shop/web-1 its budget" in notice.message
    assert codes(plan) == {"drain"}


def test_only_so_many_nodes_are_drained_at_once() -> None:
    names = ("a", "b", "c")
    seen = snapshot(
        *(_draining(name) for name in names),
        readings={name: reported(signal(event_id="A1")) for name in names},
        pods={name: (builders.pod("web", name),) for name in names},
    )
    plan = planned(seen, builders.settings("drain: {maxConcurrentNodes: 2}"))

    assert [one.node for one in plan.nodes if one.todo.drain is not None] == ["a", "b"]
    assert codes(plan_of(plan, "c")) == {"drainSlot"}


def test_nodes_are_dealt_with_by_date_then_zone_then_name() -> None:
    nodes = [node("d", zone="1"), node("c", zone="2"), node("b", zone="1"), node("a", zone="3")]
    dates = {"a": NOW + minutes(9), "b": None, "c": NOW + minutes(9), "d": None}
    asks = {name: reported(signal(not_before=date)) for name, date in dates.items()}

    assert [one.node for one in planned(snapshot(*nodes, readings=asks)).nodes] == ["c", "a", "b", "d"]


def test_a_start_is_written_into_the_ledger_where_starts_are_spaced() -> None:
    chosen = builders.settings("budget: {maxUnavailable: 3, spacing: 10m}")
    asks = {name: reported(signal()) for name in "ab"}
    first = planned(snapshot(node(), node("b"), readings=asks), chosen)

    assert first.ledger == Ledger(NOW)
    assert plan_of(first, "b").holds[0].until == NOW + minutes(10)
    assert first.next_change == NOW + minutes(10)


def test_the_remediator_and_karpenter_are_reported_once_for_the_cluster() -> None:
    seen = snapshot(
        node(labels={"karpenter.sh/nodepool": "np"}),
        node("b", taints=("remediator.kubernetes.azure.com/unschedulable",)),
        remediator=Remediator(True, on_freeze=True),
    )

    remediator = (
        "AKS's remediator is active: it drains for Redeploy and Preempt by default, drains for Freeze too, "
        "and has tainted 1 node (coexist.aksRemediator: Share)"
    )
    left = "Preempt, Terminate (coexist.karpenter.leave)"
    chosen = builders.settings("coexist: {karpenter: {leave: [Preempt, Terminate]}}")
    assert planned(seen, chosen).notes == (remediator, f"Karpenter manages 1 node; left to it: {left}")


def test_a_label_of_ours_without_a_record_is_taken_away() -> None:
    plan = plan_of(planned(snapshot(node(labels={STATE: "in-maintenance"}))))

    assert plan.todo.write is not None
    assert (plan.todo.write.labels, plan.todo.write.annotations) == ({STATE: None}, {})


def test_every_check_that_stops_a_start_is_a_hold_not_only_the_first() -> None:
    seen = snapshot(node(), readings={"a": reported(signal())}, ledger=Ledger(NOW))
    plan = planned(seen, builders.settings(f"budget: {{maxUnavailable: 0, spacing: 1h}}\n{CLOSED}"))

    assert codes(plan_of(plan)) == {"windowOpen", "spacingKept", "budgetLeft"}
    # A node that the autoscaler removes is out of service already, and needs no second place.
    tainted = replace(seen, nodes=(node(taints=(AUTOSCALER_TAINT,)),))
    plan = planned(tainted, builders.settings(f"budget: {{maxUnavailable: 0, spacing: 1h}}\n{CLOSED}"))
    assert codes(plan_of(plan)) == {"leftToUs", "windowOpen", "spacingKept"}


def test_while_a_drain_goes_on_another_event_that_starts_no_drain_is_no_hold() -> None:
    # The freeze has started: it requires a drain but starts none. A running drain does not wait for it.
    text = "events: {Freeze: {drain: true}}"
    reboot = signal(Kind.REBOOT, event_id="A1")
    freeze = signal(Kind.FREEZE, status=Status.STARTED, event_id="B2")
    events = (known(Kind.FREEZE, ids=("B2",)), known(Kind.REBOOT, ids=("A1",)))
    seen = CaseFacts((PlatformStart(events[0], NOW - minutes(1), 0),))
    undone = replace(record(events=events, drain=DrainRecord(NOW - minutes(1))), facts=seen)
    here = snapshot(
        held_node(undone), readings={"a": reported(reboot, freeze)}, pods={"a": (builders.pod("web-1"),)}
    )

    plan = plan_of(planned(here, builders.settings(text)))

    assert plan.todo.write is None
    assert plan.todo.drain is not None
    assert plan.holds == ()


def _by_hand(history: History, who: str = "alice") -> NodeWrite | ClaimRefused | None:
    """What `reconciler drain` writes."""
    asked = claim(history.cluster.nodes["a"], builders.PREFIX, who, history.now)
    if isinstance(asked, NodeWrite):
        history.api.patch_node(asked)
    return asked


def _by_hand_and_uncordoned(*more: Node, text: str = "") -> History:
    history = _history(node(), *more, text=text)
    _by_hand(history)
    history.until_still()
    history.cluster.cordon("a", on=False)
    return history


def test_a_drain_by_hand_ends_with_its_cordon_and_the_node_is_protected_again() -> None:
    history = _by_hand_and_uncordoned(node("b"), text="budget: {maxUnavailable: 1}")
    history.until_still()
    opened = history.cluster.nodes["a"]
    assert (opened.annotations, STATE in opened.labels) == ({}, False)

    history.cluster.annotate("a", REQUEST, DRAIN_NOW)
    history.until_still()
    assert history.cluster.nodes["a"].unschedulable
    assert _kept(history.cluster).cordon is Cordon.OURS


def test_in_the_pass_that_sees_it_an_open_node_holds_no_place_for_a_person() -> None:
    history = _by_hand_and_uncordoned(
        node("b", annotations={REQUEST: DRAIN_NOW}), text="budget: {maxUnavailable: 1}"
    )
    plan, _ = history.look()

    assert plan_of(plan, "b").starts


def test_after_somebodys_uncordon_another_cordon_is_somebody_elses() -> None:
    history = _by_hand_and_uncordoned(node("b"))
    history.until_still()
    history.cluster.cordon("a")
    history.until_still()

    assert release(history.cluster.nodes["a"], builders.PREFIX, reset=False) is None
    assert history.cluster.nodes["a"].unschedulable


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_after_somebodys_uncordon_a_person_may_drain_it_again_before_any_pass(who: str) -> None:
    history = _by_hand_and_uncordoned(node("b"))

    assert isinstance(_by_hand(history, who), NodeWrite)
    held = record_of(history.cluster.nodes["a"], builders.PREFIX)
    assert isinstance(held, Record)
    assert held.claimed_by == who
    assert history.cluster.nodes["a"].unschedulable


def test_a_record_of_a_drain_by_hand_without_a_cordon_ends_on_an_open_node() -> None:
    bare = Record("uid-a").drained(DrainRecord(NOW), Claim(ClaimKind.PERSON, "alice"))
    plan = plan_of(planned(snapshot(held_node(bare, unschedulable=False))))

    assert plan.todo.write is not None
    assert plan.todo.write.annotations == {RECORD: None}
    assert plan.todo.write.labels == {STATE: None, WHY: None}


def test_the_claim_of_a_profile_beside_a_persons_ends_as_after_any_uncordon() -> None:
    both = held_node(record(events=(known(ids=("A1",)),)), claimed_by="alice", unschedulable=False)
    plan = plan_of(planned(snapshot(both, readings={"a": reported(signal(event_id="A1"))})))

    assert plan.todo.write is not None
    text = plan.todo.write.annotations[RECORD]
    assert text is not None
    left = from_annotation(text, "uid-a")
    assert left is not None
    assert (left.claimed_by, left.cordon, left.drain) == ("", None, None)
    assert [one.ids for one in left.case("default").dismissed] == [("A1",)]


def test_while_it_is_cordoned_the_claim_of_a_person_stays() -> None:
    history = _history(node(annotations={REQUEST: DRAIN_NOW}), node("b"))
    history.cluster.cordon("a")
    assert isinstance(_by_hand(history), NodeWrite)
    plan = history.until_still()

    assert codes(plan_of(plan)) == {"notClaimed"}
    assert isinstance(_by_hand(history, "bob"), ClaimRefused)


def test_the_id_of_a_source_that_can_not_be_read_stays_on_record() -> None:
    both = known(ids=("A1", "X1"), sources=("imds", "request"))
    seen = {"a": (reading(signal(source="request", event_id="X1")), reading(source="imds", unknown="403"))}
    plan = plan_of(planned(snapshot(held_node(record(events=(both,))), readings=seen)))

    assert plan.record is not None
    assert plan.record.events == (both,)
