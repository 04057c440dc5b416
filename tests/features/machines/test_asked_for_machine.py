"""A signal that asks itself for a new machine: the node is drained and its machine deleted."""

from __future__ import annotations

import dataclasses

import pytest

from reconciler.model.event import Kind, Signal
from reconciler.model.plan import NodePlan
from reconciler.model.record import CaseRecord, DrainRecord, State
from reconciler.profiles.checks import CHECKS
from reconciler.profiles.state_machine import builtin, walk
from reconciler.profiles.triggers import TRIGGERS
from tests.support import builders
from tests.support.builders import (
    NOW,
    held_node,
    judged,
    known,
    node,
    plan_of,
    planned,
    record,
    reported,
    situation,
    snapshot,
)
from tests.support.cases import machine

PROFILE = builtin("default", TRIGGERS)

OFF = "events: {Redeploy: {drain: false}}"
ASKS = dataclasses.replace(builders.signal(Kind.REDEPLOY, event_id="B2", not_before=None), replaces=True)
B2 = known(Kind.REDEPLOY, ids=("B2",), not_before=None)


def _plan(signal: Signal, text: str, *, drained: bool) -> NodePlan:
    held = record(events=(B2,), drain=DrainRecord(NOW, 1, NOW))
    on = held_node(held) if drained else node()
    seen = snapshot(on, readings={"a": reported(signal)}, pods={"a": ()})
    return plan_of(planned(builders.with_machines(seen, {"a": machine()}), builders.settings(text)))


def test_it_is_drained_for_whatever_the_policy_of_its_kind_says() -> None:
    assert _plan(ASKS, OFF, drained=False).starts


@pytest.mark.parametrize("text", ["", OFF])
def test_its_machine_is_deleted_once_it_is_drained(text: str) -> None:
    assert _plan(ASKS, text, drained=True).todo.deletes_node


def test_another_event_of_that_kind_has_its_policy() -> None:
    other = dataclasses.replace(ASKS, replaces=False)

    assert not _plan(other, OFF, drained=False).starts
    assert not _plan(other, "", drained=True).todo.deletes_node


@pytest.mark.parametrize("asks", [True, False])
def test_it_does_not_wait_for_the_workflow_that_asked_for_it(asks: bool) -> None:
    event = dataclasses.replace(builders.event(Kind.REDEPLOY, not_before=None), replaces=asks)
    held = CaseRecord(State.REQUIRED, NOW, events=(B2,), elsewhere="kubelet")
    walked = walk(PROFILE, situation(None, judged(event), held=held), CHECKS)

    assert (walked.state is State.IN_MAINTENANCE) is asks
    assert ("oneProfile" in {hold.code for hold in walked.holds}) is not asks
