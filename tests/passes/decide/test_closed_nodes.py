"""A node that is closed already: a new demand asks what every start asks, and an adopted one, too."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.event import Kind
from reconciler.model.node import KARPENTER_LABEL, MECHANIC_LABEL, REMEDIATOR_TAINT, Node
from reconciler.model.plan import NodePlan, NoticeType
from reconciler.model.pod import Pod
from reconciler.model.record import CaseRecord, Cordon, DrainRecord
from reconciler.model.snapshot import Agents, Ledger
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import (
    IMDS,
    NOW,
    REQUEST,
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
from tests.support.cases import machine
from tests.support.strategies import rfc1123
from tests.support.worlds import world_of

SALE = "notAllowed: [{name: sale, start: 2026-11-21, end: 2026-11-22, absolute: true}]"
NIGHT = 'windows: [{name: night, start: "22:00", end: "23:00"}]'
NEVER = f"{NIGHT}\nevents: {{Redeploy: {{outsideWindow: Never, replace: true}}}}"
FAR = NOW + timedelta(days=6)
A1 = known(ids=("A1",))
REBOOT, REDEPLOY = signal(event_id="A1"), signal(Kind.REDEPLOY, event_id="B2", not_before=FAR)
CACHE = builders.pod("cache", empty_dir=True)
WEB = builders.pod("web")


def _plan(
    held: CaseRecord, text: str, *signals: object, pods: tuple[Pod, ...] = (WEB, CACHE), mode: str = "Enforce"
) -> NodePlan:
    on = held_node(held)
    seen = snapshot(on, readings={"a": reported(*signals)}, pods={"a": pods})  # type: ignore[arg-type]
    seen = builders.with_machines(seen, {"a": machine()})
    return plan_of(planned(seen, builders.settings(text, mode=mode)))


REPLACED = "events: {Redeploy: {replace: true}}"


@pytest.mark.parametrize(
    ("text", "because"),
    [
        pytest.param(f"{SALE}\n{REPLACED}", "the freeze is absolute", id="an absolute freeze"),
        pytest.param(SALE.replace("absolute: true", "reason: sale") + f"\n{REPLACED}", "sale", id="a freeze"),
        pytest.param(f"{NIGHT}\n{REPLACED}", "waits for night", id="a window before the deadline"),
        pytest.param(NEVER, "outsideWindow is Never", id="Never"),
    ],
)
@pytest.mark.parametrize("done", [True, False])
def test_a_far_redeploy_neither_evicts_more_nor_takes_the_machine(
    text: str, because: str, done: bool
) -> None:
    held = record(events=(A1,)) if done else record(events=(A1,), drain=DrainRecord(NOW))
    plan = _plan(held, text, REBOOT, REDEPLOY)

    assert not plan.todo.deletes_node
    assert plan.record is not None
    assert [(one.ids, one.waits) for one in plan.record.events] == [(("A1",), False), (("B2",), True)]
    if done:
        assert plan.todo.drain is None
        assert any(because in hold.reason for hold in plan.holds if hold.code == "windowOpen")
    else:
        assert plan.todo.drain is not None
        assert not plan.todo.drain.options.evict_empty_dir


@pytest.mark.parametrize("kind", [Kind.REDEPLOY, Kind.TERMINATE])
def test_a_known_event_of_a_worse_kind_waits_and_its_drain_goes_on_as_it_began(kind: Kind) -> None:
    worse = signal(kind, event_id="A1", not_before=FAR)
    plan = _plan(record(events=(A1,), drain=DrainRecord(NOW)), SALE, worse)

    assert plan.todo.drain is not None
    assert not plan.todo.drain.options.evict_empty_dir


def test_a_drain_ends_with_its_event_while_another_one_may_not_begin() -> None:
    plan = _plan(record(events=(A1,), drain=DrainRecord(NOW)), SALE, REDEPLOY)

    assert plan.todo.drain is None
    assert {"windowOpen", "eventsGone"} <= codes(plan)


def test_at_a_start_too_only_what_may_begin_counts() -> None:
    near = signal(event_id="A1", not_before=NOW + minutes(5))
    seen = snapshot(node(), node("b"), readings={"a": reported(near, REDEPLOY)}, pods={"a": (WEB, CACHE)})
    plan = plan_of(planned(seen, builders.settings(NIGHT)))

    assert plan.starts
    assert plan.todo.drain is not None
    assert not plan.todo.drain.options.evict_empty_dir


def test_the_mode_holds_a_new_demand() -> None:
    seen = snapshot(
        held_node(record(events=(A1,))), readings={"a": reported(REBOOT, REDEPLOY)}, pods={"a": ()}
    )
    plan = plan_of(
        planned(builders.with_machines(seen, {"a": machine()}), builders.settings(REPLACED, mode="Finish"))
    )

    assert (plan.todo.drain, plan.todo.tasks) == (None, ())
    assert "startsAllowed" in codes(plan)


# Adopted nodes.

ADOPT = "adopt: [mechanic]"


def _mechanics(name: str = "a", *, asks: bool = True, taints: tuple[str, ...] = ()) -> Node:
    annotations = {REQUEST: builders.DRAIN_NOW} if asks else {}
    labels = {MECHANIC_LABEL: "true"}
    return node(name, unschedulable=True, labels=labels, annotations=annotations, taints=taints)


def _history(*nodes: Node, text: str = ADOPT, mode: str = "Enforce") -> History:
    pods = [builders.pod(f"web-{one.name}", one.name) for one in nodes]
    return History(world_of(nodes, pods), builders.settings(text, mode=mode))


@pytest.mark.parametrize(
    ("text", "mode", "taints", "code"),
    [
        pytest.param(ADOPT, "Finish", (), "startsAllowed", id="Finish"),
        pytest.param(
            f"{ADOPT}\ncoexist: {{aksRemediator: Leave}}",
            "Enforce",
            (REMEDIATOR_TAINT,),
            "leftToUs",
            id="left to the remediator",
        ),
        pytest.param(f"{ADOPT}\n{SALE}", "Enforce", (), "windowOpen", id="a freeze"),
    ],
)
def test_an_adopted_drain_begins_as_every_start_does(
    text: str, mode: str, taints: tuple[str, ...], code: str
) -> None:
    history = _history(_mechanics(taints=taints), node("b"), text=text, mode=mode)
    plan = history.until_still()

    held = builders.case_of(history.cluster.nodes["a"])
    assert (held.cordon, held.drain) == (Cordon.ADOPTED_MECHANIC, None)
    assert code in codes(plan_of(plan))
    assert history.cluster.nodes["a"].unschedulable


def test_adopted_drains_keep_the_spacing() -> None:
    names = [f"n{number}" for number in range(6)]
    history = _history(*(_mechanics(name) for name in names), text=f"{ADOPT}\nbudget: {{spacing: 1h}}")
    history.until_still()

    def begun() -> list[str]:
        held = {name: builders.case_of(history.cluster.nodes[name]) for name in names}
        return [name for name, one in held.items() if one.drain is not None]

    assert len(begun()) == 1
    assert history.cluster.ledger == Ledger(NOW)
    history.wait(timedelta(hours=1))
    history.until_still()
    assert len(begun()) == 2


@pytest.mark.parametrize("settle", ["0s", "2m"])
def test_an_adopted_node_is_not_opened_while_a_source_is_unknown(settle: str) -> None:
    unknown = (reading(source="imds"), reading(source="condition:VMEventScheduled", unknown="IMDS failed"))
    seen = snapshot(_mechanics(asks=False), readings={"a": unknown})
    chosen = builders.settings(f"{ADOPT}\nuncordon: {{settle: {settle}}}")
    plan = plan_of(planned(seen, chosen))

    assert plan.todo.write is not None
    assert plan.todo.write.unschedulable is None
    assert "eventsGone" in codes(plan)


def test_with_an_agent_that_is_not_ready_an_adopted_node_stays_closed_until_it_is() -> None:
    history = _history(_mechanics(asks=False), node("b"))
    history.cluster.agents = Agents(installed=True, not_ready=frozenset(("a",)))
    history.until_still()
    history.wait(timedelta(hours=2))
    history.until_still()
    assert history.cluster.nodes["a"].unschedulable

    history.cluster.agents = Agents(installed=True)
    history.until_still()
    history.wait(minutes(2))
    history.until_still()
    assert not history.cluster.nodes["a"].unschedulable


def test_an_adopted_node_stays_closed_while_any_event_is_reported_and_settles_after_it() -> None:
    freeze = {"EventId": "F1", "EventType": "Freeze", "EventStatus": "Scheduled", "DurationInSeconds": 9}
    history = _history(_mechanics(asks=False), node("b"))
    history.cluster.annotate("a", IMDS, builders.published(freeze))
    history.until_still()
    history.wait(timedelta(hours=1))
    history.until_still()
    assert history.cluster.nodes["a"].unschedulable

    history.cluster.annotate("a", IMDS, builders.published())
    history.until_still()
    assert history.cluster.nodes["a"].unschedulable
    history.wait(minutes(2))
    history.until_still()
    assert not history.cluster.nodes["a"].unschedulable


# What is left to another tool, on a node that mechanic cordoned.

LEAVE = f"{ADOPT}\ncoexist: {{karpenter: {{leave: [Preempt]}}}}"
LEFT = {"EventId": "P1", "EventType": "Preempt", "EventStatus": "Scheduled"}


def _karpenters() -> Node:
    labels = {MECHANIC_LABEL: "true", KARPENTER_LABEL: "spot"}
    return builders.on_vm(node("a", unschedulable=True, labels=labels), 0)


def _says(history: History, *events: dict[str, str]) -> None:
    history.cluster.annotate("a", IMDS, builders.published(*events, vm=builders.vm_name(0)))


def _opened(history: History) -> bool:
    history.until_still()
    history.wait(minutes(2))
    history.until_still()
    return not history.cluster.nodes["a"].unschedulable


def test_an_adopted_node_with_an_event_that_is_left_to_karpenter_is_not_drained_and_stays_closed() -> None:
    history = _history(_karpenters(), node("b"), text=LEAVE)
    _says(history, LEFT)
    for _ in range(3):
        assert not _opened(history)
        history.wait(timedelta(hours=1))

    held = builders.case_of(history.cluster.nodes["a"])
    assert (held.cordon, held.drain) == (Cordon.ADOPTED_MECHANIC, None)
    assert history.cluster.pods_on("a")
    assert "eventsGone" in codes(plan_of(history.look()[0]))


@pytest.mark.parametrize("seen", [True, False])
def test_an_event_that_is_left_to_karpenter_is_no_miss_of_ours_when_it_starts(seen: bool) -> None:
    history = _history(_karpenters(), node("b"), text=LEAVE)
    _says(history, {**LEFT, "NotBefore": rfc1123(NOW + minutes(5))})
    history.until_still()
    history.wait(minutes(6))
    if seen:
        _says(history, {**LEFT, "EventStatus": "Started", "NotBefore": ""})
        history.until_still()
    _says(history)

    assert _opened(history)
    reasons = [one.notice.reason for one in history.cluster.events]
    assert "MaintenanceMissed" not in reasons
    assert [one.notice.type for one in history.cluster.events] == [NoticeType.NORMAL] * len(reasons)


def test_an_adopted_node_that_is_left_to_the_remediator_is_drained_once_it_is_not_left_any_more() -> None:
    taken = _mechanics(taints=(REMEDIATOR_TAINT,))
    history = _history(taken, node("b"), text=f"{ADOPT}\ncoexist: {{aksRemediator: Leave}}")
    assert not _opened(history)
    assert history.cluster.pods_on("a")
    history.cluster.taint("a", ())
    history.until_still()

    assert history.cluster.pods_on("a") == ()


def test_an_adopted_node_stays_closed_while_the_remediator_is_working_on_it() -> None:
    taken = _mechanics(asks=False, taints=(REMEDIATOR_TAINT,))
    history = _history(taken, node("b"), text=f"{ADOPT}\ncoexist: {{aksRemediator: Leave}}")
    assert not _opened(history)
    assert "leftByRemediator" in codes(plan_of(history.look()[0]))
    history.cluster.taint("a", ())

    assert _opened(history)
