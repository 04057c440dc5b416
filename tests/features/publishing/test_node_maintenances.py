"""NodeMaintenance objects: one for each event, and how long those that have ended are kept."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.features.publishing.node_maintenances import changes, deletions
from reconciler.features.publishing.objects import Maintenance, MaintenanceWrite, Stage
from reconciler.model.event import Kind, Status
from reconciler.model.node import DRAINED, DRAINING, IN_PROGRESS, PLANNED
from reconciler.model.plan import JudgedEvent, NodePlan, NodeStatus
from reconciler.model.record import CaseRecord, State
from reconciler.model.values import replace
from reconciler.passes.plugin import Fleet, ObjectChanges
from tests.support import builders
from tests.support.builders import NOW, PREFIX, known

HISTORY = timedelta(days=7)
FLEET = Fleet((), {}, builders.settings("history: 7d"), NOW)
ENDED = Maintenance("a-0123456789", "a", "uid-a", known(Kind.REBOOT), Stage.DONE, finished=NOW - HISTORY)


@pytest.mark.parametrize("longer_ago", [timedelta(), timedelta(days=1)])
def test_an_ended_object_is_deleted_once_it_was_kept_for_its_time(longer_ago: timedelta) -> None:
    old = replace(ENDED, finished=NOW - HISTORY - longer_ago)

    found = changes([old], FLEET)

    gone = MaintenanceWrite(ENDED.name, "a", PREFIX, None, exists=True)
    assert found == ObjectChanges(writes=(gone,), moments=())


def test_until_then_it_stays_and_the_plan_says_when_it_goes() -> None:
    young = replace(ENDED, finished=NOW - HISTORY + timedelta(seconds=1))

    found = changes([young], FLEET)

    assert found == ObjectChanges(writes=(), moments=(NOW + timedelta(seconds=1),))


def _shown(*ids: str, **more: Any) -> JudgedEvent:
    return builders.judged(builders.event(ids=ids, **more))


def _plan(*events: JudgedEvent, held: CaseRecord | None = None) -> NodePlan:
    state = held.state if held is not None else State.OPERATIONAL
    return NodePlan("a", "", "", state, state, events=events, record=held)


def _pass(
    existing: dict[str, Maintenance], plan: NodePlan, prefix: str = PREFIX, now: datetime = NOW
) -> list[str]:
    """Write what a pass would, and return the names; a create under the name of an object fails."""
    chosen = builders.settings(f"keys: {{prefix: {prefix}}}")
    written = changes(list(existing.values()), Fleet((plan,), {"a": builders.node()}, chosen, now))
    for write in written.writes:
        assert isinstance(write, MaintenanceWrite)
        assert write.exists is (write.name in existing)
        assert write.wanted is not None
        existing[write.name] = write.wanted
    return [write.name for write in written.writes if isinstance(write, MaintenanceWrite)]


STARTED = {"status": Status.STARTED}
SOON = {"not_before": NOW + timedelta(minutes=15)}


@pytest.mark.parametrize(
    "events",
    [
        pytest.param((_shown("A1", **STARTED), _shown("B2", **SOON)), id="one started, one scheduled"),
        pytest.param((_shown("B2", **SOON), _shown("A1", **STARTED)), id="in the other order"),
        pytest.param((_shown("A1"), _shown("B2"), _shown("C3")), id="three without a date"),
        pytest.param((_shown(**STARTED), _shown("B2", **STARTED)), id="one without an id"),
        pytest.param((_shown("A1"), _shown("CHG-42", sources=("request",), **SOON)), id="two sources"),
    ],
)
@pytest.mark.parametrize("held", [None, builders.record(events=(known(ids=("Z9",)),))])
def test_each_event_has_its_own_object_and_the_next_pass_writes_nothing(
    events: tuple[JudgedEvent, ...], held: CaseRecord | None
) -> None:
    existing: dict[str, Maintenance] = {}
    first = _pass(existing, _plan(*events, held=held))

    assert (
        len(set(first)) == len(first) == len(events) + (held is not None and not _known_again(held, events))
    )
    assert _pass(existing, _plan(*events, held=held)) == []
    assert _pass(existing, _plan(*reversed(events), held=held)) == []


def _known_again(held: CaseRecord, events: tuple[JudgedEvent, ...]) -> bool:
    return any(old.matches(one.event) for old in held.events for one in events)


def test_an_event_never_gets_the_name_of_an_object_that_shows_another_one() -> None:
    existing: dict[str, Maintenance] = {}
    _pass(existing, _plan(_shown()))  # An event without an id, which gets one later.
    _pass(existing, _plan(_shown("A1")))
    assert len(existing) == 1

    both = _plan(_shown("A1"), _shown())
    _pass(existing, both)
    assert sorted(one.event.ids for one in existing.values()) == [(), ("A1",)]
    assert _pass(existing, both) == []


def test_a_condition_bears_the_time_of_its_own_last_change() -> None:
    existing: dict[str, Maintenance] = {}
    _pass(existing, _plan(_shown("A1")))
    later = NOW + timedelta(minutes=5)
    _pass(existing, _plan(_shown("A1", **STARTED)), now=later)
    (shown,) = existing.values()

    assert {one.type: (one.status, one.transition) for one in shown.conditions} == {
        PLANNED: ("False", later),
        IN_PROGRESS: ("True", later),
        DRAINING: ("False", NOW),
        DRAINED: ("False", NOW),
    }


def test_two_installations_give_one_event_two_names() -> None:
    names = [_pass({}, _plan(_shown("A1")), prefix) for prefix in (PREFIX, "other.example.org")]

    assert names[0] != names[1]


GOING_ON = replace(ENDED, state=Stage.DRAINED, finished=None)


@pytest.mark.parametrize(("silent", "ended"), [(("condition:VMEventScheduled",), True), (("imds",), False)])
def test_an_object_ends_though_a_source_can_not_be_read_that_never_reported_its_event(
    silent: tuple[str, ...], ended: bool
) -> None:
    unread = tuple((source, "it does not answer") for source in silent)
    plan = replace(_plan(), status=NodeStatus(unread=unread))
    found = changes([GOING_ON], replace(FLEET, plans=(plan,), nodes={"a": builders.node()}))

    assert bool(found.writes) is ended


def test_what_is_no_longer_published_is_deleted_at_once_and_kept_for_its_time_once_it_is_over() -> None:
    young = replace(ENDED, name="young", finished=NOW - timedelta(days=1))
    found = deletions([GOING_ON, ENDED, young], FLEET)

    assert [(write.node, getattr(write, "wanted", young)) for write in found.writes] == [("a", None)] * 2
    assert found.moments == (NOW - timedelta(days=1) + HISTORY,)
