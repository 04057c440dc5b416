"""A drain that needs an approval: no start without one, and a forecast that says so."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconciler.features.approvals.permissions import APPROVED
from reconciler.model.event import Kind
from reconciler.model.instructions import Permission, Word, permission_text
from reconciler.model.plan import NodePlan
from reconciler.model.record import KnownEvent
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

APPROVAL = settings("events: {Reboot: {approval: true}}")
PROCEED = settings("events: {Reboot: {approval: true, approvalMissing: Proceed}}")
SOON = NOW + minutes(10)


def approval(*events: KnownEvent) -> dict[str, str]:
    given = Permission(Word("carol@laptop", NOW), None, events, kind=APPROVED)
    return {f"{PREFIX}/approved": permission_text(given)}


def decided(annotations: dict[str, str], chosen: Settings, *, not_before: datetime | None = SOON) -> NodePlan:
    """The plan of a node with this event of IMDS, with the ID `E`, and these annotations."""
    said = reported(signal(Kind.REBOOT, not_before=not_before, event_id="E"))
    return plan_of(planned(snapshot(node(annotations=annotations), readings={"a": said}), chosen))


def test_a_case_that_waits_for_an_approval_has_no_planned_start() -> None:
    found = decided({}, APPROVAL, not_before=None)

    assert codes(found) == {"approved"}
    assert found.schedule is not None
    assert (found.schedule.planned_start, found.schedule.missed) == (None, False)
    assert "nobody has approved" in found.schedule.because


def test_an_approved_event_is_drained_and_the_next_one_is_not() -> None:
    said = approval(known(ids=("E",)))

    assert decided(said, APPROVAL).todo.drain is not None
    next_one = reported(signal(not_before=SOON, event_id="F"))
    other = snapshot(node(annotations=said), readings={"a": next_one})
    found = plan_of(planned(other, APPROVAL))
    assert found.todo.drain is None
    assert codes(found) == {"approved"}


@pytest.mark.parametrize(("chosen", "drains"), [(APPROVAL, False), (PROCEED, True)])
def test_what_the_deadline_does_to_a_missing_approval_is_a_setting(chosen: Settings, drains: bool) -> None:
    before = decided({}, chosen, not_before=NOW + minutes(45))

    assert codes(before) == {"approved"}
    assert before.schedule is not None
    assert before.schedule.missed is not drains
    assert before.schedule.planned_start == (NOW + minutes(30) if drains else None)
    assert (decided({}, chosen, not_before=NOW + minutes(15)).todo.drain is not None) is drains


def test_an_event_that_needs_no_approval_waits_for_none_of_another_event() -> None:
    said = reported(
        signal(Kind.REBOOT, not_before=SOON, event_id="E"),
        signal(Kind.TERMINATE, not_before=SOON, event_id="T"),
    )
    found = plan_of(planned(snapshot(node(), readings={"a": said}), APPROVAL))

    assert found.todo.drain is not None
    assert found.record is not None
    assert {one.kind: one.waits for one in found.record.events} == {Kind.REBOOT: True, Kind.TERMINATE: False}


def test_the_approval_of_a_case_goes_with_its_end() -> None:
    case = record(quiet_since=NOW - minutes(10))
    on = held_node(case, annotations=approval(known(ids=("E",))))
    write = plan_of(planned(snapshot(on))).todo.write

    assert write is not None
    assert write.annotations[f"{PREFIX}/approved"] is None
