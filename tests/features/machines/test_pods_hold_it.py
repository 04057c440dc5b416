"""When the machine of a drained node goes: not for an event that waits, and not while pods stay on it."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from reconciler.model.event import Kind, Status
from reconciler.model.plan import NodePlan
from reconciler.model.pod import Pod
from reconciler.model.record import CaseRecord, DrainRecord
from reconciler.model.values import replace
from tests.support import builders
from tests.support.builders import (
    NOW,
    held_node,
    known,
    minutes,
    plan_of,
    planned,
    record,
    reported,
    signal,
    snapshot,
)
from tests.support.cases import machine

FAR = NOW + timedelta(days=6)
A1 = known(ids=("A1",))
REBOOT, REDEPLOY = signal(event_id="A1"), signal(Kind.REDEPLOY, event_id="B2", not_before=FAR)
CACHE = builders.pod("cache", empty_dir=True)
WEB = builders.pod("web")
REPLACED = "events: {Redeploy: {replace: true}}"


def _plan(held: CaseRecord, text: str, *signals: object, pods: tuple[Pod, ...] = (WEB, CACHE)) -> NodePlan:
    on = held_node(held)
    seen = snapshot(on, readings={"a": reported(*signals)}, pods={"a": pods})  # type: ignore[arg-type]
    seen = builders.with_machines(seen, {"a": machine()})
    return plan_of(planned(seen, builders.settings(text)))


def test_once_it_may_begin_the_node_is_drained_for_it_and_then_its_machine_goes() -> None:
    waiting = replace(known(Kind.REDEPLOY, ids=("B2",), not_before=FAR), waits=True)
    plan = _plan(record(events=(A1, waiting)), REPLACED, REBOOT, REDEPLOY)
    assert plan.todo.drain is not None
    assert plan.todo.drain.options.evict_empty_dir
    assert plan.record is not None

    done = replace(plan.record, drain=DrainRecord(NOW, 1, NOW))
    assert _plan(done, REPLACED, REBOOT, REDEPLOY, pods=()).todo.deletes_node


@pytest.mark.parametrize(
    ("stays", "text"),
    [
        pytest.param(CACHE, "", id="emptyDir"),
        pytest.param(builders.pod("bare", owner=""), "", id="unmanaged"),
        pytest.param(
            WEB, "drain: {skipPods: [{namespaces: [shop], selector: {matchLabels: {}}}]}", id="skipPods"
        ),
    ],
)
def test_pods_that_stay_hold_the_machine_and_are_named(stays: Pod, text: str) -> None:
    stuck = known(Kind.UNKNOWN, condition="KernelDeadlock", sources=("condition:KernelDeadlock",))
    deadlock = dataclasses.replace(
        signal(Kind.UNKNOWN, source="condition:KernelDeadlock"), condition="KernelDeadlock"
    )
    chosen = f"conditions: {{KernelDeadlock: {{replace: true}}}}\n{text}"
    plan = _plan(record(events=(stuck,)), chosen, deadlock, pods=(stays,))

    assert not plan.todo.deletes_node
    [hold] = [hold for hold in plan.holds if hold.code == "offerDue"]
    assert f"pods stay on it: {stays.key}" in hold.reason
    assert _plan(record(events=(stuck,)), chosen, deadlock, pods=()).todo.deletes_node


def test_pods_of_daemon_sets_hold_no_machine_and_unknown_pods_do() -> None:
    held = record(events=(known(Kind.REDEPLOY, ids=("B2",), not_before=FAR),))
    assert _plan(held, REPLACED, REDEPLOY, pods=(builders.pod(owner="DaemonSet"),)).todo.deletes_node

    seen = snapshot(held_node(held), readings={"a": reported(REDEPLOY)})
    plan = plan_of(planned(builders.with_machines(seen, {"a": machine()}), builders.settings(REPLACED)))
    assert not plan.todo.deletes_node
    assert "its pods are not known" in next(hold.reason for hold in plan.holds if hold.code == "offerDue")


@pytest.mark.parametrize(
    ("kind", "status", "date", "goes"),
    [
        (Kind.REDEPLOY, Status.SCHEDULED, NOW + minutes(5), False),
        (Kind.REDEPLOY, Status.SCHEDULED, NOW, True),
        (Kind.REDEPLOY, Status.STARTED, None, True),
        (Kind.REBOOT, Status.STARTED, None, False),
    ],
)
def test_pods_hold_the_machine_until_the_platform_takes_it(
    kind: Kind, status: Status, date: object, goes: bool
) -> None:
    told = dataclasses.replace(signal(kind, event_id="B2", status=status), not_before=date)  # type: ignore[arg-type]
    bare = builders.pod("bare", owner="")
    text = "events: {Redeploy: {replace: true}, Reboot: {replace: true}}"
    plan = _plan(record(events=(known(kind, ids=("B2",)),)), text, told, pods=(bare,))

    assert (plan.todo.deletes_node) is goes
